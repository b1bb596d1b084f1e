//! Packs and unpacks that combine what arrives with what is there.

use crate::builtin::Builtin;
use crate::info::Info;
use crate::pack::{Call, Pending, failed, pending};
use crate::shared::Shared;
use crate::status::Status;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_runtime::cuda::Stream;
use dtc_runtime::{Committed, Elements, Range};

/// Packed bytes that are combined at a time where elements cannot be combined in place.
const PIECE: u64 = 4096;

impl Call<'_> {
    /// Combines `bytes` packed bytes, on the host.
    ///
    /// # Errors
    ///
    /// The operation is not defined for an element of the type, or an unpack cuts an element. Elements before that may be
    /// combined already.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`], with both sides readable.
    pub(crate) unsafe fn combine<const PACK: bool>(&self, bytes: u64) -> Result<(), Status> {
        let (begin, end) = self.whole(bytes)?;
        match self.plain() {
            Some(basic) if !PACK => {
                let reduction = reduction(self.operation, basic)?;
                // SAFETY: the caller's promise.
                let combined = unsafe {
                    let committed = self.of.committed()?;
                    committed.accumulate_raw(
                        reduction,
                        self.packed,
                        Range::elements(self.count).fragment(begin, bytes),
                        self.memory,
                    )
                };
                combined.map(|_| ()).map_err(|_| Status::NotSupported)
            }
            Some(basic) if self.of.shape.is_contiguous() => {
                // SAFETY: the caller's promise; the elements lie one after the other.
                unsafe { array(self.operation, basic, self.first(begin), self.packed, bytes) }
            }
            // SAFETY: the caller's promise.
            _ => unsafe { self.combine_pieces::<PACK>(begin, end) },
        }
    }

    /// Combines `bytes` packed bytes wherever they lie, or begins to where a device has them. On devices that is done for types of one
    /// basic element.
    ///
    /// # Errors
    ///
    /// As for [`Call::combine`]; and the device has no such operation.
    ///
    /// # Safety
    ///
    /// As for [`Call::start`], with both sides readable.
    pub(crate) unsafe fn combine_anywhere<const PACK: bool>(&self, bytes: u64) -> Result<Pending, Status> {
        // Absolute addresses may lead to memory of several kinds, behind a first byte on the host.
        let anywhere = self.memory.is_null() && self.plain().is_some();
        if self.devices::<PACK>()? == (None, None) && !anywhere {
            // SAFETY: the caller's promise.
            return unsafe { self.combine::<PACK>(bytes).map(|()| None) };
        }
        let (begin, _) = self.whole(bytes)?;
        let basic = self.plain().ok_or(Status::NotSupported)?;
        let reduction = reduction(self.operation, basic)?;
        let between = self.between::<PACK>()?;
        // SAFETY: the caller's promise.
        pending(unsafe {
            if PACK {
                let source = Elements { memory: self.memory.cast_const(), origin: 0, count: self.count, offset: begin };
                let count = bytes / reduction.element().size();
                let destination = Elements { memory: self.packed, origin: 0, count, offset: 0 };
                between.start_combine(reduction, source, basic_type(basic)?, destination, bytes)
            } else {
                between.start_accumulate(
                    reduction,
                    self.packed,
                    Range::elements(self.count).fragment(begin, bytes),
                    self.memory,
                )
            }
        })
    }

    /// Enqueues the combination of `bytes` packed bytes. A pack has to be one of elements that lie one after the other: others
    /// need a buffer.
    ///
    /// # Errors
    ///
    /// As for [`Call::combine_anywhere`].
    ///
    /// # Safety
    ///
    /// As for [`Call::enqueue`], with both sides readable.
    pub(crate) unsafe fn enqueue_combine<const PACK: bool>(&self, stream: &Stream, bytes: u64) -> Result<(), Status> {
        let (begin, _) = self.whole(bytes)?;
        let basic = self.plain().ok_or(Status::NotSupported)?;
        let reduction = reduction(self.operation, basic)?;
        // SAFETY: the caller's promise.
        let enqueued = unsafe {
            if PACK {
                if !self.of.shape.is_contiguous() {
                    return Err(Status::NotSupported);
                }
                let (memory, packed) = self.info.map_or((None, None), Info::kinds);
                let count = bytes / reduction.element().size();
                let between = basic_type(basic)?.between(packed, memory);
                between.enqueue_accumulate(
                    stream,
                    reduction,
                    self.first(begin),
                    Range::elements(count).bytes(..bytes),
                    self.packed,
                )
            } else {
                let between = self.between::<false>()?;
                between.enqueue_accumulate(
                    stream,
                    reduction,
                    self.packed,
                    Range::elements(self.count).fragment(begin, bytes),
                    self.memory,
                )
            }
        };
        enqueued.map(|_| ()).map_err(failed)
    }

    /// Where the range begins and ends, which are borders of elements.
    fn whole(&self, bytes: u64) -> Result<(u64, u64), Status> {
        let (begin, end) = (self.offset, self.offset + bytes);
        let whole = self.of.border(begin) == begin && self.of.border(end) == end;
        if whole { Ok((begin, end)) } else { Err(Status::Internal) }
    }

    /// The basic element that the type consists of, if it is one, and has operations.
    fn plain(&self) -> Option<Builtin> {
        self.of.shape.basic.filter(|basic| basic.pair().is_none())
    }

    /// Where a packed byte lies of elements that lie one after the other.
    fn first(&self, begin: u64) -> *mut u8 {
        self.memory.wrapping_offset(self.of.shape.true_lb.wrapping_add(begin as i64) as isize)
    }

    /// The same for any type: packs a piece, combines the stretches of equal elements in it, and unpacks it again where the
    /// result belongs in memory.
    ///
    /// # Safety
    ///
    /// As for [`Call::combine`].
    unsafe fn combine_pieces<const PACK: bool>(&self, begin: u64, end: u64) -> Result<(), Status> {
        let committed = self.of.committed()?;
        let mut piece = [0u8; PIECE as usize];
        let piece = piece.as_mut_ptr();
        let mut position = begin;
        while position < end {
            let next = self.of.border(end.min(position + PIECE));
            let packed = self.packed.wrapping_add((position - begin) as usize);
            // SAFETY: the caller's promise, for these bytes; a piece has room for them.
            unsafe {
                committed.pack_raw(self.memory, Range::elements(self.count).fragment(position, next - position), piece);
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
                    committed.unpack_raw(
                        piece,
                        Range::elements(self.count).fragment(position, next - position),
                        self.memory,
                    );
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

/// Combines so many bytes of elements that lie one after the other on both sides; the result goes to the second.
///
/// # Safety
///
/// The bytes are readable, the second also writable, and they do not overlap.
unsafe fn array(operation: Operation, basic: Builtin, from: *const u8, to: *mut u8, bytes: u64) -> Result<(), Status> {
    let reduction = reduction(operation, basic)?;
    let committed = basic_type(basic)?;
    let count = bytes / reduction.element().size();
    // SAFETY: the caller's promise.
    let combined = unsafe { committed.accumulate_raw(reduction, from, Range::elements(count).bytes(..bytes), to) };
    combined.map(|_| ()).map_err(|_| Status::NotSupported)
}
