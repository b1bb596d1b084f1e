//! Background compilation: one thread, started at the first type that needs it.

use crate::entry::Entry;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    pending: VecDeque<Weak<Entry>>,
    started: bool,
    stopping: bool,
}

/// Entries that wait for their kernel.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the queue as it was: every change to it is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry; starts the thread if there shall be one.
    pub(crate) fn push(self: &Arc<Queue>, entry: &Arc<Entry>, threaded: bool) {
        let mut state = self.state();
        state.pending.push_back(Arc::downgrade(entry));
        if threaded && !state.started {
            let queue = self.clone();
            let thread = std::thread::Builder::new().name("dtc-compile".to_owned());
            // Without a thread the entries wait for `compile_pending`.
            state.started = thread.spawn(move || queue.serve()).is_ok();
        }
        drop(state);
        self.arrived.notify_one();
    }

    fn serve(&self) {
        lower_priority();
        let mut state = self.state();
        loop {
            match state.pending.pop_front() {
                Some(entry) => {
                    drop(state);
                    if let Some(entry) = entry.upgrade() {
                        entry.specialise();
                    }
                    state = self.state();
                }
                None if state.stopping => return,
                None => state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Compiles waiting entries in this thread until none is left or the time is up; returns how many still wait.
    pub(crate) fn compile_pending(&self, budget: Duration) -> usize {
        let start = Instant::now();
        loop {
            let entry = self.state().pending.pop_front();
            match entry {
                Some(entry) => {
                    if let Some(entry) = entry.upgrade() {
                        entry.specialise();
                    }
                }
                None => return 0,
            }
            if start.elapsed() >= budget {
                return self.state().pending.len();
            }
        }
    }

    /// Ends the thread when it has nothing left to do.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopping = true;
        state.pending.clear();
        drop(state);
        self.arrived.notify_all();
    }
}

/// Lets application threads go first.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    // SAFETY: on Linux this changes the calling thread only; there is nothing else to break.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
    }
}
