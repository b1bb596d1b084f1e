//! Kernels on a device that serve several types at once.

use super::batch::Batches;
use super::copy_kernel::CopyKernelSpec;
use super::multi_type::KernelCache;
use super::state::DeviceState;
use std::sync::Arc;

/// Kernels for several types, and the device that they are on. They go with the engine's last use of the device.
pub(crate) struct SharedKernels {
    state: Arc<DeviceState>,
    pub(crate) batches: Batches,
    /// Kernels for copies from type to type.
    pub(crate) copies: KernelCache<CopyKernelSpec>,
}

impl SharedKernels {
    /// None yet.
    pub(crate) fn new(state: &Arc<DeviceState>) -> SharedKernels {
        SharedKernels { state: state.clone(), batches: Batches::default(), copies: KernelCache::default() }
    }
}

impl Drop for SharedKernels {
    fn drop(&mut self) {
        // As for the device: what goes next may be running.
        self.state.wait_until_idle();
    }
}
