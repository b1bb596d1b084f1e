//! Packing to and unpacking from `external32`.

use crate::arguments;
use crate::handle;
use crate::memory;
use crate::status::{DTC_ERROR_RANGE, DTC_ERROR_VALUE, Failure, Outcome, answer};
use crate::transfer::{check_packed, dtc_transfer, first_byte, on_host};
use crate::types::dtc_type;
use dtc_runtime::{Committed, ExternalError, Range};
use std::ffi::{c_int, c_void};

impl From<ExternalError> for Failure {
    fn from(error: ExternalError) -> Failure {
        match error {
            ExternalError::Pack(error) => error.into(),
            other => Failure::new(DTC_ERROR_VALUE, other.to_string()),
        }
    }
}

/// One call, checked: both sides are memory of the host.
struct Asked<'a> {
    committed: &'a Committed,
    count: u64,
    offset: u64,
    /// How many bytes of `external32` it moves.
    bytes: u64,
}

impl<'a> Asked<'a> {
    /// # Safety
    ///
    /// `asked` is null or a type, and `transfer` is null or leads to its size.
    unsafe fn of(
        asked: *const dtc_type,
        memory: *const u8,
        count: i64,
        offset: i64,
        packed: *const c_void,
        (place, max): (&str, i64),
        transfer: *const dtc_transfer,
    ) -> Outcome<Asked<'a>> {
        // SAFETY: the caller's promise.
        let asked = unsafe { handle::borrow(asked)? };
        let committed = &asked.ready()?.committed;
        // The first call makes a table.
        let _claim = memory::for_entries(asked.datatype.most_entries())?;
        let count = arguments::length("count", count)?;
        let (offset, max) = (arguments::length("offset", offset)?, arguments::length(place, max)?);
        let total = committed.packed_external_size(count)?;
        let Some(rest) = total.checked_sub(offset) else {
            return Err(Failure::new(DTC_ERROR_RANGE, format!("offset: expected at most {total}, found {offset}")));
        };
        let bytes = rest.min(max);
        check_packed(bytes, packed)?;
        if bytes > 0 {
            let sides = [("memory", first_byte(committed, memory)), ("packed", packed.cast())];
            // SAFETY: the caller's promise.
            unsafe { on_host(transfer, sides)? };
        }
        Ok(Asked { committed, count, offset, bytes })
    }
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
        // SAFETY: the caller's promise, here and below.
        let asked = unsafe { handle::borrow(r#type)? };
        let committed = &asked.ready()?.committed;
        let _claim = memory::for_entries(asked.datatype.most_entries())?;
        let total = committed.packed_external_size(arguments::length("count", count)?)?;
        // SAFETY: as above.
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
/// range has, and they do not overlap.
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
        // SAFETY: the caller's promise, here and below.
        unsafe {
            let asked = Asked::of(r#type, source.cast(), count, offset, packed, ("max", max), transfer)?;
            let Asked { committed, count, offset, bytes } = asked;
            let result = committed.pack_external_raw(
                source.cast(),
                Range::elements(count).fragment(offset, bytes),
                packed.cast(),
            );
            arguments::offer("done", done, bytes as i64)?;
            Ok(result.map(|_| ())?)
        }
    })
}

/// Unpacks `length` bytes as bytes `offset` to `offset + length` of `count` elements in `external32`, or less at their end.
/// Writes bytes of the type map and no others. Both sides are memory of the host. (MPI 4.1, 5.3 and 14.5.2)
///
/// `packed`: the bytes.
/// `destination`: the address that the type is applied to.
/// `done`: receives how many bytes were unpacked; may be null.
/// `transfer`: where the bytes lie; null for the host.
///
/// Errors are those of `dtc_pack_external`, without `DTC_ERROR_VALUE`.
///
/// # Safety
///
/// Every byte of the elements in the range is writable, and those that it cuts are readable, too, and in no range that
/// another thread unpacks meanwhile; no byte is in the range twice, `packed` is readable for as many as the range has, and
/// they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_unpack_external(
    r#type: *const dtc_type,
    packed: *const c_void,
    length: i64,
    destination: *mut c_void,
    count: i64,
    offset: i64,
    done: *mut i64,
    transfer: *const dtc_transfer,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise, here and below.
        unsafe {
            let asked = Asked::of(r#type, destination.cast(), count, offset, packed, ("length", length), transfer)?;
            let Asked { committed, count, offset, bytes } = asked;
            committed.unpack_external_raw(
                packed.cast(),
                Range::elements(count).fragment(offset, bytes),
                destination.cast(),
            );
            arguments::offer("done", done, bytes as i64)
        }
    })
}
