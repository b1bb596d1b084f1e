//! Forked children: what a child must not wait for, and how it knows.
//!
//! A child has one thread, the one that called `fork`. Whatever another thread of the parent held or was filling at that moment
//! stays so in the child. So no call of the engine waits in a child for what a thread of its parent would have to finish:
//!
//! - What is computed once is a [`OnceBox`](once_cell::race::OnceBox): threads that find it empty compute it side by side, and
//!   the first to end publishes it. Nobody waits.
//! - A lock of an engine is taken only in the process that made the engine: [`Process::is_current`].
//!   A lint refuses other locks: `clippy.toml`.
//! - A library with locks of its own is called in a child only if no thread was inside at the fork: [`ForkWatch`].
//!
//! `fork` runs the handler below. Children made by `_Fork`, `vfork` or `clone` may call nothing but async-signal-safe functions, by
//! the rules of the system.

use crate::cuda::{CudaError, library};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How many forks lie between this process and the first one that used the engine.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Whether the handler is registered.
static ARMED: AtomicBool = AtomicBool::new(false);

/// The driver: not after it was initialised, nor while it was being loaded.
pub(crate) static DRIVER: ForkWatch = ForkWatch::new();
/// NVRTC: not if it was compiling at the time of the fork.
pub(crate) static NVRTC: ForkWatch = ForkWatch::new();

/// Runs in every forked child. Only atomics: a child of a process with threads may do nothing else.
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    library::doubt_lock();
    for watch in [&DRIVER, &NVRTC] {
        if watch.reasons.load(Ordering::Relaxed) > 0 {
            watch.forked.store(true, Ordering::Relaxed);
        }
    }
}

/// Has forks noticed from here on.
#[inline]
pub(crate) fn arm() {
    if !ARMED.load(Ordering::Relaxed) {
        // Two threads may register the handler twice, which does no harm.
        // SAFETY: the handler is a function without state that touches only atomics.
        let registered = unsafe { libc::pthread_atfork(None, None, Some(in_child)) } == 0;
        // If there was no memory, the next call tries again.
        ARMED.store(registered, Ordering::Relaxed);
    }
}

/// A process, told apart from those that it forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// This one.
    pub(crate) fn current() -> Process {
        arm();
        Process(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether it is this process, and not one that this was forked from. One load.
    #[inline]
    pub(crate) fn is_current(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }
}

/// Whether a library may be called in this process.
pub(crate) struct ForkWatch {
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
    pub(crate) fn check(&self) -> Result<(), CudaError> {
        if self.forked.load(Ordering::Relaxed) { Err(CudaError::Forked) } else { Ok(()) }
    }

    /// Bars children forked from now on.
    pub(crate) fn enter(&self) {
        arm();
        // Before the locks of the library, in whatever order a child sees both.
        self.reasons.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes one [`ForkWatch::enter`] back.
    pub(crate) fn leave(&self) {
        self.reasons.fetch_sub(1, Ordering::SeqCst);
    }

    /// Bars the children that are forked while `work` runs.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.enter();
        let result = work();
        self.leave();
        result
    }
}
