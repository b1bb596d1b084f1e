//! `yaksa_info_*`.

use super::InfoHandle;
use crate::info::Info;
use crate::memory;
use crate::status::{Status, answer, list, write};
use std::ffi::{CStr, c_char, c_void};

/// The hints behind a handle; nothing behind null.
///
/// # Safety
///
/// The handle is null or alive, and no thread appends to it meanwhile.
#[inline]
pub(super) unsafe fn hints<'a>(info: InfoHandle) -> Option<&'a Info> {
    // SAFETY: the handle is null or the address of an `Info` that `yaksa_info_create` boxed and that was not freed, and
    // no thread writes to it meanwhile (contract of this function).
    unsafe { info.cast::<Info>().as_ref() }
}

/// # Safety
///
/// The place is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_info_create(info: *mut InfoHandle) -> i32 {
    answer(|| {
        let _claim = memory::for_numbers(0)?;
        let made = Box::into_raw(Box::new(Info::default()));
        // SAFETY: `info` is null or writable (contract of this function). If it is null, no handle left this function,
        // so `made` is the only pointer to the box that is freed.
        unsafe { write(info, made.cast()).inspect_err(|_| drop(Box::from_raw(made))) }
    })
}

/// # Safety
///
/// The info is null or alive, and used for the last time.
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_info_free(info: InfoHandle) -> i32 {
    answer(|| {
        if !info.is_null() {
            // SAFETY: the address of a box that `yaksa_info_create` made.
            drop(unsafe { Box::from_raw(info.cast::<Info>()) });
        }
        Ok(())
    })
}

/// # Safety
///
/// The info is alive and not used by others meanwhile, the key ends with a zero, and `length` bytes of the value are readable.
/// (The thresholds, which are ignored, are given as the pointer itself.)
#[unsafe(no_mangle)]
unsafe extern "C" fn yaksa_info_keyval_append(
    info: InfoHandle,
    key: *const c_char,
    value: *const c_void,
    length: u32,
) -> i32 {
    answer(|| {
        // SAFETY: the handle is null or the address of a live `Info`, and no other thread uses it meanwhile (contract
        // of this function).
        let info = unsafe { info.cast::<Info>().as_mut() }.ok_or(Status::Internal)?;
        if key.is_null() {
            return Err(Status::Internal);
        }
        // SAFETY: `key` is not null and ends with a zero (contract of this function); it is not used after this call.
        let key = unsafe { CStr::from_ptr(key) }.to_bytes();
        if key.ends_with(b"_iov_pack_threshold") || key.ends_with(b"_iov_unpack_threshold") {
            return info.append(key, &[]);
        }
        // SAFETY: `length` bytes of `value` are readable (contract of this function). The keys whose value is not a
        // pointer returned above.
        info.append(key, unsafe { list(value.cast(), length.into())? })
    })
}
