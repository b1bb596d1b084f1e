//! `yaksa_iov*`.

use crate::status::{Status, answer, write};
use crate::types::Shared;

use libc::iovec;
use std::ffi::c_char;

/// # Safety
///
/// The type is alive, and the place is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_iov_len(count: u64, of: u64, length: *mut u64) -> i32 {
    // SAFETY: `of` is alive, and `length` is null or writable (contract of this function).
    answer(|| unsafe { write(length, Shared::of_handle(of).segments(count).ok_or(Status::Internal)?) })
}

/// # Safety
///
/// The type is alive, and the places are null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_iov_len_max(
    count: u64,
    of: u64,
    max_bytes: u64,
    length: *mut u64,
    actual_bytes: *mut u64,
) -> i32 {
    answer(|| {
        // SAFETY: `of` is alive, and `length` and `actual_bytes` are null or writable (contract of this function).
        unsafe {
            let (fitting, bytes) = Shared::of_handle(of).segments_within(count, max_bytes)?;
            write(length, fitting)?;
            write(actual_bytes, bytes)
        }
    })
}

/// # Safety
///
/// The type is alive, `max_length` entries of the vector are writable, and the place is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_iov(
    buffer: *const c_char,
    count: u64,
    of: u64,
    skip: u64,
    vector: *mut iovec,
    max_length: u64,
    actual_length: *mut u64,
) -> i32 {
    answer(|| {
        let mut written = 0;
        if max_length > 0 {
            if vector.is_null() {
                return Err(Status::Internal);
            }
            // SAFETY: `of` is alive, and `max_length` entries of `vector` are writable (contract of this function);
            // `written` is less than `max_length` at each write.
            unsafe {
                Shared::of_handle(of).each_segment(count, skip, |offset, bytes| {
                    let room = written < max_length;
                    if room {
                        let base = buffer.wrapping_offset(offset as isize).cast_mut().cast();
                        vector.add(written as usize).write(iovec { iov_base: base, iov_len: bytes as usize });
                        written += 1;
                    }
                    room
                })?;
            }
        }
        // SAFETY: `actual_length` is null or writable (contract of this function).
        unsafe { write(actual_length, written) }
    })
}
