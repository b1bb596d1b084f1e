//! Buffers for transfers, from those that a device keeps.

use super::buffers::{CHUNK, DoubleBuffer};
use super::buffers::{RING_BYTES, Ring, Stage};
use super::state::DeviceState;
use dtc_cuda::{CudaError, DeviceBuffer};

impl DeviceState {
    /// Whether a request may take a ring now.
    pub(crate) fn has_ring(&self) -> bool {
        self.rings.has_room()
    }

    pub(crate) fn ring(&self) -> Result<Ring, CudaError> {
        self.rings.take(|| Ring::new(&self.device, self.staging(RING_BYTES)?))
    }

    pub(crate) fn keep_ring(&self, ring: Ring) {
        // In a forked child, the lock may be held by a thread that exists in the parent alone.
        if self.device.check_process().is_ok() {
            self.rings.keep(ring);
        }
    }

    pub(crate) fn stage(&self) -> Result<Stage, CudaError> {
        self.stages.take(|| Stage::new(&self.device))
    }

    pub(crate) fn keep_stage(&self, stage: Stage) {
        if self.device.check_process().is_ok() {
            self.stages.keep(stage);
        }
    }

    pub(crate) fn double_buffer(&self, on_device: bool) -> Result<DoubleBuffer, CudaError> {
        let bytes = 2 * CHUNK as usize;
        if on_device {
            self.double_buffers.on_device.take(|| DeviceBuffer::new(&self.device, bytes)).map(DoubleBuffer::OnDevice)
        } else {
            self.double_buffers.pinned.take(|| self.staging(bytes)).map(DoubleBuffer::Pinned)
        }
    }

    pub(crate) fn keep_double_buffer(&self, double_buffer: DoubleBuffer) {
        match double_buffer {
            DoubleBuffer::Pinned(buffer) => self.double_buffers.pinned.keep(buffer),
            DoubleBuffer::OnDevice(buffer) => self.double_buffers.on_device.keep(buffer),
        }
    }
}
