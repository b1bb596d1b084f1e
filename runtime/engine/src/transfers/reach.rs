//! Which memory the kernels of a device reach.

use super::error::TransferError;
use crate::device::Gpu;
use crate::engine::Engine;
use dtc_cuda::MemoryKind;

impl Engine {
    /// An error if kernels of a device cannot use memory of a kind.
    pub(crate) fn check_reach(&self, gpu: &Gpu, side: &'static str, kind: MemoryKind) -> Result<(), TransferError> {
        let info = gpu.device().info();
        let reached = match kind {
            MemoryKind::Pinned | MemoryKind::Managed => true,
            MemoryKind::Pageable => info.reads_pageable_memory,
            MemoryKind::Device(ordinal) if ordinal == info.ordinal => true,
            MemoryKind::Device(ordinal) => gpu.state.reaches(self.gpu(ordinal)?.device()),
        };
        if reached { Ok(()) } else { Err(TransferError::OutOfReach { side, kind, device: info.ordinal }) }
    }
}
