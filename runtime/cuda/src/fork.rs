//! Libraries that a forked child must not call: the driver and NVRTC hold locks of their own.

use crate::CudaError;
use dtc_host::fork::Handler;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The driver: not after it was initialised, nor while it was being loaded.
pub static DRIVER: ForkWatch = ForkWatch::new();
/// NVRTC: not if it was compiling at the time of the fork.
pub static NVRTC: ForkWatch = ForkWatch::new();
/// Bars the children in which a library cannot be used.
static HANDLER: Handler = Handler::new(in_child);

/// Runs in every forked child. Only atomics.
extern "C" fn in_child() {
    for watch in [&DRIVER, &NVRTC] {
        if watch.reasons.load(Ordering::Relaxed) > 0 {
            watch.forked.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether a library may be called in this process.
pub struct ForkWatch {
    /// How many reasons there are why a child that is forked now could not use the library.
    reasons: AtomicU32,
    forked: AtomicBool,
}

impl ForkWatch {
    const fn new() -> ForkWatch {
        ForkWatch { reasons: AtomicU32::new(0), forked: AtomicBool::new(false) }
    }

    /// An error in a child that must not call the library. One load: this is on the path of every pack.
    #[inline]
    pub fn check(&self) -> Result<(), CudaError> {
        if self.forked.load(Ordering::Relaxed) { Err(CudaError::Forked) } else { Ok(()) }
    }

    /// Bars children forked from now on.
    pub fn enter(&self) {
        HANDLER.arm();
        // Before the locks of the library, in whatever order a child sees both.
        self.reasons.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes one [`ForkWatch::enter`] back.
    pub fn leave(&self) {
        self.reasons.fetch_sub(1, Ordering::SeqCst);
    }

    /// Bars the children that are forked while `work` runs.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.enter();
        let result = work();
        self.leave();
        result
    }
}
