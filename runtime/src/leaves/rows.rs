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
