//! Packing to and unpacking from `external32`.

use crate::arguments;
use crate::handle;
use crate::memory;
use crate::status::{DTC_ERROR_VALUE, Failure, Outcome, answer};
use crate::transfer::{Call, dtc_transfer, range};
use crate::types::dtc_type;
use dtc_reserve::Claim;
use dtc_runtime::{ExternalError, Range};
use std::ffi::{c_int, c_void};

impl From<ExternalError> for Failure {
    fn from(error: ExternalError) -> Failure {
        match error {
            ExternalError::Pack(error) => error.into(),
            other => Failure::new(DTC_ERROR_VALUE, other.to_string()),
        }
    }
}

/// A call that the processor does at once.
///
/// # Safety
///
/// `requested` is null or a type, and `transfer` is null or leads to its size.
unsafe fn call<'a>(requested: *const dtc_type, range: Range, transfer: *const dtc_transfer) -> Outcome<Call<'a>> {
    // SAFETY: `transfer` is null or readable for the size that it begins with (contract of this function).
    let transfer = unsafe { arguments::read(transfer)? };
    match transfer.flags {
        // SAFETY: `requested` is null or a live type (contract of this function); flags of 0 ask for no stream, so `stream`
        // is not read.
        0 => unsafe { Call::of(requested, range, &transfer) },
        flags => Err(Failure::argument("dtc_transfer.flags", "0", flags)),
    }
}

/// Memory for the table of values that the first call of a type makes.
///
/// # Safety
///
/// `requested` is null or a type.
unsafe fn claim(requested: *const dtc_type) -> Outcome<Claim> {
    // SAFETY: `requested` is null or a live type, which the caller keeps during the call (contract of this function).
    memory::for_entries(unsafe { handle::borrow(requested)? }.datatype().most_entries())
}

/// Tells how many bytes `count` elements have in `external32`. (MPI 4.1, 5.3 and 14.5.2)
///
/// `bytes`: receives them.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the count is negative, or `bytes` is null.
/// `DTC_ERROR_RANGE`: the packed bytes do not fit 63 bits.
///
/// # Safety
///
/// `type` is null or a type; `bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_external_size(r#type: *const dtc_type, count: i64, bytes: *mut i64) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let requested = unsafe { handle::borrow(r#type)? };
        let committed = &requested.ready()?.committed;
        let _claim = memory::for_entries(requested.datatype().most_entries())?;
        let total = committed.packed_external_size(arguments::length("count", count)?)?;
        // SAFETY: `bytes` is null or writable (contract of this function).
        unsafe { arguments::give("bytes", bytes, total as i64) }
    })
}

/// Packs a range of bytes of `count` elements in `external32`, the representation that all machines share: bytes `offset` to
/// `offset + max` of it, or less at their end. Any range may be packed, also inside a basic element. Both sides are memory
/// of the host. (MPI 4.1, 5.3 and 14.5.2)
///
/// `source`: the address that the type is applied to.
/// `packed`: receives the bytes.
/// `done`: receives how many bytes were packed; may be null.
/// `transfer`: where the bytes lie; null for the host.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: a number is negative, `packed` is null, or a field of `transfer` unknown.
/// `DTC_ERROR_RANGE`: the offset lies behind the bytes in `external32`, or the packed bytes do not fit 63 bits.
/// `DTC_ERROR_VALUE`: a value does not fit: of `MPI_LONG`, `MPI_UNSIGNED_LONG` or `MPI_WCHAR`, which are shorter there.
/// Everything was packed all the same, such values without their most significant bytes.
/// `DTC_ERROR_MEMORY`: a side lies elsewhere.
///
/// # Safety
///
/// Every byte of the elements in the range is readable, and of those that it cuts; `packed` is writable for as many as the
/// range has, and they do not overlap. `type` is null or a type, `done` is null or writable, and `transfer` is null or leads
/// to its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_pack_external(
    r#type: *const dtc_type,
    source: *const c_void,
    count: i64,
    offset: i64,
    packed: *mut c_void,
    max: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range, with those that it cuts, are readable, `packed` is writable for the bytes
        // of the range, and they do not overlap; `type` is null or a live type, `transfer` is null or readable for its
        // size, and `done` is null or writable (contract of this function).
        unsafe {
            let call = call(r#type, range("", count, offset, ("max", max))?, transfer)?;
            let _claim = claim(r#type)?;
            call.run(call.at(source).pack_external(call.packed(packed)?), done)
        }
    })
}

/// Unpacks `length` bytes as bytes `offset` to `offset + length` of `count` elements in `external32`, or less at their end.
/// Writes bytes of the type map and no others. Both sides are memory of the host. (MPI 4.1, 5.3 and 14.5.2)
///
/// `destination`: the address that the type is applied to.
/// `packed`: the bytes.
/// `done`: receives how many bytes were unpacked; may be null.
/// `transfer`: where the bytes lie; null for the host.
///
/// Errors are those of `dtc_pack_external`, without `DTC_ERROR_VALUE`.
///
/// # Safety
///
/// Every byte of the elements in the range is writable, and those that it cuts are readable, too, and in no range that
/// another thread unpacks meanwhile; no byte is in the range twice, `packed` is readable for as many as the range has, and
/// they do not overlap; else as for `dtc_pack_external`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_unpack_external(
    r#type: *const dtc_type,
    destination: *mut c_void,
    count: i64,
    offset: i64,
    packed: *const c_void,
    length: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: the elements in the range are writable, those that it cuts readable too, `packed` is readable for the
        // bytes of the range, and they do not overlap; `type` is null or a live type, `transfer` is null or readable
        // for its size, and `done` is null or writable (contract of this function).
        unsafe {
            let call = call(r#type, range("", count, offset, ("length", length))?, transfer)?;
            let _claim = claim(r#type)?;
            call.run(call.at(destination).unpack_external(call.packed(packed)?), done)
        }
    })
}
