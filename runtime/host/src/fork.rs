//! Forked children: rules that keep them from waiting for ever, and how they detect that they are children.
//!
//! A child has one thread, the one that called `fork`. A lock that another thread of the parent held, or a value that
//! it was computing, stays so in the child. So no call of the engine waits in a child for a thread of its parent:
//!
//! - A value computed once is in a `once_cell::race::OnceBox`: threads that find it empty compute it concurrently, and
//!   the first to finish publishes it. No thread waits.
//! - A lock of an engine is taken only in the process that created the engine ([`Process::is_current`]). The lint in
//!   `clippy.toml` refuses other locks.
//! - A library with locks of its own is called in a child only if no thread was inside it at the fork, which a
//!   [`Handler`] records.
//! - Threads are started without the standard library, which has such a lock: [`crate::thread`].
//!
//! `fork` runs the handlers. Children of `_Fork`, `vfork` or `clone` may call only async-signal-safe functions, as the
//! system requires.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of forks between this process and the first one that used the engine.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Counts the generations.
static COUNTER: Handler = Handler::new(in_child);

/// Runs in every forked child. It touches only atomics, because a child of a process with threads may do nothing else.
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A function that runs in every child forked after it is armed.
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
    /// A handler that is not armed yet. `in_child` may touch only atomics: a child of a process with threads may do
    /// nothing else.
    pub const fn new(in_child: extern "C" fn()) -> Handler {
        Handler { in_child, armed: AtomicBool::new(false) }
    }

    /// Registers the function with the system. Later calls cost one load. Two threads may register it twice, so running
    /// it twice must be harmless.
    #[inline]
    pub fn arm(&self) {
        if !self.armed.load(Ordering::Relaxed) {
            // SAFETY: `pthread_atfork` needs a function that is safe in a child; `in_child` touches only atomics
            // (contract of `new`).
            let registered = unsafe { libc::pthread_atfork(None, None, Some(self.in_child)) } == 0;
            // If the system has no memory, the next call tries again.
            self.armed.store(registered, Ordering::Relaxed);
        }
    }
}

/// A process, distinguished from its forked children.
///
/// ```
/// use dtc_host::fork::Process;
/// assert!(Process::current().is_current());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The current process.
    pub fn current() -> Process {
        COUNTER.arm();
        Process(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether it is the current process, and not an ancestor that forked it. Costs one load.
    #[inline]
    pub fn is_current(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }

    /// Number of forks between the first process that asked and this one: 0 in the first.
    pub fn generation(self) -> u32 {
        self.0
    }
}
