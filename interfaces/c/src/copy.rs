//! Copies from type to type, without packed bytes between.

use crate::handle;
use crate::request::dtc_request;
use crate::status::{Outcome, answer};
use crate::transfer::{Call, dtc_transfer, range, uncapped};
use crate::types::dtc_type;
use dtc_runtime::{Elements, Range};
use std::ffi::{c_int, c_void};

/// The elements that a copy writes, in the memory of the other end of a call.
///
/// # Safety
///
/// `asked` is null or a type.
unsafe fn destination<'a>(
    asked: *const dtc_type,
    address: *mut c_void,
    range: Range,
    call: &Call<'_>,
) -> Outcome<Elements<'a>> {
    // SAFETY: `asked` is null or a type that the caller keeps for `'a` (contract of this function).
    let asked = unsafe { handle::borrow(asked)? };
    Ok(asked.ready()?.committed.at(call.other(address), range))
}

/// Copies elements to elements of another type: packed bytes of the source from `source_offset` on become packed bytes of
/// the destination from `destination_offset` on, `bytes` of them, or less at the end of either. The bytes are those of a
/// pack and an unpack, without a buffer between where one device, or the processor, reaches both sides.
///
/// `source`, `destination`: the addresses that the types are applied to.
/// `done`: receives how many bytes were copied; may be null.
/// `transfer`: where the bytes lie; null if the library shall find out. Kernels take all multiprocessors that are free.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: a number is negative, or a field of `transfer` unknown or a cap on multiprocessors.
/// `DTC_ERROR_RANGE`: an offset lies behind its packed bytes, or those do not fit 63 bits.
/// `DTC_ERROR_MEMORY`, `DTC_ERROR_DEVICE`: as for `dtc_pack`.
///
/// # Safety
///
/// Every byte of the elements in the range is readable at the source and writable at the destination, no byte of the
/// destination is in the range twice, and the two do not overlap; with `DTC_TRANSFER_ENQUEUE` until the work is done. The
/// stream is one of the primary context of its device. Both types are null or types, `done` is null or writable, and
/// `transfer` is null or leads to its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_copy(
    source_type: *const dtc_type,
    source: *const c_void,
    source_count: i64,
    source_offset: i64,
    destination_type: *const dtc_type,
    destination: *mut c_void,
    destination_count: i64,
    destination_offset: i64,
    bytes: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are readable at the source and writable at the destination until the call,
        // or the work that it enqueued, is done, none is written twice, and the two do not overlap; both types are null
        // or live, `transfer` is null or readable for its size, its stream is one of its device's primary context, and
        // `done` is null or writable (contract of this function).
        unsafe {
            let from = range("source ", source_count, source_offset, ("bytes", bytes))?;
            let to = range("destination ", destination_count, destination_offset, ("bytes", bytes))?;
            let call = Call::of(source_type, from, &uncapped(transfer)?)?;
            let to = self::destination(destination_type, destination, to, &call)?;
            call.run(call.at(source).copy_to(to), done)
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
    source_type: *const dtc_type,
    source: *const c_void,
    source_count: i64,
    source_offset: i64,
    destination_type: *const dtc_type,
    destination: *mut c_void,
    destination_count: i64,
    destination_offset: i64,
    bytes: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
    request: *mut *mut dtc_request,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are readable at the source and writable at the destination until the
        // request is done, none is written twice, and the two do not overlap; both types are null or live, `transfer`
        // is null or readable for its size, its stream is one of its device's primary context, and `done` and `request`
        // are null or writable (contract of this function).
        unsafe {
            let from = range("source ", source_count, source_offset, ("bytes", bytes))?;
            let to = range("destination ", destination_count, destination_offset, ("bytes", bytes))?;
            let call = Call::of(source_type, from, &uncapped(transfer)?)?;
            let to = self::destination(destination_type, destination, to, &call)?;
            call.start(call.at(source).copy_to(to), [Some(call.committed), Some(to.datatype())], done, request)
        }
    })
}
