//! Where the bytes lie: iov lists, and positions.

use crate::arguments;
use crate::handle;
use crate::status::{DTC_ERROR_RANGE, Failure, Outcome, answer};
use crate::types::{Type, dtc_type};
use std::ffi::{c_int, c_void};

/// A contiguous piece of memory: the `struct iovec` of POSIX.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_iovec {
    /// Its first byte.
    pub base: *mut c_void,
    /// Its bytes.
    pub length: usize,
}

/// A committed type and its count, and the packed bytes that they have.
struct Elements<'a> {
    ready: &'a Type,
    count: u64,
    total: u64,
}

impl<'a> Elements<'a> {
    /// # Safety
    ///
    /// `requested` is null or a type.
    unsafe fn of(requested: *const dtc_type, count: i64) -> Outcome<Elements<'a>> {
        // SAFETY: `requested` is null or a type that the caller keeps for `'a` (contract of this function).
        let ready = unsafe { handle::borrow(requested)? }.ready()?;
        ready.prepare_look_ups()?;
        let count = arguments::length("count", count)?;
        Ok(Elements { ready, count, total: ready.committed.packed_size(count)? as u64 })
    }

    /// A packed position of the call.
    fn position(&self, place: &str, position: i64) -> Outcome<u64> {
        let position = arguments::length(place, position)?;
        if position > self.total {
            let message = format!("{place}: expected at most {}, found {position}", self.total);
            return Err(Failure::new(DTC_ERROR_RANGE, message));
        }
        Ok(position)
    }

    /// Pieces of all elements.
    fn pieces(&self) -> u64 {
        let layout = self.ready.committed.layout();
        if self.total == 0 { 0 } else { layout.measure(layout.root().node).runs.saturating_mul(self.count) }
    }

    /// Where a piece begins in the packed bytes.
    fn start_of(&self, piece: u64) -> u64 {
        let found = self.ready.segments().start_of(self.ready.positions(), piece);
        found.unwrap_or(self.total).min(self.total)
    }
}

/// How many pieces of memory hold the first `max_bytes` packed bytes of `count` elements, and how many bytes those are:
/// whole pieces only. Costs O(depth) for strided types and O(log n) for lists.
///
/// `max_bytes`: the most bytes; -1 for all.
/// `pieces`: receives the number of pieces; may be null.
/// `bytes`: receives the packed bytes in them; may be null.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the count is negative, or `max_bytes` below -1.
/// `DTC_ERROR_RANGE`: the packed bytes do not fit 63 bits.
///
/// # Safety
///
/// `type` is null or a type; the others are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_iov_len(
    r#type: *const dtc_type,
    count: i64,
    max_bytes: i64,
    pieces: *mut i64,
    bytes: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let elements = unsafe { Elements::of(r#type, count)? };
        let limit = if max_bytes == -1 { elements.total } else { arguments::length("max_bytes", max_bytes)? };
        let (number, held) = match limit >= elements.total {
            true => (elements.pieces(), elements.total),
            false => {
                let ready = elements.ready;
                let number = ready.segments().segment_at(ready.positions(), limit).unwrap_or(0);
                (number, elements.start_of(number))
            }
        };
        // SAFETY: `pieces` and `bytes` are null or writable (contract of this function).
        unsafe {
            arguments::offer("pieces", pieces, i64::try_from(number).unwrap_or(i64::MAX))?;
            arguments::offer("bytes", bytes, held as i64)
        }
    })
}

/// Lists the pieces of memory that hold the packed bytes of `count` elements, in packed order, from a piece of a number on.
///
/// `buffer`: the address that the type is applied to.
/// `first`: the number of the first piece to list.
/// `skip`: bytes of that piece to leave out.
/// `iov`: receives at most `max_pieces` pieces. Pieces of neighbouring elements stay apart, so their number is always
/// `count` times that of one element.
/// `pieces`: receives how many were listed; may be null.
/// `bytes`: receives the bytes in them; may be null.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: a number is negative, `skip` is longer than the piece, or `iov` is null.
/// `DTC_ERROR_RANGE`: the packed bytes do not fit 63 bits, or there are fewer than `first` pieces.
///
/// # Safety
///
/// `type` is null or a type, `iov` is null or writable for `max_pieces` entries, and `pieces` and `bytes` are null or writable.
/// The buffer is not touched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_iov(
    r#type: *const dtc_type,
    buffer: *const c_void,
    count: i64,
    first: i64,
    skip: i64,
    iov: *mut dtc_iovec,
    max_pieces: i64,
    pieces: *mut i64,
    bytes: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let elements = unsafe { Elements::of(r#type, count)? };
        let first = arguments::length("first", first)?;
        if first > elements.pieces() {
            let message = format!("first: expected at most {} pieces, found {first}", elements.pieces());
            return Err(Failure::new(DTC_ERROR_RANGE, message));
        }
        let (skip, max) = (arguments::length("skip", skip)?, arguments::length("max_pieces", max_pieces)?);
        if max > 0 {
            arguments::check_pointer("iov", iov)?;
        }
        let begin = elements.start_of(first);
        let mut position = begin.saturating_add(skip);
        if skip > 0 && position > elements.start_of(first.saturating_add(1)) {
            let expected = format!("at most {} bytes of the piece", elements.start_of(first + 1) - begin);
            return Err(Failure::argument("skip", expected, skip));
        }
        let begin = position;
        let (mut listed, positions) = (0, elements.ready.positions());
        if position < elements.total {
            for segment in positions.segments(position) {
                if listed == max || position >= elements.total {
                    break;
                }
                let piece = dtc_iovec {
                    base: buffer.wrapping_byte_offset(segment.offset as isize).cast_mut(),
                    length: segment.bytes as usize,
                };
                // SAFETY: `iov` is writable for `max_pieces` entries (contract of this function), and `listed` is below
                // that.
                unsafe { iov.add(listed as usize).write(piece) };
                listed += 1;
                position += segment.bytes;
            }
        }
        // SAFETY: `pieces` and `bytes` are null or writable (contract of this function).
        unsafe {
            arguments::offer("pieces", pieces, listed as i64)?;
            arguments::offer("bytes", bytes, (position - begin) as i64)
        }
    })
}

/// Which piece holds a packed byte, and how many bytes of the piece lie before it: what `dtc_iov` takes as `first` and
/// `skip`. At the end of the packed bytes it is the number of all pieces, and 0.
///
/// `offset`: the packed byte.
/// `piece`, `skip`: receive the answer; may be null.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the count or offset is negative.
/// `DTC_ERROR_RANGE`: the packed bytes do not fit 63 bits, or the offset lies behind them.
///
/// # Safety
///
/// `type` is null or a type; the others are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_iov_at(
    r#type: *const dtc_type,
    count: i64,
    offset: i64,
    piece: *mut i64,
    skip: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let elements = unsafe { Elements::of(r#type, count)? };
        let offset = elements.position("offset", offset)?;
        let ready = elements.ready;
        let (number, before) = match offset == elements.total {
            true => (elements.pieces(), 0),
            false => {
                let number = ready.segments().segment_at(ready.positions(), offset).unwrap_or(0);
                (number, offset - elements.start_of(number))
            }
        };
        // SAFETY: `piece` and `skip` are null or writable (contract of this function).
        unsafe {
            arguments::offer("piece", piece, i64::try_from(number).unwrap_or(i64::MAX))?;
            arguments::offer("skip", skip, before as i64)
        }
    })
}

/// How many leading packed bytes of `count` elements lie in one piece of memory, and where it begins: what needs no
/// packing.
///
/// `displacement`: receives where the piece begins, in bytes from the address that the type is applied to; may be null.
/// `bytes`: receives its length; 0 if there are no bytes.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the count is negative, or `bytes` is null.
/// `DTC_ERROR_RANGE`: the packed bytes do not fit 63 bits.
///
/// # Safety
///
/// `type` is null or a type; the others are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_leading_piece(
    r#type: *const dtc_type,
    count: i64,
    displacement: *mut i64,
    bytes: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let elements = unsafe { Elements::of(r#type, count)? };
        let positions = elements.ready.positions();
        let begin = positions.memory_of(0).unwrap_or(0);
        let length = positions.contiguous_prefix(elements.count).min(elements.total);
        // SAFETY: `displacement` and `bytes` are null or writable (contract of this function).
        unsafe {
            arguments::offer("displacement", displacement, begin)?;
            arguments::give("bytes", bytes, length as i64)
        }
    })
}

/// Rounds a packed position down to the border of a basic element, so that a fragment that ends there cuts none.
///
/// `offset`: the packed position.
/// `border`: receives the border at or before it.
///
/// `DTC_ERROR_HANDLE`, `DTC_ERROR_COMMIT`: not a committed type.
/// `DTC_ERROR_ARGUMENT`: the count or offset is negative, or `border` is null.
/// `DTC_ERROR_RANGE`: the packed bytes do not fit 63 bits, or the offset lies behind them.
///
/// # Safety
///
/// `type` is null or a type; `border` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_element_border(
    r#type: *const dtc_type,
    count: i64,
    offset: i64,
    border: *mut i64,
) -> c_int {
    answer(|| {
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let elements = unsafe { Elements::of(r#type, count)? };
        let offset = elements.position("offset", offset)?;
        // SAFETY: `type` is null or a live type, which the caller keeps during the call (contract of this function).
        let borders = unsafe { handle::borrow(r#type)? }.elements()?;
        // SAFETY: `border` is null or writable (contract of this function).
        unsafe { arguments::give("border", border, borders.element_border(offset) as i64) }
    })
}
