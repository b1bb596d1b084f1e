//! Packs and unpacks that combine what arrives with what is there.

use crate::builtin::Builtin;
use crate::pack::Call;
use crate::shared::Shared;
use crate::status::Status;
use dtc_compiler::operation::{Operation, Reduction};

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
        let (begin, end) = (self.offset, self.offset + bytes);
        if self.of.border(begin) != begin || self.of.border(end) != end {
            return Err(Status::Internal);
        }
        let plain = self.of.shape.basic.filter(|basic| basic.pair().is_none());
        match plain {
            Some(basic) if !PACK => {
                let reduction = reduction(self.operation, basic)?;
                // SAFETY: the caller's promise.
                let combined = unsafe {
                    let committed = self.of.committed()?;
                    committed.accumulate_raw(reduction, self.packed, bytes, self.memory, self.count, begin)
                };
                combined.map(|_| ()).map_err(|_| Status::NotSupported)
            }
            Some(basic) if self.of.shape.is_contiguous() => {
                let first = self.of.shape.true_lb.wrapping_add(begin as i64);
                let memory = self.memory.wrapping_offset(first as isize);
                // SAFETY: the caller's promise; the elements lie one after the other.
                unsafe { array(self.operation, basic, memory, self.packed, bytes) }
            }
            // SAFETY: the caller's promise.
            _ => unsafe { self.combine_pieces::<PACK>(begin, end) },
        }
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
                committed.pack_raw(self.memory, self.count, position, piece, next - position);
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
                    committed.unpack_raw(piece, next - position, self.memory, self.count, position);
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

/// Combines so many bytes of elements that lie one after the other on both sides; the result goes to the second.
///
/// # Safety
///
/// The bytes are readable, the second also writable, and they do not overlap.
unsafe fn array(operation: Operation, basic: Builtin, from: *const u8, to: *mut u8, bytes: u64) -> Result<(), Status> {
    let reduction = reduction(operation, basic)?;
    // SAFETY: the handle of a builtin.
    let committed = unsafe { Shared::of_handle(basic.handle()) }.committed()?;
    let count = bytes / reduction.element().size();
    // SAFETY: the caller's promise.
    let combined = unsafe { committed.accumulate_raw(reduction, from, bytes, to, count, 0) };
    combined.map(|_| ()).map_err(|_| Status::NotSupported)
}
