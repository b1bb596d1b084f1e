//! What callers hand over: pointers, lists and structs that may grow.
//!
//! What every call does on its way is inlined into it, here and beside the calls: results that are handed over in memory, and read there
//! in other pieces than they were written in, made a pack of 480 bytes take 70 ns instead of 34 (Zen 5).

use crate::status::{Failure, Outcome};
use std::ffi::c_void;

/// A list of a caller. A null pointer is a list of length 0.
///
/// # Safety
///
/// `first` is null, misaligned, or the first of `length` readable values that do not change during `'a`.
pub(crate) unsafe fn list<'a, T>(place: &str, first: *const T, length: i64) -> Outcome<&'a [T]> {
    let fits = usize::try_from(length)
        .ok()
        .filter(|length| length.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize));
    let longest = || format!("a length of 0 to {}", isize::MAX as usize / size_of::<T>().max(1));
    let length = fits.ok_or_else(|| Failure::argument(place, longest(), length))?;
    if length == 0 {
        return Ok(&[]);
    }
    check_pointer(place, first)?;
    // SAFETY: `first` is the first of `length` readable values that do not change during `'a` (contract of this
    // function); it is aligned, not null, and their bytes fit `isize` (checked above).
    Ok(unsafe { std::slice::from_raw_parts(first, length) })
}

/// The length of lists that are not looked at yet; 0 if it is negative, which [`list`] refuses. One of more entries of 8 bytes than there can
/// be is a mistake of the caller, and no lack of memory.
pub(crate) fn list_length(place: &str, length: i64) -> Outcome<u64> {
    let most = isize::MAX as u64 / size_of::<i64>() as u64;
    match u64::try_from(length).unwrap_or(0) {
        length if length <= most => Ok(length),
        _ => Err(Failure::argument(place, format_args!("a length of 0 to {most}"), length)),
    }
}

/// Refuses a pointer that cannot lead to a `T`.
#[inline(always)]
pub(crate) fn check_pointer<T>(place: &str, pointer: *const T) -> Outcome {
    if pointer.is_null() || !pointer.is_aligned() {
        let expected = format!("an address that is a multiple of {}", align_of::<T>());
        return Err(Failure::argument(place, expected, format_args!("{:#x}", pointer.addr())));
    }
    Ok(())
}

/// Writes a result through a caller's pointer that must not be null.
///
/// # Safety
///
/// `place` is null, misaligned, or writable.
#[inline(always)]
pub(crate) unsafe fn give<T>(name: &str, place: *mut T, value: T) -> Outcome {
    check_pointer(name, place)?;
    // SAFETY: `place` is aligned and not null (checked above), so it is writable (contract of this function).
    unsafe { place.write(value) };
    Ok(())
}

/// Writes a result through a caller's pointer, or drops it if that is null.
///
/// # Safety
///
/// As for [`give`].
#[inline(always)]
pub(crate) unsafe fn offer<T>(name: &str, place: *mut T, value: T) -> Outcome {
    // SAFETY: `place` is misaligned or writable (contract of this function), which is what `give` asks.
    if place.is_null() { Ok(()) } else { unsafe { give(name, place, value) } }
}

/// A number that must not be negative.
#[inline(always)]
pub(crate) fn length(place: &str, value: i64) -> Outcome<u64> {
    u64::try_from(value).map_err(|_| Failure::argument(place, "at least 0", value))
}

/// A struct that begins with its size in bytes and may grow at its end in later versions.
///
/// # Safety
///
/// The type is `repr(C)`, begins with an `i64`, and any bytes are a value of it.
pub(crate) unsafe trait Growing: Copy {
    /// What the fields are where a caller does not know them yet.
    const DEFAULT: Self;
    /// Its name in C.
    const NAME: &'static str;
    /// Bytes of the first version, which every caller has.
    const FIRST: usize = size_of::<Self>();
}

/// Bytes that a caller's struct has, as far as this library knows them.
///
/// # Safety
///
/// `from` is null, misaligned, or readable for the size that it begins with.
#[inline(always)]
unsafe fn known_bytes<T: Growing>(from: *const T) -> Outcome<usize> {
    check_pointer(T::NAME, from)?;
    // SAFETY: `from` is aligned and not null (checked above), so it is readable for its size (contract of this
    // function), which is an `i64` at its start (contract of `Growing`).
    let size = unsafe { from.cast::<i64>().read() };
    match usize::try_from(size) {
        Ok(size) if size >= T::FIRST => Ok(size.min(size_of::<T>())),
        _ => Err(Failure::argument(
            &format!("{}.size", T::NAME),
            format_args!("sizeof({}), at least {}", T::NAME, T::FIRST),
            size,
        )),
    }
}

/// Whether a caller's struct reaches beyond a field that begins at this offset.
///
/// # Safety
///
/// As for [`read`].
pub(crate) unsafe fn reaches<T: Growing>(from: *const T, offset: usize) -> Outcome<bool> {
    // SAFETY: the same contract.
    Ok(unsafe { known_bytes(from)? } > offset)
}

/// Reads a struct that may be shorter or longer than the one of this library; null stands for the default.
///
/// # Safety
///
/// `from` is null, misaligned, or readable for the size that it begins with.
#[inline(always)]
pub(crate) unsafe fn read<T: Growing>(from: *const T) -> Outcome<T> {
    let mut value = T::DEFAULT;
    if !from.is_null() {
        // SAFETY: `from` is misaligned or readable for the size that it begins with (contract of this function).
        let bytes = unsafe { known_bytes(from)? };
        // SAFETY: `from` is readable for the size that it begins with and `value` has all bytes of a `T`; `known_bytes`
        // is at most either. Any bytes are a value of `T` (contract of `Growing`).
        unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast(), bytes) };
    }
    Ok(value)
}

/// Fills a struct of a caller as far as it reaches, and keeps its size.
///
/// # Safety
///
/// `to` is null, misaligned, or readable and writable for the size that it begins with.
pub(crate) unsafe fn fill<T: Growing>(to: *mut T, value: T) -> Outcome {
    // SAFETY: `to` is null, misaligned, or readable for the size that it begins with (contract of this function).
    let bytes = unsafe { known_bytes(to)? };
    let skip = size_of::<i64>();
    // SAFETY: `to` is writable for the size that it begins with and `value` has all bytes of a `T`; `bytes` is at most
    // either, and at least the `skip` bytes of the size, which stays as the caller wrote it.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const value).cast::<u8>().add(skip),
            to.cast::<u8>().add(skip),
            bytes - skip,
        );
    }
    Ok(())
}

/// A pointer of the caller that its threads may carry: its hooks promise to be thread-safe.
#[derive(Clone, Copy)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: it is handed back to the caller's own functions only, which promise to be callable from any thread.
unsafe impl Send for Context {}
// SAFETY: threads that share it only copy the pointer; it leads to the caller's functions alone, which promise to be
// callable from any thread.
unsafe impl Sync for Context {}
