//! The calls of a batch, as kernels see them.

use super::super::device_type::DeviceType;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use std::sync::Arc;

/// A call, and the type on its device.
#[derive(Clone, Copy)]
pub(crate) struct BatchItem<'a> {
    pub(crate) device_type: &'a Arc<DeviceType>,
    pub(crate) direction: Direction,
    pub(crate) count: u64,
    pub(crate) call: Call,
}
