//! Counters of the calls of a type, by which kernel and thunks are made.

use crate::recorder::Uses;
use std::sync::atomic::{AtomicU32, Ordering};

/// Calls for whole elements before thunks are made. By then the calls have cost as much as making thunks does, 8 us.
pub(super) const CALLS_BEFORE_THUNKS: u32 = 1024;

/// What is counted of a type's calls.
pub(crate) struct UsageCounter {
    /// Number of uses after which a lazy kernel is compiled; `None` under another policy.
    threshold: Option<u32>,
    /// Uses of a lazy type.
    uses: AtomicU32,
    /// Calls for whole elements that were not made by thunks, of a type that gets them in the background.
    calls: AtomicU32,
    /// The counters of the process's recorder; `None` where it has none.
    recorded: Option<&'static Uses>,
}

impl UsageCounter {
    pub(super) fn new(threshold: Option<u32>, recorded: Option<&'static Uses>) -> UsageCounter {
        UsageCounter { threshold, uses: AtomicU32::new(0), calls: AtomicU32::new(0), recorded }
    }

    /// Whether uses are counted, because the kernel comes after some of them.
    #[inline]
    pub(crate) fn is_lazy(&self) -> bool {
        self.threshold.is_some()
    }

    /// Whether every use is counted, for a lazy kernel or by the recorder.
    #[inline]
    pub(crate) fn is_exact(&self) -> bool {
        self.is_lazy() || self.recorded.is_some()
    }

    /// The counters of the process's recorder.
    pub(crate) fn recorded(&self) -> Option<&'static Uses> {
        self.recorded
    }

    /// Counts a use. Returns true for the one that reaches the threshold of a lazy kernel.
    pub(crate) fn count_use(&self) -> bool {
        // The counter stops soon after the threshold, so it cannot wrap.
        self.threshold.is_some_and(|threshold| reaches(&self.uses, threshold))
    }

    /// Counts a call for whole elements that was not made by a thunk. Returns true for the one that follows
    /// [`CALLS_BEFORE_THUNKS`].
    #[inline]
    pub(super) fn count_call(&self) -> bool {
        reaches(&self.calls, CALLS_BEFORE_THUNKS)
    }
}

/// Adds one to a counter; whether it had the value of the threshold before. Beyond the threshold the counter is only read, so that
/// calls that wait for a kernel share its cache line.
#[inline]
fn reaches(counter: &AtomicU32, threshold: u32) -> bool {
    counter.load(Ordering::Relaxed) <= threshold && counter.fetch_add(1, Ordering::Relaxed) == threshold
}
