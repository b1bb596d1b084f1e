//! One type on one device: its plan, its kernels, and how a call is launched.

use super::copies;
use super::generic::Interpreter;
use super::kernel::{Kernel, Slot};
use super::state::DeviceState;
use crate::multiprocessors::Multiprocessors;
use crate::policy::Policy;
use crate::range::Range;
use crate::shape::Shape;
use crate::worker::Job;
use dtc_compiler::codegen::cuda::{GenericKernel, Interpreted, Parameter};
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, GpuPlan, Variant};
use dtc_cuda::module::Function;
use dtc_cuda::{CudaError, DeviceBuffer, Scope, Stream, copy, graph};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Different kernels of one type: alignments, index widths and families in both directions. The
/// generic kernels serve all others. Accumulations have as many slots again.
const SLOTS: usize = 24;

/// A pack or unpack as a device sees it.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub(crate) direction: Direction,
    /// At least one byte, by the addresses that kernels use.
    pub(crate) call: Call,
    /// How many elements there are.
    pub(crate) count: u64,
    pub(crate) multiprocessors: Multiprocessors,
}

impl Move {
    /// `bytes` of it, from byte `at` on, with packed bytes that lie elsewhere.
    pub(crate) fn part(&self, at: u64, bytes: u64, packed: u64) -> Move {
        Move { call: Call { packed, first: self.call.first + at, bytes, ..self.call }, ..*self }
    }

    /// The bytes of the call.
    pub(crate) fn range(&self) -> Range {
        Range::elements(self.count).fragment(self.call.first, self.call.bytes)
    }
}

/// What the elements of a call span in memory, as kernels read it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) low: i64,
    pub(super) high: i64,
}

/// The program of a type, as the generic kernel for batches reads it. A graph keeps it.
pub(super) struct BatchProgram {
    pub(super) program: DeviceBuffer,
    /// Where its lists lie.
    pub(super) tables: u64,
    /// Holds them.
    _interpreter: Arc<Interpreter>,
}

/// A type on a device. Shared by all types of equal layout.
pub(crate) struct GpuType {
    /// No other type of the process has it.
    pub(super) id: u64,
    pub(super) gpu: Arc<DeviceState>,
    /// The canonical layout, by which bundles name its kernels; the one as described, which has none.
    pub(super) layout: Layout,
    pub(super) plan: GpuPlan,
    shape: Shape,
    /// Made at the first call that needs it; tried again at the next one if there was no memory.
    interpreter: OnceLock<Arc<Interpreter>>,
    making_interpreter: Mutex<()>,
    /// Made at the first batch that the generic kernel serves.
    batch_program: OnceLock<Arc<BatchProgram>>,
    slots: [OnceLock<Slot>; SLOTS],
    accumulations: [OnceLock<Slot>; SLOTS],
    /// Calls that the generic kernels served in place of compiled ones.
    heat: Arc<AtomicU32>,
}

impl Drop for GpuType {
    fn drop(&mut self) {
        if self.gpu.device.check_process().is_err() {
            // The parent's lists may be locked here, and nothing can be freed.
            return;
        }
        // Launches of this type may still be running.
        for slot in self.slots.iter_mut().chain(&mut self.accumulations) {
            if let Some(Some(kernel)) = slot.take().and_then(|slot| slot.kernel.into_inner()) {
                self.gpu.retire(kernel);
            }
        }
        if let Some(interpreter) = self.interpreter.take().filter(|interpreter| interpreter.tables.is_some()) {
            self.gpu.retire(interpreter);
        }
        if let Some(program) = self.batch_program.take() {
            self.gpu.retire(program);
        }
    }
}

impl GpuType {
    /// A type by its canonical layout.
    pub(crate) fn new(gpu: Arc<DeviceState>, layout: &Layout, shape: Shape) -> Arc<GpuType> {
        GpuType::planned(gpu, layout, GpuPlan::new(layout), shape)
    }

    /// A type by its layout as described, which generic kernels alone serve.
    pub(crate) fn as_described(gpu: Arc<DeviceState>, layout: &Layout, shape: Shape) -> Arc<GpuType> {
        GpuType::planned(gpu, layout, GpuPlan::as_described(layout), shape)
    }

    fn planned(gpu: Arc<DeviceState>, layout: &Layout, plan: GpuPlan, shape: Shape) -> Arc<GpuType> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(GpuType {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            gpu,
            layout: layout.clone(),
            plan,
            shape,
            interpreter: OnceLock::new(),
            making_interpreter: Mutex::new(()),
            batch_program: OnceLock::new(),
            slots: Default::default(),
            accumulations: Default::default(),
            heat: Arc::default(),
        })
    }

    /// Asks for the usual kernels, or compiles them, as the policy says. No lock is held meanwhile: a call of another thread
    /// is served by the generic kernels.
    pub(crate) fn first_use(self: &Arc<GpuType>) {
        let policy = self.gpu.policy;
        let at_once = matches!(policy, Policy::Eager | Policy::Always);
        if !(at_once || policy == Policy::Background) || !self.plan.allows() || self.gpu.device.check_process().is_err()
        {
            return;
        }
        // True for the first of several threads.
        let requested = self.usual().map(|variant| self.slot(&variant).is_some_and(Slot::request));
        if requested.contains(&true) {
            if at_once {
                self.compile(&self.usual());
            } else {
                self.enqueue(self.usual().to_vec());
            }
        }
    }

    /// The displacement of a contiguous element.
    pub(super) fn origin(&self) -> i64 {
        self.layout.root().offset
    }

    /// The kernels of both directions for whole elements between allocations.
    pub(crate) fn usual(&self) -> [Variant; 2] {
        [Direction::Pack, Direction::Unpack].map(|direction| self.plan.usual(direction))
    }

    /// Whether kernels of both directions are there.
    pub(crate) fn has_kernels(&self) -> bool {
        let there = |direction| {
            let slots = self.slots.iter().map_while(OnceLock::get).filter(|slot| slot.variant.direction == direction);
            slots.into_iter().any(|slot| matches!(slot.kernel.get(), Some(Some(_))))
        };
        there(Direction::Pack) && there(Direction::Unpack)
    }

    /// Compiles the usual kernels and waits.
    pub(crate) fn compile_usual(&self) {
        if self.plan.allows() {
            self.compile(&self.usual());
        }
    }

    fn enqueue(self: &Arc<GpuType>, variants: Vec<Variant>) {
        // Generic kernels serve this call. Their lists are uploaded before: while the background waits until nothing runs, allocations wait with it, and a
        // kernel that runs may wait for this call. Without memory, the call itself says so.
        let _ = self.interpreter();
        let job = Compile { on_device: Arc::downgrade(self), variants, heat: self.heat.clone() };
        self.gpu.queue.push(job, self.gpu.background_thread);
    }

    /// The kernel of a variant, if it is there.
    pub(crate) fn kernel(&self, variant: &Variant) -> Option<&Arc<Kernel>> {
        let slot = self.slots(variant).iter().map_while(OnceLock::get).find(|slot| slot.variant == *variant)?;
        slot.kernel.get()?.as_ref()
    }

    /// The slots of a sort of variants.
    fn slots(&self, variant: &Variant) -> &[OnceLock<Slot>; SLOTS] {
        if matches!(variant.family, Family::Accumulate(_)) { &self.accumulations } else { &self.slots }
    }

    /// The slot of a variant, taken when it is new; nothing when all are taken.
    pub(super) fn slot(&self, variant: &Variant) -> Option<&Slot> {
        let slots = self.slots(variant).iter().map(|slot| slot.get_or_init(|| Slot::new(*variant)));
        slots.into_iter().find(|slot| slot.variant == *variant)
    }

    /// The kernel that serves a variant now, if one does, and asks for it if it should be compiled. Until it is there, and for good where compiling
    /// makes callers wait, the usual kernel serves what it can.
    pub(super) fn serving(self: &Arc<GpuType>, variant: &Variant) -> Option<(Variant, &Arc<Kernel>)> {
        if let Some(kernel) = self.kernel(variant) {
            return Some((*variant, kernel));
        }
        let usual = Some(self.plan.usual(variant.direction)).filter(|usual| usual.covers(variant));
        let asked = match self.gpu.policy {
            Policy::Eager | Policy::Always => usual.unwrap_or(*variant),
            _ => *variant,
        };
        if let Some(kernel) = self.obtained(&asked) {
            return Some((asked, kernel));
        }
        usual.and_then(|usual| Some((usual, self.kernel(&usual)?)))
    }

    /// The kernel of a variant, if it is there or made at once, and asks for it if it should be compiled.
    fn obtained(self: &Arc<GpuType>, variant: &Variant) -> Option<&Arc<Kernel>> {
        let slot = self.slot(variant)?;
        if let Some(kernel) = slot.kernel.get() {
            return kernel.as_ref();
        }
        let uses = slot.count();
        self.heat.fetch_add(1, Ordering::Relaxed);
        match self.gpu.policy {
            Policy::Off => {}
            Policy::Lazy(due) if uses <= due => {}
            Policy::Background | Policy::Lazy(_) => {
                if slot.request() {
                    self.enqueue(vec![*variant]);
                }
            }
            Policy::Eager | Policy::Always => {
                // Where another thread compiles it, the generic kernels serve until it is there.
                if slot.request() {
                    self.compile(&[*variant]);
                }
                return slot.kernel.get()?.as_ref();
            }
        }
        None
    }

    /// Enqueues a call on a CUDA stream, as at most one kernel or one copy. Returns at once.
    ///
    /// # Safety
    ///
    /// The device can read and write both sides, which do not overlap, until the work is done.
    pub(crate) unsafe fn launch(self: &Arc<GpuType>, stream: &Stream, asked: &Move) -> Result<(), CudaError> {
        let Move { direction, call, .. } = *asked;
        let Call { memory, packed, first, bytes } = call;
        if self.plan.is_contiguous() {
            let place = memory.wrapping_add(self.origin() as u64).wrapping_add(first);
            let (to, from) = if direction == Direction::Pack { (packed, place) } else { (place, packed) };
            // SAFETY: contiguous elements lie at `place` as their packed bytes do: the device reaches `bytes` bytes there and at
            // `packed`, and they do not overlap (contract of this function).
            return unsafe { copy::between(stream, to, from, bytes as usize) };
        }
        let most = match asked.multiprocessors {
            Multiprocessors::None => {
                if let Some(copies) = self.plan.copies(&call) {
                    // SAFETY: the copies move the bytes of `call` and no others, which the device reaches on both sides (contract
                    // of this function).
                    return unsafe { copies::enqueue(stream, direction, &copies, memory, packed) };
                }
                u32::MAX
            }
            Multiprocessors::AtMost(most) => most.max(1),
            Multiprocessors::All => u32::MAX,
        };
        if self.plan.allows() {
            let mut variant = self.plan.variant(direction, &call);
            let mut blocks = self.plan.blocks(&variant, &call);
            if blocks.is_some_and(|blocks| blocks > most) {
                variant = variant.capped();
                blocks = self.plan.blocks(&variant, &call);
            }
            if blocks.is_some()
                && let Some((variant, kernel)) = self.serving(&variant)
                && let Some(blocks) = self.plan.blocks(&variant, &call)
            {
                let grid = Grid { work: blocks, blocks: blocks.min(most), threads: variant.threads() };
                // SAFETY: `serving` found the kernel among those of this type, and `blocks` is the grid for the bytes of `call`,
                // which the contract of this function covers.
                return unsafe { self.launch_compiled(stream, kernel, &call, asked.count, grid) };
            }
        }
        let too_large = CudaError::GridTooLarge { bytes };
        let mut kernel = GenericKernel::serving(&self.plan, direction, &call);
        let mut blocks = self.plan.blocks(&kernel.variant, &call).ok_or_else(|| too_large.clone())?;
        if blocks > most {
            kernel = GenericKernel::capped(direction);
            blocks = self.plan.blocks(&kernel.variant, &call).ok_or(too_large)?;
        }
        let interpreter = self.interpreter()?;
        let function = interpreter.generic.function(kernel)?;
        let bounds = self.bounds(asked.count);
        let program = interpreter.program.parameter(&kernel.variant, &call, bounds.low, bounds.high);
        // Only the capped kernels take several blocks of the work.
        let grid = if kernel.variant.capped { blocks.min(most) } else { blocks };
        let grid = Grid { work: blocks, blocks: grid, threads: kernel.variant.threads() };
        // SAFETY: generic kernels end in a program, and this is that of the type. The kernel moves the bytes of `call`, which the
        // contract of this function covers.
        unsafe { interpreter.launch(function, stream, &call, grid, program) }
    }

    /// The compiled kernel that serves a call on all multiprocessors, with its blocks and the threads of each, if it is there.
    pub(super) fn ready(&self, direction: Direction, call: &Call) -> Option<(Arc<Kernel>, u32, u32)> {
        if self.plan.is_contiguous() || !self.plan.allows() {
            return None;
        }
        let mut variant = self.plan.variant(direction, call);
        let mut kernel = self.kernel(&variant);
        if kernel.is_none() {
            variant = Some(self.plan.usual(direction)).filter(|usual| usual.covers(&variant))?;
            kernel = self.kernel(&variant);
        }
        Some((kernel?.clone(), self.plan.blocks(&variant, call)?, variant.threads()))
    }

    /// Launches a kernel that was compiled for this type.
    ///
    /// # Safety
    ///
    /// As for [`GpuType::launch`]; the kernel is one of this type.
    pub(super) unsafe fn launch_compiled(
        &self,
        stream: &Stream,
        kernel: &Arc<Kernel>,
        call: &Call,
        count: u64,
        grid: Grid,
    ) -> Result<(), CudaError> {
        let scope = stream.device().scope()?;
        graph::keep_in_graph(&scope, stream, kernel)?;
        let tables = kernel.tables.as_ref().map_or(0, |tables| tables.address());
        let mut bounds = self.bounds(count);
        // SAFETY: a compiled kernel ends in bounds, to which the last parameter points. The kernel moves the bytes of `call`,
        // which the contract of `GpuType::launch` covers.
        unsafe { launch(&scope, &kernel.function, stream, call, tables, grid, (&raw mut bounds).cast()) }
    }

    /// The generic kernels, and the lists that they read, on the device from the first use on.
    pub(crate) fn interpreter(&self) -> Result<&Arc<Interpreter>, CudaError> {
        if let Some(interpreter) = self.interpreter.get() {
            return Ok(interpreter);
        }
        // One thread makes it: freeing what another made too would wait for the whole device.
        let _making = self.making_interpreter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interpreter) = self.interpreter.get() {
            return Ok(interpreter);
        }
        let generic = self.gpu.generic()?.clone();
        let Interpreted { program, tables: lists } = Interpreted::within(&self.plan, self.gpu.spare_lists());
        let tables = self.gpu.upload(&lists);
        self.gpu.keep_lists(lists);
        let tables = tables?;
        Ok(self.interpreter.get_or_init(|| Arc::new(Interpreter { generic, program, tables })))
    }

    /// The program that the generic kernel for batches interprets, on the device from the first use on.
    pub(super) fn batch_program(&self) -> Result<&Arc<BatchProgram>, CudaError> {
        if let Some(program) = self.batch_program.get() {
            return Ok(program);
        }
        let interpreter = self.interpreter()?.clone();
        let _making = self.making_interpreter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = self.batch_program.get() {
            return Ok(program);
        }
        let parameter = interpreter.program.nodes();
        let bytes: Vec<u8> = parameter.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let program = DeviceBuffer::copy_of(&self.gpu.uploads, &bytes)?;
        let tables = interpreter.tables.as_ref().map_or(0, DeviceBuffer::address);
        Ok(self.batch_program.get_or_init(|| Arc::new(BatchProgram { program, tables, _interpreter: interpreter })))
    }

    /// What the elements span, as far as 64 bits reach.
    pub(super) fn bounds(&self, count: u64) -> Bounds {
        let last = i128::from(count.saturating_sub(1)) * i128::from(self.shape.extent);
        let clamp = |bound: i128| bound.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Bounds {
            low: clamp(i128::from(self.shape.true_lb) + last.min(0)),
            high: clamp(i128::from(self.shape.true_ub) + last.max(0)),
        }
    }
}

/// The background's compiling kernels of a type. `heat` tells how many calls would have used them.
struct Compile {
    on_device: Weak<GpuType>,
    variants: Vec<Variant>,
    heat: Arc<AtomicU32>,
}

impl Job for Compile {
    fn heat(&self) -> u32 {
        self.heat.load(Ordering::Relaxed)
    }

    fn run(&self) {
        if let Some(on_device) = self.on_device.upgrade() {
            on_device.compile(&self.variants);
        }
    }
}

impl Interpreter {
    /// Launches a generic kernel for the type whose program this is.
    ///
    /// # Safety
    ///
    /// As for [`GpuType::launch`]; the kernel ends in a program.
    pub(super) unsafe fn launch(
        self: &Arc<Interpreter>,
        function: &Function,
        stream: &Stream,
        call: &Call,
        grid: Grid,
        mut program: Parameter,
    ) -> Result<(), CudaError> {
        let scope = stream.device().scope()?;
        graph::keep_in_graph(&scope, stream, self)?;
        let tables = self.tables.as_ref().map_or(0, DeviceBuffer::address);
        // SAFETY: the function ends in a program (contract of this function), to which the last parameter points. The function
        // moves the bytes of `call`, which the contract of `GpuType::launch` covers.
        unsafe { launch(&scope, function, stream, call, tables, grid, (&raw mut program).cast()) }
    }
}

/// The shape of a launch.
pub(super) struct Grid {
    /// Blocks of the work.
    work: u32,
    /// Blocks of the grid.
    blocks: u32,
    /// Threads of a block.
    threads: u32,
}

impl Grid {
    /// As many blocks as the work has.
    pub(super) fn all(blocks: u32, threads: u32) -> Grid {
        Grid { work: blocks, blocks, threads }
    }
}

/// Launches a kernel with the parameters that all of them have.
///
/// # Safety
///
/// The scope is of the stream's device. `last` points at the kernel's last parameter. Until the kernel is done, every byte that it reads or writes for `call` is within
/// reach of the device.
pub(super) unsafe fn launch(
    scope: &Scope<'_>,
    function: &Function,
    stream: &Stream,
    call: &Call,
    tables: u64,
    grid: Grid,
    last: *mut c_void,
) -> Result<(), CudaError> {
    let Call { mut memory, mut packed, mut first, mut bytes } = *call;
    let (mut tables, mut work) = (tables, grid.work);
    let mut parameters: [*mut c_void; 7] = [
        (&raw mut memory).cast(),
        (&raw mut packed).cast(),
        (&raw mut tables).cast(),
        (&raw mut first).cast(),
        (&raw mut bytes).cast(),
        (&raw mut work).cast(),
        last,
    ];
    // SAFETY: the first six parameters have the types that every kernel declares, and `last` points at the seventh (contract of
    // this function). All of them live until `launch_within` has copied them. The scope is of the device of stream and module.
    unsafe { function.launch_within(scope, stream, [grid.blocks, 1, 1], [grid.threads, 1, 1], 0, &mut parameters) }
}
