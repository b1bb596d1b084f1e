//! Calls under way.
#![expect(clippy::disallowed_types, reason = "the lock is only tried")]

use crate::arguments;
use crate::handle::{self, Handle, Tag};
use crate::status::{DTC_ERROR_HANDLE, Failure, Outcome, answer};
use dtc_runtime::{Committed, Request};
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// A call under way. It belongs to one thread at a time.
pub struct dtc_request(());

/// What a request waits for.
pub(crate) struct Pending {
    request: Mutex<Option<Request>>,
    /// What the device reads stays while the request does.
    _types: [Option<Committed>; 2],
}

impl Handle for dtc_request {
    type Inside = Pending;
    const TAG: Tag = Tag::REQUEST;
    const NAME: &'static str = "dtc_request";
}

/// Hands a call under way to the caller, as null if it is done.
///
/// # Safety
///
/// `place` is writable.
pub(crate) unsafe fn give(request: Request, types: [Option<&Committed>; 2], place: *mut *mut dtc_request) -> Outcome {
    let pending = match request.is_done() {
        true => std::ptr::null_mut(),
        false => handle::share(Pending { request: Mutex::new(Some(request)), _types: types.map(Option::<&_>::cloned) }),
    };
    // SAFETY: `place` is writable (contract of this function).
    unsafe { arguments::give("request", place, pending) }
}

impl Pending {
    /// The request, under its lock. The lock is only tried: another thread holds it if two use a request at a time, and, in a
    /// forked child, if a thread of the parent held it at the fork; the latter is never released.
    fn waiting(&self) -> Outcome<MutexGuard<'_, Option<Request>>> {
        match self.request.try_lock() {
            Ok(waiting) => Ok(waiting),
            Err(TryLockError::Poisoned(waiting)) => Ok(waiting.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message = "dtc_request: expected one thread at a time, found another one inside";
                Err(Failure::new(DTC_ERROR_HANDLE, message))
            }
        }
    }
}

/// Takes what waits behind a handle, and frees the handle.
///
/// # Safety
///
/// `place` is writable and leads to a live request, which no other thread uses.
unsafe fn finish(place: *mut *mut dtc_request) -> Outcome {
    // SAFETY: `place` leads to a request, so it is readable (contract of this function).
    let pending = unsafe { place.read() };
    // SAFETY: `pending` is a live request, which no other thread uses or releases (contract of this function).
    let waiting = unsafe { handle::borrow(pending)? }.waiting()?.take();
    let result = waiting.map_or(Ok(0), Request::wait);
    // SAFETY: `place` is writable, and `pending` holds the one reference that the caller had (contract of this
    // function). The caller finds null there from here on, so it is released once.
    unsafe {
        place.write(std::ptr::null_mut());
        handle::release(pending)?;
    }
    result?;
    Ok(())
}

/// Whether a call under way is done; frees the request then, and when it failed, and makes `*request` null.
///
/// `request`: the request; null in it stands for a call that is done.
/// `done`: receives 1 if it is done, 0 if not.
///
/// `DTC_ERROR_HANDLE`: not a request, or another thread uses it.
/// `DTC_ERROR_ARGUMENT`: a pointer is null.
/// `DTC_ERROR_DEVICE`: the device failed.
///
/// # Safety
///
/// `request` is null or leads to null or a request, and `done` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_test(request: *mut *mut dtc_request, done: *mut c_int) -> c_int {
    answer(|| {
        arguments::check_pointer("request", request)?;
        arguments::check_pointer("done", done)?;
        // SAFETY: `request` is aligned and not null (checked above), so it leads to null or a live request (contract of
        // this function).
        let pending = unsafe { request.read() };
        let ready = match pending.is_null() {
            true => true,
            false => {
                // SAFETY: `pending` is not null, so it is a live request, which belongs to this thread (contract of
                // this function).
                let requested = unsafe { handle::borrow(pending)? };
                // One that failed is done, and waiting for it tells why.
                requested.waiting()?.as_mut().is_none_or(|request| request.test().unwrap_or(true))
            }
        };
        // SAFETY: `done` is aligned and not null (checked above), so it is writable (contract of this function).
        unsafe { done.write(ready.into()) };
        // SAFETY: `request` leads to a live request, which belongs to this thread (contract of this function);
        // `pending` was it, and nothing released it since.
        if ready && !pending.is_null() { unsafe { finish(request) } } else { Ok(()) }
    })
}

/// Waits for a call under way, frees the request and makes `*request` null.
///
/// `request`: the request; null in it stands for a call that is done.
///
/// `DTC_ERROR_HANDLE`: not a request, or another thread uses it.
/// `DTC_ERROR_ARGUMENT`: `request` is null.
/// `DTC_ERROR_DEVICE`: the device failed; the request is freed.
///
/// # Safety
///
/// `request` is null or leads to null or a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_wait(request: *mut *mut dtc_request) -> c_int {
    answer(|| {
        arguments::check_pointer("request", request)?;
        // SAFETY: `request` is aligned and not null (checked above), so it leads to null or a live request, which
        // belongs to this thread (contract of this function).
        if unsafe { request.read() }.is_null() { Ok(()) } else { unsafe { finish(request) } }
    })
}
