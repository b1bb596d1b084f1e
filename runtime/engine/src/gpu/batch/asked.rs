//! The calls of a batch, as kernels see them.

use super::super::on_device::GpuType;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use std::sync::Arc;

/// A call, and the type on its device.
pub(super) struct Asked<'a> {
    pub(super) on_device: &'a Arc<GpuType>,
    pub(super) direction: Direction,
    pub(super) count: u64,
    pub(super) call: Call,
}
