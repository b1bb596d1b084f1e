//! Compiled kernels for batches.

use super::super::Shared;
use super::super::kernel::Retired;
use super::super::on_device::GpuType;
use super::Asked;
use crate::cuda::module::Function;
use crate::cuda::{CudaError, DeviceBuffer};
use crate::engine::Policy;
use crate::worker::Job;
use dtc_compiler::codegen::cuda::{self, BATCH_ENTRY, BATCH_KINDS};
use dtc_compiler::plan::gpu::{GpuPlan, Variant};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, Weak};

/// Kernels that are kept for batches that may come again. A code has few kinds of exchanges.
const KEPT: usize = 64;

/// What a compiled kernel was made for: a type on this device, and how its bytes are moved.
type Kind = (u64, Variant);

/// The kernel for batches of these kinds.
pub(crate) struct BatchSlot {
    pub(super) kinds: Box<[Kind]>,
    types: Vec<Weak<GpuType>>,
    uses: Arc<AtomicU32>,
    requested: AtomicBool,
    /// The kernel, or nothing if it cannot be compiled.
    kernel: OnceLock<Option<Arc<BatchKernel>>>,
}

/// A compiled kernel.
pub(crate) struct BatchKernel {
    pub(super) function: Function,
    pub(super) tables: Option<DeviceBuffer>,
    /// What the kernel does for each of the slot's kinds.
    pub(super) cases: Vec<u32>,
}

impl Shared {
    /// The slot of a batch's kinds, and the kind of each of its calls; nothing if no kernel is compiled for such.
    pub(super) fn batch_slot(self: &Arc<Shared>, asked: &[Asked<'_>]) -> Option<(Arc<BatchSlot>, Vec<u32>)> {
        let mut numbers: HashMap<Kind, u32> = HashMap::new();
        let mut types = Vec::new();
        let mut kinds = Vec::with_capacity(asked.len());
        for Asked { on_device, direction, call, .. } in asked {
            if !on_device.plan.allows_in_batch() {
                return None;
            }
            let kind = (on_device.id, on_device.plan.variant(*direction, call));
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
        let kept = KEPT.min(known.len());
        let forgotten = known.split_off(kept);
        drop(known);
        for slot in forgotten {
            if let Some(Some(kernel)) = slot.kernel.get() {
                self.retire(Retired::BatchKernel(kernel.clone()));
            }
        }
        Some((slot, kinds))
    }
}

impl BatchSlot {
    pub(super) fn ready(&self) -> Option<&Arc<BatchKernel>> {
        self.kernel.get()?.as_ref()
    }

    /// The kernel if it is there; asks for it if it should be compiled.
    pub(super) fn serving(self: &Arc<BatchSlot>, gpu: &Arc<Shared>) -> Option<&Arc<BatchKernel>> {
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
