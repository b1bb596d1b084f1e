//! Packs of rows of 8 and 16 bytes at one stride, two rows to a store.
//!
//! Single rows are bound by two stores a cycle, and a gather loads two rows a cycle. Pairs are bound by three loads a cycle.
//! Measured times, as parts of the time of single rows: 256 rows in the first-level cache take 0.77 in pairs and 0.98 by gathers;
//! 10,000 rows in the second level take 0.85 and 0.93; 13,824 rows of 16 bytes take 0.96 in pairs.
//!
//! A load that fills the upper half of a register is one operation of the processor in the SSE encoding, and two with AVX where
//! its address has an index. 256 rows at a stride that is not a constant take 15 % less time in the SSE encoding (measured), so
//! pairs of 8 bytes for one nest are compiled in it.

use core::arch::x86_64::{
    _mm_loadh_pd, _mm_loadl_pd, _mm_loadu_si128, _mm_setzero_pd, _mm_storeu_pd, _mm256_set_m128i, _mm256_storeu_si256,
};

use super::few::RowOffsets;
use super::rows;
use crate::block::Block;
use dtc_compiler::plan::strategy::{FEW_ROWS, Nest, RowLoop};

/// Packs planes of rows of 8 or 16 bytes.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn) in a pack.
#[inline(always)]
pub(super) unsafe fn planes<B: Block>(memory: *mut u8, mut packed: *mut u8, block: B, nest: &Nest) {
    if nest.planes > 1 && (2..=FEW_ROWS).contains(&nest.rows) {
        // SAFETY: as this function's; a plane has 2 to `FEW_ROWS` rows.
        return unsafe { few(memory, packed, block, nest) };
    }
    let (mut plane, stride) = (memory, nest.stride);
    for _ in 0..nest.planes {
        let (mut memory, mut left) = (plane, nest.rows);
        plane = plane.wrapping_offset(nest.plane_stride);
        // SAFETY: the contract of `PlanesFn` covers every row, and each step moves rows that are left. `memory` may step outside
        // after the last row, hence the wrapping arithmetic.
        unsafe {
            while B::EXACT == 8 && left >= 8 {
                fours::<B, 2>(memory, packed, stride);
                memory = memory.wrapping_offset(stride.wrapping_mul(8));
                packed = packed.add(8 * B::EXACT);
                left -= 8;
            }
            while left >= 4 {
                fours::<B, 1>(memory, packed, stride);
                memory = memory.wrapping_offset(stride.wrapping_mul(4));
                packed = packed.add(4 * B::EXACT);
                left -= 4;
            }
            if left > 0 {
                rows::rows::<B, true>(memory, packed, left, block, stride, RowLoop::PLAIN);
                packed = packed.add(left * B::EXACT);
            }
        }
    }
}

/// Packs planes of 2 to [`FEW_ROWS`] rows of 8 or 16 bytes, two rows to a store.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn) in a pack, on a CPU with AVX for rows of 16 bytes; a plane has 2 to [`FEW_ROWS`] rows.
#[inline(always)]
unsafe fn few<B: Block>(memory: *mut u8, packed: *mut u8, block: B, nest: &Nest) {
    // SAFETY: as this function's, with the number of rows compiled in.
    unsafe {
        match nest.rows {
            2 => few_of::<B, 2>(memory, packed, block, nest),
            3 => few_of::<B, 3>(memory, packed, block, nest),
            4 => few_of::<B, 4>(memory, packed, block, nest),
            5 => few_of::<B, 5>(memory, packed, block, nest),
            6 => few_of::<B, 6>(memory, packed, block, nest),
            7 => few_of::<B, 7>(memory, packed, block, nest),
            _ => few_of::<B, 8>(memory, packed, block, nest),
        }
    }
}

/// Packs planes of `ROWS` rows of 8 or 16 bytes, two rows to a store.
///
/// # Safety
///
/// As for [`few`], and a plane has `ROWS` rows.
#[inline(always)]
unsafe fn few_of<B: Block, const ROWS: usize>(mut memory: *mut u8, mut packed: *mut u8, block: B, nest: &Nest) {
    let rows = RowOffsets::new(nest.stride);
    for _ in 0..nest.planes {
        let places = rows.of::<ROWS>(memory);
        let mut row = 0;
        // SAFETY: the contract of `PlanesFn` covers the `ROWS` rows of every plane, and `packed` advances by their bytes.
        unsafe {
            while row + 2 <= ROWS {
                pair::<B>(packed.add(row * B::EXACT), places[row], places[row + 1]);
                row += 2;
            }
            if row < ROWS {
                block.copy(packed.add(row * B::EXACT), places[row]);
            }
        }
        memory = memory.wrapping_offset(nest.plane_stride);
        packed = packed.wrapping_add(ROWS * B::EXACT);
    }
}

/// Packs `4 * N` rows.
///
/// # Safety
///
/// They are readable, and as many bytes are writable.
#[inline(always)]
unsafe fn fours<B: Block, const N: usize>(memory: *mut u8, packed: *mut u8, stride: isize) {
    let mut four = 0;
    while four < N {
        let memory = memory.wrapping_offset(stride.wrapping_mul(4 * four as isize));
        let rows = [0, 1, 2, 3].map(|row| memory.wrapping_offset(stride.wrapping_mul(row)));
        // SAFETY: `four` is less than `N`, so the rows are among the `4 * N` readable ones, and as many bytes are writable
        // (contract of `fours`).
        unsafe {
            let packed = packed.add(4 * B::EXACT * four);
            pair::<B>(packed, rows[0], rows[1]);
            pair::<B>(packed.add(2 * B::EXACT), rows[2], rows[3]);
        }
        four += 1;
    }
}

/// Packs two rows.
///
/// # Safety
///
/// Both are readable, and as many bytes are writable.
#[inline(always)]
pub(super) unsafe fn pair<B: Block>(packed: *mut u8, first: *const u8, second: *const u8) {
    // SAFETY: both rows are readable, and `packed` is writable for as many bytes (contract of `pair`). The strategy chooses pairs
    // of 16 bytes only for CPUs with AVX.
    unsafe {
        if B::EXACT == 8 {
            let first = _mm_loadl_pd(_mm_setzero_pd(), first.cast());
            _mm_storeu_pd(packed.cast(), _mm_loadh_pd(first, second.cast()));
        } else {
            wide_pair(packed, first, second);
        }
    }
}

/// Packs two rows of 16 bytes.
///
/// # Safety
///
/// As for [`pair`], on a CPU with AVX.
#[target_feature(enable = "avx")]
#[inline]
unsafe fn wide_pair(packed: *mut u8, first: *const u8, second: *const u8) {
    // SAFETY: both rows are readable for 16 bytes, and `packed` is writable for 32 (contract of `pair`). The assembly has no
    // instruction.
    unsafe {
        let mut both = _mm256_set_m128i(_mm_loadu_si128(second.cast()), _mm_loadu_si128(first.cast()));
        // No instruction: the compiler would store the halves one by one, which is what pairs avoid.
        core::arch::asm!("/* {} */", inout(ymm_reg) both, options(pure, nomem, nostack, preserves_flags));
        _mm256_storeu_si256(packed.cast(), both);
    }
}
