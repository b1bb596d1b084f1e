//! Buffers that are kept from one transfer to the next.

use dtc_cuda::CudaError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffers of a sort that requests make. Blocking calls of more threads than this make more.
const FOR_REQUESTS: usize = 8;

/// The buffers of one sort that no transfer uses now.
pub(crate) struct Pool<T> {
    idle: Mutex<Vec<T>>,
    /// Number of buffers, in use or not.
    alive: AtomicUsize,
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool { idle: Mutex::default(), alive: AtomicUsize::new(0) }
    }
}

impl<T> Pool<T> {
    fn idle(&self) -> MutexGuard<'_, Vec<T>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle buffer, or a new one.
    pub(crate) fn take(&self, make: impl FnOnce() -> Result<T, CudaError>) -> Result<T, CudaError> {
        let idle = self.idle().pop();
        idle.map_or_else(|| make().inspect(|_| _ = self.alive.fetch_add(1, Ordering::Relaxed)), Ok)
    }

    /// Whether there is an idle buffer, or one more may be made for a request.
    pub(in crate::device) fn has_room(&self) -> bool {
        !self.idle().is_empty() || self.alive.load(Ordering::Relaxed) < FOR_REQUESTS
    }

    /// Puts a buffer back.
    pub(in crate::device) fn keep(&self, buffer: T) {
        self.idle().push(buffer);
    }
}
