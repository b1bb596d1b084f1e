//! Blocks the application's signals in threads of the engine.
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
