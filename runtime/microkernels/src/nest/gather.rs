//! Packs of listed blocks of 4 and 8 bytes, and of rows of 4 bytes far apart, a vector at a time.
//!
//! Single blocks are bound by their stores. A gather loads a whole vector of them for one store: measured a third faster in the
//! first-level cache, and a tenth in the second. Beyond that, gathers are a tenth faster for listed blocks, and slower for rows.
//! Rows of 8 bytes are faster in [`pairs`](super::pairs).

use core::arch::x86_64::{
    __m512i, _mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_i32gather_epi32,
    _mm512_i32gather_epi64, _mm512_mullo_epi32, _mm512_set1_epi32, _mm512_setr_epi32, _mm512_storeu_si512,
};

use super::rows;
use crate::block::{Block, LINE};
use dtc_compiler::plan::strategy::{Nest, RowLoop};

/// Blocks in a vector; 0 if there is no gather for blocks of this size.
const fn lanes(bytes: usize) -> usize {
    match bytes {
        4 | 8 => LINE / bytes,
        _ => 0,
    }
}

/// Packs blocks of 4 or 8 bytes at listed offsets, at least a vector of them.
///
/// # Safety
///
/// The contract of [`List32Fn`](crate::List32Fn), and the features of [`Level::Avx512`](crate::Level::Avx512).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
pub(crate) unsafe fn list<B: Block>(memory: *mut u8, packed: *mut u8, offsets: *const i32, count: usize) {
    let lanes = const { lanes(B::EXACT) };
    let mut done = 0;
    // SAFETY: `done + lanes <= count`, so the table has the offsets, and the block at each is readable (contract of `List32Fn`).
    // The last vector may pack blocks again that the one before has packed.
    unsafe {
        loop {
            let (offsets, packed) = (offsets.add(done), packed.add(done * B::EXACT));
            if B::EXACT == 4 {
                // Halves: up to a tenth faster than a whole vector.
                let low = _mm256_i32gather_epi32::<1>(memory.cast(), _mm256_loadu_si256(offsets.cast()));
                let high = _mm256_i32gather_epi32::<1>(memory.cast(), _mm256_loadu_si256(offsets.add(8).cast()));
                _mm256_storeu_si256(packed.cast(), low);
                _mm256_storeu_si256(packed.add(LINE / 2).cast(), high);
            } else {
                let blocks = _mm512_i32gather_epi64::<1>(_mm256_loadu_si256(offsets.cast()), memory.cast());
                _mm512_storeu_si512(packed.cast(), blocks);
            }
            if done == count - lanes {
                break;
            }
            done = (done + lanes).min(count - lanes);
        }
    }
}

/// Packs planes of at least a vector of rows of 4 bytes.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn) in a pack, and the features of [`Level::Avx512`](crate::Level::Avx512). Sixteen
/// strides fit 32 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
pub(super) unsafe fn planes<B: Block>(memory: *mut u8, mut packed: *mut u8, block: B, nest: &Nest) {
    let Nest { planes, plane_stride, rows, stride, .. } = *nest;
    let lanes = const { lanes(4) };
    let numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let places: __m512i = _mm512_mullo_epi32(numbers, _mm512_set1_epi32(stride as i32));
    let (vectors, left) = (rows / lanes, rows % lanes);
    let step = stride.wrapping_mul(lanes as isize);
    let mut plane = memory;
    for _ in 0..planes {
        let mut memory = plane;
        plane = plane.wrapping_offset(plane_stride);
        // SAFETY: `vectors * lanes + left` is `rows`, each of which the contract of `PlanesFn` covers. `memory` may step outside
        // after the last row, hence the wrapping arithmetic.
        unsafe {
            for _ in 0..vectors {
                _mm512_storeu_si512(packed.cast(), _mm512_i32gather_epi32::<1>(places, memory.cast()));
                memory = memory.wrapping_offset(step);
                packed = packed.add(LINE);
            }
            if left > 0 {
                rows::rows::<B, true>(memory, packed, left, block, stride, RowLoop::PLAIN);
                packed = packed.add(left * B::EXACT);
            }
        }
    }
}
