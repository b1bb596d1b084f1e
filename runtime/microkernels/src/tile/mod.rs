//! Nests whose inner stride is large and whose outer stride is small: a matrix sent by columns.
//!
//! Walking such a nest in packed order touches one element of a cache line, then one of the line a large stride away, and comes
//! back to the first line only after a whole column. If the stride is a power of two all of these lines share one set of
//! the cache, and each is evicted before its second element is wanted. A tile takes all columns that share a line, and a few
//! rows only, so that every line is finished before the next is touched.

#[cfg(target_arch = "x86_64")]
mod interleave;
#[cfg(target_arch = "x86_64")]
mod quarter;
#[cfg(target_arch = "x86_64")]
pub(crate) mod rectangle;
#[cfg(target_arch = "x86_64")]
pub(crate) mod transpose;

use crate::block::{Block, LINE, transfer};
use crate::direction::direction;
use core::ops::Range;
use dtc_compiler::plan::strategy::reads_whole_rows;

/// Lines of one set of the first-level cache that a tile uses, at most.
const WAYS: usize = 8;

/// Rows of a tile that has all columns.
const WHOLE_ROWS: usize = 16;

/// Rows of a tile at this stride.
///
/// At a multiple of 4 KiB the lines of all rows fall into one set of the first-level cache, which has that many ways and more; at
/// half of that they fall into two sets, and so on.
#[inline(always)]
fn height(inner_stride: isize) -> usize {
    const SET_PERIOD: u32 = 12;
    WAYS << (SET_PERIOD - inner_stride.trailing_zeros().clamp(SET_PERIOD - 3, SET_PERIOD))
}

/// The columns from the start of `memory` to the next border of a line, and those of a whole line.
#[inline(always)]
pub(crate) fn columns(memory: *mut u8, outer_stride: isize) -> (usize, usize) {
    let step = outer_stride.unsigned_abs();
    if step == 0 || step >= LINE {
        return (1, 1);
    }
    let place = memory as usize % LINE;
    let room = if outer_stride > 0 { LINE - place } else { place + 1 };
    (room.div_ceil(step), (LINE / step).max(1))
}

/// What a tile is, beside the element: columns at a stride, rows of each at another, and packed bytes from column to column.
#[derive(Clone, Copy)]
pub(crate) struct TileShape {
    /// Columns.
    pub(crate) outer: usize,
    /// Bytes from column to column.
    pub(crate) outer_stride: isize,
    /// Rows of a column.
    pub(crate) inner: usize,
    /// Bytes from row to row.
    pub(crate) inner_stride: isize,
    /// Packed bytes from column to column.
    pub(crate) pitch: usize,
}

/// The loop of [`TileFn`](crate::TileFn) for any element and any strides.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn).
#[inline(always)]
pub(crate) unsafe fn tile<B: Block, const PACK: bool>(memory: *mut u8, packed: *mut u8, block: B, shape: TileShape) {
    let TileShape { outer, outer_stride, inner, .. } = shape;
    let packed_bytes = outer.saturating_mul(inner).saturating_mul(block.bytes());
    if reads_whole_rows(direction::<PACK>(), packed_bytes) {
        let mut first = 0;
        while first < inner {
            let rows = first..inner.min(first + WHOLE_ROWS);
            first = rows.end;
            // SAFETY: the rows are among the `inner` rows, each of whose elements the contract of `TileFn` covers.
            unsafe { strip::<B, PACK>(memory, packed, block, shape, (0..outer, rows)) };
        }
        return;
    }
    let (mut width, full) = columns(memory, outer_stride);
    let mut first = 0;
    while first < outer {
        width = width.min(outer - first);
        // SAFETY: columns `first..first + width` are among the `outer` columns, each of whose elements the contract of `TileFn`
        // covers.
        unsafe { strip::<B, PACK>(memory, packed, block, shape, (first..first + width, 0..inner)) };
        first += width;
        width = full;
    }
}

/// Moves some rows of some neighbouring columns, a few rows at a time.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn) for the elements in these ranges.
#[inline(always)]
unsafe fn strip<B: Block, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    block: B,
    shape: TileShape,
    (columns, rows): (Range<usize>, Range<usize>),
) {
    let TileShape { outer_stride, inner_stride, pitch, .. } = shape;
    let bytes = block.bytes();
    // A line that is evicted while it is read costs little; measured, a pack prefers longer runs of packed bytes.
    let most = if PACK { 2 * height(inner_stride) } else { WAYS };
    let mut first = rows.start;
    while first < rows.end {
        let height = most.min(rows.end - first);
        for column in columns.clone() {
            let memory = memory
                .wrapping_offset(outer_stride.wrapping_mul(column as isize))
                .wrapping_offset(inner_stride.wrapping_mul(first as isize));
            // SAFETY: `column` and the rows from `first` on are in the two ranges, and the contract of `TileFn` holds for each element
            // there (contract of `strip`).
            unsafe {
                let packed = packed.add(column * pitch + first * bytes);
                // With the number compiled in, the loop is unrolled: packs of 16 bytes took 0.82 to 0.88 of the time, on a Zen 3.
                if PACK && height == WHOLE_ROWS {
                    elements::<B, PACK>(memory, packed, WHOLE_ROWS, inner_stride, block);
                } else {
                    elements::<B, PACK>(memory, packed, height, inner_stride, block);
                }
            }
        }
        first += height;
    }
}

/// Moves some rows of one column.
///
/// # Safety
///
/// The contract of [`TileFn`](crate::TileFn) for these elements.
#[inline(always)]
unsafe fn elements<B: Block, const PACK: bool>(memory: *mut u8, packed: *mut u8, rows: usize, stride: isize, block: B) {
    for row in 0..rows {
        // SAFETY: the contract of `TileFn` holds for each of the `rows` elements (contract of `elements`).
        unsafe {
            let memory = memory.wrapping_offset(stride.wrapping_mul(row as isize));
            transfer::<B, PACK>(block, memory, packed.add(row * block.bytes()));
        }
    }
}
