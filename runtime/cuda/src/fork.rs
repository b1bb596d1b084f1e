//! Watches over the libraries that a forked child must not call: the driver and NVRTC hold locks of their own.

use crate::CudaError;
use dtc_host::fork::Handler;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Watch of the driver: bars children forked while it was being loaded, or after it was initialised.
pub static DRIVER: ForkWatch = ForkWatch::new();
/// Watch of NVRTC: bars children forked while it was being loaded or compiled.
pub static NVRTC: ForkWatch = ForkWatch::new();
/// Bars the children in which a library cannot be used.
static HANDLER: Handler = Handler::new(in_child);

/// Runs in every forked child, so it touches only atomics.
extern "C" fn in_child() {
    for watch in [&DRIVER, &NVRTC] {
        if watch.reasons.load(Ordering::Relaxed) > 0 {
            watch.forked.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether a library may be called in this process.
pub struct ForkWatch {
    /// Number of reasons why a child forked now could not use the library.
    reasons: AtomicU32,
    forked: AtomicBool,
}

impl ForkWatch {
    const fn new() -> ForkWatch {
        ForkWatch { reasons: AtomicU32::new(0), forked: AtomicBool::new(false) }
    }

    /// [`CudaError::Forked`] in a child that must not call the library. It costs one load, because every pack checks
    /// it.
    #[inline]
    pub fn check(&self) -> Result<(), CudaError> {
        if self.forked.load(Ordering::Relaxed) { Err(CudaError::Forked) } else { Ok(()) }
    }

    /// Bars children forked from now on.
    pub fn enter(&self) {
        HANDLER.arm();
        // The count rises before the library takes a lock, so that a child never sees the lock without the count.
        self.reasons.fetch_add(1, Ordering::SeqCst);
    }

    /// Reverts one [`ForkWatch::enter`].
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
