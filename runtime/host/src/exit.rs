//! The end of the process, which waits until threads of the library have left other libraries.
//!
//! `exit` runs the handlers of all libraries in one thread while the others go on. A compiler or driver then destroys what a thread
//! inside it still uses, and the process ends by a signal although its work is done. Such threads therefore hold [`Work`]. A handler of
//! ours refuses new work and waits for the rest.
//!
//! The handler has to run first, and there are two ways to that. `exit` begins by ending the thread-local values of its caller, which is
//! nearly always the main thread: [`watch_main_thread`]. Then it runs handlers, those registered last first: [`come_first`] is called
//! when a library is loaded, and again after its first use, which registers handlers, too. If the main thread never calls dtc, an end
//! within that first use is not covered.

use crate::fork::Handler;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Work that has begun and has not ended.
static WORKING: AtomicU32 = AtomicU32::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);
static FORKED: Handler = Handler::new(in_child);

/// How long the end of the process waits at most. A kernel compiles in a tenth of a second, on a busy machine in a few.
const PATIENCE: Duration = Duration::from_secs(10);

/// Work of a thread of the library in a library that the end of the process takes down.
///
/// ```
/// use dtc_host::exit::Work;
/// if let Some(work) = Work::begin() {
///     // The process does not end in here.
///     drop(work);
/// }
/// ```
#[derive(Debug)]
pub struct Work(());

impl Work {
    /// Begins work, unless the process is ending.
    pub fn begin() -> Option<Work> {
        FORKED.arm();
        // Counted before the look, as the handler looks at the count after it has said that the process ends: one sees the other.
        WORKING.fetch_add(1, Ordering::SeqCst);
        let work = Work(());
        if ENDING.load(Ordering::SeqCst) { None } else { Some(work) }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Has the end of the process wait for [`Work`] before the handlers run that other libraries have registered so far.
///
/// ```
/// dtc_host::exit::come_first();
/// ```
pub fn come_first() {
    // SAFETY: `at_exit` has no preconditions and runs any number of times, and it stays mapped: it is part of the program, or of a
    // library that is never unloaded. Without memory for the registration, nothing waits.
    unsafe { libc::atexit(at_exit) };
}

/// Has the end of the main thread, with which the process ends, wait for [`Work`]. Does nothing in other threads.
///
/// ```
/// dtc_host::exit::watch_main_thread();
/// ```
#[inline]
pub fn watch_main_thread() {
    thread_local! {
        static KNOWN: Cell<bool> = const { Cell::new(false) };
    }
    if !KNOWN.replace(true) {
        watch_if_main();
    }
}

#[cfg(not(target_os = "linux"))]
fn watch_if_main() {}

#[cfg(target_os = "linux")]
#[cold]
fn watch_if_main() {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            at_exit();
        }
    }
    thread_local! {
        static END: End = const { End };
    }
    // SAFETY: `gettid` and `getpid` have no preconditions and cannot fail.
    let is_main = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
    if is_main {
        // The first access registers the destructor. An ending thread has none any more.
        let _ = END.try_with(|_| ());
    }
}

extern "C" fn at_exit() {
    ENDING.store(true, Ordering::SeqCst);
    let start = Instant::now();
    while WORKING.load(Ordering::SeqCst) > 0 && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The threads that work are those of the parent. Touches atomics alone.
extern "C" fn in_child() {
    WORKING.store(0, Ordering::Relaxed);
}
