//! Copies from type to type, without packed bytes between.

use crate::handle;
use crate::request::dtc_request;
use crate::status::{Failure, Outcome, answer};
use crate::transfer::{Call, dtc_transfer, range, uncapped};
use crate::types::dtc_type;
use dtc_runtime::{Elements, Range};
use std::ffi::{c_int, c_void};

/// Elements of a type, and the first of their packed bytes that is copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_elements {
    /// The type of the elements.
    pub r#type: *const dtc_type,
    /// The address that the type is applied to. A source is only read.
    pub memory: *mut c_void,
    /// How many elements.
    pub count: i64,
    /// The first packed byte to copy.
    pub offset: i64,
}

impl dtc_elements {
    /// `bytes` of the packed bytes, which errors call those of `place`.
    fn range(&self, place: &str, bytes: i64) -> Outcome<Range> {
        range(place, self.count, self.offset, ("bytes", bytes))
    }

    /// The elements that a copy writes, in the memory of the other end of a call.
    ///
    /// # Safety
    ///
    /// The type is null or a type.
    unsafe fn destination<'a>(&self, range: Range, call: &Call<'_>) -> Outcome<Elements<'a>> {
        // SAFETY: the type is null or a type that the caller keeps for `'a` (contract of this function).
        let requested = unsafe { handle::borrow(self.r#type)? };
        Ok(requested.ready()?.committed.at(call.other(self.memory), range))
    }
}

/// Reads one side of a copy.
///
/// # Safety
///
/// The pointer is null or readable.
unsafe fn side(name: &str, elements: *const dtc_elements) -> Outcome<dtc_elements> {
    // SAFETY: the pointer is null or readable (contract of this function).
    unsafe { elements.as_ref() }.copied().ok_or_else(|| Failure::argument(name, "a pointer to dtc_elements", "null"))
}

/// Copies elements to elements of another type: packed bytes of the source from its offset on become packed bytes of the
/// destination from its own on, `bytes` of them, or less at the end of either. The bytes are those of a pack and an unpack,
/// without a buffer between where one device, or the processor, reaches both sides.
///
/// `source`, `destination`: types, addresses and ranges; read before the call returns.
/// `done`: receives how many bytes were copied; may be null.
/// `transfer`: where the bytes lie; null if the library shall find out. Kernels take all multiprocessors that are free.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: a side is null, a number is negative, or a field of `transfer` unknown or a cap on multiprocessors.
/// `DTC_ERROR_RANGE`: an offset lies behind its packed bytes, or those do not fit 63 bits.
/// `DTC_ERROR_MEMORY`, `DTC_ERROR_DEVICE`: as for `dtc_pack`.
///
/// # Safety
///
/// Every byte of the elements in the range is readable at the source and writable at the destination, no byte of the
/// destination is in the range twice, and the two do not overlap; with `DTC_TRANSFER_ENQUEUE` until the work is done. The
/// stream is one of the primary context of its device. Both sides are null or readable and their types null or types, `done`
/// is null or writable, and `transfer` is null or leads to its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_copy(
    source: *const dtc_elements,
    destination: *const dtc_elements,
    bytes: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are readable at the source and writable at the destination until the call,
        // or the work that it enqueued, is done, none is written twice, and the two do not overlap; both sides are null
        // or readable and their types null or live, `transfer` is null or readable for its size, its stream is one of its
        // device's primary context, and `done` is null or writable (contract of this function).
        unsafe {
            let (source, destination) = (side("source", source)?, side("destination", destination)?);
            let (from, to) = (source.range("source ", bytes)?, destination.range("destination ", bytes)?);
            let call = Call::of(source.r#type, from, &uncapped(transfer)?)?;
            let to = destination.destination(to, &call)?;
            call.run(call.at(source.memory).copy_to(to), done)
        }
    })
}

/// Starts what `dtc_copy` does. Where one device reaches both sides, it goes on by itself; everything else is done when the
/// call returns.
///
/// `done`: receives how many bytes will be copied; may be null.
/// `request`: receives the request to test or wait for; null in it if the call is done, or enqueued.
///
/// Errors are those of `dtc_copy`, and `DTC_ERROR_ARGUMENT` if `request` is null.
///
/// # Safety
///
/// As for `dtc_copy`, until the request is done; `request` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_copy_start(
    source: *const dtc_elements,
    destination: *const dtc_elements,
    bytes: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
    request: *mut *mut dtc_request,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are readable at the source and writable at the destination until the
        // request is done, none is written twice, and the two do not overlap; both sides are null
        // or readable and their types null or live, `transfer` is null or readable for its size, its stream is one of its
        // device's primary context, and `done` and `request` are null or writable (contract of this function).
        unsafe {
            let (source, destination) = (side("source", source)?, side("destination", destination)?);
            let (from, to) = (source.range("source ", bytes)?, destination.range("destination ", bytes)?);
            let call = Call::of(source.r#type, from, &uncapped(transfer)?)?;
            let to = destination.destination(to, &call)?;
            call.start(call.at(source.memory).copy_to(to), [Some(call.committed), Some(to.datatype())], done, request)
        }
    })
}
