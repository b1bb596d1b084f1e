//! Rows at one stride, and planes of such rows.

use super::block::{Block, transfer};

/// The loop of [`RowsFn`](super::RowsFn).
///
/// # Safety
///
/// The contract of [`RowsFn`](super::RowsFn).
#[inline(always)]
pub(super) unsafe fn rows<B: Block, const PACK: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    mut rows: usize,
    block: B,
    stride: isize,
) {
    let bytes = block.bytes();
    if B::LONG {
        // SAFETY: as below.
        unsafe { long::<B, PACK>(memory, packed, rows, block, stride) };
        return;
    }
    // SAFETY: the caller guarantees each row; `memory` may step outside after the last row, hence the wrapping arithmetic.
    unsafe {
        while rows >= 4 {
            transfer::<B, PACK>(block, memory, packed);
            transfer::<B, PACK>(block, memory.wrapping_offset(stride), packed.add(bytes));
            transfer::<B, PACK>(block, memory.wrapping_offset(stride.wrapping_mul(2)), packed.add(2 * bytes));
            transfer::<B, PACK>(block, memory.wrapping_offset(stride.wrapping_mul(3)), packed.add(3 * bytes));
            memory = memory.wrapping_offset(stride.wrapping_mul(4));
            packed = packed.add(4 * bytes);
            rows -= 4;
        }
        while rows > 0 {
            transfer::<B, PACK>(block, memory, packed);
            memory = memory.wrapping_offset(stride);
            packed = packed.add(bytes);
            rows -= 1;
        }
    }
}

/// An unpack of so many bytes finds its destination in the second-level cache; of more, memory decides, and of fewer, the first
/// level has it.
const FETCHED_TOTAL: std::ops::RangeInclusive<usize> = 32 << 10..=1 << 20;

/// Longer rows are not fetched ahead: they would evict each other.
const FETCHED_ROW: usize = 8 << 10;

/// So do shorter rows than half of a page at multiples of a page, which all fall into a few sets of the cache.
const PAGE: usize = 4 << 10;

/// Rows that are long themselves, so that unrolling the loop around them gains nothing. An unpack fetches the lines of the next
/// row while it writes one, since stores wait for their lines and nothing else can tell where the next row is: a tenth faster.
///
/// # Safety
///
/// The contract of [`RowsFn`](super::RowsFn).
#[inline(always)]
unsafe fn long<B: Block, const PACK: bool>(mut memory: *mut u8, packed: *mut u8, rows: usize, block: B, stride: isize) {
    let bytes = block.bytes();
    #[cfg(target_arch = "x86_64")]
    let crowded = stride % PAGE as isize == 0 && bytes < PAGE / 2;
    #[cfg(target_arch = "x86_64")]
    let fetch = !PACK && bytes <= FETCHED_ROW && FETCHED_TOTAL.contains(&(rows * bytes)) && !crowded;
    for row in 0..rows {
        let next = memory.wrapping_offset(stride);
        #[cfg(target_arch = "x86_64")]
        if fetch {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            for part in (0..bytes).step_by(64) {
                // SAFETY: a prefetch neither reads into a register nor faults, wherever the next row would lie.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(part).cast()) };
            }
        }
        // SAFETY: the caller guarantees each row.
        unsafe { transfer::<B, PACK>(block, memory, packed.add(row * bytes)) };
        memory = next;
    }
}

/// The loop of [`PlanesFn`](super::PlanesFn).
///
/// # Safety
///
/// The contract of [`PlanesFn`](super::PlanesFn).
#[inline(always)]
pub(super) unsafe fn planes<B: Block, const PACK: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    block: B,
    stride: isize,
) {
    let plane = rows * block.bytes();
    for _ in 0..planes {
        // SAFETY: the caller guarantees each plane.
        unsafe {
            self::rows::<B, PACK>(memory, packed, rows, block, stride);
            packed = packed.add(plane);
        }
        memory = memory.wrapping_offset(plane_stride);
    }
}
