//! Starts threads of the engine.

use crate::signals::{self, Blocked};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of stack of a thread that compiles: Rust's default. It suffices for NVRTC on the largest kernels of the
/// corpus.
pub const STACK: usize = 2 << 20;

/// Bytes of stack of a thread that makes one system call.
const SMALL_STACK: usize = 64 << 10;

/// Set once this process has created an engine that may start no thread.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Forbids all threads but those of engines that may start some.
pub fn forbid_threads() {
    FORBIDDEN.store(true, Ordering::Relaxed);
}

/// Whether a thread that belongs to no engine may be started.
pub fn may_start_threads() -> bool {
    !FORBIDDEN.load(Ordering::Relaxed)
}

/// Starts a detached thread. Drops the work if no thread can be started.
pub fn start(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("dtc-lock".to_owned()).stack_size(SMALL_STACK);
    let _ = signals::spawn_with(Blocked::All, || thread.spawn(work));
}

/// Runs work in a thread with [`STACK`] bytes of stack, and waits for it. Drops the work if no thread can be started.
pub fn run_in_thread(work: impl FnOnce() + Send) {
    let thread = std::thread::Builder::new().name("dtc-compile".to_owned()).stack_size(STACK);
    std::thread::scope(|scope| {
        if let Ok(thread) = signals::spawn_with(Blocked::All, || thread.spawn_scoped(scope, work)) {
            // The work stores its own result; a panic leaves it unset.
            let _ = thread.join();
        }
    });
}
