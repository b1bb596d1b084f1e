//! Packs of rows of 8 and 16 bytes at one stride, two rows to a store; and rows of 8 bytes by the sixteen, both ways.
//!
//! Moved one by one, such rows are bound by two stores a cycle, and a gather loads two rows a cycle. Pairs are bound by three loads
//! a cycle: 256 rows in the first-level cache take 50 ns, where single ones take 65 and gathers 64. Of 10,000 rows in the second
//! level pairs take 0.85 of the time of single ones, and gathers 0.93; of 13,824 rows of 16 bytes 0.96.
//!
//! A load that fills the upper half of a register is one operation of the processor in the encoding without AVX, and two with it
//! where its address has an index: 256 rows at a stride that is not a constant take 45 ns and 53. So pairs of 8 bytes for one nest
//! are compiled without AVX.

use core::arch::x86_64::{
    _mm_loadh_pd, _mm_loadl_pd, _mm_loadu_si128, _mm_setzero_pd, _mm_storeu_pd, _mm256_set_m128i, _mm256_storeu_si256,
};

use super::block::{Block, Exact, opaque};
use super::rows;
use core::ptr::copy_nonoverlapping;
use std::hint::select_unpredictable;

/// Packs planes of rows and says `true` if pairs serve.
///
/// # Safety
///
/// The contract of [`PlanesFn`](super::PlanesFn) in a pack.
#[inline(always)]
pub(super) unsafe fn try_planes<B: Block>(
    memory: *mut u8,
    packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    block: B,
    stride: isize,
) -> bool {
    if !matches!(B::EXACT, 8 | 16) || rows < 4 {
        return false;
    }
    // SAFETY: the caller's guarantee.
    unsafe { self::planes(memory, packed, planes, plane_stride, rows, block, stride) };
    true
}

/// Packs planes of rows of 8 or 16 bytes.
///
/// # Safety
///
/// The contract of [`PlanesFn`](super::PlanesFn) in a pack.
#[inline(always)]
pub(super) unsafe fn planes<B: Block>(
    memory: *mut u8,
    mut packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    block: B,
    stride: isize,
) {
    let mut plane = memory;
    for _ in 0..planes {
        let (mut memory, mut left) = (plane, rows);
        plane = plane.wrapping_offset(plane_stride);
        // SAFETY: the caller guarantees each row; `memory` may step outside after the last.
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
                rows::rows::<B, true>(memory, packed, left, block, stride);
                packed = packed.add(left * B::EXACT);
            }
        }
    }
}

/// Moves planes of a multiple of sixteen rows of 8 bytes in one loop: a loop over each plane would cost as much as its words.
///
/// # Safety
///
/// The contract of [`PlanesFn`](super::PlanesFn).
#[inline(always)]
pub(super) unsafe fn sixteens<const PACK: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    stride: isize,
) {
    let in_plane = rows / 16;
    let multiples = [3, 5, 7].map(|rows| opaque(stride.wrapping_mul(rows)));
    let within = stride.wrapping_mul(16);
    let to_next = plane_stride.wrapping_sub(stride.wrapping_mul(rows as isize - 16));
    let mut left = in_plane;
    for _ in 0..planes * in_plane {
        // SAFETY: the caller guarantees each row; `memory` may step outside after the last.
        unsafe {
            eight::<PACK>(memory, packed, stride, multiples);
            eight::<PACK>(memory.wrapping_offset(stride.wrapping_mul(8)), packed.add(64), stride, multiples);
        }
        packed = packed.wrapping_add(128);
        // Without a branch, which would be wrong at each end of a plane.
        left -= 1;
        let is_last = left == 0;
        left = select_unpredictable(is_last, in_plane, left);
        memory = memory.wrapping_offset(select_unpredictable(is_last, to_next, within));
    }
}

/// Moves eight rows of 8 bytes. `multiples` are three, five and seven strides.
///
/// # Safety
///
/// They are readable, and as many bytes are writable.
#[inline(always)]
unsafe fn eight<const PACK: bool>(memory: *mut u8, packed: *mut u8, stride: isize, multiples: [isize; 3]) {
    let [third, fifth, seventh] = multiples;
    let (second, fourth, sixth) = (stride.wrapping_mul(2), stride.wrapping_mul(4), third.wrapping_mul(2));
    let rows = [0, stride, second, third, fourth, fifth, sixth, seventh].map(|offset| memory.wrapping_offset(offset));
    // SAFETY: the caller's guarantee.
    unsafe {
        if PACK {
            pair::<Exact<8>>(packed, rows[0], rows[1]);
            pair::<Exact<8>>(packed.add(16), rows[2], rows[3]);
            pair::<Exact<8>>(packed.add(32), rows[4], rows[5]);
            pair::<Exact<8>>(packed.add(48), rows[6], rows[7]);
        } else {
            for (place, row) in rows.into_iter().enumerate() {
                copy_nonoverlapping(packed.add(8 * place), row, 8);
            }
        }
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
        // SAFETY: the caller's guarantee.
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
unsafe fn pair<B: Block>(packed: *mut u8, first: *const u8, second: *const u8) {
    // SAFETY: the caller's guarantee.
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
    // SAFETY: the caller's guarantee.
    unsafe {
        let mut both = _mm256_set_m128i(_mm_loadu_si128(second.cast()), _mm_loadu_si128(first.cast()));
        // No instruction: the compiler would store the halves one by one, which is what pairs avoid.
        core::arch::asm!("/* {} */", inout(ymm_reg) both, options(pure, nomem, nostack, preserves_flags));
        _mm256_storeu_si256(packed.cast(), both);
    }
}
