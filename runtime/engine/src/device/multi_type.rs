//! Kernels made for several types at once: for batches, and for copies from type to type.

use super::state::DeviceState;
use crate::policy::Policy;
use crate::worker::Job;
use dtc_cuda::CudaError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Kernels of one sort that a device keeps. A code has few kinds of exchanges, and repeats them.
const KEPT: usize = 64;

/// The types that a kernel is made for, which it does not keep alive.
pub(crate) trait Recipe: Send + Sync + 'static {
    /// The kernel.
    type Code: Send + Sync + 'static;

    /// Compiles and loads the kernel, or returns `None` if one of the types is gone: no call can name it again.
    fn load(&self, gpu: &DeviceState) -> Result<Option<Self::Code>, CudaError>;
}

/// A kernel for several types, as soon as it is there.
pub(crate) struct Joint<R: Recipe> {
    pub(crate) recipe: R,
    /// Calls that the generic kernels served in its place.
    uses: Arc<AtomicU32>,
    /// Whether a thread compiles it, or a job of the background will.
    requested: AtomicBool,
    /// The kernel, or nothing if it cannot be compiled or was forgotten.
    code: OnceLock<Option<Arc<R::Code>>>,
}

/// The kernels of one sort on a device; most recently used ones first.
pub(crate) struct JointKernels<R: Recipe>(Mutex<Vec<Arc<Joint<R>>>>);

impl<R: Recipe> Default for JointKernels<R> {
    fn default() -> JointKernels<R> {
        JointKernels(Mutex::default())
    }
}

impl<R: Recipe> JointKernels<R> {
    /// The kernel with this recipe, or a new one.
    pub(crate) fn get(
        &self,
        gpu: &Arc<DeviceState>,
        is: impl Fn(&R) -> bool,
        new: impl FnOnce() -> R,
    ) -> Arc<Joint<R>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let joint = match known.iter().position(|joint| is(&joint.recipe)) {
            Some(at) => known.remove(at),
            None => Arc::new(Joint {
                recipe: new(),
                uses: Arc::default(),
                requested: AtomicBool::new(false),
                code: OnceLock::new(),
            }),
        };
        known.insert(0, joint.clone());
        let kept = KEPT.min(known.len());
        let forgotten = known.split_off(kept);
        drop(known);
        for joint in forgotten {
            // Who compiles it now finds the place taken. Launches of the kernel may still be under way.
            if let Some(code) = joint.code.get_or_init(|| None) {
                gpu.retire(code.clone());
            }
        }
        joint
    }
}

impl<R: Recipe> Joint<R> {
    /// The kernel if it is there.
    pub(crate) fn ready(&self) -> Option<&Arc<R::Code>> {
        self.code.get()?.as_ref()
    }

    /// The same; asks for it if it should be compiled.
    pub(crate) fn serving(self: &Arc<Joint<R>>, gpu: &Arc<DeviceState>) -> Option<&Arc<R::Code>> {
        if let Some(code) = self.code.get() {
            return code.as_ref();
        }
        let uses = self.uses.fetch_add(1, Ordering::Relaxed);
        let asks = match gpu.policy {
            Policy::Off => false,
            Policy::Lazy(due) => uses >= due,
            Policy::Background | Policy::Eager | Policy::Always => true,
        };
        // Where another thread compiles it, the generic kernels serve until it is there.
        if !asks || self.requested.swap(true, Ordering::Relaxed) {
            return None;
        }
        if matches!(gpu.policy, Policy::Eager | Policy::Always) {
            self.compile(gpu);
            return self.ready();
        }
        let job = Compile { joint: Arc::downgrade(self), gpu: Arc::downgrade(gpu), uses: self.uses.clone() };
        gpu.queue.push(job, gpu.background_thread);
        None
    }

    /// Compiles it, unless that was tried before.
    pub(crate) fn compile(&self, gpu: &Arc<DeviceState>) {
        if self.code.get().is_some() {
            return;
        }
        let code = self.recipe.load(gpu).unwrap_or_else(|error| {
            gpu.note(error);
            None
        });
        // Another thread was faster, or the kernel was forgotten; freeing it at once might wait for the device.
        if let Err(Some(code)) = self.code.set(code.map(Arc::new)) {
            gpu.retire(code);
        }
    }
}

/// The background's compiling a kernel for several types. `uses` tells how many calls would have used it.
struct Compile<R: Recipe> {
    joint: Weak<Joint<R>>,
    gpu: Weak<DeviceState>,
    uses: Arc<AtomicU32>,
}

impl<R: Recipe> Job for Compile<R> {
    fn heat(&self) -> u32 {
        self.uses.load(Ordering::Relaxed)
    }

    fn run(&self) {
        if let (Some(joint), Some(gpu)) = (self.joint.upgrade(), self.gpu.upgrade()) {
            joint.compile(&gpu);
        }
    }
}
