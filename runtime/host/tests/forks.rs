//! Threads in forked children. A program of its own, which the address sanitizer does not run: its list of threads has a lock, too.

use dtc_host::thread::run_in_thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_forked_child_starts_threads_while_the_parent_was_starting_some() {
    let stop = Arc::new(AtomicBool::new(false));
    let starting = [(); 4].map(|()| {
        let stop = stop.clone();
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::spawn(|| ()).join().unwrap();
            }
        })
    });
    for round in 0..5000 {
        // SAFETY: the child calls what it may, and leaves by `_exit` or a signal.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut done = false;
            // SAFETY: ends the child if it waits for ever.
            unsafe { libc::alarm(20) };
            run_in_thread(|| done = true);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!done)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child that was just made.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "child {round}");
    }
    stop.store(true, Ordering::Relaxed);
    starting.into_iter().for_each(|thread| thread.join().unwrap());
}
