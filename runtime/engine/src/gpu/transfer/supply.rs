//! Buffers for transfers, from those that a device keeps.

use super::super::state::DeviceState;
use super::double_buffer::{CHUNK, DoubleBuffer};
use super::triple_buffers::{RING_BYTES, Ring, Stage};
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

    pub(super) fn double_buffer(&self, on_device: bool) -> Result<DoubleBuffer, CudaError> {
        let bytes = 2 * CHUNK as usize;
        if on_device {
            self.double_buffers.on_device.take(|| DeviceBuffer::new(&self.device, bytes)).map(DoubleBuffer::OnDevice)
        } else {
            self.double_buffers.pinned.take(|| self.staging(bytes)).map(DoubleBuffer::Pinned)
        }
    }

    pub(super) fn keep_double_buffer(&self, double_buffer: DoubleBuffer) {
        match double_buffer {
            DoubleBuffer::Pinned(buffer) => self.double_buffers.pinned.keep(buffer),
            DoubleBuffer::OnDevice(buffer) => self.double_buffers.on_device.keep(buffer),
        }
    }
}
