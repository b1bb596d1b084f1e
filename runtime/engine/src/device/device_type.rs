//! One type on one device: its plan, its kernels, and how a call is launched.

use super::generic::Interpreter;
use super::kernel::{DeviceKernel, KernelSlot};
use super::state::DeviceState;
use crate::policy::Policy;
use crate::shape::Shape;
use crate::worker::Job;
use dtc_compiler::codegen::cuda::Interpreted;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, GpuPlan, Variant};
use dtc_cuda::{CudaError, DeviceBuffer};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Different kernels of one type: alignments, index widths and families in both directions. The
/// generic kernels serve all others. Accumulations have as many slots again.
const SLOTS: usize = 24;

/// What the elements of a call span in memory, as kernels read it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

/// The program of a type, as the generic kernel for batches reads it. A graph keeps it.
pub(crate) struct BatchProgram {
    pub(crate) program: DeviceBuffer,
    /// Where its lists lie.
    pub(crate) tables: u64,
    /// Holds them.
    _interpreter: Arc<Interpreter>,
}

/// A type on a device. Shared by all types of equal layout.
pub(crate) struct DeviceType {
    /// No other type of the process has it.
    pub(crate) id: u64,
    pub(crate) state: Arc<DeviceState>,
    /// The canonical layout, by which bundles name its kernels; the one as described, which has none.
    pub(crate) layout: Layout,
    pub(crate) plan: GpuPlan,
    shape: Shape,
    /// The kernels of both directions for whole elements between allocations.
    usual: OnceLock<[Variant; 2]>,
    /// Made at the first call that needs it; tried again at the next one if there was no memory.
    interpreter: OnceLock<Arc<Interpreter>>,
    making_interpreter: Mutex<()>,
    /// Made at the first batch that the generic kernel serves.
    batch_program: OnceLock<Arc<BatchProgram>>,
    slots: [OnceLock<KernelSlot>; SLOTS],
    accumulations: [OnceLock<KernelSlot>; SLOTS],
    /// Calls that the generic kernels served in place of compiled ones: the priority of compiling these.
    calls: Arc<AtomicU32>,
}

impl Drop for DeviceType {
    fn drop(&mut self) {
        if self.state.device.check_process().is_err() {
            // The parent's lists may be locked here, and nothing can be freed.
            return;
        }
        // Launches of this type may still be running.
        for slot in self.slots.iter_mut().chain(&mut self.accumulations) {
            if let Some(Some(kernel)) = slot.take().and_then(|slot| slot.kernel.into_inner()) {
                self.state.retire(kernel);
            }
        }
        if let Some(interpreter) = self.interpreter.take().filter(|interpreter| interpreter.tables.is_some()) {
            self.state.retire(interpreter);
        }
        if let Some(program) = self.batch_program.take() {
            self.state.retire(program);
        }
    }
}

impl DeviceType {
    /// A type by its canonical layout.
    pub(crate) fn new(state: Arc<DeviceState>, layout: &Layout, shape: Shape) -> Arc<DeviceType> {
        DeviceType::planned(state, layout, GpuPlan::new(layout), shape)
    }

    /// A type by its layout as described, which generic kernels alone serve.
    pub(crate) fn as_described(state: Arc<DeviceState>, layout: &Layout, shape: Shape) -> Arc<DeviceType> {
        DeviceType::planned(state, layout, GpuPlan::as_described(layout), shape)
    }

    fn planned(state: Arc<DeviceState>, layout: &Layout, plan: GpuPlan, shape: Shape) -> Arc<DeviceType> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(DeviceType {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            state,
            layout: layout.clone(),
            plan,
            shape,
            usual: OnceLock::new(),
            interpreter: OnceLock::new(),
            making_interpreter: Mutex::new(()),
            batch_program: OnceLock::new(),
            slots: Default::default(),
            accumulations: Default::default(),
            calls: Arc::default(),
        })
    }

    /// Asks for the usual kernels, or compiles them, as the policy says. No lock is held meanwhile: a call of another thread
    /// is served by the generic kernels.
    pub(crate) fn first_use(self: &Arc<DeviceType>) {
        let policy = self.state.policy;
        let at_once = matches!(policy, Policy::Eager | Policy::Always);
        if !(at_once || policy == Policy::Background)
            || !self.plan.allows()
            || self.state.device.check_process().is_err()
        {
            return;
        }
        // True for the first of several threads.
        let requested = self.usual().map(|variant| self.slot(&variant).is_some_and(KernelSlot::request));
        if requested.contains(&true) {
            if at_once {
                self.compile(&self.usual());
            } else {
                self.enqueue(self.usual().to_vec());
            }
        }
    }

    /// The displacement of a contiguous element.
    pub(crate) fn origin(&self) -> i64 {
        self.layout.root().offset
    }

    /// The kernels of both directions for whole elements between allocations.
    pub(crate) fn usual(&self) -> [Variant; 2] {
        *self.usual.get_or_init(|| [Direction::Pack, Direction::Unpack].map(|direction| self.plan.usual(direction)))
    }

    /// The kernel of a direction for whole elements between allocations, if it serves what another one does.
    fn usual_for(&self, variant: &Variant) -> Option<Variant> {
        Some(self.usual()[variant.direction as usize]).filter(|usual| usual.covers(variant))
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

    fn enqueue(self: &Arc<DeviceType>, variants: Vec<Variant>) {
        // Generic kernels serve this call. Their lists are uploaded before: while the background waits until nothing runs, allocations wait with it, and a
        // kernel that runs may wait for this call. Without memory, the call itself says so.
        let _ = self.interpreter();
        let job = CompileVariants { device_type: Arc::downgrade(self), variants, calls: self.calls.clone() };
        self.state.queue.push(job, self.state.background_thread);
    }

    /// The kernel of a variant, if it is there.
    pub(crate) fn kernel(&self, variant: &Variant) -> Option<&Arc<DeviceKernel>> {
        let slot = self.slots(variant).iter().map_while(OnceLock::get).find(|slot| slot.variant == *variant)?;
        slot.kernel.get()?.as_ref()
    }

    /// The slots of a sort of variants.
    fn slots(&self, variant: &Variant) -> &[OnceLock<KernelSlot>; SLOTS] {
        if matches!(variant.family, Family::Accumulate(_)) { &self.accumulations } else { &self.slots }
    }

    /// The slot of a variant, taken when it is new; nothing when all are taken.
    pub(crate) fn slot(&self, variant: &Variant) -> Option<&KernelSlot> {
        let slots = self.slots(variant).iter().map(|slot| slot.get_or_init(|| KernelSlot::new(*variant)));
        slots.into_iter().find(|slot| slot.variant == *variant)
    }

    /// The kernel that serves a variant now, if one does, and asks for it if it should be compiled. Until it is there, and for good where compiling
    /// makes callers wait, the usual kernel serves what it can.
    pub(super) fn serving(self: &Arc<DeviceType>, variant: &Variant) -> Option<(Variant, &Arc<DeviceKernel>)> {
        if let Some(kernel) = self.kernel(variant) {
            return Some((*variant, kernel));
        }
        let usual = self.usual_for(variant);
        let requested = match self.state.policy {
            Policy::Eager | Policy::Always => usual.unwrap_or(*variant),
            _ => *variant,
        };
        if let Some(kernel) = self.obtained(&requested) {
            return Some((requested, kernel));
        }
        usual.and_then(|usual| Some((usual, self.kernel(&usual)?)))
    }

    /// The kernel of a variant, if it is there or made at once, and asks for it if it should be compiled.
    fn obtained(self: &Arc<DeviceType>, variant: &Variant) -> Option<&Arc<DeviceKernel>> {
        let slot = self.slot(variant)?;
        if let Some(kernel) = slot.kernel.get() {
            return kernel.as_ref();
        }
        let uses = slot.count();
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.state.policy {
            Policy::Off => {}
            Policy::Lazy(threshold) if uses <= threshold => {}
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

    /// The compiled kernel that serves a call on all multiprocessors, with its blocks and the threads of each, if it is there.
    pub(crate) fn ready(&self, direction: Direction, call: &Call) -> Option<(Arc<DeviceKernel>, u32, u32)> {
        if self.plan.is_contiguous() || !self.plan.allows() {
            return None;
        }
        let mut variant = self.plan.variant(direction, call);
        let mut kernel = self.kernel(&variant);
        if kernel.is_none() {
            variant = self.usual_for(&variant)?;
            kernel = self.kernel(&variant);
        }
        Some((kernel?.clone(), self.plan.blocks(&variant, call)?, variant.threads()))
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
        let generic = self.state.generic()?.clone();
        let Interpreted { program, tables: lists } = Interpreted::within(&self.plan, self.state.spare_lists());
        let tables = self.state.upload(&lists);
        self.state.keep_lists(lists);
        let tables = tables?;
        Ok(self.interpreter.get_or_init(|| Arc::new(Interpreter { generic, program, tables })))
    }

    /// The program that the generic kernel for batches interprets, on the device from the first use on.
    pub(crate) fn batch_program(&self) -> Result<&Arc<BatchProgram>, CudaError> {
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
        let program = DeviceBuffer::copy_of(&self.state.uploads, &bytes)?;
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

/// The background's compiling kernels of a type. `calls` tells how many calls would have used them.
struct CompileVariants {
    device_type: Weak<DeviceType>,
    variants: Vec<Variant>,
    calls: Arc<AtomicU32>,
}

impl Job for CompileVariants {
    fn priority(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    fn run(&self) {
        if let Some(device_type) = self.device_type.upgrade() {
            device_type.compile(&self.variants);
        }
    }
}
