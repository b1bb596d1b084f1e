//! `yaksa_flatten*` and `yaksa_unflatten`.

use crate::status::{Status, answer, write};
use crate::types::{Shared, Type};

use std::ffi::c_void;

/// # Safety
///
/// The type is alive, and the place is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_flatten_size(of: u64, size: *mut u64) -> i32 {
    // SAFETY: `of` is alive, and `size` is null or writable (contract of this function).
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
        // SAFETY: `of` is alive, and `flattened` is writable for the bytes that `yaksa_flatten_size` reports, which are
        // those that `flatten` writes (contract of this function).
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
        // SAFETY: `flattened` begins with a header and is readable for the length in it, since `yaksa_flatten` wrote
        // it; `new` is writable (contract of this function).
        unsafe { write(new, Type::unflatten(flattened.cast())?.into_handle()) }
    })
}
