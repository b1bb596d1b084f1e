//! Packing and unpacking on the CPU.

use super::check::check_packed;
use super::{Committed, First};
use crate::cached_type::CachedType;
use crate::cpu::Addresses;
use crate::endpoint::is_nowhere;
use crate::error::PackError;
use crate::memory::{Memory, MemoryMut, Room};
use crate::range::Range;
use bytemuck::{NoUninit, Pod};
use dtc_compiler::plan::Direction;

impl Committed {
    /// Packs all bytes of a range, in order. Returns how many bytes were written; what `packed` has beyond them stays as it is.
    /// [`Range::at_most`] and [`Range::bytes`] name a part.
    ///
    /// Memory and packed bytes may be slices of any type whose bytes are all initialised, and for writing of any type for
    /// which all bytes are values: `bytemuck`'s [`NoUninit`] and [`Pod`], which can be derived. Structs with padding are
    /// neither: [`Record`](crate::Record) is for them. [`Committed::at`] takes the address of any memory.
    ///
    /// # Errors
    ///
    /// A [`PackError`] when the elements, all of them, do not lie inside `source`, the range begins behind the packed bytes, or
    /// `packed` is shorter than the range. Nothing is written then.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.2 (`MPI_Pack`).
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other)?);
    /// let memory: Vec<u8> = (0..20).collect();
    /// let mut packed = [0u8; 4];
    /// // The second of the three ints: packed bytes 4 to 7.
    /// assert_eq!(every_other.pack(&memory, Range::elements(1).bytes(4..8), &mut packed)?, 4);
    /// assert_eq!(packed, [8, 9, 10, 11]);
    /// // All 12 bytes do not fit.
    /// let error = every_other.pack(&memory, Range::elements(1), &mut packed).unwrap_err();
    /// assert_eq!(error.to_string(), "packed: expected at least the 12 bytes of the range, found 4");
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
        let addresses = Addresses { memory: source.address().cast_mut(), packed: packed.as_mut_ptr() };
        let room = source.room();
        if let Some((cached, bytes)) = self.whole(range, packed.len() as u64)
            && cached.whole.fits(range.count(), room)
        {
            // SAFETY: `fits` found every byte of the elements inside `source`, and `whole` as many bytes in `packed`. One of them is only
            // read, and the slices cannot overlap.
            unsafe { cached.dispatch::<true>(addresses, range.count()) };
            return Ok(bytes as usize);
        }
        other_call();
        // SAFETY: the room is that of `source`, the length that of `packed`, and the slices cannot overlap.
        unsafe { self.checked::<true>(addresses, room, PackedEndpoint { range, length: packed.len() }) }
    }

    /// Unpacks all bytes of a range, in order, from `packed`. Returns how many bytes were read; `packed` may have more.
    /// Writes bytes of the type map and no others.
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
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
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
        let addresses = Addresses { memory: destination.address(), packed: packed.as_ptr().cast_mut() };
        let room = destination.room();
        if let Some((cached, bytes)) = self.whole(range, packed.len() as u64)
            && cached.whole.fits(range.count(), room)
        {
            // SAFETY: `fits` found every byte of the elements inside `destination`, and `whole` as many bytes in `packed`. One of them is
            // only read, and the slices cannot overlap.
            unsafe { cached.dispatch::<false>(addresses, range.count()) };
            return Ok(bytes as usize);
        }
        other_call();
        // SAFETY: the room is that of `destination`, the length that of `packed`, and the slices cannot overlap.
        unsafe { self.checked::<false>(addresses, room, PackedEndpoint { range, length: packed.len() }) }
    }

    /// Packs whole elements, at addresses in host memory; returns how many bytes. Moves nothing and returns `None` unless `room`, the
    /// bytes that may be packed, has them all, and where a call has more to do than that: [`Committed::at`] serves every call. This
    /// is the same call with less to find out, for interfaces whose callers name memory and counts in numbers.
    ///
    /// # Safety
    ///
    /// Clauses 1 to 4 of the contract of [`Transfer`](crate::Transfer).
    ///
    /// ```
    /// use dtc_runtime::{Engine, datatype::text};
    /// let column = Engine::new().commit(&text::parse("vector 2 1 2 int")?);
    /// column.specialise();
    /// let (matrix, mut packed) = ([1, 2, 3], [0; 2]);
    /// // SAFETY: the matrix has every byte of one element, and `packed` is as long.
    /// let mut pack = |room| unsafe { column.pack_whole(matrix.as_ptr().cast(), 1, packed.as_mut_ptr().cast(), room) };
    /// assert_eq!((pack(7), pack(8)), (None, Some(8)));
    /// assert_eq!(packed, [1, 3]);
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    #[inline]
    pub unsafe fn pack_whole(&self, memory: *const u8, count: u64, packed: *mut u8, room: u64) -> Option<u64> {
        let (cached, bytes) = self.whole_between([memory, packed], count, room)?;
        // SAFETY: `bytes` are those of the elements, for which clauses 1 to 4 hold (contract of this function); `memory` is only read.
        unsafe { cached.dispatch::<true>(Addresses { memory: memory.cast_mut(), packed }, count) };
        Some(bytes)
    }

    /// Unpacks whole elements: the counterpart of [`Committed::pack_whole`], where `packed` has `length` bytes.
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_whole`].
    ///
    /// ```
    /// use dtc_runtime::{Engine, datatype::text};
    /// let column = Engine::new().commit(&text::parse("vector 2 1 2 int")?);
    /// column.specialise();
    /// let (packed, mut matrix) = ([1, 3], [0; 3]);
    /// // SAFETY: the matrix has every byte of one element, and `packed` is as long.
    /// let moved = unsafe { column.unpack_whole(packed.as_ptr().cast(), 8, matrix.as_mut_ptr().cast(), 1) };
    /// assert_eq!((moved, matrix), (Some(8), [1, 0, 3]));
    /// # Ok::<(), dtc_runtime::TextError>(())
    /// ```
    #[inline]
    pub unsafe fn unpack_whole(&self, packed: *const u8, length: u64, memory: *mut u8, count: u64) -> Option<u64> {
        let (cached, bytes) = self.whole_between([packed, memory], count, length)?;
        // SAFETY: `bytes` are those of the elements, for which clauses 1 to 4 hold (contract of this function); `packed` is only read.
        unsafe { cached.dispatch::<false>(Addresses { memory, packed: packed.cast_mut() }, count) };
        Some(bytes)
    }

    /// [`Committed::whole`] for two addresses.
    #[inline]
    fn whole_between(&self, addresses: [*const u8; 2], count: u64, room: u64) -> Option<(&CachedType, u64)> {
        if addresses.into_iter().any(is_nowhere) {
            return None;
        }
        self.whole(Range::elements(count), room)
    }

    /// Moves the bytes of a range between memory and packed bytes at any address. Returns how many there are.
    ///
    /// # Safety
    ///
    /// Clauses 1 to 4 of the contract of [`Transfer`](crate::Transfer), on memory of the host.
    #[inline]
    pub(crate) unsafe fn run<const PACK: bool>(&self, addresses: Addresses, range: Range) -> usize {
        if let Some((cached, bytes)) = self.whole(range, u64::MAX) {
            // SAFETY: the range has the whole elements, for which the clauses speak.
            unsafe { cached.dispatch::<PACK>(addresses, range.count()) };
            return bytes as usize;
        }
        let range = self.exact(range);
        // SAFETY: `exact` ends the range with the packed bytes of the elements, for which clauses 1 to 4 hold (contract of this
        // function).
        unsafe { self.some::<PACK>(addresses, range) };
        self.record(direction::<PACK>(), range.length());
        range.length() as usize
    }

    /// Moves what a safe call asks for, after checking that it may.
    ///
    /// # Safety
    ///
    /// The memory side has `room`, the packed one its length, and they do not overlap.
    #[inline(never)]
    unsafe fn checked<const PACK: bool>(
        &self,
        addresses: Addresses,
        room: Room,
        packed: PackedEndpoint,
    ) -> Result<usize, PackError> {
        let range = check_packed(self.check(room, packed.range)?, packed.length)?;
        // SAFETY: `check` found every byte of the elements inside the room, and `check_packed` the range inside the packed side.
        unsafe { self.some::<PACK>(addresses, range) };
        self.record(direction::<PACK>(), range.length());
        Ok(range.length() as usize)
    }

    /// Moves the bytes of a range that ends with the packed bytes or before.
    ///
    /// # Safety
    ///
    /// As for [`Committed::run`].
    pub(crate) unsafe fn some<const PACK: bool>(&self, addresses: Addresses, range: Range) {
        let length = range.length();
        if length == 0 {
            return;
        }
        let cached = match self.known() {
            Some(cached) => cached,
            None => match self.first(length) {
                First::Cached(cached) => cached,
                // SAFETY: the range ends with the packed bytes or before. Clauses 1 and 2 make its bytes readable on one side and
                // writable on the other, without overlap.
                First::Described(described) => return unsafe { described.run::<PACK>(addresses, range) },
            },
        };
        self.count_use();
        // SAFETY: the range ends with the packed bytes or before. Clauses 1 and 2 make its bytes readable on one side and
        // writable on the other, without overlap.
        unsafe { cached.run::<PACK>(addresses, range) };
    }
}

/// The packed side of a call. One value, so that the short path of a call, which does not make it, keeps the range in registers.
struct PackedEndpoint {
    range: Range,
    /// Bytes of the caller's buffer.
    length: usize,
}

fn direction<const PACK: bool>() -> Direction {
    if PACK { Direction::Pack } else { Direction::Unpack }
}

/// Where a call is not for whole elements, which may be so short that a jump shows: has it laid out elsewhere.
#[cold]
#[inline]
fn other_call() {}
