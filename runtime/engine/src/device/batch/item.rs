//! The calls of a batch, as kernels see them.

use super::super::device_type::GpuType;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use std::sync::Arc;

/// A call, and the type on its device.
pub(crate) struct Asked<'a> {
    pub(crate) on_device: &'a Arc<GpuType>,
    pub(crate) direction: Direction,
    pub(crate) count: u64,
    pub(crate) call: Call,
}
