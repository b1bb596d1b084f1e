//! Buffers for transfers, from those that a device keeps.

use super::super::state::DeviceState;
use super::landing::{CHUNK, Landing};
use super::lanes::{RING_BYTES, Ring, Stage};
use dtc_cuda::{CudaError, DeviceBuffer};

impl DeviceState {
    /// Whether a request may take a ring now.
    pub(super) fn has_ring(&self) -> bool {
        self.rings.has_room()
    }

    pub(super) fn ring(&self) -> Result<Ring, CudaError> {
        self.rings.take(|| Ring::new(&self.device, self.staging(RING_BYTES)?))
    }

    pub(super) fn keep_ring(&self, ring: Ring) {
        // In a forked child, the lock may be held by a thread that exists in the parent alone.
        if self.device.check_process().is_ok() {
            self.rings.keep(ring);
        }
    }

    pub(super) fn stage(&self) -> Result<Stage, CudaError> {
        self.stages.take(|| Stage::new(&self.device))
    }

    pub(super) fn keep_stage(&self, stage: Stage) {
        if self.device.check_process().is_ok() {
            self.stages.keep(stage);
        }
    }

    pub(super) fn landing(&self, on_device: bool) -> Result<Landing, CudaError> {
        let bytes = 2 * CHUNK as usize;
        if on_device {
            self.landings.on_device.take(|| DeviceBuffer::new(&self.device, bytes)).map(Landing::OnDevice)
        } else {
            self.landings.pinned.take(|| self.staging(bytes)).map(Landing::Pinned)
        }
    }

    pub(super) fn keep_landing(&self, landing: Landing) {
        match landing {
            Landing::Pinned(buffer) => self.landings.pinned.keep(buffer),
            Landing::OnDevice(buffer) => self.landings.on_device.keep(buffer),
        }
    }
}
