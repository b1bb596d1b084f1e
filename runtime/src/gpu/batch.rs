//! Batches: packs and unpacks of many types in one launch.

use super::kernel::Retired;
use super::on_device::{GpuType, Move};
use super::{Gpu, Shared};
use crate::committed::Committed;
use crate::cuda::module::Function;
use crate::cuda::{CudaError, DeviceBuffer, Stream, graph};
use crate::engine::{Engine, Policy};
use crate::entry::Tier;
use crate::worker::Job;
use dtc_compiler::codegen::cuda::{self, BATCH_ENTRY, BATCH_INLINE, BATCH_KINDS, Batch, Item, generic_batch};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, GpuPlan, Variant};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Kernels that are kept, and tables of items. A code has few kinds of exchanges, and repeats them.
const KERNELS: usize = 64;
const TABLES: usize = 16;

/// One pack or unpack of a batch.
///
/// ```
/// use dtc_runtime::{BatchCall, Committed, Direction};
/// fn face<'a>(face: &'a Committed, memory: *mut u8, packed: *mut u8, bytes: u64) -> BatchCall<'a> {
///     BatchCall { datatype: face, direction: Direction::Pack, memory, count: 1, offset: 0, packed, max: bytes }
/// }
/// ```
#[derive(Clone, Copy)]
pub struct BatchCall<'a> {
    /// The type of the elements.
    pub datatype: &'a Committed,
    /// Which way.
    pub direction: Direction,
    /// The address of element 0; only read by packs.
    pub memory: *mut u8,
    /// How many elements there are.
    pub count: u64,
    /// The first packed byte to move.
    pub offset: u64,
    /// Where it lies; only read by unpacks.
    pub packed: *mut u8,
    /// How many packed bytes to move; less at the end of the elements.
    pub max: u64,
}

/// What a compiled kernel was made for: a type on this device, and how its bytes are moved.
type Kind = (u64, Variant);

/// The kernel for batches of these kinds.
pub(crate) struct BatchSlot {
    kinds: Box<[Kind]>,
    types: Vec<Weak<GpuType>>,
    uses: Arc<AtomicU32>,
    requested: AtomicBool,
    /// The kernel, or nothing if it cannot be compiled.
    kernel: OnceLock<Option<Arc<BatchKernel>>>,
}

/// A compiled kernel.
pub(crate) struct BatchKernel {
    function: Function,
    tables: Option<DeviceBuffer>,
    /// What the kernel does for each of the slot's kinds.
    cases: Vec<u32>,
}

/// Items of a batch that are too many for the parameters of a launch.
struct Table {
    items: Vec<Item>,
    on_device: Arc<DeviceBuffer>,
}

/// What a device knows of batches; most recently used ones first.
#[derive(Default)]
pub(super) struct Batches {
    kernels: Mutex<Vec<Arc<BatchSlot>>>,
    tables: Mutex<Vec<Table>>,
}

/// A call, and the type on its device.
struct Asked<'a> {
    on_device: &'a Arc<GpuType>,
    asked: Move,
    call: Call,
}

impl Engine {
    /// Enqueues packs and unpacks on a CUDA stream as one launch, and returns at once. Returns how many packed bytes will be
    /// moved.
    ///
    /// The calls may be of different types, directions and sizes, and run in any order. May be captured into a graph. Calls of
    /// the same types at the same alignments share a compiled kernel, which is made as the policy says and until then
    /// replaced by a generic one; a batch of many calls that comes again finds its table on the device.
    ///
    /// # Errors
    ///
    /// CUDA refuses. Nothing was enqueued then.
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_enqueue`] and [`Committed::unpack_enqueue`], for every call; and no call writes what another
    /// one reads or writes.
    ///
    /// ```
    /// # use dtc_runtime::cuda::{CudaError, DeviceBuffer, Stream};
    /// use dtc_runtime::{BatchCall, Committed, Direction, Engine};
    /// # fn pack(engine: &Engine, faces: &[Committed], grid: &DeviceBuffer, packed: &[DeviceBuffer], stream: &Stream) -> Result<u64, CudaError> {
    /// let calls: Vec<BatchCall> = faces.iter().zip(packed).map(|(face, packed)| BatchCall {
    ///     datatype: face,
    ///     direction: Direction::Pack,
    ///     memory: grid.address() as *mut u8,
    ///     count: 1,
    ///     offset: 0,
    ///     packed: packed.address() as *mut u8,
    ///     max: packed.len() as u64,
    /// }).collect();
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// unsafe { engine.enqueue_batch(stream, &calls) }
    /// # }
    /// ```
    pub unsafe fn enqueue_batch(&self, stream: &Stream, calls: &[BatchCall<'_>]) -> Result<u64, CudaError> {
        let gpu = self.gpu(stream.device().info().ordinal)?;
        let asked = asked(&gpu, calls);
        // SAFETY: the caller's promise.
        unsafe { gpu.shared.launch_batch(stream, &asked)? };
        Ok(asked.iter().map(|asked| asked.asked.bytes).sum())
    }

    /// Makes a device ready for a batch: brings the lists of its types there and, unless the policy is [`Policy::Off`], compiles
    /// the kernel now. Returns the tier that serves the batch from here on.
    ///
    /// # Errors
    ///
    /// CUDA refuses; a kernel that cannot be compiled is no error, [`Gpu::problem`] tells.
    ///
    /// ```
    /// # fn ready(engine: &dtc_runtime::Engine, gpu: &dtc_runtime::Gpu, calls: &[dtc_runtime::BatchCall]) -> Result<(), Box<dyn std::error::Error>> {
    /// println!("{}", engine.prepare_batch(gpu, calls)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_batch(&self, gpu: &Gpu, calls: &[BatchCall<'_>]) -> Result<Tier, CudaError> {
        gpu.load()?;
        let asked = asked(gpu, calls);
        for asked in &asked {
            asked.on_device.batch_program()?;
        }
        let Some((slot, _)) = gpu.shared.batch_slot(&asked) else { return Ok(Tier::Generic) };
        if gpu.shared.policy != Policy::Off {
            slot.compile(&gpu.shared);
        }
        Ok(if slot.ready().is_some() { Tier::Specialised } else { Tier::Generic })
    }
}

/// What a batch moves, without calls that move nothing.
fn asked<'a>(gpu: &Gpu, calls: &[BatchCall<'a>]) -> Vec<Asked<'a>> {
    let mut asked = Vec::with_capacity(calls.len());
    for &BatchCall { datatype, direction, memory, count, offset, packed, max } in calls {
        let bytes = datatype.length(count, offset, max);
        if bytes > 0 {
            let (memory, packed) = (memory as u64, packed as u64);
            let on_device = datatype.on_device(gpu);
            let call = Call { memory, packed, first: offset, bytes };
            asked.push(Asked {
                on_device,
                asked: Move { direction, memory, packed, count, first: offset, bytes },
                call,
            });
        }
    }
    asked
}

impl Shared {
    /// Enqueues a batch as one launch.
    ///
    /// # Safety
    ///
    /// As for [`GpuType::launch`], for every call.
    unsafe fn launch_batch(self: &Arc<Shared>, stream: &Stream, asked: &[Asked<'_>]) -> Result<(), CudaError> {
        if asked.is_empty() {
            return Ok(());
        }
        if let Some((slot, kinds)) = self.batch_slot(asked)
            && let Some(kernel) = slot.serving(self)
        {
            let tables = kernel.tables.as_ref().map_or(0, DeviceBuffer::address);
            let item = |asked: &Asked<'_>, kind: u32| {
                let bounds = asked.on_device.bounds(asked.asked.count);
                let origin = asked.on_device.plan.layout().root().offset;
                let item = Item {
                    low: bounds.low.saturating_sub(origin),
                    high: bounds.high.saturating_sub(origin),
                    memory: asked.call.memory.wrapping_add(origin as u64),
                    tables,
                    kind: kernel.cases.get(kind as usize).copied().unwrap_or(u32::MAX),
                    ..Item::default()
                };
                let (_, variant) = slot.kinds[kind as usize];
                (item, asked.on_device.plan.batch_blocks(&variant, &asked.call))
            };
            let items = asked.iter().zip(kinds).map(|(asked, kind)| item(asked, kind));
            let (items, blocks) = in_order(asked, items)?;
            graph::keep_in_graph(stream, kernel)?;
            // SAFETY: the caller's promise; the items are those of the kernel's cases.
            return unsafe { self.launch_items(stream, &kernel.function, items, blocks) };
        }
        let mut items = Vec::with_capacity(asked.len());
        for asked in asked {
            let (variant, kind) = generic_batch(asked.asked.direction);
            let program = asked.on_device.batch_program()?;
            graph::keep_in_graph(stream, program)?;
            let bounds = asked.on_device.bounds(asked.asked.count);
            let item = Item {
                low: bounds.low,
                high: bounds.high,
                memory: asked.call.memory,
                tables: program.tables,
                program: program.program.address(),
                kind,
                ..Item::default()
            };
            items.push((item, asked.on_device.plan.batch_blocks(variant, &asked.call)));
        }
        let (items, blocks) = in_order(asked, items.into_iter())?;
        let generic = self.generic()?;
        graph::keep_in_graph(stream, generic)?;
        // SAFETY: the caller's promise; the items are those of the generic kernel.
        unsafe { self.launch_items(stream, generic.batch(), items, blocks) }
    }

    /// Launches a batch kernel for items, whose table is on the device if it was before.
    ///
    /// # Safety
    ///
    /// The kernel may do what the items ask of it.
    unsafe fn launch_items(
        self: &Arc<Shared>,
        stream: &Stream,
        function: &Function,
        items: Vec<Item>,
        blocks: u32,
    ) -> Result<(), CudaError> {
        let mut batch = Batch { count: items.len() as u32, blocks, items: 0, own: [Item::default(); BATCH_INLINE] };
        if let Some(own) = batch.own.get_mut(..items.len()) {
            own.copy_from_slice(&items);
        } else {
            let table = self.batch_table(items, blocks)?;
            graph::keep_in_graph(stream, &table)?;
            batch.items = table.address();
        }
        let mut parameters = [(&raw mut batch).cast()];
        // SAFETY: the caller's promise; a batch kernel has one parameter, a batch.
        unsafe { function.launch(stream, [blocks, 1, 1], [cuda::BATCH_THREADS, 1, 1], 0, &mut parameters) }
    }

    /// The items on the device, and the item of every block behind them.
    fn batch_table(self: &Arc<Shared>, items: Vec<Item>, blocks: u32) -> Result<Arc<DeviceBuffer>, CudaError> {
        let mut tables = self.batches.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tables.iter().position(|table| table.items == items) {
            let table = tables.remove(known);
            let on_device = table.on_device.clone();
            tables.insert(0, table);
            return Ok(on_device);
        }
        drop(tables);
        let mut bytes = Vec::with_capacity(items.len() * size_of::<Item>() + blocks as usize * 4);
        items.iter().for_each(|item| bytes.extend_from_slice(&item.to_bytes()));
        for (number, item) in items.iter().enumerate() {
            let end = items.get(number + 1).map_or(blocks, |next| next.begin);
            (item.begin..end).for_each(|_| bytes.extend_from_slice(&(number as u32).to_ne_bytes()));
        }
        let on_device = Arc::new(DeviceBuffer::holding(&self.uploads, &bytes)?);
        let mut tables = self.batches.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.insert(0, Table { items, on_device: on_device.clone() });
        let kept = TABLES.min(tables.len());
        let forgotten = tables.split_off(kept);
        drop(tables);
        // Launches that read them may still be under way.
        forgotten.into_iter().for_each(|table| self.retire(Retired::Table(table.on_device)));
        Ok(on_device)
    }

    /// The slot of a batch's kinds, and the kind of each of its calls; nothing if no kernel is compiled for such.
    fn batch_slot(self: &Arc<Shared>, asked: &[Asked<'_>]) -> Option<(Arc<BatchSlot>, Vec<u32>)> {
        let mut numbers: HashMap<Kind, u32> = HashMap::new();
        let mut types = Vec::new();
        let mut kinds = Vec::with_capacity(asked.len());
        for Asked { on_device, asked, call } in asked {
            if !on_device.plan.allows_in_batch() {
                return None;
            }
            let kind = (on_device.id, on_device.plan.variant(asked.direction, call));
            let next = numbers.len() as u32;
            let number = *numbers.entry(kind).or_insert(next);
            if number == next {
                if types.len() == BATCH_KINDS {
                    return None;
                }
                types.push((kind, Arc::downgrade(on_device)));
            }
            kinds.push(number);
        }
        let mut known = self.batches.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let is = |slot: &Arc<BatchSlot>| slot.kinds.iter().eq(types.iter().map(|(kind, _)| kind));
        let slot = match known.iter().position(is) {
            Some(at) => known.remove(at),
            None => {
                let (kinds, types) = types.into_iter().unzip::<_, _, Vec<_>, _>();
                Arc::new(BatchSlot {
                    kinds: kinds.into(),
                    types,
                    uses: Arc::default(),
                    requested: AtomicBool::new(false),
                    kernel: OnceLock::new(),
                })
            }
        };
        known.insert(0, slot.clone());
        let kept = KERNELS.min(known.len());
        let forgotten = known.split_off(kept);
        drop(known);
        for slot in forgotten {
            if let Some(Some(kernel)) = slot.kernel.get() {
                self.retire(Retired::Batch(kernel.clone()));
            }
        }
        Some((slot, kinds))
    }
}

impl BatchSlot {
    fn ready(&self) -> Option<&Arc<BatchKernel>> {
        self.kernel.get()?.as_ref()
    }

    /// The kernel if it is there; asks for it if it should be compiled.
    fn serving(self: &Arc<BatchSlot>, gpu: &Arc<Shared>) -> Option<&Arc<BatchKernel>> {
        if let Some(kernel) = self.kernel.get() {
            return kernel.as_ref();
        }
        let uses = self.uses.fetch_add(1, Ordering::Relaxed);
        match gpu.policy {
            Policy::Off => {}
            Policy::Lazy(due) if uses < due => {}
            Policy::Background | Policy::Lazy(_) => {
                if !self.requested.swap(true, Ordering::Relaxed) {
                    let job = Job::Batch(Arc::downgrade(gpu), self.clone(), self.uses.clone());
                    gpu.queue.push(job, gpu.background_thread);
                }
            }
            Policy::Eager | Policy::Always => {
                self.compile(gpu);
                return self.ready();
            }
        }
        None
    }

    /// Compiles the kernel, if that was not tried.
    pub(crate) fn compile(&self, gpu: &Shared) {
        if self.kernel.get().is_none() {
            let kernel = self.load(gpu).unwrap_or_else(|error| {
                gpu.note(error);
                None
            });
            // Another thread may have been faster; its kernel is as good.
            let _ = self.kernel.set(kernel);
        }
    }

    /// The kernel; nothing if a type of the batch is gone, which then cannot come again.
    fn load(&self, gpu: &Shared) -> Result<Option<Arc<BatchKernel>>, CudaError> {
        let Some(types) = self.types.iter().map(Weak::upgrade).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let asked: Vec<(&GpuPlan, Variant)> =
            types.iter().zip(&self.kinds).map(|(on_device, (_, variant))| (&on_device.plan, *variant)).collect();
        let batch = cuda::batch(&asked)?;
        let mut functions = gpu.functions(&batch.program.source, &[BATCH_ENTRY])?;
        let tables = gpu.upload(&batch.program.tables)?;
        let kernel = functions.pop().map(|function| BatchKernel { function, tables, cases: batch.kinds });
        Ok(kernel.map(Arc::new))
    }
}

/// Items with what every kernel needs of their calls, each behind the blocks of those before; and all blocks.
fn in_order(
    asked: &[Asked<'_>],
    items: impl Iterator<Item = (Item, Option<u32>)>,
) -> Result<(Vec<Item>, u32), CudaError> {
    let mut begin: u32 = 0;
    let mut all = Vec::with_capacity(asked.len());
    for (asked, (item, blocks)) in asked.iter().zip(items) {
        let Call { packed, first, bytes, .. } = asked.call;
        all.push(Item { packed, first, bytes, begin, ..item });
        let end = blocks.and_then(|blocks| begin.checked_add(blocks)).filter(|&end| end < 1 << 31);
        begin = end.ok_or(CudaError::GridTooLarge { bytes })?;
    }
    Ok((all, begin))
}
