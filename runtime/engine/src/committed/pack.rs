//! Packing and unpacking on the CPU.

use super::{Committed, First};
use crate::cpu::Sides;
use crate::error::PackError;
use crate::memory::{Memory, MemoryMut, Room};
use crate::range::Range;
use bytemuck::{NoUninit, Pod};
use dtc_compiler::plan::Direction;

impl Committed {
    /// Packs the bytes of a range, in order, until `packed` is full or the range ends. Returns how many bytes were written.
    ///
    /// Memory and packed bytes may be slices of any type whose bytes are all initialised, and for writing of any type for
    /// which all bytes are values: `bytemuck`'s [`NoUninit`] and [`Pod`], which can be derived. Records with padding are
    /// neither; [`Committed::at`] takes the address of any memory.
    ///
    /// # Errors
    ///
    /// A [`PackError`] when the elements, all of them, do not lie inside `source`, or the range begins behind the packed
    /// bytes. Nothing is written then.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.2 (`MPI_Pack`).
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let memory: Vec<u8> = (0..20).collect();
    /// let mut packed = [0u8; 4];
    /// // The second of the three ints: packed bytes 4 to 7.
    /// assert_eq!(every_other.pack(&memory, Range::elements(1).bytes(4..), &mut packed)?, 4);
    /// assert_eq!(packed, [8, 9, 10, 11]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn pack<'m, U: Pod>(
        &self,
        source: impl Into<Memory<'m>>,
        range: Range,
        packed: &mut [U],
    ) -> Result<usize, PackError> {
        let (source, packed): (Memory<'m>, &mut [u8]) = (source.into(), bytemuck::cast_slice_mut(packed));
        let sides = Sides { memory: source.address().cast_mut(), packed: packed.as_mut_ptr() };
        if let Some(entry) = self.one(source.room(), range, packed.len()) {
            // SAFETY: `one` found every byte of the element inside `source`, which is only read, and room for it in
            // `packed`; the slices cannot overlap.
            unsafe { entry.one::<true>(sides) };
            return Ok(packed.len());
        }
        other_call();
        // SAFETY: the room is that of `source`, `packed` has as many bytes as the range at most, and the slices cannot overlap.
        unsafe { self.checked::<true>(sides, source.room(), range.at_most(packed.len() as u64)) }
    }

    /// Unpacks `packed` as the bytes of a range, in order, until `packed` or the range ends. Returns how many bytes were
    /// read. Writes bytes of the type map and no others.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack`].
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.2 (`MPI_Unpack`).
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let mut memory = [-1; 5];
    /// assert_eq!(every_other.unpack(&[1, 2, 3], Range::elements(1), &mut memory)?, 12);
    /// assert_eq!(memory, [1, -1, 2, -1, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn unpack<'m, U: NoUninit>(
        &self,
        packed: &[U],
        range: Range,
        destination: impl Into<MemoryMut<'m>>,
    ) -> Result<usize, PackError> {
        let (mut destination, packed): (MemoryMut<'m>, &[u8]) = (destination.into(), bytemuck::cast_slice(packed));
        let sides = Sides { memory: destination.address(), packed: packed.as_ptr().cast_mut() };
        if let Some(entry) = self.one(destination.room(), range, packed.len()) {
            // SAFETY: `one` found every byte of the element inside `destination`, and as many bytes in `packed`, which is only
            // read; the slices cannot overlap.
            unsafe { entry.one::<false>(sides) };
            return Ok(packed.len());
        }
        other_call();
        // SAFETY: the room is that of `destination`, `packed` has as many bytes as the range at most, and the slices cannot
        // overlap.
        unsafe { self.checked::<false>(sides, destination.room(), range.at_most(packed.len() as u64)) }
    }

    /// Moves the bytes of a range between memory and packed bytes at any address. Returns how many there are.
    ///
    /// # Safety
    ///
    /// Clauses 1 to 4 of the contract of [`Transfer`](crate::Transfer), on memory of the host.
    #[inline]
    pub(crate) unsafe fn run<const PACK: bool>(&self, sides: Sides, range: Range) -> usize {
        if let Some(entry) = self.known()
            && range.count() == 1
            && range.offset() == 0
            && range.length() >= entry.whole.packed
            && entry.whole.packed != u64::MAX
        {
            // SAFETY: the range has the whole element, for which the clauses speak.
            unsafe { entry.one::<PACK>(sides) };
            return entry.whole.packed as usize;
        }
        let range = self.exact(range);
        // SAFETY: `exact` ends the range with the packed bytes of the elements, for which clauses 1 to 4 hold (contract of this
        // function).
        unsafe { self.some::<PACK>(sides, range) };
        self.record(direction::<PACK>(), range.length());
        range.length() as usize
    }

    /// Moves what a safe call asks for, after checking that it may.
    ///
    /// # Safety
    ///
    /// The memory side has `room`, the packed one as many bytes as the range at most, and they do not overlap.
    #[inline(never)]
    unsafe fn checked<const PACK: bool>(&self, sides: Sides, room: Room, range: Range) -> Result<usize, PackError> {
        let range = self.check(room, range)?;
        // SAFETY: `check` found every byte of the elements inside the room.
        unsafe { self.some::<PACK>(sides, range) };
        self.record(direction::<PACK>(), range.length());
        Ok(range.length() as usize)
    }

    /// Moves the bytes of a range that ends with the packed bytes or before.
    ///
    /// # Safety
    ///
    /// As for [`Committed::run`].
    pub(crate) unsafe fn some<const PACK: bool>(&self, sides: Sides, range: Range) {
        let length = range.length();
        if length == 0 {
            return;
        }
        let entry = match self.known() {
            Some(entry) => entry,
            None => match self.first(length) {
                First::Entry(entry) => entry,
                // SAFETY: the range ends with the packed bytes or before. Clauses 1 and 2 make its bytes readable on one side and
                // writable on the other, without overlap.
                First::Described(described) => return unsafe { described.run::<PACK>(sides, range) },
            },
        };
        self.count_use();
        // SAFETY: the range ends with the packed bytes or before. Clauses 1 and 2 make its bytes readable on one side and
        // writable on the other, without overlap.
        unsafe { entry.run::<PACK>(sides, range) };
    }
}

fn direction<const PACK: bool>() -> Direction {
    if PACK { Direction::Pack } else { Direction::Unpack }
}

/// Where a call is not for one whole element, which may be so short that a jump shows: has it laid out elsewhere.
#[cold]
#[inline]
fn other_call() {}
