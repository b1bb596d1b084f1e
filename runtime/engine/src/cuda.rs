//! Devices, streams, buffers, events, graphs and NVRTC: what programs use of [`dtc_cuda`].

pub use dtc_cuda::module::Function;
pub use dtc_cuda::{
    Architecture, Binary, CaptureMode, CaptureStatus, CudaError, Device, DeviceBuffer, DeviceInfo, Driver, Event,
    Exported, Graph, GraphExecutable, ImportedBuffer, MemoryKind, NodeCounts, Nvrtc, PinnedBuffer, Scope,
    StagingAllocator, Stream, Version, copy, device_of, is_in_use,
};
