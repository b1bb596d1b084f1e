//! How one block is copied: one type for each size class.
//!
//! All loops of this folder are generic over [`Block`], so that each class is compiled into each loop, under the CPU features of
//! the level that instantiates it. That is why everything here is `inline(always)`, and why plain copies of constant size are
//! enough: the compiler turns them into the widest moves of the level.

#[cfg(target_arch = "x86_64")]
pub(crate) mod masked;
#[cfg(target_arch = "x86_64")]
pub(crate) mod overlapped;

use core::mem::MaybeUninit;
use core::ptr::copy_nonoverlapping;
use core::sync::atomic::{Ordering, compiler_fence};
use dtc_compiler::plan::strategy::FEW_BYTES;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// A line as one value.
#[cfg(target_arch = "x86_64")]
type Line = core::arch::x86_64::__m512i;
#[cfg(not(target_arch = "x86_64"))]
type Line = [u64; LINE / 8];

/// A quarter of a line as one value.
#[cfg(target_arch = "x86_64")]
type Quarter = core::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Quarter = [u64; LINE / 32];

/// Half of a line as one value.
#[cfg(target_arch = "x86_64")]
type Half = core::arch::x86_64::__m256i;
#[cfg(not(target_arch = "x86_64"))]
type Half = [u64; LINE / 16];

/// Copies blocks of one size.
pub(crate) trait Block: Copy {
    /// The size if it is compiled in, otherwise 0.
    const EXACT: usize = 0;

    /// Whether a block is copied by a loop or a call.
    const LONG: bool = false;

    /// Whether blocks have at most [`FEW_BYTES`] bytes.
    const SHORT: bool = false;

    /// Prepares copies of `bytes` bytes.
    fn new(bytes: usize) -> Self;

    /// The size of a block.
    fn bytes(self) -> usize;

    /// Copies one block and touches nothing else.
    ///
    /// # Safety
    ///
    /// Source and destination are valid for [`Block::bytes`] bytes and do not overlap; the CPU has the features of the class.
    unsafe fn copy(self, destination: *mut u8, source: *const u8);

    /// Copies `K` blocks; all are loaded before the first is stored, where they are short and of a length that is compiled in.
    ///
    /// # Safety
    ///
    /// As for [`Block::copy`], for each pair of a destination and a source. No source overlaps any destination.
    #[inline(always)]
    unsafe fn copy_all<const K: usize>(self, destinations: [*mut u8; K], sources: [*const u8; K]) {
        let mut block = 0;
        while block < K {
            // SAFETY: `block` is less than `K`, and both sides are valid for the bytes of a block (contract of `copy_all`).
            unsafe { self.copy(destinations[block], sources[block]) };
            block += 1;
        }
    }
}

/// The length of a class of blocks that has it as its only field.
macro_rules! of_length {
    () => {
        #[inline(always)]
        fn new(bytes: usize) -> Self {
            Self(bytes)
        }

        #[inline(always)]
        fn bytes(self) -> usize {
            self.0
        }
    };
}
#[cfg(target_arch = "x86_64")]
use of_length;

/// Moves `K` blocks between places on the strided side and consecutive ones on the dense side.
///
/// # Safety
///
/// As for [`Block::copy`], for each of the blocks; the two sides do not overlap.
#[inline(always)]
pub(crate) unsafe fn transfer_all<B: Block, const PACK: bool, const K: usize>(
    block: B,
    memory: [*mut u8; K],
    packed: *mut u8,
) {
    let mut dense = [packed; K];
    let mut row = 1;
    while row < K {
        dense[row] = packed.wrapping_add(row * block.bytes());
        row += 1;
    }
    // SAFETY: both sides of each block are valid for its bytes, and no block overlaps one of the other side (contract of
    // `transfer_all`).
    unsafe {
        if PACK {
            block.copy_all(dense, memory.map(<*mut u8>::cast_const));
        } else {
            block.copy_all(memory, dense.map(<*mut u8>::cast_const));
        }
    }
}

/// Loads a value from each source, `at` bytes behind its start.
///
/// # Safety
///
/// The bytes are readable.
#[inline(always)]
unsafe fn load_all<T: Copy, const K: usize>(sources: [*const u8; K], at: usize) -> [MaybeUninit<T>; K] {
    let mut values = [MaybeUninit::uninit(); K];
    let mut block = 0;
    while block < K {
        // SAFETY: `block` is less than `K`, and the bytes are readable (contract of `load_all`).
        unsafe { values[block].write(sources[block].add(at).cast::<T>().read_unaligned()) };
        block += 1;
    }
    values
}

/// Stores a value to each destination, `at` bytes behind its start.
///
/// # Safety
///
/// The bytes are writable, and the values were loaded.
#[inline(always)]
unsafe fn store_all<T: Copy, const K: usize>(values: [MaybeUninit<T>; K], destinations: [*mut u8; K], at: usize) {
    let mut block = 0;
    while block < K {
        // SAFETY: `block` is less than `K`, the value is initialised, and the bytes are writable (contract of `store_all`).
        unsafe { destinations[block].add(at).cast::<T>().write_unaligned(values[block].assume_init()) };
        in_order();
        block += 1;
    }
}

/// Moves one block between the strided and the dense side, in the direction of `PACK`.
///
/// # Safety
///
/// As for [`Block::copy`].
#[inline(always)]
pub(crate) unsafe fn transfer<B: Block, const PACK: bool>(block: B, memory: *mut u8, packed: *mut u8) {
    // SAFETY: both sides are valid for the bytes of the block, and do not overlap (contract of `Block::copy`).
    unsafe { if PACK { block.copy(packed, memory) } else { block.copy(memory, packed) } }
}

/// Keeps the compiler from reordering stores. It tends to reverse them, and stores that each are in two lines then take 5 % longer.
#[inline(always)]
pub(crate) fn in_order() {
    compiler_fence(Ordering::Release);
}

/// Returns the number, and hides its origin from the compiler. The compiler tends to turn addresses that are a multiple of a stride
/// apart into a chain of additions, each of which waits for the one before.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn opaque(mut number: isize) -> isize {
    // SAFETY: the text is a comment, so nothing is executed.
    unsafe {
        core::arch::asm!("/* {} */", inout(reg) number, options(pure, nomem, nostack, preserves_flags));
    }
    number
}

/// Returns the address, in a register of its own.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn computed(address: *mut u8) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(opaque(address.expose_provenance() as isize) as usize)
}

/// Copies `K` lines of 64 bytes. All are loaded before the first is stored.
///
/// A load right behind a store to the same offset within a page waits until the processor knows that the addresses differ. Buffers
/// are often aligned alike, and then every load waits: 480 bytes took twice as long (measured).
///
/// # Safety
///
/// Source and destination are valid for `K` lines and do not overlap.
#[inline(always)]
pub(crate) unsafe fn lines<const K: usize>(destination: *mut u8, source: *const u8) {
    // SAFETY: `place` is less than `K`, and both sides are valid for `K` lines (contract of `lines`). Every value is written
    // before it is read.
    unsafe {
        // By index: closures of the library are compiled without the features of the level.
        let mut values = [MaybeUninit::<Line>::uninit(); K];
        let mut place = 0;
        while place < K {
            values[place].write(source.add(place * LINE).cast::<Line>().read_unaligned());
            place += 1;
        }
        place = 0;
        while place < K {
            destination.add(place * LINE).cast::<Line>().write_unaligned(values[place].assume_init());
            in_order();
            place += 1;
        }
    }
}

/// Copies whole lines from byte `at` on while the bytes before `end` hold one, four at a time while they hold four, and returns
/// where it stopped.
///
/// # Safety
///
/// Source and destination are valid for bytes `at` to `end`, and do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn lines_until(destination: *mut u8, source: *const u8, mut at: usize, end: usize) -> usize {
    // SAFETY: each move ends at byte `end` at the latest.
    unsafe {
        while end - at >= 4 * LINE {
            lines::<4>(destination.add(at), source.add(at));
            at += 4 * LINE;
        }
        while end - at >= LINE {
            lines::<1>(destination.add(at), source.add(at));
            at += LINE;
        }
    }
    at
}

/// Copies `K` vectors of `V` bytes.
///
/// # Safety
///
/// Source and destination are valid for `K * V` bytes and do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn vectors<const V: usize, const K: usize>(destination: *mut u8, source: *const u8) {
    // SAFETY: both sides are valid for `K * V` bytes (contract of `vectors`), and `step` is less than `K`.
    unsafe {
        if V == LINE {
            lines::<K>(destination, source);
        } else {
            for step in 0..K {
                copy_nonoverlapping(source.add(step * V), destination.add(step * V), V);
            }
        }
    }
}

/// Blocks of exactly `N` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Exact<const N: usize>;

impl<const N: usize> Block for Exact<N> {
    const EXACT: usize = N;
    const LONG: bool = N >= 256;
    const SHORT: bool = N <= FEW_BYTES;

    #[inline(always)]
    fn new(_: usize) -> Self {
        Self
    }

    #[inline(always)]
    fn bytes(self) -> usize {
        N
    }

    #[inline(always)]
    unsafe fn copy(self, destination: *mut u8, source: *const u8) {
        let mut at = 0;
        macro_rules! pieces {
            ($($bytes:literal)*) => {$(
                while N - at >= $bytes {
                    // SAFETY: at + $bytes <= N, and both sides are valid for N bytes (contract of `Block::copy`).
                    unsafe { copy_nonoverlapping(source.add(at), destination.add(at), $bytes) };
                    at += $bytes;
                }
            )*};
        }
        if N.is_multiple_of(LINE) {
            // SAFETY: the lines end at byte N at the latest, and both sides are valid for N bytes (contract of `Block::copy`).
            unsafe {
                while N - at >= 4 * LINE {
                    lines::<4>(destination.add(at), source.add(at));
                    at += 4 * LINE;
                }
                match (N - at) / LINE {
                    3 => lines::<3>(destination.add(at), source.add(at)),
                    2 => lines::<2>(destination.add(at), source.add(at)),
                    1 => lines::<1>(destination.add(at), source.add(at)),
                    _ => {}
                }
            }
            return;
        }
        pieces!(32 16 8 4 2 1);
    }

    #[inline(always)]
    unsafe fn copy_all<const K: usize>(self, destinations: [*mut u8; K], sources: [*const u8; K]) {
        // SAFETY: each part ends at byte N at the latest, and both sides are valid for N bytes (contract of `copy_all`).
        unsafe {
            match N {
                4 => store_all(load_all::<u32, K>(sources, 0), destinations, 0),
                8 => store_all(load_all::<u64, K>(sources, 0), destinations, 0),
                16 => store_all(load_all::<Quarter, K>(sources, 0), destinations, 0),
                32 => store_all(load_all::<Half, K>(sources, 0), destinations, 0),
                _ => {
                    let mut block = 0;
                    while block < K {
                        self.copy(destinations[block], sources[block]);
                        block += 1;
                    }
                }
            }
        }
    }
}

/// Blocks of `V` to `2 * V` bytes: two moves that may overlap.
#[derive(Clone, Copy)]
pub(crate) struct Pair<const V: usize>(usize);

impl<const V: usize> Block for Pair<V> {
    const SHORT: bool = 2 * V <= FEW_BYTES;

    of_length!();

    #[inline(always)]
    unsafe fn copy(self, destination: *mut u8, source: *const u8) {
        let last = self.0 - V;
        // SAFETY: V <= bytes <= 2 * V, so both moves are within the block.
        unsafe {
            copy_nonoverlapping(source, destination, V);
            copy_nonoverlapping(source.add(last), destination.add(last), V);
        }
    }
}

/// Blocks of `2 * V` to `4 * V` bytes: four moves, of which the last two may overlap the first two.
#[derive(Clone, Copy)]
pub(crate) struct Quad<const V: usize>(usize);

impl<const V: usize> Block for Quad<V> {
    of_length!();

    #[inline(always)]
    unsafe fn copy(self, destination: *mut u8, source: *const u8) {
        let half = self.0 - 2 * V;
        // SAFETY: 2 * V <= bytes <= 4 * V, so all moves are within the block.
        unsafe {
            copy_nonoverlapping(source, destination, V);
            copy_nonoverlapping(source.add(V), destination.add(V), V);
            copy_nonoverlapping(source.add(half), destination.add(half), V);
            copy_nonoverlapping(source.add(half + V), destination.add(half + V), V);
        }
    }
}

/// Blocks of any size, by the C library.
#[derive(Clone, Copy)]
pub(crate) struct Library(usize);

impl Block for Library {
    const LONG: bool = true;

    of_length!();

    #[inline(always)]
    unsafe fn copy(self, destination: *mut u8, source: *const u8) {
        // SAFETY: both sides are valid for `self.0` bytes, and do not overlap (contract of `Block::copy`).
        unsafe { copy_nonoverlapping(source, destination, self.0) }
    }
}
