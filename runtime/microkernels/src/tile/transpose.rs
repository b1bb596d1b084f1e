//! Tiles whose columns are neighbours: a matrix of elements of a power of two of bytes sent by columns.
//!
//! A square of one line of columns by as many rows is loaded by lines of one side, transposed in registers and stored by lines of
//! the other, so that each line of either side is touched once and whole. With AVX2, vectors hold half a line, and a square is
//! transposed by quarters. Squares follow each other in the order of what is written. Prefetching squares did not help at any
//! distance.

use core::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_storeu_si512,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::quarter::{HALF, quarter};
use super::rectangle::{self, Columns};
use super::{TileShape, columns};
use crate::block::{Block, LINE, transfer};
use crate::direction::direction;
use core::ops::Range;
use dtc_compiler::plan::strategy::{Level, writes_rows_first};

/// Moves a nest of elements of 1, 2, 4, 8 or 16 bytes whose outer stride is the element size.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn), on a CPU of the level, which is at least [`Level::Avx2`].
#[inline(always)]
pub(crate) unsafe fn elements<B: Block, const PACK: bool>(
    level: Level,
    memory: *mut u8,
    packed: *mut u8,
    block: B,
    shape: TileShape,
) {
    // SAFETY: the element size is `LINE / N` in each case of squares. `WIDE` holds for levels with AVX-512 alone, and all others have AVX2
    // (contract of `elements`). The contract of `tile` is otherwise that of this function.
    unsafe {
        match (B::EXACT, level >= Level::Avx512) {
            (1 | 2, _) => rest::<B, PACK>(level, memory, packed, block, shape, (0..shape.outer, 0..shape.inner)),
            (4, true) => tile::<B, 16, true, PACK>(level, memory, packed, block, shape),
            (8, true) => tile::<B, 8, true, PACK>(level, memory, packed, block, shape),
            (_, true) => tile::<B, 4, true, PACK>(level, memory, packed, block, shape),
            (4, false) => tile::<B, 16, false, PACK>(level, memory, packed, block, shape),
            (8, false) => tile::<B, 8, false, PACK>(level, memory, packed, block, shape),
            (_, false) => tile::<B, 4, false, PACK>(level, memory, packed, block, shape),
        }
    }
}

/// Moves a nest whose outer stride is the element size, in squares of `N` by `N` elements of `LINE / N` bytes.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn), on a CPU of [`Level::Avx512`] where `WIDE`, and with AVX2.
#[inline(always)]
unsafe fn tile<B: Block, const N: usize, const WIDE: bool, const PACK: bool>(
    level: Level,
    memory: *mut u8,
    packed: *mut u8,
    block: B,
    shape: TileShape,
) {
    let TileShape { outer, inner, inner_stride, pitch, .. } = shape;
    let bytes = LINE / N;
    let squares = inner / N;
    // Squares are aligned to lines of `memory` if all rows agree on where these begin.
    let mut first = 0;
    let lead = columns(memory, bytes as isize).0;
    // SAFETY: squares and strips cover each element of the nest once; the caller guarantees all of them.
    unsafe {
        if lead < N && inner_stride % LINE as isize == 0 && (memory as usize).is_multiple_of(bytes) {
            first = lead.min(outer);
            rest::<B, PACK>(level, memory, packed, block, shape, (0..first, 0..inner));
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
                let (memory, packed) = ((line, inner_stride), (dense, pitch as isize));
                let (to, from) = if PACK { (packed, memory) } else { (memory, packed) };
                if WIDE {
                    square::<N>(to.0, to.1, from.0, from.1);
                } else {
                    quarters::<N>(to.0, to.1, from.0, from.1);
                }
                line = line.wrapping_offset(near.0);
                dense = dense.wrapping_add(near.1);
            }
        }
        let last = first + strips * N;
        let below = squares * N..inner;
        rest::<B, PACK>(level, memory, packed, block, shape, (first..last, below));
        rest::<B, PACK>(level, memory, packed, block, shape, (last..outer, 0..inner));
    }
}

/// Moves rows of neighbouring columns that fill no square.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn) for the elements in these ranges, on a CPU with AVX2.
#[inline(always)]
unsafe fn rest<B: Block, const PACK: bool>(
    level: Level,
    memory: *mut u8,
    packed: *mut u8,
    block: B,
    shape: TileShape,
    (columns, rows): (Range<usize>, Range<usize>),
) {
    let TileShape { inner_stride, pitch, .. } = shape;
    let (columns_left, rows_left) = (columns.len(), rows.len());
    if columns_left == 0 || rows_left == 0 {
        return;
    }
    let memory =
        memory.wrapping_add(columns.start * B::EXACT).wrapping_offset(inner_stride.wrapping_mul(rows.start as isize));
    // SAFETY: as this function's; the first element in the ranges is at `memory` and at `packed`.
    unsafe {
        let packed = packed.add(columns.start * pitch + rows.start * B::EXACT);
        if columns_left == 1 {
            return line::<B, PACK>(memory, inner_stride, packed, B::EXACT, rows_left, block);
        }
        if rows_left == 1 {
            return line::<B, PACK>(memory, B::EXACT as isize, packed, pitch, columns_left, block);
        }
        let nest = Columns { columns: columns_left, rows: rows_left, stride: inner_stride, pitch };
        rectangle::elements::<PACK>(level, B::EXACT, memory, packed, &nest);
    }
}

/// Moves one row or one column, four elements at a time.
///
/// # Safety
///
/// `count` elements at multiples of `stride` in memory and of `pitch` among the packed bytes are valid, as in the contract of
/// [`TileFn`](crate::TileFn).
#[inline(always)]
unsafe fn line<B: Block, const PACK: bool>(
    mut memory: *mut u8,
    stride: isize,
    mut packed: *mut u8,
    pitch: usize,
    mut count: usize,
    block: B,
) {
    while count >= 4 {
        let places = [0, 1, 2, 3].map(|at| memory.wrapping_offset(stride.wrapping_mul(at)));
        let dense = [0, 1, 2, 3].map(|at| packed.wrapping_add(pitch * at));
        // SAFETY: four elements are left, and each is valid on both sides (contract of `line`).
        unsafe {
            if PACK {
                block.copy_all(dense, places.map(<*mut u8>::cast_const));
            } else {
                block.copy_all(places, dense.map(<*mut u8>::cast_const));
            }
        }
        memory = memory.wrapping_offset(stride.wrapping_mul(4));
        packed = packed.wrapping_add(4 * pitch);
        count -= 4;
    }
    for _ in 0..count {
        // SAFETY: `count` elements are left, and each is valid on both sides (contract of `line`).
        unsafe { transfer::<B, PACK>(block, memory, packed) };
        memory = memory.wrapping_offset(stride);
        packed = packed.wrapping_add(pitch);
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

/// Transposes one square between lines at two strides, a quarter at a time: vectors hold half a line.
///
/// # Safety
///
/// As for [`square`], on a CPU with AVX2.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn quarters<const N: usize>(
    destination: *mut u8,
    destination_stride: isize,
    source: *const u8,
    source_stride: isize,
) {
    let rows = (N / 2) as isize;
    for (right, below) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let source = source.wrapping_offset(source_stride.wrapping_mul(below * rows)).wrapping_add(right * HALF);
        let destination = destination.wrapping_offset(destination_stride.wrapping_mul(right as isize * rows));
        // SAFETY: half of the rows begin at `source` and at `destination`, and each half line there belongs to one of the `N` lines
        // of its side (contract of `quarters`).
        unsafe {
            quarter::<N>(destination.wrapping_add(below as usize * HALF), destination_stride, source, source_stride);
        }
    }
}
