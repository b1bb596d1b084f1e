//! Devices: their state, the kernels on them, and types as kernels move them.
//!
//! The generic kernels serve every type at once. Kernels made for a type are compiled by NVRTC in the background, or found
//! in the store of compiled code, and take over when they are ready. A [`Gpu`] is one device as an engine uses it, and
//! [`device_type`] is one type there. [`multi_type`] keeps kernels for several types: [`copy_kernel`] from one type to another,
//! [`batch`] for many in one launch.
//!
//! Nothing here knows committed types, engines or calls: whoever launches has addresses that the device reaches.
#![expect(
    clippy::disallowed_types,
    reason = "CUDA is refused in a child of a process that used it, before any of these locks"
)]

mod accumulate;
mod batch;
mod buffers;
mod compile;
pub(crate) mod copies;
mod copy;
mod copy_kernel;
mod described;
mod device_type;
mod generic;
mod gpu;
mod idle;
mod kernel;
mod launch;
mod lists;
mod model;
mod multi_type;
mod pass_buffers;
mod shared_kernels;
mod state;
mod supply;
mod table_uploads;

pub(crate) use generic::Generic;
pub use generic::GenericCode;
pub use gpu::Gpu;
pub use model::TransferModel;

pub(crate) use batch::{BatchItem, BatchKernel, Prepared, item_table, launch_items, placed};
pub(crate) use buffers::{BufferSlot, CHUNK, DoubleBuffer, RING_CHUNK, Ring, SLOTS, STAGE_CHUNK, Stage};
pub(crate) use copy::CopyMove;
pub(crate) use described::{FirstUse, UncommittedOnDevices};
pub(crate) use device_type::DeviceType;
pub(crate) use kernel::DeviceKernel;
pub(crate) use launch::{Grid, Launch, Move};
pub(crate) use model::{MeasuredPath, PathCost, RUNS};
pub(crate) use multi_type::{KernelCache, KernelSpec, MultiTypeKernel};
pub(crate) use pass_buffers::PassBuffer;
pub(crate) use state::{CodeSources, DEVICES, DeviceState};
pub(crate) use table_uploads::TableUpload;
