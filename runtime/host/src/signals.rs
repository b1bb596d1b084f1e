//! Blocks the application's signals in threads of the engine, and the signal of files that become too large.
//!
//! The system delivers a process's signal to any thread that does not block it. If the application blocks SIGUSR1 in
//! its own threads to call `sigwait`, a thread of the engine that does not block it would take the default action and
//! end the process.

use std::mem::MaybeUninit;

/// Signals that the processor raises in the thread that caused them. If one is blocked, the system kills the process
/// instead of calling the application's handler.
const FAULTS: [libc::c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Signals that a new thread blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Every signal, for a thread that touches only memory of the engine.
    All,
    /// Every signal but faults, for a thread that touches memory of the application, whose handlers may know the
    /// address.
    AllButFaults,
}

/// Calls `spawn`, which starts a thread, with the signals blocked in this thread: a new thread inherits its creator's
/// mask.
pub fn spawn_with<T>(blocked: Blocked, spawn: impl FnOnce() -> T) -> T {
    let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` initialises `set`, which the later calls read, and every number in `FAULTS` is a signal.
    let changed = unsafe {
        libc::sigfillset(mask.as_mut_ptr());
        if blocked == Blocked::AllButFaults {
            FAULTS.iter().for_each(|&fault| {
                libc::sigdelset(mask.as_mut_ptr(), fault);
            });
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, mask.as_ptr(), before.as_mut_ptr()) == 0
    };
    let result = spawn();
    if changed {
        // SAFETY: the call above succeeded, so `before` holds the mask of this thread.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    result
}

/// Calls `work`, which writes to a file, without the signal `SIGXFSZ`: a write beyond the limit on the sizes of files
/// (`ulimit -f`) fails with `EFBIG`, and the process, which did not ask for the file, goes on.
///
/// The signal of such a write goes to the thread that wrote. It is blocked meanwhile, and taken if it has come.
///
/// ```
/// let written = dtc_host::signals::without_file_size_signal(|| std::fs::write("/dev/null", "line"));
/// assert!(written.is_ok());
/// ```
pub fn without_file_size_signal<T>(work: impl FnOnce() -> T) -> T {
    let mut signal = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises `signal`, which the later calls read, and `SIGXFSZ` is a signal.
    let changed = unsafe {
        libc::sigemptyset(signal.as_mut_ptr());
        libc::sigaddset(signal.as_mut_ptr(), libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, signal.as_ptr(), before.as_mut_ptr()) == 0
    };
    let of_others = changed && is_pending();
    let result = work();
    if changed {
        if !of_others && is_pending() {
            let mut number = 0;
            // SAFETY: `signal` was initialised above, and holds a signal that waits: the call returns at once.
            unsafe { libc::sigwait(signal.as_ptr(), &mut number) };
        }
        // SAFETY: the call above succeeded, so `before` holds the mask of this thread.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    result
}

/// Whether `SIGXFSZ` waits for this thread.
fn is_pending() -> bool {
    let mut waiting = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigpending` fills `waiting`, which is read only if it did.
    unsafe { libc::sigpending(waiting.as_mut_ptr()) == 0 && libc::sigismember(waiting.as_ptr(), libc::SIGXFSZ) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals that this thread blocks.
    fn mask() -> Vec<libc::c_int> {
        let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: a null set changes nothing, and the call fills `mask`.
        unsafe {
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr()), 0);
            (1..32).filter(|&signal| libc::sigismember(mask.as_ptr(), signal) == 1).collect()
        }
    }

    #[test]
    fn new_threads_block_signals_and_their_creator_does_not() {
        let before = mask();
        let of_thread = |blocked| spawn_with(blocked, || std::thread::spawn(mask)).join().unwrap();
        let all: Vec<_> = (1..32).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)).collect();
        assert_eq!(of_thread(Blocked::All), all);
        let without_faults: Vec<_> = all.into_iter().filter(|signal| !FAULTS.contains(signal)).collect();
        assert_eq!(of_thread(Blocked::AllButFaults), without_faults);
        assert_eq!(mask(), before);
    }
}
