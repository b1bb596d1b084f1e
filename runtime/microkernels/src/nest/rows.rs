//! Rows one after the other.

use crate::block::{Block, LINE, Library, transfer};
use dtc_compiler::plan::strategy::{Nest, Prefetch, RowLoop};

/// Prefetches the line at an address, wherever it is: a prefetch neither reads into a register nor faults.
#[inline(always)]
pub(crate) fn prefetch(address: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction has no effect on memory or registers, for any address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The loop of [`PlanesFn`](crate::PlanesFn).
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn).
#[inline(always)]
pub(crate) unsafe fn planes<B: Block, const PACK: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    block: B,
    nest: &Nest,
    how: RowLoop,
) {
    for _ in 0..nest.planes {
        // SAFETY: the contract of `PlanesFn` covers the `nest.rows` rows of every plane, and `packed` advances by their bytes.
        unsafe {
            rows::<B, PACK>(memory, packed, nest.rows, block, nest.stride, how);
            packed = packed.add(nest.rows * block.bytes());
        }
        memory = memory.wrapping_offset(nest.plane_stride);
    }
}

/// The loop of [`RowsFn`](crate::RowsFn).
///
/// # Safety
///
/// The contract of [`RowsFn`](crate::RowsFn).
#[inline(always)]
pub(crate) unsafe fn rows<B: Block, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    rows: usize,
    block: B,
    stride: isize,
    how: RowLoop,
) {
    // SAFETY: each of these loops has the contract of this function, and moves the same rows; `Library` copies blocks of any
    // length.
    unsafe {
        match how.prefetch {
            _ if B::LONG && how.library => {
                long::<_, PACK, false>(memory, packed, rows, Library::new(block.bytes()), stride);
            }
            Prefetch::NextRow if B::LONG && !PACK => long::<B, PACK, true>(memory, packed, rows, block, stride),
            _ if B::LONG => long::<B, PACK, false>(memory, packed, rows, block, stride),
            Prefetch::Ahead(ahead) if !PACK => short::<B, PACK, true>(memory, packed, rows, block, stride, ahead),
            #[cfg(target_arch = "x86_64")]
            _ if how.unrolled == 1 => single::<B, PACK>(memory, packed, rows, block, stride),
            _ => short::<B, PACK, false>(memory, packed, rows, block, stride, 0),
        }
    }
}

/// Short rows, one per iteration: the compiler would unroll a loop whose number of iterations it knows.
///
/// # Safety
///
/// The contract of [`RowsFn`](crate::RowsFn).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn single<B: Block, const PACK: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    mut rows: usize,
    block: B,
    stride: isize,
) {
    while rows > 0 {
        // SAFETY: `rows` rows are left, and the contract of `RowsFn` covers each. `memory` may step outside after the last row,
        // hence the wrapping arithmetic.
        unsafe {
            transfer::<B, PACK>(block, memory, packed);
            packed = packed.add(block.bytes());
        }
        memory = memory.wrapping_offset(stride);
        rows = crate::block::opaque(rows as isize - 1) as usize;
    }
}

/// Short rows, four per iteration; where `PREFETCH`, the lines `ahead` bytes further are prefetched.
///
/// # Safety
///
/// The contract of [`RowsFn`](crate::RowsFn).
#[inline(always)]
unsafe fn short<B: Block, const PACK: bool, const PREFETCH: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    mut rows: usize,
    block: B,
    stride: isize,
    ahead: isize,
) {
    let bytes = block.bytes();
    // SAFETY: `rows` rows are left, and the contract of `RowsFn` covers each. `memory` may step outside after the last row, hence
    // the wrapping arithmetic.
    unsafe {
        while rows >= 4 {
            let four = [0, 1, 2, 3].map(|row| memory.wrapping_offset(stride.wrapping_mul(row)));
            if PREFETCH {
                prefetch(four[0].wrapping_offset(ahead));
                prefetch(four[1].wrapping_offset(ahead));
                prefetch(four[2].wrapping_offset(ahead));
                prefetch(four[3].wrapping_offset(ahead));
            }
            transfer::<B, PACK>(block, four[0], packed);
            transfer::<B, PACK>(block, four[1], packed.add(bytes));
            transfer::<B, PACK>(block, four[2], packed.add(2 * bytes));
            transfer::<B, PACK>(block, four[3], packed.add(3 * bytes));
            memory = memory.wrapping_offset(stride.wrapping_mul(4));
            packed = packed.add(4 * bytes);
            rows -= 4;
        }
        while rows > 0 {
            if PREFETCH {
                prefetch(memory.wrapping_offset(ahead));
            }
            transfer::<B, PACK>(block, memory, packed);
            memory = memory.wrapping_offset(stride);
            packed = packed.add(bytes);
            rows -= 1;
        }
    }
}

/// Long rows, one per iteration: unrolling the loop around them gains nothing. With `NEXT_ROW`, the lines of the next row are
/// prefetched, since hardware prefetchers cannot predict that row and its stores wait for their lines. Measured: unpacks are 10 %
/// faster.
///
/// # Safety
///
/// The contract of [`RowsFn`](crate::RowsFn).
#[inline(always)]
unsafe fn long<B: Block, const PACK: bool, const NEXT_ROW: bool>(
    mut memory: *mut u8,
    packed: *mut u8,
    rows: usize,
    block: B,
    stride: isize,
) {
    let bytes = block.bytes();
    for row in 0..rows {
        let next = memory.wrapping_offset(stride);
        if NEXT_ROW {
            for part in (0..bytes).step_by(LINE) {
                prefetch(next.wrapping_add(part));
            }
        }
        // SAFETY: the contract of `RowsFn` covers row `row`, which is at `memory` and at `packed + row * bytes`.
        unsafe { transfer::<B, PACK>(block, memory, packed.add(row * bytes)) };
        memory = next;
    }
}
