//! Starts threads of the engine.
//!
//! They are started by the system's own call. The standard library keeps a list of its threads' stacks behind a lock, which each of them
//! takes when it begins and ends: in a forked child whose parent was just starting a thread, the next one would wait for ever.

use crate::signals::{self, Blocked};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::panic::AssertUnwindSafe;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of stack of a thread that compiles: Rust's default. It suffices for NVRTC on the largest kernels of the
/// corpus.
const STACK: usize = 2 << 20;

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

/// Starts a detached thread that makes one system call. Drops the work if no thread can be started.
pub fn start_small(work: impl FnOnce() + Send + 'static) {
    // SAFETY: the work borrows nothing.
    let _ = unsafe { spawn(c"dtc-lock", SMALL_STACK, Blocked::All, work) }.map(Running::detach);
}

/// Starts a detached thread that compiles, and says whether it did. Drops the work if no thread can be started.
pub fn start_compiler(work: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: the work borrows nothing.
    unsafe { spawn(c"dtc-compile", STACK, Blocked::All, work) }.map(Running::detach).is_ok()
}

/// Runs work in a thread that has the stack of one that compiles, and waits for it. Drops the work if no thread can be started.
///
/// ```
/// let mut done = false;
/// dtc_host::thread::run_in_thread(|| done = true);
/// assert!(done);
/// ```
pub fn run_in_thread(work: impl FnOnce() + Send) {
    // SAFETY: the thread is waited for where its handle is dropped, in this function.
    let _running = unsafe { spawn(c"dtc-compile", STACK, Blocked::All, work) };
}

/// Runs `here` in this thread, and each of `others` in a thread of its own or, if none can be started, in this one. Returns when all
/// are done. The threads may fault in memory of the application.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// let sum = AtomicU32::new(0);
/// let add = |number| {
///     let sum = &sum;
///     move || _ = sum.fetch_add(number, Ordering::Relaxed)
/// };
/// dtc_host::thread::run_beside([1, 2, 4].map(add), add(8));
/// assert_eq!(sum.into_inner(), 15);
/// ```
pub fn run_beside<F: FnOnce() + Send>(others: impl IntoIterator<Item = F>, here: impl FnOnce()) {
    let mut running = Vec::new();
    for other in others {
        // SAFETY: the thread is waited for where its handle is dropped, in this function.
        match unsafe { spawn(c"dtc-pack", STACK, Blocked::AllButFaults, other) } {
            Ok(thread) => running.push(thread),
            Err(other) => other(),
        }
    }
    here();
}

/// A thread, which is waited for when this is dropped.
struct Running(libc::pthread_t);

impl Running {
    fn detach(self) {
        // SAFETY: the thread is neither detached nor joined: only this value, which `forget` takes out of use, names it.
        unsafe { libc::pthread_detach(self.0) };
        std::mem::forget(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: the thread is neither detached nor joined: only this value names it.
        unsafe { libc::pthread_join(self.0, null_mut()) };
    }
}

/// Starts a thread; gives the work back if none can be started. A panic of the work ends it.
///
/// # Safety
///
/// The thread ends before what the work borrows: its handle is dropped within the borrow, or the work borrows nothing.
unsafe fn spawn<F: FnOnce() + Send>(
    name: &'static CStr,
    stack: usize,
    blocked: Blocked,
    work: F,
) -> Result<Running, F> {
    extern "C" fn run<F: FnOnce()>(work: *mut c_void) -> *mut c_void {
        // SAFETY: `spawn` passes a `Box` of its own type, which it leaves to this thread.
        let (name, work) = *unsafe { Box::from_raw(work.cast::<(&'static CStr, F)>()) };
        name_this_thread(name);
        let _ = std::panic::catch_unwind(AssertUnwindSafe(work));
        null_mut()
    }
    let work = Box::into_raw(Box::new((name, work)));
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the first call initialises `attributes`, which the others use and the last one ends; `run` has the type of a thread's
    // function, and `work` is what it expects.
    let started = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 && {
            let sized = libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack) == 0;
            let start = || libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run::<F>, work.cast());
            let started = sized && signals::spawn_with(blocked, start) == 0;
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            started
        }
    };
    if started {
        // SAFETY: `pthread_create` has succeeded, and so written it.
        return Ok(Running(unsafe { thread.assume_init() }));
    }
    // SAFETY: no thread has taken the box.
    Err(unsafe { Box::from_raw(work) }.1)
}

#[cfg(target_os = "linux")]
fn name_this_thread(name: &CStr) {
    // SAFETY: names this thread by a text that is shorter than 16 bytes; one that is refused changes nothing.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
}

#[cfg(not(target_os = "linux"))]
fn name_this_thread(_: &CStr) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_its_thread_alone() {
        let mut before = false;
        run_in_thread(|| {
            before = true;
            panic!("the work panics");
        });
        assert!(before);
    }
}
