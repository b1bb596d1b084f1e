//! Forked children: what a child must not wait for, and how it knows.
//!
//! A child has one thread, the one that called `fork`. Whatever another thread of the parent held or was filling at that moment
//! stays so in the child. So no call of the engine waits in a child for what a thread of its parent would have to finish:
//!
//! - What is computed once is a `once_cell::race::OnceBox`: threads that find it empty compute it side by side, and the first to
//!   end publishes it. No thread waits.
//! - A lock of an engine is taken only in the process that made the engine: [`Process::is_current`].
//!   A lint refuses other locks: `clippy.toml`.
//! - A library with locks of its own is called in a child only if no thread was inside at the fork: a [`Handler`] tells.
//!
//! `fork` runs the handlers. Children made by `_Fork`, `vfork` or `clone` may call nothing but async-signal-safe functions, by the
//! rules of the system.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of forks between this process and the first one that used the engine.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Counts the generations.
static COUNTER: Handler = Handler::new(in_child);

/// Runs in every forked child. Only atomics: a child of a process with threads may do nothing else.
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A function that runs in every child that is forked once it is armed.
///
/// ```
/// use dtc_host::fork::Handler;
/// extern "C" fn in_child() {}
/// static HANDLER: Handler = Handler::new(in_child);
/// HANDLER.arm();
/// ```
#[derive(Debug)]
pub struct Handler {
    in_child: extern "C" fn(),
    armed: AtomicBool,
}

impl Handler {
    /// A handler that is not armed yet. The function may touch only atomics: a child of a process with threads may do nothing else.
    pub const fn new(in_child: extern "C" fn()) -> Handler {
        Handler { in_child, armed: AtomicBool::new(false) }
    }

    /// Registers the function with the system. One load after the first time. Two threads may register it twice, so it must do no
    /// harm to run it twice.
    #[inline]
    pub fn arm(&self) {
        if !self.armed.load(Ordering::Relaxed) {
            // SAFETY: `pthread_atfork` takes any function that is safe in a child; `new` demands that this one touches only atomics.
            let registered = unsafe { libc::pthread_atfork(None, None, Some(self.in_child)) } == 0;
            // If there was no memory, the next call tries again.
            self.armed.store(registered, Ordering::Relaxed);
        }
    }
}

/// A process, told apart from those that it forks.
///
/// ```
/// use dtc_host::fork::Process;
/// assert!(Process::current().is_current());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// This one.
    pub fn current() -> Process {
        COUNTER.arm();
        Process(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether it is this process, and not one that this was forked from. One load.
    #[inline]
    pub fn is_current(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }

    /// Number of forks between this process and the first one that asked: 0 there.
    pub fn generation(self) -> u32 {
        self.0
    }
}
