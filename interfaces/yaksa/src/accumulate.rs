//! Packs and unpacks that accumulate: the result of an operation replaces the element that it is written to.

use crate::builtin::Builtin;
use crate::pack::{Call, Pending, failed, pending};
use crate::status::Status;
use crate::types::Shared;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_runtime::{Committed, Endpoint, Range, Transfer};

/// Packed bytes that are accumulated at a time where elements cannot be accumulated in place.
const PIECE: u64 = 4096;

impl Call<'_> {
    /// Accumulates packed bytes in elements, or elements in packed bytes, on the host.
    ///
    /// # Errors
    ///
    /// The operation is not defined for an element of the type, or an unpack cuts an element. Elements before that may be
    /// accumulated already.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`], with both sides readable.
    pub(crate) unsafe fn accumulate<const PACK: bool>(&self, range: Range) -> Result<(), Status> {
        self.check_whole(range)?;
        match self.plain() {
            Some(basic) if !PACK => {
                let elements = self.of.committed()?.at(Endpoint::host(self.memory), range);
                let accumulation = elements.accumulate(reduction(self.operation, basic)?, Endpoint::host(self.packed));
                // SAFETY: the bytes of the elements in `range` and as many packed bytes are readable and writable, do
                // not overlap, and no other thread touches them (contract of this function); `check_whole` found that
                // no element is cut.
                unsafe { accumulation.run() }.map(drop).map_err(|_| Status::NotSupported)
            }
            Some(basic) if self.of.shape.is_contiguous() => {
                // SAFETY: the elements of a contiguous type lie one after the other from `first(range)` on, so that the
                // bytes of the range are readable there, and as many packed bytes are writable; the two do not overlap
                // (contract of this function).
                unsafe { array(self.operation, basic, self.first(range), self.packed, range.length()) }
            }
            // SAFETY: `accumulate_pieces` asks what this function asks, of the same range.
            _ => unsafe { self.accumulate_pieces::<PACK>(range) },
        }
    }

    /// Accumulates wherever the bytes lie, or starts a device that does. Devices do so for types of one basic element.
    ///
    /// # Errors
    ///
    /// As for [`Call::accumulate`]; and the device has no such operation.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`], with both sides readable.
    pub(crate) unsafe fn accumulate_anywhere<const PACK: bool>(&self, range: Range) -> Result<Pending, Status> {
        // Absolute addresses may lead to memory of several kinds, behind a first byte on the host.
        let anywhere = self.memory.is_null() && self.plain().is_some();
        if self.devices::<PACK>()? == (None, None) && !anywhere {
            // SAFETY: the contract of `accumulate` is that of this function, and both sides are memory of the host:
            // `devices` found no device.
            return unsafe { self.accumulate::<PACK>(range).map(|()| None) };
        }
        let accumulation = self.accumulation::<PACK>(range)?;
        // SAFETY: the bytes of the elements in `range` and as many packed bytes stay valid until the request is done
        // (contract of this function).
        pending(unsafe { accumulation.start() })
    }

    /// The accumulation of packed bytes in elements, or of elements in packed bytes, which are elements of the basic type.
    pub(crate) fn accumulation<const PACK: bool>(&self, range: Range) -> Result<Transfer<'_>, Status> {
        self.check_whole(range)?;
        let basic = self.plain().ok_or(Status::NotSupported)?;
        let reduction = reduction(self.operation, basic)?;
        let (elements, packed) = self.ends::<PACK>(range)?;
        if !PACK {
            return Ok(elements.accumulate(reduction, packed));
        }
        let count = range.length() / reduction.element().size();
        Ok(elements.accumulate_to(reduction, basic_type(basic)?.at(packed, Range::elements(count))))
    }

    /// An error unless the range begins and ends at borders of elements.
    fn check_whole(&self, range: Range) -> Result<(), Status> {
        let ends = [range.offset(), range.offset() + range.length()];
        if ends.iter().all(|&end| self.of.border(end) == end) { Ok(()) } else { Err(Status::Internal) }
    }

    /// The basic element that the type consists of, if it is one, and has operations.
    fn plain(&self) -> Option<Builtin> {
        self.of.shape.basic.filter(|basic| basic.pair().is_none())
    }

    /// Where a range begins of elements that lie one after the other.
    fn first(&self, range: Range) -> *mut u8 {
        self.memory.wrapping_offset(self.of.shape.true_lb.wrapping_add(range.offset() as i64) as isize)
    }

    /// Accumulates elements of any type on the host: packs a piece, accumulates the stretches of equal elements in it, and
    /// unpacks it again if the result belongs in memory.
    ///
    /// # Safety
    ///
    /// As for [`Call::accumulate`].
    unsafe fn accumulate_pieces<const PACK: bool>(&self, range: Range) -> Result<(), Status> {
        let committed = self.of.committed()?;
        let (begin, end) = (range.offset(), range.offset() + range.length());
        let mut piece = [0u8; PIECE as usize];
        let piece = piece.as_mut_ptr();
        let mut position = begin;
        while position < end {
            let next = self.of.border(end.min(position + PIECE));
            let packed = self.packed.wrapping_add((position - begin) as usize);
            let range = range.fragment(position, next - position);
            let elements = committed.at(Endpoint::host(self.memory), range);
            // SAFETY: `position..next` is a part of the range, so its elements and its packed bytes are valid (contract
            // of this function). `piece` has room for `PIECE` bytes, and `next - position` is at most that; `length`
            // ends each stretch inside it.
            unsafe {
                elements.pack(Endpoint::host(piece)).run().map_err(failed)?;
                let mut at = position;
                while at < next {
                    let (basic, length) = self.of.stretch(at);
                    let length = length.min(next - at);
                    let inside = (at - position) as usize;
                    let (piece, packed) = (piece.wrapping_add(inside), packed.wrapping_add(inside));
                    let (from, to) = if PACK { (piece, packed) } else { (packed, piece) };
                    array(self.operation, basic, from, to, length)?;
                    at += length;
                }
                if !PACK {
                    elements.unpack(Endpoint::host(piece)).run().map_err(failed)?;
                }
            }
            position = next;
        }
        Ok(())
    }
}

fn reduction(operation: Operation, basic: Builtin) -> Result<Reduction, Status> {
    let element = basic.element().ok_or(Status::NotSupported)?;
    Reduction::new(operation, element).map_err(|_| Status::NotSupported)
}

/// The type that is one basic element.
fn basic_type(basic: Builtin) -> Result<&'static Committed, Status> {
    // SAFETY: the handle of a builtin.
    unsafe { Shared::of_handle(basic.handle()) }.committed()
}

/// Accumulates `bytes` bytes of contiguous elements at `from` in those at `to`.
///
/// # Safety
///
/// `bytes` bytes are readable at `from`, readable and writable at `to`, and do not overlap.
unsafe fn array(operation: Operation, basic: Builtin, from: *const u8, to: *mut u8, bytes: u64) -> Result<(), Status> {
    let reduction = reduction(operation, basic)?;
    let committed = basic_type(basic)?;
    let count = bytes / reduction.element().size();
    let elements = committed.at(Endpoint::host(to), Range::elements(count));
    // SAFETY: `bytes` bytes are readable at `from`, readable and writable at `to`, and do not overlap (contract of this
    // function); `count` elements have no more bytes than that.
    unsafe { elements.accumulate(reduction, Endpoint::host(from)).run() }.map(drop).map_err(|_| Status::NotSupported)
}
