//! Packing and unpacking on the CPU.

use super::{Committed, First};
use crate::cpu::Sides;
use crate::error::PackError;
use crate::memory::{Memory, MemoryMut};
use crate::range::Range;
use bytemuck::{NoUninit, Pod};

impl Committed {
    /// Packs the bytes of a range, in order, until `packed` is full or the range ends. Returns how many bytes were written.
    ///
    /// Memory and packed bytes may be slices of any type whose bytes are all initialised, and for writing of any type for
    /// which all bytes are values: `bytemuck`'s [`NoUninit`] and [`Pod`], which can be derived. Records with padding are
    /// neither; [`Committed::pack_raw`] takes them.
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
        if let Some(entry) = self.one(source.bytes.len(), source.origin, range, packed.len()) {
            // SAFETY: `one` found every byte of the element inside `source`, which is only read, and room for it in
            // `packed`; the slices cannot overlap.
            unsafe { entry.one::<true>(sides) };
            return Ok(packed.len());
        }
        other_call();
        // SAFETY: the lengths are those of the slices, which cannot overlap.
        unsafe { self.checked::<true>(sides, source.bytes.len(), source.origin, range, packed.len()) }
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
        if let Some(entry) = self.one(destination.bytes.len(), destination.origin, range, packed.len()) {
            // SAFETY: as for `pack`; `packed` is only read.
            unsafe { entry.one::<false>(sides) };
            return Ok(packed.len());
        }
        other_call();
        // SAFETY: as for `pack`.
        unsafe { self.checked::<false>(sides, destination.bytes.len(), destination.origin, range, packed.len()) }
    }

    /// Packs the bytes of a range from memory at any address. Returns how many bytes were written.
    ///
    /// `source` is the address that the type is applied to; it may be null for absolute types.
    ///
    /// # Safety
    ///
    /// Every byte of the elements in the range is readable, `packed` is writable for the returned length, the two do not
    /// overlap, and the packed bytes of all elements fit 63 bits. The pack may also read gaps of less than 4 KiB between bytes of
    /// the range, and what shares an aligned 16 bytes with one.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let (memory, mut packed) = (7i32, [0u8; 4]);
    /// // SAFETY: both sides are as long as the type.
    /// let written = unsafe { int.pack_raw((&raw const memory).cast(), Range::elements(1).bytes(..4), packed.as_mut_ptr()) };
    /// assert_eq!((written, i32::from_ne_bytes(packed)), (4, 7));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    #[inline]
    pub unsafe fn pack_raw(&self, source: *const u8, range: Range, packed: *mut u8) -> u64 {
        // SAFETY: the caller's promise; `memory` is only read.
        unsafe { self.run::<true>(Sides { memory: source.cast_mut(), packed }, range) }
    }

    /// Unpacks the bytes of a range into memory at any address. Returns how many bytes were read.
    ///
    /// # Safety
    ///
    /// Every byte of the elements in the range is writable, `packed` is readable for the returned length, the two do not
    /// overlap, and the packed bytes of all elements fit 63 bits.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let (packed, mut memory) = (7i32.to_ne_bytes(), 0i32);
    /// // SAFETY: both sides are as long as the type.
    /// let read = unsafe { int.unpack_raw(packed.as_ptr(), Range::elements(1).bytes(..4), (&raw mut memory).cast()) };
    /// assert_eq!((read, memory), (4, 7));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    #[inline]
    pub unsafe fn unpack_raw(&self, packed: *const u8, range: Range, destination: *mut u8) -> u64 {
        // SAFETY: the caller's promise; `packed` is only read.
        unsafe { self.run::<false>(Sides { memory: destination, packed: packed.cast_mut() }, range) }
    }

    /// # Safety
    ///
    /// As for [`Committed::pack_raw`] or [`Committed::unpack_raw`].
    #[inline]
    pub(super) unsafe fn run<const PACK: bool>(&self, sides: Sides, range: Range) -> u64 {
        if let Some(entry) = self.known()
            && range.count() == 1
            && range.offset() == 0
            && range.length() >= entry.shape.size
            && !entry.is_lazy()
        {
            // SAFETY: the caller's promise.
            unsafe { entry.one::<PACK>(sides) };
            return entry.shape.size;
        }
        let take = self.take(range);
        // SAFETY: the caller's promise.
        unsafe { self.some::<PACK>(sides, range.count(), range.offset(), take) };
        take
    }

    /// Moves what a safe call asks for, after checking that it may.
    ///
    /// # Safety
    ///
    /// The sides are buffers of these lengths that do not overlap, the memory side displaced by `origin`.
    #[inline(never)]
    unsafe fn checked<const PACK: bool>(
        &self,
        sides: Sides,
        length: usize,
        origin: usize,
        range: Range,
        packed: usize,
    ) -> Result<usize, PackError> {
        let take = self.check(length, origin, range, packed)?;
        // SAFETY: `check` found every byte of the elements inside the buffer.
        unsafe { self.some::<PACK>(sides, range.count(), range.offset(), take as u64) };
        Ok(take)
    }

    /// Moves `take` bytes from packed byte `offset` on.
    ///
    /// # Safety
    ///
    /// As for [`Committed::run`].
    pub(crate) unsafe fn some<const PACK: bool>(&self, sides: Sides, count: u64, offset: u64, take: u64) {
        if take == 0 {
            return;
        }
        let entry = match self.known() {
            Some(entry) => entry,
            None => match self.first(take) {
                First::Entry(entry) => entry,
                // SAFETY: the caller's promise.
                First::Described(described) => return unsafe { described.run::<PACK>(sides, count, offset, take) },
            },
        };
        self.count_use();
        // SAFETY: the caller's promise.
        unsafe { entry.run::<PACK>(sides, count, offset, take) };
    }
}

/// Where a call is not for one whole element, which may be so short that a jump shows: has it laid out elsewhere.
#[cold]
#[inline]
fn other_call() {}
