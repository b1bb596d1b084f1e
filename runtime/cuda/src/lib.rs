//! CUDA: devices, streams, memory, modules, and NVRTC.
//!
//! dtc links nothing of CUDA. It opens the driver and NVRTC at the first use, by name or by the paths in the
//! environment variables `DTC_CUDA_DRIVER` and `DTC_NVRTC`. A machine that has neither is normal: every absence is a
//! [`CudaError`] that says how to get the missing part. The oldest supported driver is that of CUDA 11.4. Only a call
//! that asks for a device initialises CUDA.
//!
//! A child forked after that gets [`CudaError::Forked`], because CUDA does not work there.
//!
//! # Example
//!
//! ```
//! use dtc_cuda::{Device, Nvrtc};
//! match Device::list() {
//!     Ok(devices) => devices.iter().for_each(|device| println!("sm_{}: {}", device.architecture(), device.name)),
//!     Err(error) => println!("{error}"),
//! }
//! match Nvrtc::get() {
//!     Ok(nvrtc) => println!("NVRTC {}", nvrtc.version()),
//!     Err(error) => println!("{error}"),
//! }
//! ```
#![expect(clippy::disallowed_types, reason = "a fork watch is asked before any of these is waited for")]
#![warn(missing_debug_implementations)]

mod abi;
mod binary;
mod buffer;
mod capture;
pub mod copy;
mod device;
mod driver;
mod error;
mod event;
mod fork;
pub mod graph;
mod latest;
mod library;
pub mod module;
mod nvrtc;
pub mod pointer;
mod search;
mod shared;
mod staging;
mod stream;
#[cfg(test)]
mod tests;

pub use binary::{Architecture, Binary};
pub use buffer::{DeviceBuffer, PinnedBuffer};
pub use capture::{CaptureMode, CaptureStatus};
pub use device::{Device, DeviceInfo, Scope};
pub use driver::Driver;
pub use error::{CudaError, Version};
pub use event::Event;
pub use graph::{Graph, GraphExecutable, NodeCounts};
pub use nvrtc::Nvrtc;
pub use pointer::{MemoryKind, device_of, is_in_use};
pub use shared::{Exported, ImportedBuffer};
pub use staging::StagingAllocator;
pub use stream::Stream;
