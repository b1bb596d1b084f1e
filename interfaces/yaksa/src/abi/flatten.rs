//! `yaksa_flatten*` and `yaksa_unflatten`.

use crate::status::{Status, answer, write};
use crate::types::{Shared, Type};

use std::ffi::c_void;

/// # Safety
///
/// The type is alive, and the place is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_flatten_size(of: u64, size: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    answer(|| unsafe { write(size, Shared::of_handle(of).flattened_size()? as u64) })
}

/// # Safety
///
/// The type is alive, and as many bytes are writable as `yaksa_flatten_size` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_flatten(of: u64, flattened: *mut c_void) -> i32 {
    answer(|| {
        if flattened.is_null() {
            return Err(Status::Internal);
        }
        // SAFETY: the caller's promise.
        unsafe { Shared::of_handle(of).flatten(flattened.cast()) }
    })
}

/// # Safety
///
/// The place is writable, and the bytes are those that `yaksa_flatten` wrote, here or in another process. Others are refused
/// as far as can be told without their length.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_unflatten(new: *mut u64, flattened: *const c_void) -> i32 {
    answer(|| {
        if flattened.is_null() || new.is_null() {
            return Err(Status::Internal);
        }
        // SAFETY: the caller's promise.
        unsafe { write(new, Type::unflatten(flattened.cast())?.into_handle()) }
    })
}
