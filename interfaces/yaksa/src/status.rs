//! What every function of the interface returns.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call did nothing. The numbers belong to the interface; 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    /// There is no memory for it.
    OutOfMemory = 1,
    /// An argument is wrong, or a device failed.
    Internal = 2,
    /// The interface has it, this library does not.
    NotSupported = 3,
}

/// Runs a call for C: its result becomes a status, and nothing unwinds into the caller.
#[inline]
pub(crate) fn answer(call: impl FnOnce() -> Result<(), Status>) -> i32 {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status as i32,
        Err(_) => Status::Internal as i32,
    }
}

/// Writes a result to where C wants it.
///
/// # Safety
///
/// The place is null or writable.
#[inline]
pub(crate) unsafe fn write<T>(place: *mut T, value: T) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::Internal);
    }
    // SAFETY: `place` is not null, so it is writable (contract of this function).
    unsafe { place.write(value) };
    Ok(())
}

/// A list argument. An empty one may be null.
///
/// # Safety
///
/// The list has `length` entries and is not written while the slice is used.
#[inline]
pub(crate) unsafe fn list<'a, T>(start: *const T, length: i64) -> Result<&'a [T], Status> {
    match usize::try_from(length) {
        Ok(0) => Ok(&[]),
        Ok(length) if !start.is_null() && length <= isize::MAX as usize / size_of::<T>() => {
            // SAFETY: `length` entries are readable at `start` and not written while the slice is used (contract of
            // this function); `start` is not null, and their bytes fit `isize` (checked above).
            Ok(unsafe { std::slice::from_raw_parts(start, length) })
        }
        _ => Err(Status::Internal),
    }
}

/// A copy of a list, or the status that says that there is no memory for it.
pub(crate) fn copied<T>(entries: impl ExactSizeIterator<Item = T>) -> Result<Box<[T]>, Status> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(entries.len()).map_err(|_| Status::OutOfMemory)?;
    copy.extend(entries);
    Ok(copy.into_boxed_slice())
}
