//! Forked children. Neither library survives a fork: locks may be held by threads that the child does not have, and a
//! driver that was initialised answers no more.

use super::error::CudaError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Whether a library may be called in this process.
pub(super) struct ForkWatch {
    /// How many reasons there are why a child that is forked now could not use the library.
    reasons: AtomicU32,
    forked: AtomicBool,
    armed: AtomicBool,
}

/// The driver: not after it was initialised, nor while it was being loaded.
pub(super) static DRIVER: ForkWatch = ForkWatch::new();
/// NVRTC: not if it was compiling at the time of the fork.
pub(super) static NVRTC: ForkWatch = ForkWatch::new();

/// Runs in every forked child. Only atomics: a child of a process with threads may do nothing else.
extern "C" fn in_child() {
    for watch in [&DRIVER, &NVRTC] {
        if watch.reasons.load(Ordering::Relaxed) > 0 {
            watch.forked.store(true, Ordering::Relaxed);
        }
    }
}

impl ForkWatch {
    const fn new() -> ForkWatch {
        ForkWatch { reasons: AtomicU32::new(0), forked: AtomicBool::new(false), armed: AtomicBool::new(false) }
    }

    /// An error in a child that must not call the library. One load: this is on the path of every pack.
    #[inline]
    pub(super) fn check(&self) -> Result<(), CudaError> {
        if self.forked.load(Ordering::Relaxed) { Err(CudaError::Forked) } else { Ok(()) }
    }

    /// Bars children forked from now on.
    pub(super) fn enter(&self) {
        if !self.armed.load(Ordering::Relaxed) {
            // Two threads may register the handler twice, which does no harm.
            // SAFETY: the handler is a function without state that touches only atomics.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            self.armed.store(true, Ordering::Relaxed);
        }
        self.reasons.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one [`ForkWatch::enter`] back.
    pub(super) fn leave(&self) {
        self.reasons.fetch_sub(1, Ordering::Relaxed);
    }

    /// Bars the children that are forked while `work` runs.
    pub(super) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.enter();
        let result = work();
        self.leave();
        result
    }
}
