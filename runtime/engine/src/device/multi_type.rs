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
pub(crate) trait KernelSpec: Send + Sync + 'static {
    /// The kernel.
    type Code: Send + Sync + 'static;

    /// Compiles and loads the kernel, or returns `None` if one of the types is gone: no call can name it again.
    fn load(&self, state: &DeviceState) -> Result<Option<Self::Code>, CudaError>;
}

/// A kernel for several types, as soon as it is there.
pub(crate) struct MultiTypeKernel<S: KernelSpec> {
    pub(crate) spec: S,
    /// Calls that the generic kernels served in its place.
    uses: Arc<AtomicU32>,
    /// Whether a thread compiles it, or a job of the background will.
    requested: AtomicBool,
    /// The kernel, or nothing if it cannot be compiled or was forgotten.
    code: OnceLock<Option<Arc<S::Code>>>,
}

/// The kernels of one sort on a device; most recently used ones first.
pub(crate) struct KernelCache<S: KernelSpec>(Mutex<Vec<Arc<MultiTypeKernel<S>>>>);

impl<S: KernelSpec> Default for KernelCache<S> {
    fn default() -> KernelCache<S> {
        KernelCache(Mutex::default())
    }
}

impl<S: KernelSpec> KernelCache<S> {
    /// The kernel with this spec, or a new one.
    pub(crate) fn get(
        &self,
        state: &Arc<DeviceState>,
        is: impl Fn(&S) -> bool,
        new: impl FnOnce() -> S,
    ) -> Arc<MultiTypeKernel<S>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = match known.iter().position(|kernel| is(&kernel.spec)) {
            Some(at) => known.remove(at),
            None => Arc::new(MultiTypeKernel {
                spec: new(),
                uses: Arc::default(),
                requested: AtomicBool::new(false),
                code: OnceLock::new(),
            }),
        };
        known.insert(0, kernel.clone());
        let kept = KEPT.min(known.len());
        let forgotten = known.split_off(kept);
        drop(known);
        for kernel in forgotten {
            // Who compiles it now finds the place taken. Launches of the kernel may still be under way.
            if let Some(code) = kernel.code.get_or_init(|| None) {
                state.retire(code.clone());
            }
        }
        kernel
    }
}

impl<S: KernelSpec> MultiTypeKernel<S> {
    /// The kernel if it is there.
    pub(crate) fn ready(&self) -> Option<&Arc<S::Code>> {
        self.code.get()?.as_ref()
    }

    /// The same; requests it if it should be compiled.
    pub(crate) fn serving(self: &Arc<MultiTypeKernel<S>>, state: &Arc<DeviceState>) -> Option<&Arc<S::Code>> {
        if let Some(code) = self.code.get() {
            return code.as_ref();
        }
        let uses = self.uses.fetch_add(1, Ordering::Relaxed);
        let requests = match state.policy {
            Policy::Off => false,
            Policy::Lazy(threshold) => uses >= threshold,
            Policy::Background | Policy::Eager | Policy::Always => true,
        };
        // Where another thread compiles it, the generic kernels serve until it is there.
        if !requests || self.requested.swap(true, Ordering::Relaxed) {
            return None;
        }
        if matches!(state.policy, Policy::Eager | Policy::Always) {
            self.compile(state);
            return self.ready();
        }
        let job =
            CompileMultiType { kernel: Arc::downgrade(self), state: Arc::downgrade(state), uses: self.uses.clone() };
        state.queue.push(job, state.background_thread);
        None
    }

    /// Compiles it, unless that was tried before.
    pub(crate) fn compile(&self, state: &Arc<DeviceState>) {
        if self.code.get().is_some() {
            return;
        }
        let code = self.spec.load(state).unwrap_or_else(|error| {
            state.note(error);
            None
        });
        // Another thread was faster, or the kernel was forgotten; freeing it at once might wait for the device.
        if let Err(Some(code)) = self.code.set(code.map(Arc::new)) {
            state.retire(code);
        }
    }
}

/// The background's compiling a kernel for several types. `uses` tells how many calls would have used it.
struct CompileMultiType<S: KernelSpec> {
    kernel: Weak<MultiTypeKernel<S>>,
    state: Weak<DeviceState>,
    uses: Arc<AtomicU32>,
}

impl<S: KernelSpec> Job for CompileMultiType<S> {
    fn priority(&self) -> u32 {
        self.uses.load(Ordering::Relaxed)
    }

    fn run(&self) {
        if let (Some(kernel), Some(state)) = (self.kernel.upgrade(), self.state.upgrade()) {
            kernel.compile(&state);
        }
    }
}
