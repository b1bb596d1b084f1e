//! The square of vectors of 32 bytes that larger transposes are made of.

use core::arch::x86_64::{
    _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_unpackhi_epi32,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use crate::block::LINE;

/// Bytes of a vector of AVX2.
pub(super) const HALF: usize = LINE / 2;

/// Transposes a square of `N / 2` elements of `LINE / N` bytes.
///
/// # Safety
///
/// `N / 2` half lines are readable at the source and writable at the destination, the two do not overlap, and the CPU has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn quarter<const N: usize>(
    destination: *mut u8,
    destination_stride: isize,
    source: *const u8,
    source_stride: isize,
) {
    let side = N / 2;
    let mut lines = [_mm256_setzero_si256(); 8];
    for (row, line) in lines.iter_mut().enumerate().take(side) {
        // SAFETY: `side` half lines are readable at multiples of `source_stride` (contract of `quarter`).
        *line = unsafe { _mm256_loadu_si256(source.wrapping_offset(source_stride.wrapping_mul(row as isize)).cast()) };
    }
    // As in `square`, until each half of a vector holds neighbours of one column.
    if side == 8 {
        let rows = lines;
        for pair in 0..4 {
            lines[pair] = _mm256_unpacklo_epi32(rows[2 * pair], rows[2 * pair + 1]);
            lines[pair + 4] = _mm256_unpackhi_epi32(rows[2 * pair], rows[2 * pair + 1]);
        }
    }
    if side >= 4 {
        let rows = lines;
        for first in (0..side).step_by(4) {
            for pair in 0..2 {
                let (upper, lower) = (rows[first + 2 * pair], rows[first + 2 * pair + 1]);
                lines[first + pair] = _mm256_unpacklo_epi64(upper, lower);
                lines[first + pair + 2] = _mm256_unpackhi_epi64(upper, lower);
            }
        }
    }
    for column in 0..side / 2 {
        let (upper, lower) = (lines[2 * column], lines[2 * column + 1]);
        let near = _mm256_permute2x128_si256::<0x20>(upper, lower);
        let far = _mm256_permute2x128_si256::<0x31>(upper, lower);
        for (column, line) in [(column, near), (column + side / 2, far)] {
            let at = destination_stride.wrapping_mul(column as isize);
            // SAFETY: `side` half lines are writable at multiples of `destination_stride` (contract of `quarter`), and `column` is
            // less than `side`.
            unsafe { _mm256_storeu_si256(destination.wrapping_offset(at).cast(), line) };
        }
    }
}
