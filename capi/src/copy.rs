//! Copies from type to type, without packed bytes between.

use crate::arguments;
use crate::handle;
use crate::status::{DTC_ERROR_RANGE, Failure, Outcome, answer};
use crate::transfer::{dtc_transfer, first_byte, on_host};
use crate::types::dtc_type;
use dtc_runtime::{Committed, Elements};
use std::ffi::{c_int, c_void};

/// One side of a copy, checked: packed bytes of elements in memory, from an offset on.
struct Side<'a, P> {
    committed: &'a Committed,
    elements: Elements<P>,
    /// Packed bytes from the offset on.
    left: u64,
}

/// # Safety
///
/// `asked` is null or a type.
unsafe fn side<'a, P>(name: &str, asked: *const dtc_type, memory: P, count: i64, offset: i64) -> Outcome<Side<'a, P>> {
    // SAFETY: the caller's promise.
    let committed = &unsafe { handle::borrow(asked)? }.ready()?.committed;
    let place = |field: &str| format!("{name} {field}");
    let (count, offset) = (arguments::length(&place("count"), count)?, arguments::length(&place("offset"), offset)?);
    let total = committed.packed_size(count)?;
    let Some(left) = total.checked_sub(offset) else {
        let message = format!("{}: expected at most {total}, found {offset}", place("offset"));
        return Err(Failure::new(DTC_ERROR_RANGE, message));
    };
    Ok(Side { committed, elements: Elements { memory, origin: 0, count, offset }, left })
}

/// Copies elements to elements of another type: packed bytes of the source from `source_offset` on become packed bytes of
/// the destination from `destination_offset` on, `bytes` of them, or less at the end of either. The bytes are those of a
/// pack and an unpack, without a buffer between. Both sides are memory of the host.
///
/// `source`, `destination`: the addresses that the types are applied to.
/// `done`: receives how many bytes were copied; may be null.
/// `transfer`: where the bytes lie; null for the host.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: a number is negative, or a field of `transfer` unknown.
/// `DTC_ERROR_RANGE`: an offset lies behind its packed bytes, or those do not fit 63 bits.
/// `DTC_ERROR_MEMORY`: a side lies elsewhere.
///
/// # Safety
///
/// Every byte of the elements in the range is readable at the source and writable at the destination, no byte of the
/// destination is in the range twice, and the two do not overlap.
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
        // SAFETY: the caller's promise, here and below.
        let from = unsafe { side("source", source_type, source.cast::<u8>(), source_count, source_offset)? };
        let (count, offset) = (destination_count, destination_offset);
        // SAFETY: as above.
        let to = unsafe { side("destination", destination_type, destination.cast::<u8>(), count, offset)? };
        let bytes = arguments::length("bytes", bytes)?.min(from.left).min(to.left);
        // SAFETY: as above.
        unsafe {
            if bytes > 0 {
                let read = first_byte(from.committed, source.cast());
                let written = first_byte(to.committed, destination.cast());
                on_host(transfer, [("source", read), ("destination", written)])?;
            }
            from.committed.copy_raw(from.elements, to.committed, to.elements, bytes);
            arguments::offer("done", done, bytes as i64)
        }
    })
}
