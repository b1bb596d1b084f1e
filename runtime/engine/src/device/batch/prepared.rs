//! Batches as they were launched, for when they come again.

use super::super::device_type::BatchProgram;
use super::super::generic::Generic;
use super::super::multi_type::{KernelCache, MultiTypeKernel};
use super::super::state::DeviceState;
use super::item::BatchItem;
use super::kernel::{BatchKernel, BatchKernelSpec, kernel_of};
use dtc_compiler::codegen::cuda::{BATCH_INLINE, BATCH_THREADS, Batch, Item, generic_batch};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Variant};
use dtc_cuda::module::Function;
use dtc_cuda::{CudaError, DeviceBuffer, Scope, Stream, graph};
use std::sync::{Arc, Mutex, PoisonError};

/// Batches that are kept. A code has few of them, and repeats them.
const KEPT: usize = 32;

/// What a device knows of batches; most recently used ones first.
#[derive(Default)]
pub(crate) struct Batches {
    kernels: KernelCache<BatchKernelSpec>,
    recent: Mutex<Vec<Recent>>,
}

/// A batch that was launched, and its calls.
struct Recent {
    calls: Vec<BatchCall>,
    prepared: Arc<Prepared>,
}

/// By what a call is known again.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BatchCall {
    type_id: u64,
    direction: Direction,
    count: u64,
    call: Call,
}

impl BatchCall {
    fn of(requested: &BatchItem<'_>) -> BatchCall {
        let BatchItem { device_type, direction, count, call } = *requested;
        BatchCall { type_id: device_type.id, direction, count, call }
    }
}

/// What a launch runs, and what it reads.
enum BatchCode {
    Compiled(Arc<BatchKernel>),
    #[expect(dead_code, reason = "the programs are held for the kernel")]
    Generic(Arc<Generic>, Vec<Arc<BatchProgram>>),
}

/// A batch, ready to be launched. A graph keeps it.
pub(crate) struct Prepared {
    /// The kernel that may replace a generic one.
    better: Option<Arc<MultiTypeKernel<BatchKernelSpec>>>,
    code: BatchCode,
    batch: Batch,
    /// The items, and the item of every block, where they do not fit the parameters of a launch.
    table: Option<DeviceBuffer>,
}

impl Prepared {
    /// Whether a compiled kernel has come since, in place of the generic one; asks for it if not.
    pub(crate) fn is_outdated(&self, state: &Arc<DeviceState>) -> bool {
        let BatchCode::Generic(..) = self.code else { return false };
        self.better.as_ref().is_some_and(|better| better.serving(state).is_some())
    }

    /// The items on the device, if they are not in the parameters of the launch.
    pub(crate) fn table(&self) -> Option<&DeviceBuffer> {
        self.table.as_ref()
    }

    /// Replaces the items in the parameters of the launch.
    pub(crate) fn set_own(&mut self, items: &[Item]) {
        self.batch.own[..items.len()].copy_from_slice(items);
    }

    /// An item as it becomes with other addresses; `None` where the kernel has no code for their alignment, or the item needs
    /// other blocks.
    pub(crate) fn moved(&self, items: &[Item], number: usize, requested: &BatchItem<'_>) -> Option<Item> {
        let old = items.get(number)?;
        let (new, blocks) = match (&self.code, &self.better) {
            (BatchCode::Compiled(kernel), Some(better)) => {
                let kind = (
                    requested.device_type.id,
                    requested.device_type.plan.variant(requested.direction, &requested.call),
                );
                let number = better.spec.kinds.iter().position(|known| *known == kind)?;
                kernel.item(requested, kind.1, number)
            }
            (BatchCode::Generic(..), _) => generic_item(requested, requested.device_type.batch_program().ok()?),
            (BatchCode::Compiled(_), None) => return None,
        };
        let end = items.get(number + 1).map_or(self.batch.blocks, |next| next.begin);
        (blocks? == end - old.begin).then_some(Item { begin: old.begin, ..placed(requested, new) })
    }

    /// Enqueues the batch.
    ///
    /// # Safety
    ///
    /// The device can read and write both sides of all calls until the work is done.
    pub(crate) unsafe fn launch(self: &Arc<Prepared>, stream: &Stream) -> Result<(), CudaError> {
        let scope = stream.device().scope()?;
        graph::keep_in_graph(&scope, stream, self)?;
        let function = match &self.code {
            BatchCode::Compiled(kernel) => &kernel.function,
            BatchCode::Generic(generic, _) => generic.batch(),
        };
        // SAFETY: the items are of the cases that the kernel was made for. They address the bytes of the calls, which the device
        // reaches (contract of this function). The scope is of the stream's device.
        unsafe { launch_items(&scope, stream, function, self.batch) }
    }
}

/// Enqueues the kernel of a batch.
///
/// # Safety
///
/// The function is such a kernel, and the items are of its cases: the device can read and write the bytes that they address until the work is
/// done. The scope is of the stream's device.
pub(crate) unsafe fn launch_items(
    scope: &Scope<'_>,
    stream: &Stream,
    function: &Function,
    mut batch: Batch,
) -> Result<(), CudaError> {
    let blocks = batch.blocks;
    let mut parameters = [(&raw mut batch).cast()];
    // SAFETY: a batch kernel has one parameter, a `Batch`, and this one holds what the kernel was made for (contract of this function).
    unsafe { function.launch_within(scope, stream, [blocks, 1, 1], [BATCH_THREADS, 1, 1], 0, &mut parameters) }
}

impl Batches {
    /// The kernel for a batch's kinds, and the kind of each of its calls; nothing if no kernel is compiled for such.
    pub(crate) fn kernel(
        &self,
        state: &Arc<DeviceState>,
        requested: &[BatchItem<'_>],
    ) -> Option<(Arc<MultiTypeKernel<BatchKernelSpec>>, Vec<u32>)> {
        kernel_of(&self.kernels, state, requested)
    }

    /// A batch as it was launched before, or anew if a better kernel is there.
    pub(crate) fn prepared(
        &self,
        state: &Arc<DeviceState>,
        requested: &[BatchItem<'_>],
    ) -> Result<Arc<Prepared>, CudaError> {
        let is = |recent: &Recent| {
            recent.calls.len() == requested.len()
                && recent.calls.iter().copied().eq(requested.iter().map(BatchCall::of))
        };
        let mut all = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(is) {
            all[..=at].rotate_right(1);
            let known = all[0].prepared.clone();
            drop(all);
            if !known.is_outdated(state) {
                return Ok(known);
            }
        } else {
            drop(all);
        }
        let prepared = Arc::new(self.prepare(state, requested)?.0);
        let calls = requested.iter().map(BatchCall::of).collect();
        let mut all = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let (replaced, mut kept): (Vec<_>, Vec<_>) = all.drain(..).partition(is);
        kept.insert(0, Recent { calls, prepared: prepared.clone() });
        let forgotten = kept.split_off(KEPT.min(kept.len()));
        *all = kept;
        drop(all);
        // Launches of them may still be under way.
        replaced.into_iter().chain(forgotten).for_each(|recent| state.retire(recent.prepared));
        Ok(prepared)
    }

    /// A batch, made anew, and its items.
    pub(crate) fn prepare(
        &self,
        state: &Arc<DeviceState>,
        requested: &[BatchItem<'_>],
    ) -> Result<(Prepared, Vec<Item>), CudaError> {
        let (better, kinds) = self.kernel(state, requested).unzip();
        let kernel = better.as_ref().and_then(|better| better.serving(state));
        let (code, items, blocks) = match (&better, kernel, kinds) {
            (Some(better), Some(kernel), Some(kinds)) => {
                let all = requested.iter().zip(kinds);
                let all = all
                    .map(|(requested, kind)| kernel.item(requested, better.spec.kinds[kind as usize].1, kind as usize));
                let (items, blocks) = in_order(requested, all)?;
                (BatchCode::Compiled(kernel.clone()), items, blocks)
            }
            _ => {
                let programs: Result<Vec<_>, _> =
                    requested.iter().map(|requested| requested.device_type.batch_program().cloned()).collect();
                let programs = programs?;
                let all = requested.iter().zip(&programs).map(|(requested, program)| generic_item(requested, program));
                let (items, blocks) = in_order(requested, all)?;
                (BatchCode::Generic(state.generic()?.clone(), programs), items, blocks)
            }
        };
        let mut batch = Batch { count: items.len() as u32, blocks, items: 0, own: [Item::default(); BATCH_INLINE] };
        let table = match batch.own.get_mut(..items.len()) {
            Some(own) => {
                own.copy_from_slice(&items);
                None
            }
            None => Some(DeviceBuffer::copy_of(&state.uploads, &item_table(&items, blocks))?),
        };
        batch.items = table.as_ref().map_or(0, DeviceBuffer::address);
        Ok((Prepared { better, code, batch, table }, items))
    }
}

impl BatchKernel {
    /// An item that is moved as a variant does, which is the kind of this number; and its blocks.
    pub(crate) fn item(&self, requested: &BatchItem<'_>, variant: Variant, kind: usize) -> (Item, Option<u32>) {
        let BatchItem { device_type, count, call, .. } = requested;
        let bounds = device_type.bounds(*count);
        // Kernels count from where the root lies, so that types that differ in that alone share them.
        let origin = device_type.plan.layout().root().offset;
        let item = Item {
            low: bounds.low.saturating_sub(origin),
            high: bounds.high.saturating_sub(origin),
            memory: call.memory.wrapping_add(origin as u64),
            tables: self.lists(),
            kind: self.case(kind),
            ..Item::default()
        };
        (item, device_type.plan.batch_blocks(&variant, call))
    }
}

/// An item of the generic kernel, and its blocks.
fn generic_item(requested: &BatchItem<'_>, program: &BatchProgram) -> (Item, Option<u32>) {
    let BatchItem { device_type, direction, count, call } = requested;
    let (variant, kind) = generic_batch(*direction);
    let bounds = device_type.bounds(*count);
    let item = Item {
        low: bounds.low,
        high: bounds.high,
        memory: call.memory,
        tables: program.tables,
        program: program.program.address(),
        kind,
        ..Item::default()
    };
    (item, device_type.plan.batch_blocks(variant, call))
}

/// An item with what every kernel needs of its call.
pub(crate) fn placed(requested: &BatchItem<'_>, item: Item) -> Item {
    let Call { packed, first, bytes, .. } = requested.call;
    Item { packed, first, bytes, ..item }
}

/// The items of calls, each behind the blocks of those before; and all blocks.
fn in_order(
    requested: &[BatchItem<'_>],
    items: impl Iterator<Item = (Item, Option<u32>)>,
) -> Result<(Vec<Item>, u32), CudaError> {
    let mut begin: u32 = 0;
    let mut all = Vec::with_capacity(requested.len());
    for (requested, (item, blocks)) in requested.iter().zip(items) {
        all.push(Item { begin, ..placed(requested, item) });
        let end = blocks.and_then(|blocks| begin.checked_add(blocks)).filter(|&end| end < 1 << 31);
        begin = end.ok_or(CudaError::GridTooLarge { bytes: requested.call.bytes })?;
    }
    Ok((all, begin))
}

/// The bytes of the items on a device, and the item of every block behind them.
pub(crate) fn item_table(items: &[Item], blocks: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(items) + blocks as usize * 4);
    items.iter().for_each(|item| bytes.extend_from_slice(&item.to_bytes()));
    for (number, item) in items.iter().enumerate() {
        let end = items.get(number + 1).map_or(blocks, |next| next.begin);
        (item.begin..end).for_each(|_| bytes.extend_from_slice(&(number as u32).to_ne_bytes()));
    }
    bytes
}
