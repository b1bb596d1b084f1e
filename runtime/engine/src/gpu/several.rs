//! Kernels on a device that serve several types at once.

use super::batch::Batches;
use super::joint::JointKernels;
use super::pair::Pair;
use super::state::DeviceState;
use std::sync::Arc;

/// Kernels for several types, and the device that they are on. They go with the engine's last use of the device.
pub(super) struct Several {
    state: Arc<DeviceState>,
    pub(super) batches: Batches,
    /// Kernels for copies from type to type.
    pub(super) copies: JointKernels<Pair>,
}

impl Several {
    /// None yet.
    pub(super) fn new(state: &Arc<DeviceState>) -> Several {
        Several { state: state.clone(), batches: Batches::default(), copies: JointKernels::default() }
    }
}

impl Drop for Several {
    fn drop(&mut self) {
        // As for the device: what goes next may be running.
        self.state.wait_until_idle();
    }
}
