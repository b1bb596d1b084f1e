//! Kernels of one type on one device.

use dtc_compiler::plan::gpu::Variant;
use dtc_cuda::DeviceBuffer;
use dtc_cuda::module::Function;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Compiled code, and the lists it reads.
pub(crate) struct DeviceKernel {
    pub(crate) function: Function,
    /// Nothing for code without lists. Shared by the kernels of one program.
    pub(crate) tables: Option<Arc<DeviceBuffer>>,
}

/// A variant that was requested.
pub(crate) struct KernelSlot {
    pub(super) variant: Variant,
    /// Calls that the generic kernels served in its place.
    uses: AtomicU32,
    /// Whether it is on its way to the background.
    requested: AtomicBool,
    /// The kernel, or nothing if it cannot be compiled.
    pub(crate) kernel: OnceLock<Option<Arc<DeviceKernel>>>,
}

impl KernelSlot {
    pub(crate) fn new(variant: Variant) -> KernelSlot {
        KernelSlot { variant, uses: AtomicU32::new(0), requested: AtomicBool::new(false), kernel: OnceLock::new() }
    }

    /// Counts a call that the generic kernels serve; returns how many there were.
    pub(crate) fn count(&self) -> u32 {
        let uses = self.uses.load(Ordering::Relaxed).saturating_add(1);
        self.uses.store(uses, Ordering::Relaxed);
        uses
    }

    /// True for the first request.
    pub(crate) fn request(&self) -> bool {
        !self.requested.load(Ordering::Relaxed) && !self.requested.swap(true, Ordering::Relaxed)
    }
}
