//! A lock that ignores poisoning and that the thread sanitizer sees.
#![expect(clippy::disallowed_types, reason = "each place that makes one says why no forked child comes there")]
#![cfg_attr(dtc_thread_sanitizer, expect(unsafe_code, reason = "the runtime of the sanitizer is told of each lock"))]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Data that one thread uses at a time. Poisoning is ignored: users leave the data consistent at every step.
#[derive(Debug, Default)]
pub struct Lock<T>(Mutex<T>);

/// Access to the data while it is locked.
pub struct Locked<'a, T> {
    // Fields are dropped in this order: the sanitizer learns of the release before the lock is free.
    _held: Held,
    guard: MutexGuard<'a, T>,
}

impl<T: fmt::Debug> fmt::Debug for Locked<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Locked").field(&*self.guard).finish()
    }
}

impl<T> Lock<T> {
    /// An unlocked lock.
    pub fn new(data: T) -> Lock<T> {
        Lock(Mutex::new(data))
    }

    /// The data, which nobody else can use now.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Locked<'_, T> {
        Locked::new(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<'a, T> Locked<'a, T> {
    fn new(mut guard: MutexGuard<'a, T>) -> Locked<'a, T> {
        Locked { _held: Held::new(&raw mut *guard), guard }
    }

    /// Unlocks until the condition is signalled or the wait ends spuriously.
    pub fn wait(self, condition: &Condvar) -> Locked<'a, T> {
        let Locked { _held: held, guard } = self;
        held.end();
        Locked::new(condition.wait(guard).unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Reports the lock to the thread sanitizer. The standard library's own lock is not instrumented.
#[cfg(dtc_thread_sanitizer)]
struct Held(*mut std::ffi::c_void);

#[cfg(dtc_thread_sanitizer)]
unsafe extern "C" {
    fn __tsan_acquire(address: *mut std::ffi::c_void);
    fn __tsan_release(address: *mut std::ffi::c_void);
}

#[cfg(dtc_thread_sanitizer)]
impl Held {
    fn new<T>(data: *mut T) -> Held {
        // SAFETY: the sanitizer uses the address only as a name, and does not dereference it.
        unsafe { __tsan_acquire(data.cast()) };
        Held(data.cast())
    }

    fn end(self) {}
}

#[cfg(dtc_thread_sanitizer)]
impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the sanitizer uses the address only as a name, and does not dereference it.
        unsafe { __tsan_release(self.0) };
    }
}

/// The same without the sanitizer: does nothing.
#[cfg(not(dtc_thread_sanitizer))]
struct Held;

#[cfg(not(dtc_thread_sanitizer))]
impl Held {
    fn new<T>(_: *mut T) -> Held {
        Held
    }

    fn end(self) {}
}
