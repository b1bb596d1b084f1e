//! Transposes of any number of rows and columns, in rectangles whose rows and columns fit vectors of 16 bytes.
//!
//! A rectangle has a power of two of rows and of columns. Its rows are read into vectors; interleaving the first half of the vectors with
//! the second, element by element, moves the highest bit of the row number below the bits of the column, so that as many
//! interleavings as the row number has bits leave the columns one after the other. What a power of two leaves over at the end of rows
//! or columns is covered by a rectangle that overlaps the one before: both move the same bytes to the same places.

use core::arch::x86_64::{
    __m128i, _mm_castsi128_pd, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128, _mm_setzero_si128, _mm_storeh_pd,
    _mm_storel_epi64, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
    _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
};

use super::interleave::{self, Arrays};
use super::quarter::{HALF, quarter};
use crate::block::LINE;
use dtc_compiler::plan::strategy::Level;

/// Bytes of a vector.
const VECTOR: usize = 16;

/// Most rows of a rectangle: a vector of single bytes.
const MOST: usize = VECTOR;

/// A nest whose planes are neighbours in memory: a matrix that is sent by columns.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    /// How many columns; at least 2.
    pub(crate) columns: usize,
    /// Rows of each; at least 2.
    pub(crate) rows: usize,
    /// Distance from row to row in memory, in bytes.
    pub(crate) stride: isize,
    /// Distance from column to column in the packed bytes, in bytes.
    pub(crate) pitch: usize,
}

/// Moves a matrix of elements of 1, 2, 4, 8 or 16 bytes by columns.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn), with columns that are neighbours in memory, on a CPU with AVX2. There are two rows and two
/// columns at least.
#[inline(always)]
pub(crate) unsafe fn elements<const PACK: bool>(
    level: Level,
    bytes: usize,
    memory: *mut u8,
    packed: *mut u8,
    nest: &Columns,
) {
    let Columns { columns, rows, stride, pitch } = *nest;
    // SAFETY: as this function's; `BYTES` is the size of an element, and the numbers of rows and columns are those that `side` finds.
    // Two or three rows or columns that fill the other side without gaps are arrays of one length, on a CPU with AVX-512.
    unsafe {
        let line = LINE / bytes;
        if bytes < VECTOR && level >= Level::Avx512 && rows <= 3 && columns >= line && pitch == rows * bytes {
            let arrays = Arrays { arrays: memory, stride, length: columns, joined: packed };
            return if PACK {
                interleave::elements::<false>(rows, bytes, &arrays)
            } else {
                interleave::elements::<true>(rows, bytes, &arrays)
            };
        }
        if bytes < VECTOR
            && level >= Level::Avx512
            && columns <= 3
            && rows >= line
            && stride == (columns * bytes) as isize
        {
            let arrays = Arrays { arrays: packed, stride: pitch as isize, length: rows, joined: memory };
            return if PACK {
                interleave::elements::<true>(columns, bytes, &arrays)
            } else {
                interleave::elements::<false>(columns, bytes, &arrays)
            };
        }
        match bytes {
            16 => walk::<16, 2, 2, PACK>(memory, packed, nest),
            1 => match side(nest.rows, 1) {
                2 => of_rows::<1, 2, PACK>(memory, packed, nest),
                4 => of_rows::<1, 4, PACK>(memory, packed, nest),
                8 => of_rows::<1, 8, PACK>(memory, packed, nest),
                _ => of_rows::<1, 16, PACK>(memory, packed, nest),
            },
            2 => match side(nest.rows, 2) {
                2 => of_rows::<2, 2, PACK>(memory, packed, nest),
                4 => of_rows::<2, 4, PACK>(memory, packed, nest),
                _ => of_rows::<2, 8, PACK>(memory, packed, nest),
            },
            4 if nest.rows.min(nest.columns) >= 8 => walk::<4, 8, 8, PACK>(memory, packed, nest),
            4 => match side(nest.rows, 4) {
                2 => of_rows::<4, 2, PACK>(memory, packed, nest),
                _ => of_rows::<4, 4, PACK>(memory, packed, nest),
            },
            _ if nest.rows.min(nest.columns) >= 4 => walk::<8, 4, 4, PACK>(memory, packed, nest),
            _ => of_rows::<8, 2, PACK>(memory, packed, nest),
        }
    }
}

/// Rows or columns of a rectangle: the highest power of two of those that there are and of those that fit a vector.
#[inline(always)]
fn side(number: usize, bytes: usize) -> usize {
    let most = VECTOR / bytes;
    if number >= most { most } else { 1 << number.ilog2() }
}

/// The rectangles of `ROWS` rows, of as many columns as there are and fit.
///
/// # Safety
///
/// As for [`elements`]; `BYTES` is the size of an element, and there are `ROWS` rows at least.
#[inline(always)]
unsafe fn of_rows<const BYTES: usize, const ROWS: usize, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    nest: &Columns,
) {
    // SAFETY: as this function's; there are as many columns at least as `side` finds.
    unsafe {
        match side(nest.columns, BYTES) {
            2 => walk::<BYTES, ROWS, 2, PACK>(memory, packed, nest),
            4 if BYTES <= 4 => walk::<BYTES, ROWS, 4, PACK>(memory, packed, nest),
            8 if BYTES <= 2 => walk::<BYTES, ROWS, 8, PACK>(memory, packed, nest),
            _ if BYTES == 1 => walk::<BYTES, ROWS, 16, PACK>(memory, packed, nest),
            _ => {}
        }
    }
}

/// Moves a matrix in rectangles, all rows of the columns of a line before the next line.
///
/// # Safety
///
/// As for [`of_rows`], and there are `COLUMNS` columns at least.
#[inline(always)]
unsafe fn walk<const BYTES: usize, const ROWS: usize, const COLUMNS: usize, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    nest: &Columns,
) {
    let Columns { columns, rows, stride, pitch } = *nest;
    let (last_row, last_column) = (rows - ROWS, columns - COLUMNS);
    let mut line = 0;
    while line < columns {
        let end = (line + LINE / BYTES).min(columns);
        let mut row = 0;
        loop {
            let mut column = line;
            while column < end {
                let first = column.min(last_column);
                let memory = memory.wrapping_offset(stride.wrapping_mul(row as isize)).wrapping_add(first * BYTES);
                let packed = packed.wrapping_add(first * pitch + row * BYTES);
                // SAFETY: columns `first..first + COLUMNS` and rows `row..row + ROWS` are among those of the nest, which the contract of
                // `TileFn` covers.
                unsafe {
                    if PACK {
                        rectangle::<BYTES, ROWS, COLUMNS>(packed, pitch as isize, memory, stride);
                    } else {
                        rectangle::<BYTES, COLUMNS, ROWS>(memory, stride, packed, pitch as isize);
                    }
                }
                column += COLUMNS;
            }
            if row == last_row {
                break;
            }
            row = (row + ROWS).min(last_row);
        }
        line = end;
    }
}

/// Transposes `ROWS` rows of `COLUMNS` elements into `COLUMNS` rows of `ROWS` elements.
///
/// # Safety
///
/// `ROWS` rows of `COLUMNS` elements are readable at multiples of the stride of the source, `COLUMNS` rows of `ROWS` elements are writable
/// at multiples of that of the destination, and the two sides do not overlap. Both kinds of rows fit a vector, or are vectors of 32 bytes
/// on a CPU with AVX2.
#[inline(always)]
unsafe fn rectangle<const BYTES: usize, const ROWS: usize, const COLUMNS: usize>(
    destination: *mut u8,
    destination_stride: isize,
    source: *const u8,
    source_stride: isize,
) {
    let (long, wide) = (COLUMNS * BYTES, ROWS * BYTES);
    // SAFETY: as this function's; a quarter of a square of a line is a square of vectors of 32 bytes.
    unsafe {
        if BYTES == VECTOR {
            return quarter::<4>(destination, destination_stride, source, source_stride);
        }
        if long == HALF && BYTES == 4 {
            return quarter::<16>(destination, destination_stride, source, source_stride);
        }
        if long == HALF {
            return quarter::<8>(destination, destination_stride, source, source_stride);
        }
        let vectors = if long < VECTOR && ROWS * long > VECTOR && source_stride == long as isize {
            interleaved::<BYTES, ROWS, COLUMNS, true>(source, source_stride)
        } else {
            interleaved::<BYTES, ROWS, COLUMNS, false>(source, source_stride)
        };
        // Rows without gaps are stored by whole vectors.
        if wide < VECTOR && COLUMNS * wide >= VECTOR && destination_stride == wide as isize {
            for (at, vector) in vectors.iter().enumerate().take(COLUMNS * wide / VECTOR) {
                _mm_storeu_si128(destination.add(at * VECTOR).cast(), *vector);
            }
            return;
        }
        for column in 0..COLUMNS {
            let at = column * wide;
            let to = destination.wrapping_offset(destination_stride.wrapping_mul(column as isize));
            store(to, vectors[at / VECTOR], at % VECTOR, wide);
        }
    }
}

/// The elements of a rectangle column by column.
///
/// # Safety
///
/// `ROWS` rows of `COLUMNS` elements are readable at multiples of the stride, without gaps and more than a vector of them where `DENSE`.
#[inline(always)]
unsafe fn interleaved<const BYTES: usize, const ROWS: usize, const COLUMNS: usize, const DENSE: bool>(
    source: *const u8,
    stride: isize,
) -> [__m128i; MOST] {
    let long = COLUMNS * BYTES;
    // Vectors, and the bytes of each that are filled.
    let (mut count, mut filled) = if DENSE { (ROWS * long / VECTOR, VECTOR) } else { (ROWS, long) };
    // SAFETY: every CPU of the architecture has SSE2. The rows are readable (contract of `interleaved`), and so is every vector of them
    // where they have no gaps.
    let mut vectors = unsafe {
        let mut vectors = [_mm_setzero_si128(); MOST];
        for (at, vector) in vectors.iter_mut().enumerate().take(count) {
            *vector = if DENSE {
                _mm_loadu_si128(source.add(at * VECTOR).cast())
            } else {
                load(source.wrapping_offset(stride.wrapping_mul(at as isize)), long)
            };
        }
        vectors
    };
    // Stage by stage, because a loop over the stages is not unrolled, and leaves the vectors in memory.
    if ROWS >= 2 {
        (count, filled) = interleave::<BYTES>(&mut vectors, count, filled);
    }
    if ROWS >= 4 {
        (count, filled) = interleave::<BYTES>(&mut vectors, count, filled);
    }
    if ROWS >= 8 {
        (count, filled) = interleave::<BYTES>(&mut vectors, count, filled);
    }
    if ROWS >= 16 {
        interleave::<BYTES>(&mut vectors, count, filled);
    }
    vectors
}

/// Interleaves the first half of `count` vectors with the second half. Each vector holds `filled` bytes. Returns both numbers for the
/// result.
#[inline(always)]
fn interleave<const BYTES: usize>(vectors: &mut [__m128i; MOST], count: usize, filled: usize) -> (usize, usize) {
    let (before, half) = (*vectors, count / 2);
    for at in 0..half {
        let (first, second) = (before[at], before[at + half]);
        if filled < VECTOR {
            vectors[at] = low::<BYTES>(first, second);
        } else {
            vectors[2 * at] = low::<BYTES>(first, second);
            vectors[2 * at + 1] = high::<BYTES>(first, second);
        }
    }
    if filled < VECTOR { (half, 2 * filled) } else { (count, filled) }
}

/// The low halves of two vectors, element by element in turn.
#[inline(always)]
fn low<const BYTES: usize>(first: __m128i, second: __m128i) -> __m128i {
    // SAFETY: every CPU of the architecture has SSE2.
    unsafe {
        match BYTES {
            1 => _mm_unpacklo_epi8(first, second),
            2 => _mm_unpacklo_epi16(first, second),
            4 => _mm_unpacklo_epi32(first, second),
            _ => _mm_unpacklo_epi64(first, second),
        }
    }
}

/// The high halves of two vectors, element by element in turn.
#[inline(always)]
fn high<const BYTES: usize>(first: __m128i, second: __m128i) -> __m128i {
    // SAFETY: every CPU of the architecture has SSE2.
    unsafe {
        match BYTES {
            1 => _mm_unpackhi_epi8(first, second),
            2 => _mm_unpackhi_epi16(first, second),
            4 => _mm_unpackhi_epi32(first, second),
            _ => _mm_unpackhi_epi64(first, second),
        }
    }
}

/// Loads 2, 4, 8 or 16 bytes.
///
/// # Safety
///
/// They are readable.
#[inline(always)]
unsafe fn load(source: *const u8, bytes: usize) -> __m128i {
    // SAFETY: as this function's.
    unsafe {
        match bytes {
            2 => _mm_cvtsi32_si128(source.cast::<u16>().read_unaligned().into()),
            4 => _mm_cvtsi32_si128(source.cast::<i32>().read_unaligned()),
            8 => _mm_loadl_epi64(source.cast()),
            _ => _mm_loadu_si128(source.cast()),
        }
    }
}

/// Stores the 2, 4, 8 or 16 bytes at a place of a vector, which is a multiple of their number.
///
/// # Safety
///
/// They are writable.
#[inline(always)]
unsafe fn store(destination: *mut u8, vector: __m128i, place: usize, bytes: usize) {
    // SAFETY: the bytes are writable (contract of `store`); a vector is as large as either array.
    unsafe {
        match (bytes, place) {
            (2, _) => {
                let words: [u16; 8] = core::mem::transmute(vector);
                destination.cast::<u16>().write_unaligned(words[place / 2]);
            }
            (4, _) => {
                let words: [u32; 4] = core::mem::transmute(vector);
                destination.cast::<u32>().write_unaligned(words[place / 4]);
            }
            (8, 0) => _mm_storel_epi64(destination.cast(), vector),
            (8, _) => _mm_storeh_pd(destination.cast(), _mm_castsi128_pd(vector)),
            _ => _mm_storeu_si128(destination.cast(), vector),
        }
    }
}
