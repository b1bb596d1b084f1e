//! Copies from type to type, without packed bytes between.

use crate::arguments;
use crate::handle;
use crate::request::{self, dtc_request};
use crate::status::{DTC_ERROR_RANGE, Failure, Outcome, answer};
use crate::transfer::{dtc_transfer, uncapped};
use crate::types::dtc_type;
use dtc_runtime::cuda::Stream;
use dtc_runtime::{Between, Committed, Elements, Engine, TransferError};
use std::ffi::{c_int, c_void};

/// One side of a copy, checked: packed bytes of elements in memory, from an offset on.
struct Side<'a, P> {
    engine: &'a Engine,
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
    let asked = unsafe { handle::borrow(asked)? };
    let committed = &asked.ready()?.committed;
    let place = |field: &str| format!("{name} {field}");
    let (count, offset) = (arguments::length(&place("count"), count)?, arguments::length(&place("offset"), offset)?);
    let total = committed.packed_size(count)?;
    let Some(left) = total.checked_sub(offset) else {
        let message = format!("{}: expected at most {total}, found {offset}", place("offset"));
        return Err(Failure::new(DTC_ERROR_RANGE, message));
    };
    Ok(Side { engine: &asked.engine, committed, elements: Elements { memory, origin: 0, count, offset }, left })
}

/// One copy, checked.
struct Call<'a> {
    from: Side<'a, *const u8>,
    to: Side<'a, *mut u8>,
    between: Between<'a>,
    stream: Option<Stream>,
    /// How many bytes it moves.
    bytes: u64,
}

impl<'a> Call<'a> {
    /// # Safety
    ///
    /// As for [`Move::of`](crate::transfer::Move::of).
    unsafe fn of(
        from: Side<'a, *const u8>,
        to: Side<'a, *mut u8>,
        bytes: i64,
        transfer: *const dtc_transfer,
    ) -> Outcome<Call<'a>> {
        let bytes = arguments::length("bytes", bytes)?.min(from.left).min(to.left);
        // SAFETY: the caller's promise.
        let transfer = unsafe { uncapped(transfer)? };
        let [memory, packed] = transfer.kinds()?;
        // SAFETY: as above.
        let stream = unsafe { transfer.stream(from.engine)? };
        Ok(Call { between: from.committed.between(memory, packed), from, to, stream, bytes })
    }

    /// Enqueues it, or does it and waits.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`], on the host or a device.
    unsafe fn run(&self) -> Result<u64, TransferError> {
        let Call { from, to, between, stream, bytes } = self;
        // SAFETY: the caller's promise.
        unsafe {
            match stream {
                None => between.copy(from.elements, to.committed, to.elements, *bytes),
                Some(stream) => between.enqueue_copy(stream, from.elements, to.committed, to.elements, *bytes),
            }
        }
    }
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
/// stream is one of the primary context of its device.
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
        unsafe {
            let from = side("source", source_type, source.cast(), source_count, source_offset)?;
            let (count, offset) = (destination_count, destination_offset);
            let to = side("destination", destination_type, destination.cast(), count, offset)?;
            let asked = Call::of(from, to, bytes, transfer)?;
            asked.run()?;
            arguments::offer("done", done, asked.bytes as i64)
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
/// As for `dtc_copy`, until the request is done.
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
        arguments::check_pointer("request", request)?;
        // SAFETY: the caller's promise, here and below.
        unsafe {
            let from = side("source", source_type, source.cast(), source_count, source_offset)?;
            let (count, offset) = (destination_count, destination_offset);
            let to = side("destination", destination_type, destination.cast(), count, offset)?;
            let asked = Call::of(from, to, bytes, transfer)?;
            if asked.stream.is_some() {
                asked.run()?;
                request.write(std::ptr::null_mut());
            } else {
                let Call { ref from, ref to, between, bytes, .. } = asked;
                let started = between.start_copy(from.elements, to.committed, to.elements, bytes)?;
                request::give(started, [Some(from.committed), Some(to.committed)], request)?;
            }
            arguments::offer("done", done, asked.bytes as i64)
        }
    })
}
