//! Planes of few rows: their number is compiled in, so that a plane takes no loop.
//!
//! Each row is moved by an instruction of its own, which steps from plane to plane. Rows of 4, 8, 16 and 32 bytes are loaded before the
//! first of their plane is stored.

use crate::block::{Block, transfer_all};
use dtc_compiler::plan::strategy::{FEW_ROWS, Nest};

/// Distances of the rows of a plane from the first.
pub(super) struct RowOffsets([isize; FEW_ROWS]);

impl RowOffsets {
    /// Rows at a stride, in bytes. Odd multiples are computed once: the others are addressed by an index and its scale.
    #[inline(always)]
    pub(super) fn new(stride: isize) -> RowOffsets {
        let odd = [3, 5, 7].map(|row| hidden(stride.wrapping_mul(row)));
        let even = [2, 4].map(|row| stride.wrapping_mul(row));
        RowOffsets([0, stride, even[0], odd[0], even[1], odd[1], odd[0].wrapping_mul(2), odd[2]])
    }

    /// The first rows of a plane.
    #[inline(always)]
    pub(super) fn of<const ROWS: usize>(&self, plane: *mut u8) -> [*mut u8; ROWS] {
        let mut rows = [plane; ROWS];
        let mut row = 1;
        while row < ROWS {
            rows[row] = plane.wrapping_offset(self.0[row]);
            row += 1;
        }
        rows
    }
}

#[cfg(target_arch = "x86_64")]
use crate::block::opaque as hidden;

/// The number.
#[cfg(not(target_arch = "x86_64"))]
fn hidden(number: isize) -> isize {
    number
}

/// Moves planes of 2 to [`FEW_ROWS`] rows.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn); a plane has 2 to [`FEW_ROWS`] rows.
#[inline(always)]
pub(super) unsafe fn planes<B: Block, const PACK: bool>(memory: *mut u8, packed: *mut u8, block: B, nest: &Nest) {
    // SAFETY: as this function's, with the number of rows compiled in.
    unsafe {
        match nest.rows {
            2 => of::<B, PACK, 2>(memory, packed, block, nest),
            3 => of::<B, PACK, 3>(memory, packed, block, nest),
            4 => of::<B, PACK, 4>(memory, packed, block, nest),
            5 => of::<B, PACK, 5>(memory, packed, block, nest),
            6 => of::<B, PACK, 6>(memory, packed, block, nest),
            7 => of::<B, PACK, 7>(memory, packed, block, nest),
            _ => of::<B, PACK, 8>(memory, packed, block, nest),
        }
    }
}

/// Moves planes of `ROWS` rows.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn), and a plane has `ROWS` rows.
#[inline(always)]
unsafe fn of<B: Block, const PACK: bool, const ROWS: usize>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    block: B,
    nest: &Nest,
) {
    let (bytes, rows) = (block.bytes(), RowOffsets::new(nest.stride));
    for _ in 0..nest.planes {
        let places = rows.of::<ROWS>(memory);
        // SAFETY: the contract of `PlanesFn` covers the `ROWS` rows of every plane, and `packed` advances by their bytes.
        unsafe { transfer_all::<B, PACK, ROWS>(block, places, packed) };
        memory = memory.wrapping_offset(nest.plane_stride);
        packed = packed.wrapping_add(ROWS * bytes);
    }
}
