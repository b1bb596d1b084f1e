//! Committed types: packing and unpacking.

use crate::cpu::Sides;
use crate::engine::Shared;
use crate::entry::{Entry, Tier};
use crate::error::PackError;
use dtc_compiler::datatype::Facts;
use dtc_compiler::layout::{Layout, TypeHash};
use dtc_compiler::operation::Element;
use dtc_compiler::passes::Report;
use dtc_compiler::plan::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A datatype that can be packed with. Cheap to clone, immutable, shared between threads freely.
///
/// Packing is stateless: any byte range of the packed bytes of a count of elements can be packed or unpacked at any time,
/// in any order, by any thread.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::Engine;
///
/// let mut types = TypeBuilder::new();
/// let short = types.named(Predefined::SHORT);
/// let every_other = types.vector(3, 1, 2, short)?;
/// let every_other = Engine::new().commit(&types.finish(every_other));
///
/// let memory = [1u8, 1, 0, 0, 2, 2, 0, 0, 3, 3];
/// let mut middle = [0; 2];
/// every_other.pack(&memory, 0, 1, 2, &mut middle)?; // packed bytes 2 and 3
/// assert_eq!(middle, [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Committed {
    entry: Arc<Entry>,
    inner: Arc<Inner>,
}

struct Inner {
    facts: Facts,
    engine: Arc<Shared>,
    /// One bit for each element that the signature was found not to contradict.
    elements: AtomicU32,
}

const _: () = assert!(Element::ALL.len() <= 32, "an element needs a bit");

/// A pointer that threads may carry: each moves other bytes.
#[derive(Clone, Copy)]
struct Carried(Sides);

// SAFETY: the threads of a parallel call move disjoint ranges, and the call waits for them.
unsafe impl Send for Carried {}
// SAFETY: as above.
unsafe impl Sync for Carried {}

impl Carried {
    fn sides(self) -> Sides {
        self.0
    }
}

impl Committed {
    pub(crate) fn new(entry: Arc<Entry>, facts: Facts, engine: Arc<Shared>) -> Committed {
        Committed { entry, inner: Arc::new(Inner { facts, engine, elements: AtomicU32::new(0) }) }
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    pub(crate) fn engine(&self) -> &Shared {
        &self.inner.engine
    }

    /// Size, bounds and signature as described.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// assert_eq!((every_other.facts().size, every_other.facts().extent()), (12, 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn facts(&self) -> &Facts {
        &self.inner.facts
    }

    /// The canonical layout.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// assert!(every_other.layout().to_string().contains("stream 3 x 8"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.entry.layout
    }

    /// The passes that led to the canonical layout of the first of the equal types.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// assert_eq!(every_other.report().fired()[0], ("erase-kinds", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report(&self) -> &Report {
        &self.entry.report
    }

    /// How the bytes are moved.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// assert!(every_other.plan().to_string().contains("rows 3 x 8 of 4 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn plan(&self) -> &Plan {
        self.entry.plan()
    }

    /// The identity that all equal types share.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// assert_eq!(every_other.type_hash(), every_other.layout().type_hash());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn type_hash(&self) -> TypeHash {
        self.entry.hash
    }

    /// Which code a pack would run now.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Engine, Tier};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// // One leaf does it all, so there is nothing to compile.
    /// assert_eq!(Engine::new().commit(&types.finish(int)).tier(), Tier::Generic);
    /// ```
    pub fn tier(&self) -> Tier {
        self.entry.tier()
    }

    /// Compiles the kernel now, if one would pay and is not there yet; returns the tier that serves from here on.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// every_other.specialise();
    /// let mut packed = [0; 12];
    /// assert_eq!(every_other.pack(&[7; 20], 0, 1, 0, &mut packed)?, 12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn specialise(&self) -> Tier {
        self.entry.specialise();
        self.entry.tier()
    }

    /// Packed bytes of a count of elements.
    ///
    /// # Errors
    ///
    /// [`PackError::Count`] when they do not fit 64 bits.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// assert_eq!(every_other.packed_size(10)?, 120);
    /// assert!(every_other.packed_size(u64::MAX).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn packed_size(&self, count: u64) -> Result<u64, PackError> {
        let size = self.entry.shape.size;
        match size.checked_mul(count) {
            Some(total) if i64::try_from(total).is_ok() => Ok(total),
            _ => Err(PackError::Count { count, most: i64::MAX as u64 / size }),
        }
    }

    /// The lowest displacement of a byte of `count` elements, and one past the highest; nothing if there are no bytes.
    ///
    /// Derived from the layout itself, whatever the description claims of its bounds.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let backwards = types.resized(0, -8, int)?;
    /// let backwards = dtc_runtime::Engine::new().commit(&types.finish(backwards));
    /// assert_eq!(backwards.span(3), Some((-16, 4)));
    /// # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
    /// ```
    #[inline]
    pub fn span(&self, count: u64) -> Option<(i128, i128)> {
        let shape = &self.entry.shape;
        if count == 0 || shape.size == 0 {
            return None;
        }
        let last = i128::from(count - 1) * i128::from(shape.extent);
        Some((i128::from(shape.true_lb) + last.min(0), i128::from(shape.true_ub) + last.max(0)))
    }

    /// Packs a byte range of `count` elements: packed bytes `offset ..` into all of `packed`, or less at their end.
    /// `origin` says where in `source` the address lies that the type is applied to. Returns how many bytes were written.
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
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// let memory: Vec<u8> = (0..20).collect();
    /// let mut packed = [0; 4];
    /// // The second of the three ints: packed bytes 4 to 7.
    /// assert_eq!(every_other.pack(&memory, 0, 1, 4, &mut packed)?, 4);
    /// assert_eq!(packed, [8, 9, 10, 11]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn pack(
        &self,
        source: &[u8],
        origin: usize,
        count: u64,
        offset: u64,
        packed: &mut [u8],
    ) -> Result<usize, PackError> {
        let sides = Sides { memory: source.as_ptr().wrapping_add(origin).cast_mut(), packed: packed.as_mut_ptr() };
        if self.is_one(source.len(), origin, count, offset, packed.len()) {
            // SAFETY: `is_one` found every byte of the element inside `source`, which is only read, and room for it in
            // `packed`; the slices cannot overlap.
            unsafe { self.one::<true>(sides) };
            return Ok(packed.len());
        }
        // SAFETY: the lengths are those of the slices, which cannot overlap.
        unsafe { self.checked::<true>(sides, source.len(), origin, count, offset, packed.len()) }
    }

    /// Unpacks all of `packed`, or less at the end of the packed bytes, as bytes `offset ..` of `count` elements.
    /// `origin` says where in `destination` the address lies that the type is applied to. Returns how many bytes were
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
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// let mut memory = [0xa5; 20];
    /// assert_eq!(every_other.unpack(&[1; 12], 0, &mut memory, 0, 1)?, 12);
    /// assert_eq!(memory[..12], [1, 1, 1, 1, 0xa5, 0xa5, 0xa5, 0xa5, 1, 1, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn unpack(
        &self,
        packed: &[u8],
        offset: u64,
        destination: &mut [u8],
        origin: usize,
        count: u64,
    ) -> Result<usize, PackError> {
        let sides = Sides { memory: destination.as_mut_ptr().wrapping_add(origin), packed: packed.as_ptr().cast_mut() };
        if self.is_one(destination.len(), origin, count, offset, packed.len()) {
            // SAFETY: as for `pack`; `packed` is only read.
            unsafe { self.one::<false>(sides) };
            return Ok(packed.len());
        }
        // SAFETY: as for `pack`.
        unsafe { self.checked::<false>(sides, destination.len(), origin, count, offset, packed.len()) }
    }

    /// Like [`Committed::pack`] from byte 0 on, by several threads of this call.
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let byte = types.named(Predefined::BYTE);
    /// let every_other = types.vector(1 << 20, 1, 2, byte)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// let memory: Vec<u8> = (0..2u32 << 20).map(|index| index as u8).collect();
    /// let mut packed = vec![0; 1 << 20];
    /// every_other.pack_parallel(&memory, 0, 1, &mut packed, 4)?;
    /// assert!(packed.iter().enumerate().all(|(index, &byte)| byte == (2 * index) as u8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pack_parallel(
        &self,
        source: &[u8],
        origin: usize,
        count: u64,
        packed: &mut [u8],
        threads: usize,
    ) -> Result<usize, PackError> {
        let take = self.check(source.len(), origin, count, 0, packed.len())?;
        let memory = source.as_ptr().wrapping_add(origin).cast_mut();
        // SAFETY: as for `pack`; `memory` is only read.
        unsafe { self.parallel::<true>(Sides { memory, packed: packed.as_mut_ptr() }, count, take as u64, threads) };
        Ok(take)
    }

    /// Like [`Committed::unpack`] from byte 0 on, by several threads of this call.
    ///
    /// # Errors
    ///
    /// As for [`Committed::unpack`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = dtc_runtime::Engine::new().commit(&types.finish(every_other));
    /// let mut memory = [0xa5; 20];
    /// assert_eq!(every_other.unpack_parallel(&[1; 12], &mut memory, 0, 1, 2)?, 12);
    /// assert_eq!(memory[12..], [0xa5, 0xa5, 0xa5, 0xa5, 1, 1, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unpack_parallel(
        &self,
        packed: &[u8],
        destination: &mut [u8],
        origin: usize,
        count: u64,
        threads: usize,
    ) -> Result<usize, PackError> {
        let take = self.check(destination.len(), origin, count, 0, packed.len())?;
        let memory = destination.as_mut_ptr().wrapping_add(origin);
        // SAFETY: as for `unpack`; `packed` is only read.
        unsafe {
            let sides = Sides { memory, packed: packed.as_ptr().cast_mut() };
            self.parallel::<false>(sides, count, take as u64, threads);
        }
        Ok(take)
    }

    /// Packs a byte range of `count` elements from memory at any address: packed bytes `offset .. offset + max`, or less
    /// at their end. Returns how many bytes were written.
    ///
    /// `source` is the address that the type is applied to; it may be null for absolute types.
    ///
    /// # Safety
    ///
    /// Every byte of the elements in the range is readable, `packed` is writable for the returned length, the two do not
    /// overlap, and `count` times the size fits 63 bits. The pack may also read gaps of less than 4 KiB between bytes of
    /// the range, and what shares an aligned 16 bytes with one.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int));
    /// let (memory, mut packed) = (7i32, [0u8; 4]);
    /// // SAFETY: both sides are as long as the type.
    /// let written = unsafe { int.pack_raw((&raw const memory).cast(), 1, 0, packed.as_mut_ptr(), 4) };
    /// assert_eq!((written, i32::from_ne_bytes(packed)), (4, 7));
    /// ```
    #[inline]
    pub unsafe fn pack_raw(&self, source: *const u8, count: u64, offset: u64, packed: *mut u8, max: u64) -> u64 {
        // SAFETY: the caller's promise; `memory` is only read.
        unsafe { self.run::<true>(Sides { memory: source.cast_mut(), packed }, count, offset, max) }
    }

    /// Unpacks `length` bytes, or less at the end, as packed bytes `offset ..` of `count` elements into memory at any
    /// address. Returns how many bytes were read.
    ///
    /// # Safety
    ///
    /// Every byte of the elements in the range is writable, `packed` is readable for the returned length, the two do not
    /// overlap, and `count` times the size fits 63 bits.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int));
    /// let (packed, mut memory) = (7i32.to_ne_bytes(), 0i32);
    /// // SAFETY: both sides are as long as the type.
    /// let read = unsafe { int.unpack_raw(packed.as_ptr(), 4, (&raw mut memory).cast(), 1, 0) };
    /// assert_eq!((read, memory), (4, 7));
    /// ```
    #[inline]
    pub unsafe fn unpack_raw(
        &self,
        packed: *const u8,
        length: u64,
        destination: *mut u8,
        count: u64,
        offset: u64,
    ) -> u64 {
        // SAFETY: the caller's promise; `packed` is only read.
        unsafe { self.run::<false>(Sides { memory: destination, packed: packed.cast_mut() }, count, offset, length) }
    }

    /// # Safety
    ///
    /// As for [`Committed::pack_raw`] or [`Committed::unpack_raw`].
    #[inline]
    unsafe fn run<const PACK: bool>(&self, sides: Sides, count: u64, offset: u64, max: u64) -> u64 {
        let size = self.entry.shape.size;
        if count == 1 && offset == 0 && max >= size {
            // SAFETY: the caller's promise.
            unsafe { self.one::<PACK>(sides) };
            return size;
        }
        let take = self.take(count, offset, max);
        // SAFETY: the caller's promise.
        unsafe { self.some::<PACK>(sides, count, offset, take) };
        take
    }

    /// How many bytes a raw call moves.
    #[inline]
    pub(crate) fn take(&self, count: u64, offset: u64, max: u64) -> u64 {
        max.min(count.wrapping_mul(self.entry.shape.size).saturating_sub(offset))
    }

    /// Moves one whole element: the call whose overhead shows most, when the element is short. Apart from its callers, it
    /// is entered and left without a stack frame.
    ///
    /// # Safety
    ///
    /// As for [`Committed::run`].
    #[inline(never)]
    unsafe fn one<const PACK: bool>(&self, sides: Sides) {
        self.count_use();
        // SAFETY: the caller's promise.
        unsafe { self.entry.one::<PACK>(sides) };
    }

    /// Counts a call where a lazy kernel may wait for it.
    #[inline]
    pub(crate) fn count_use(&self) {
        if self.entry.is_lazy() {
            self.count_lazy_use();
        }
    }

    /// Counts a call; the one that a lazy kernel waits for asks for it.
    #[cold]
    fn count_lazy_use(&self) {
        if self.entry.used() {
            self.inner.engine.enqueue(&self.entry);
        }
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
        count: u64,
        offset: u64,
        packed: usize,
    ) -> Result<usize, PackError> {
        let take = self.check(length, origin, count, offset, packed)?;
        // SAFETY: `check` found every byte of the elements inside the buffer.
        unsafe { self.some::<PACK>(sides, count, offset, take as u64) };
        Ok(take)
    }

    /// Moves `take` bytes from packed byte `offset` on.
    ///
    /// # Safety
    ///
    /// As for [`Committed::run`].
    pub(crate) unsafe fn some<const PACK: bool>(&self, sides: Sides, count: u64, offset: u64, take: u64) {
        if take > 0 {
            self.count_use();
            // SAFETY: the caller's promise.
            unsafe { self.entry.run::<PACK>(sides, count, offset, take) };
        }
    }

    /// # Safety
    ///
    /// As for [`Committed::run`] from byte 0 on.
    unsafe fn parallel<const PACK: bool>(&self, sides: Sides, count: u64, take: u64, threads: usize) {
        // Pieces are multiples of a page, so that no two threads share a line of the packed side.
        let piece = take.div_ceil(threads.max(1) as u64).next_multiple_of(4096).max(4096);
        let carried = Carried(sides);
        let range = move |start: u64| {
            let sides = carried.sides();
            let sides = Sides { packed: sides.packed.wrapping_add(start as usize), ..sides };
            // SAFETY: a range of the caller's, and no other thread has it.
            unsafe { self.run::<PACK>(sides, count, start, piece.min(take - start)) };
        };
        std::thread::scope(|scope| {
            for start in (0..take).step_by(piece as usize).skip(1) {
                let spawned = std::thread::Builder::new().spawn_scoped(scope, move || range(start));
                if spawned.is_err() {
                    range(start);
                }
            }
            if take > 0 {
                range(0);
            }
        });
    }

    /// Whether a safe call moves one whole element and may.
    #[inline]
    fn is_one(&self, length: usize, origin: usize, count: u64, offset: u64, packed: usize) -> bool {
        let shape = &self.entry.shape;
        let after = length.wrapping_sub(origin) as u64;
        let asked = count == 1 && offset == 0 && packed as u64 == shape.size;
        asked && origin <= length && origin as u64 >= shape.before && after >= shape.after
    }

    /// Whether the signature leaves it possible that the type consists of such elements.
    pub(crate) fn may_consist_of(&self, element: Element) -> bool {
        let bit = 1 << element as u32;
        let known = &self.inner.elements;
        // Each bit is a fact of its own, so no order is needed.
        known.load(Ordering::Relaxed) & bit != 0
            || !element.contradicts(&self.inner.facts.signature) && {
                known.fetch_or(bit, Ordering::Relaxed);
                true
            }
    }

    /// How many bytes a safe call moves; an error if it must not.
    pub(crate) fn check(
        &self,
        length: usize,
        origin: usize,
        count: u64,
        offset: u64,
        packed: usize,
    ) -> Result<usize, PackError> {
        let total = self.packed_size(count)?;
        if origin > length {
            return Err(PackError::Origin { origin, length });
        }
        if let Some((low, high)) = self.span(count) {
            let (before, after) = (origin, length - origin);
            if -low > before as i128 || high > after as i128 {
                return Err(PackError::Bounds { low, high, before, after });
            }
        }
        match total.checked_sub(offset) {
            Some(rest) => Ok(packed.min(usize::try_from(rest).unwrap_or(usize::MAX))),
            None => Err(PackError::Offset { offset, total }),
        }
    }
}
