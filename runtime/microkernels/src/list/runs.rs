//! Blocks of differing length at listed offsets.

use crate::block::{Block, transfer};
use dtc_compiler::layout::Run;

/// Copies a block whose size is known only at the call.
pub(crate) trait AnySize {
    /// Moves `bytes` bytes between the strided and the dense side.
    ///
    /// # Safety
    ///
    /// Both sides are valid for `bytes` bytes and do not overlap; the CPU has the features of the implementation.
    unsafe fn transfer<const PACK: bool>(memory: *mut u8, packed: *mut u8, bytes: usize);
}

/// Size classes by a chain of comparisons, with moves of at most `V` bytes.
pub(crate) struct Stepped<const V: usize>;

impl<const V: usize> AnySize for Stepped<V> {
    #[inline(always)]
    unsafe fn transfer<const PACK: bool>(memory: *mut u8, packed: *mut u8, bytes: usize) {
        use crate::block::{Exact, Library, Pair, Quad};
        // SAFETY: each class is entered with the sizes that it is made for.
        unsafe {
            match bytes {
                0 => {}
                1 => transfer::<_, PACK>(Exact::<1>, memory, packed),
                2..=3 => transfer::<_, PACK>(Pair::<2>::new(bytes), memory, packed),
                4..=7 => transfer::<_, PACK>(Pair::<4>::new(bytes), memory, packed),
                8..=15 => transfer::<_, PACK>(Pair::<8>::new(bytes), memory, packed),
                16..=32 => transfer::<_, PACK>(Pair::<16>::new(bytes), memory, packed),
                33..=64 if V == 32 => transfer::<_, PACK>(Pair::<32>::new(bytes), memory, packed),
                33..=64 => transfer::<_, PACK>(Quad::<16>::new(bytes), memory, packed),
                65..=128 if V == 32 => transfer::<_, PACK>(Quad::<32>::new(bytes), memory, packed),
                _ => transfer::<_, PACK>(Library::new(bytes), memory, packed),
            }
        }
    }
}

/// One masked move for up to 64 bytes, two or four vectors for up to 256.
#[cfg(target_arch = "x86_64")]
pub(crate) struct OneMask;

/// Bytes of a page.
#[cfg(target_arch = "x86_64")]
const PAGE: usize = 4 << 10;

#[cfg(target_arch = "x86_64")]
impl AnySize for OneMask {
    #[inline(always)]
    unsafe fn transfer<const PACK: bool>(memory: *mut u8, packed: *mut u8, bytes: usize) {
        use crate::block::masked::{Lines, Masked};
        use crate::block::overlapped::Overlapped;
        use crate::block::{Library, lines};
        let (destination, source) = if PACK { (packed, memory) } else { (memory, packed) };
        // SAFETY: each class is entered with the sizes that it is made for.
        unsafe {
            if bytes <= 64 {
                // A masked store that reaches into a page without write access is microcoded, even where the mask leaves that
                // page out: 0.5 us on Zen 5.
                if destination as usize % PAGE <= PAGE - 64 {
                    Masked::<64>::new(bytes).copy(destination, source);
                } else {
                    Stepped::<32>::transfer::<PACK>(memory, packed, bytes);
                }
            } else if bytes <= 128 {
                Overlapped::<64, 1, 64>::new(bytes).copy(destination, source);
            } else if bytes <= 256 {
                lines::<2>(destination, source);
                lines::<2>(destination.add(bytes - 128), source.add(bytes - 128));
            } else if bytes <= 16384 {
                transfer::<_, PACK>(Lines::new(bytes), memory, packed);
            } else {
                transfer::<_, PACK>(Library::new(bytes), memory, packed);
            }
        }
    }
}

/// The loop of [`RunsFn`](crate::RunsFn).
///
/// # Safety
///
/// The contract of [`RunsFn`](crate::RunsFn).
#[inline(always)]
pub(crate) unsafe fn runs<A: AnySize, const PACK: bool>(
    memory: *mut u8,
    mut packed: *mut u8,
    runs: *const Run,
    count: usize,
) {
    for index in 0..count {
        // SAFETY: `index` is less than `count`, so the table has the run, and its bytes are mapped at `memory + offset` and at
        // `packed` (contract of `RunsFn`).
        unsafe {
            let Run { offset, count: bytes } = *runs.add(index);
            A::transfer::<PACK>(memory.wrapping_offset(offset as isize), packed, bytes as usize);
            packed = packed.add(bytes as usize);
        }
    }
}
