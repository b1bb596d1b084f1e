//! Tiles whose columns are neighbours: a matrix of 4, 8 or 16-byte elements sent by columns.
//!
//! A square of one line of columns by as many rows is loaded by lines of one side, transposed in registers and stored by lines of
//! the other, so that each line of either side is touched once and whole. Squares follow each other in the order of what is written.
//! Prefetching squares did not help at any distance.

use core::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_storeu_si512,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::{columns, strip};
use crate::block::{Block, LINE};
use crate::nest::direction;
use dtc_compiler::plan::strategy::writes_rows_first;

/// Moves a nest of elements of 4, 8 or 16 bytes whose outer stride is the element size.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn), on a CPU of [`Level::Avx512`](crate::Level::Avx512).
#[inline(always)]
pub(crate) unsafe fn elements<B: Block, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    outer: usize,
    inner: usize,
    inner_stride: isize,
    block: B,
    pitch: usize,
) {
    // SAFETY: the element size is `LINE / N` in each case, and the contract of `tile` is that of this function.
    unsafe {
        match B::EXACT {
            4 => tile::<B, 16, PACK>(memory, packed, outer, inner, inner_stride, block, pitch),
            8 => tile::<B, 8, PACK>(memory, packed, outer, inner, inner_stride, block, pitch),
            _ => tile::<B, 4, PACK>(memory, packed, outer, inner, inner_stride, block, pitch),
        }
    }
}

/// Moves a nest whose outer stride is the element size, in squares of `N` by `N` elements of `LINE / N` bytes.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn), on a CPU of [`Level::Avx512`](crate::Level::Avx512).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn tile<B: Block, const N: usize, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    outer: usize,
    inner: usize,
    inner_stride: isize,
    block: B,
    pitch: usize,
) {
    let bytes = LINE / N;
    let squares = inner / N;
    // Squares are aligned to lines of `memory` if all rows agree on where these begin.
    let mut first = 0;
    let lead = columns(memory, bytes as isize).0;
    // SAFETY: squares and strips cover each element of the nest once; the caller guarantees all of them.
    unsafe {
        if lead < N && inner_stride % LINE as isize == 0 && (memory as usize).is_multiple_of(bytes) {
            first = lead.min(outer);
            strip::<B, PACK>(memory, packed, 0..first, bytes as isize, 0..inner, inner_stride, block, pitch);
        }
        let strips = (outer - first) / N;
        let (line, dense) = (memory.wrapping_add(first * bytes), packed.wrapping_add(first * pitch));
        // Distances from square to square, in memory and among the packed bytes.
        let along_planes = (LINE as isize, N * pitch);
        let along_rows = (inner_stride.wrapping_mul(N as isize), LINE);
        let [(outside, far), (inside, near)] = if writes_rows_first(direction::<PACK>(), outer, inner_stride, bytes) {
            [(squares, along_rows), (strips, along_planes)]
        } else {
            [(strips, along_planes), (squares, along_rows)]
        };
        for index in 0..outside {
            let mut line = line.wrapping_offset(far.0.wrapping_mul(index as isize));
            let mut dense = dense.wrapping_add(far.1 * index);
            for _ in 0..inside {
                if PACK {
                    square::<N>(dense, pitch as isize, line, inner_stride);
                } else {
                    square::<N>(line, inner_stride, dense, pitch as isize);
                }
                line = line.wrapping_offset(near.0);
                dense = dense.wrapping_add(near.1);
            }
        }
        let last = first + strips * N;
        let below = squares * N..inner;
        strip::<B, PACK>(memory, packed, first..last, bytes as isize, below, inner_stride, block, pitch);
        strip::<B, PACK>(memory, packed, last..outer, bytes as isize, 0..inner, inner_stride, block, pitch);
    }
}

/// Transposes one square between lines at two strides.
///
/// # Safety
///
/// All `N` lines are readable at the source and writable at the destination, and the two do not overlap.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn square<const N: usize>(
    destination: *mut u8,
    destination_stride: isize,
    source: *const u8,
    source_stride: isize,
) {
    let mut lines = [_mm512_setzero_si512(); N];
    for (row, line) in lines.iter_mut().enumerate() {
        // SAFETY: all `N` lines are readable at multiples of `source_stride` (contract of `square`), and `row` is less than `N`.
        *line = unsafe { _mm512_loadu_si512(source.wrapping_offset(source_stride.wrapping_mul(row as isize)).cast()) };
    }
    // Interleave pairs of rows, then pairs of pairs, until each quarter of a vector holds neighbours of one column.
    if N == 16 {
        let rows = lines;
        for pair in 0..8 {
            lines[pair] = _mm512_unpacklo_epi32(rows[2 * pair], rows[2 * pair + 1]);
            lines[pair + 8] = _mm512_unpackhi_epi32(rows[2 * pair], rows[2 * pair + 1]);
        }
    }
    if N >= 8 {
        for half in 0..N / 8 {
            let rows: [__m512i; 8] = core::array::from_fn(|row| lines[8 * half + row]);
            for pair in 0..4 {
                lines[8 * half + pair] = _mm512_unpacklo_epi64(rows[2 * pair], rows[2 * pair + 1]);
                lines[8 * half + pair + 4] = _mm512_unpackhi_epi64(rows[2 * pair], rows[2 * pair + 1]);
            }
        }
    }
    for group in lines.chunks_exact_mut(4) {
        let low = _mm512_shuffle_i64x2::<0x44>(group[0], group[1]);
        let high = _mm512_shuffle_i64x2::<0xee>(group[0], group[1]);
        let next_low = _mm512_shuffle_i64x2::<0x44>(group[2], group[3]);
        let next_high = _mm512_shuffle_i64x2::<0xee>(group[2], group[3]);
        group[0] = _mm512_shuffle_i64x2::<0x88>(low, next_low);
        group[1] = _mm512_shuffle_i64x2::<0xdd>(low, next_low);
        group[2] = _mm512_shuffle_i64x2::<0x88>(high, next_high);
        group[3] = _mm512_shuffle_i64x2::<0xdd>(high, next_high);
    }
    for (place, line) in lines.iter().enumerate() {
        let column = place % 4 * (N / 4) + place / 4;
        // SAFETY: all `N` lines are writable at multiples of `destination_stride` (contract of `square`), and `column` is less
        // than `N`.
        unsafe {
            _mm512_storeu_si512(
                destination.wrapping_offset(destination_stride.wrapping_mul(column as isize)).cast(),
                *line,
            )
        };
    }
}
