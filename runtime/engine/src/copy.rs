//! Copies from type to type, without a buffer for the packed bytes.

use crate::committed::Committed;
use crate::cpu::Sides;
use crate::error::CopyError;
use crate::piece::{Buffer, PIECE, piece_end};
use crate::range::Range;

/// Runs of at least so many bytes are one side of a pack or an unpack. Shorter ones go through a piece, which is one call for
/// many.
const DIRECT: u64 = 2048;

/// One side of a copy: a count of elements in a buffer, from a packed byte on.
///
/// ```
/// use dtc_runtime::Elements;
/// // The third and fourth byte of two elements that begin 4 bytes into a buffer.
/// let buffer = [0u8; 20];
/// let source = Elements { memory: &buffer[..], origin: 4, count: 2, offset: 2 };
/// # let _ = source;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Elements<M> {
    /// The buffer: a slice, or its address.
    pub memory: M,
    /// Where in the buffer the address lies that the type is applied to, in bytes.
    pub origin: usize,
    /// How many elements there are.
    pub count: u64,
    /// The packed byte at which the copy begins.
    pub offset: u64,
}

impl Committed {
    /// Copies elements of this type to elements of another one: packed bytes `offset ..` of the source, `bytes` of them,
    /// become packed bytes `offset ..` of the destination, or less at the end of either. The same bytes move as in a pack of
    /// the one and an unpack to the other. Returns how many. Writes bytes of the destination's type map and no others.
    ///
    /// # Errors
    ///
    /// A [`CopyError`] when the elements of a side, all of them, do not lie inside its buffer, or its offset lies behind its
    /// packed bytes. Nothing is written then.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.2; a send to oneself, 3.10 (`MPI_Sendrecv`).
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Elements, Engine};
    /// // From the second column of a 3 x 4 matrix to its place in a row.
    /// let mut types = TypeBuilder::new();
    /// let byte = types.named(Predefined::BYTE);
    /// let column = types.vector(3, 1, 4, byte)?;
    /// let row = types.contiguous(3, byte)?;
    /// let engine = Engine::new();
    /// let (column, row) = (engine.commit(&types.finish(column)?), engine.commit(&types.finish(row)?));
    ///
    /// let (matrix, mut other) = (*b"abcdefghijkl", [b'.'; 5]);
    /// let source = Elements { memory: &matrix[..], origin: 1, count: 1, offset: 0 };
    /// let destination = Elements { memory: &mut other[..], origin: 1, count: 1, offset: 0 };
    /// assert_eq!(column.copy(source, &row, destination, 3)?, 3);
    /// assert_eq!(&other, b".bfj.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy(
        &self,
        source: Elements<&[u8]>,
        to: &Committed,
        destination: Elements<&mut [u8]>,
        bytes: usize,
    ) -> Result<usize, CopyError> {
        let range = |count, offset| Range::elements(count).bytes(offset..);
        let Elements { memory, origin, count, offset } = source;
        let take = self.check(memory.len(), origin, range(count, offset), bytes).map_err(CopyError::Source)?;
        let from = Elements { memory: memory.as_ptr(), origin, count, offset };
        let Elements { memory, origin, count, offset } = destination;
        let take = to.check(memory.len(), origin, range(count, offset), take).map_err(CopyError::Destination)?;
        let destination = Elements { memory: memory.as_mut_ptr(), origin, count, offset };
        // SAFETY: both checks found every byte of the elements inside the slices, which cannot overlap.
        unsafe { self.transfer(from, to, destination, take as u64) };
        Ok(take)
    }

    /// Copies elements between memory at any address: [`Committed::copy`] on pointers. Returns how many bytes moved.
    ///
    /// # Safety
    ///
    /// Every byte of the range is readable at the source and writable at the destination, the two do not overlap, and each
    /// count times its size fits 63 bits. Gaps of the source of less than 4 KiB between bytes of the range may be read, and
    /// what shares an aligned 16 bytes with one.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Elements;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let (one, mut other) = (7i32, 0i32);
    /// let source = Elements { memory: (&raw const one).cast::<u8>(), origin: 0, count: 1, offset: 0 };
    /// let destination = Elements { memory: (&raw mut other).cast::<u8>(), origin: 0, count: 1, offset: 0 };
    /// // SAFETY: both sides are as long as the type.
    /// let moved = unsafe { int.copy_raw(source, &int, destination, 4) };
    /// assert_eq!((moved, other), (4, 7));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    pub unsafe fn copy_raw(
        &self,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
    ) -> u64 {
        let take = self.take(Range::elements(source.count).fragment(source.offset, bytes));
        let take = to.take(Range::elements(destination.count).fragment(destination.offset, take));
        // SAFETY: the caller's promise.
        unsafe { self.transfer(source, to, destination, take) };
        take
    }

    /// Moves `take` bytes.
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`].
    unsafe fn transfer(&self, source: Elements<*const u8>, to: &Committed, destination: Elements<*mut u8>, take: u64) {
        self.count_use();
        to.count_use();
        let read = source.memory.wrapping_add(source.origin).cast_mut();
        let written = destination.memory.wrapping_add(destination.origin);
        let (one, other) = (self.entry().shape.size, to.entry().shape.size);
        // Pieces end with elements of the type whose elements are larger, if they fit a piece.
        let by_source = one <= PIECE && (one >= other || other > PIECE);
        let mut buffer = Buffer::new();
        let mut moved = 0;
        while moved < take {
            let left = take - moved;
            let (from, at) = (source.offset + moved, destination.offset + moved);
            let (readable, writable) = (self.entry().run_at(from), to.entry().run_at(at));
            let (readable_bytes, writable_bytes) = (readable.bytes.min(left), writable.bytes.min(left));
            let direct = |bytes: u64| bytes >= DIRECT || bytes == left;
            // SAFETY: every call moves bytes of the range, which the caller vouches for.
            unsafe {
                if direct(readable_bytes) && readable_bytes >= writable_bytes {
                    let packed = read.wrapping_offset(readable.offset as isize);
                    to.entry().run::<false>(Sides { memory: written, packed }, destination.count, at, readable_bytes);
                    moved += readable_bytes;
                } else if direct(writable_bytes) {
                    let packed = written.wrapping_offset(writable.offset as isize);
                    self.entry().run::<true>(Sides { memory: read, packed }, source.count, from, writable_bytes);
                    moved += writable_bytes;
                } else {
                    let bytes = if by_source {
                        piece_end(from, from + left, one, 1) - from
                    } else {
                        piece_end(at, at + left, other, 1) - at
                    };
                    let packed = buffer.start();
                    self.entry().run::<true>(Sides { memory: read, packed }, source.count, from, bytes);
                    to.entry().run::<false>(Sides { memory: written, packed }, destination.count, at, bytes);
                    moved += bytes;
                }
            }
        }
    }
}
