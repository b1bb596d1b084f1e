//! Copies from type to type, without a buffer for the packed bytes.

use crate::committed::Committed;
use crate::cpu::Addresses;
use crate::error::CopyError;
use crate::memory::{Memory, MemoryMut};
use crate::piece::{Buffer, PIECE, piece_end};
use crate::range::Range;
use dtc_compiler::plan::Direction;

/// Least length of a run that is packed or unpacked directly, in bytes. Shorter runs go through a piece, so that one call moves
/// many.
const DIRECT: u64 = 2048;

impl Committed {
    /// Copies elements of this type to elements of another one: all packed bytes of one range become the first of the other,
    /// which may have more. The same bytes move as in a pack of the one and an unpack to the other. Returns how many. Writes
    /// bytes of the destination's type map and no others.
    ///
    /// # Errors
    ///
    /// A [`CopyError`] when the elements of a side, all of them, do not lie inside its buffer, its range begins behind its
    /// packed bytes, or the range of the destination is shorter than that of the source. Nothing is written then.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.2; a send to oneself, 3.10 (`MPI_Sendrecv`).
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Engine, Memory, MemoryMut, Range};
    /// // From the second column of a 3 x 4 matrix to its place in a row.
    /// let mut types = TypeBuilder::new();
    /// let byte = types.named(Predefined::BYTE);
    /// let column = types.vector(3, 1, 4, byte)?;
    /// let row = types.contiguous(3, byte)?;
    /// let engine = Engine::new();
    /// let (column, row) = (engine.commit(&types.finish(column)?), engine.commit(&types.finish(row)?));
    ///
    /// let (matrix, mut other) = (*b"abcdefghijkl", [b'.'; 5]);
    /// let one = Range::elements(1);
    /// assert_eq!(column.copy(Memory::at(&matrix, 1), one, &row, one, MemoryMut::at(&mut other, 1))?, 3);
    /// assert_eq!(&other, b".bfj.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy<'s, 'd>(
        &self,
        source: impl Into<Memory<'s>>,
        range: Range,
        to: &Committed,
        to_range: Range,
        destination: impl Into<MemoryMut<'d>>,
    ) -> Result<usize, CopyError> {
        let (source, mut destination): (Memory<'s>, MemoryMut<'d>) = (source.into(), destination.into());
        let range = self.check(source.room(), range).map_err(CopyError::Source)?;
        let to_range = to.check(destination.room(), to_range).map_err(CopyError::Destination)?;
        let (expected, found) = (range.length(), to_range.length());
        if expected > found {
            return Err(CopyError::Length { expected, found });
        }
        let (read, written) = (source.address().cast_mut(), destination.address());
        // SAFETY: both checks found every byte of the elements inside the slices, which cannot overlap.
        let bytes = unsafe { self.copy_bytes(read, range, to, to_range, written) };
        self.record(Direction::Pack, bytes);
        to.record(Direction::Unpack, bytes);
        Ok(bytes as usize)
    }

    /// Copies as many bytes as both ranges have, which end with the packed bytes or before, between memory at any address of the
    /// host. Returns how many.
    ///
    /// # Safety
    ///
    /// Clauses 1 to 4 of the contract of [`Transfer`](crate::Transfer); what is read is not written.
    pub(crate) unsafe fn copy_bytes(
        &self,
        read: *mut u8,
        range: Range,
        to: &Committed,
        to_range: Range,
        written: *mut u8,
    ) -> u64 {
        let bytes = range.length().min(to_range.length());
        self.count_use();
        to.count_use();
        let (one, other) = (self.cached().shape.size, to.cached().shape.size);
        // Pieces end with elements of the type whose elements are larger, if they fit a piece.
        let by_source = one <= PIECE && (one >= other || other > PIECE);
        let mut buffer = Buffer::new();
        let mut moved = 0;
        while moved < bytes {
            let left = bytes - moved;
            let (from, at) = (range.offset() + moved, to_range.offset() + moved);
            let (readable, writable) = (self.cached().run_at(from), to.cached().run_at(at));
            let pack = |packed, length| {
                let addresses = Addresses { memory: read, packed };
                // SAFETY: called below for bytes of the range, and for packed ones of the other range or of a piece.
                unsafe { self.cached().run::<true>(addresses, range.part(moved, length)) };
            };
            let unpack = |packed, length| {
                let addresses = Addresses { memory: written, packed };
                // SAFETY: called below for bytes of the range of the destination, and for packed ones of the source's range or of
                // a piece.
                unsafe { to.cached().run::<false>(addresses, to_range.part(moved, length)) };
            };
            let (readable_bytes, writable_bytes) = (readable.bytes.min(left), writable.bytes.min(left));
            let direct = |bytes: u64| bytes >= DIRECT || bytes == left;
            moved += if direct(readable_bytes) && readable_bytes >= writable_bytes {
                unpack(read.wrapping_offset(readable.offset as isize), readable_bytes);
                readable_bytes
            } else if direct(writable_bytes) {
                pack(written.wrapping_offset(writable.offset as isize), writable_bytes);
                writable_bytes
            } else {
                let piece = if by_source {
                    piece_end(from, from + left, one, 1) - from
                } else {
                    piece_end(at, at + left, other, 1) - at
                };
                pack(buffer.start(), piece);
                unpack(buffer.start(), piece);
                piece
            };
        }
        bytes
    }
}
