//! Threads beside those of the application.

use crate::signals::{self, Blocked};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of stack of a thread that compiles: what threads of Rust have. NVRTC compiles the largest kernels of the corpus on it.
pub const STACK: usize = 2 << 20;

/// Bytes of stack of a thread that makes one call of the system.
const SMALL_STACK: usize = 64 << 10;

/// Whether an engine of this process was made that may start no thread. The hosts of such engines allow none at all.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Starts no thread any more but for engines that may.
pub fn forbid_threads() {
    FORBIDDEN.store(true, Ordering::Relaxed);
}

/// Whether a thread may be started that belongs to no engine.
pub fn may_start_threads() -> bool {
    !FORBIDDEN.load(Ordering::Relaxed)
}

/// Starts a thread that nobody waits for; drops the work if none can be started.
pub fn start(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("dtc-lock".to_owned()).stack_size(SMALL_STACK);
    let _ = signals::spawn_with(Blocked::All, || thread.spawn(work));
}

/// Does work in a thread with more stack than the caller may have, and waits for it; drops the work if no thread can be started.
pub fn run_in_thread(work: impl FnOnce() + Send) {
    let thread = std::thread::Builder::new().name("dtc-compile".to_owned()).stack_size(STACK);
    std::thread::scope(|scope| {
        if let Ok(thread) = signals::spawn_with(Blocked::All, || thread.spawn_scoped(scope, work)) {
            // What it did is found where it was put; nothing was, if it panicked.
            let _ = thread.join();
        }
    });
}
