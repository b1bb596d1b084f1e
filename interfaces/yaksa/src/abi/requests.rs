//! `yaksa_request_*`.

use crate::pack::Pending;
use crate::status::{Status, answer, write};
use dtc_runtime::Request;

/// The handle of calls that are done.
const DONE: u64 = 0;

/// The handle of a request, or [`DONE`].
pub(super) fn into_handle(pending: Pending) -> u64 {
    pending.map_or(DONE, |request| Box::into_raw(request) as usize as u64)
}

/// # Safety
///
/// `handle` is that of a call whose end has not been reported, no other thread uses it, and `completed` is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_request_test(handle: u64, completed: *mut i32) -> i32 {
    answer(|| {
        let request = handle as usize as *mut Request;
        // SAFETY: the handle is `DONE`, which is null, or the address of a box that `into_handle` gave; its end has not
        // been reported, so the box still lives, and no other thread uses it (contract of this function).
        let done = match unsafe { request.as_mut() } {
            None => true,
            Some(under_way) => under_way.test().map_err(|_| Status::Internal)?,
        };
        // SAFETY: `completed` is null or writable (contract of this function).
        unsafe { write(completed, i32::from(done))? };
        if done && !request.is_null() {
            // SAFETY: the address of a box that `into_handle` gave; the handle is not used again.
            let request = unsafe { Box::from_raw(request) };
            request.wait().map_err(|_| Status::Internal)?;
        }
        Ok(())
    })
}

/// # Safety
///
/// `handle` is that of a call whose end has not been reported, and no other thread uses it.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_request_wait(handle: u64) -> i32 {
    answer(|| {
        if handle != DONE {
            // SAFETY: the address of a box that `into_handle` gave; the handle is not used again.
            let request = unsafe { Box::from_raw(handle as usize as *mut Request) };
            request.wait().map_err(|_| Status::Internal)?;
        }
        Ok(())
    })
}
