//! Background compilation: one thread, started at the first type that needs it.
#![expect(clippy::disallowed_types, reason = "a queue is used only in the process that made its engine")]

use dtc_host::exit::Work;
use dtc_host::lock::{Lock, Locked};
use dtc_host::thread;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant};

/// What the background does. Jobs do not keep types alive, and dropping one frees nothing.
pub(crate) trait Job: Send {
    /// How urgent the job is: how many calls would have used what it makes.
    fn priority(&self) -> u32;

    /// Does it, if what it is for is still there.
    fn run(&self);
}

#[derive(Default)]
struct State {
    pending: VecDeque<Box<dyn Job>>,
    started: bool,
    stopping: bool,
    /// Whether the thread does a job now.
    busy: bool,
}

/// Waiting jobs among which the most urgent is looked for.
const COMPARED: usize = 64;

impl State {
    /// The most urgent of the oldest jobs, and the oldest of those of equal priority.
    fn take(&mut self) -> Option<Box<dyn Job>> {
        let next = self.pending.iter().take(COMPARED).enumerate().rev().max_by_key(|(_, job)| job.priority())?.0;
        self.pending.remove(next)
    }
}

/// Work that waits.
#[derive(Default)]
pub(crate) struct Queue {
    state: Lock<State>,
    arrived: Condvar,
    rested: Condvar,
}

/// A job that the thread does; also a panic ends it.
struct Busy<'a>(&'a Queue);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.state().busy = false;
        self.0.rested.notify_all();
    }
}

impl Queue {
    fn state(&self) -> Locked<'_, State> {
        // A panic elsewhere leaves the queue as it was: every change to it is one call.
        self.state.lock()
    }

    /// Adds a job; starts the thread if there shall be one.
    pub(crate) fn push(self: &Arc<Queue>, job: impl Job + 'static, threaded: bool) {
        let mut state = self.state();
        if state.stopping {
            return;
        }
        state.pending.push_back(Box::new(job));
        if threaded && !state.started {
            let queue = self.clone();
            // Without a thread the jobs wait for `compile_pending`.
            state.started = thread::start_compiler(move || queue.serve());
        }
        drop(state);
        self.arrived.notify_one();
    }

    fn serve(&self) {
        lower_priority();
        let mut state = self.state();
        loop {
            match state.take() {
                Some(job) => {
                    state.busy = true;
                    drop(state);
                    let busy = Busy(self);
                    let Some(work) = Work::begin() else { return };
                    job.run();
                    drop(work);
                    drop(busy);
                    state = self.state();
                }
                None if state.stopping => return,
                None => state = state.wait(&self.arrived),
            }
        }
    }

    /// How many jobs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().pending.len()
    }

    /// Does waiting jobs in this thread until none is left or the time is up; returns how many still wait.
    pub(crate) fn compile_pending(&self, budget: Duration) -> usize {
        let start = Instant::now();
        loop {
            let job = self.state().take();
            match job {
                Some(job) => job.run(),
                None => return 0,
            }
            if start.elapsed() >= budget {
                return self.waiting();
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

    /// Waits until the thread does nothing. Not for that thread.
    pub(crate) fn rest(&self) {
        let mut state = self.state();
        while state.busy {
            state = state.wait(&self.rested);
        }
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
