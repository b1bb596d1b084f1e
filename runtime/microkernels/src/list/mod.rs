//! Equal blocks at listed offsets.

pub(crate) mod groups;
pub(crate) mod runs;

use crate::block::{Block, transfer};
use crate::nest::rows::prefetch;

/// An entry of an offset table.
pub(crate) trait Offset: Copy {
    /// The offset in bytes.
    fn bytes(self) -> isize;
}

impl Offset for i32 {
    #[inline(always)]
    fn bytes(self) -> isize {
        self as isize
    }
}

impl Offset for i64 {
    #[inline(always)]
    fn bytes(self) -> isize {
        self as isize
    }
}

/// Blocks that an unpack prefetches ahead of the current one.
const AHEAD: usize = 16;

/// The loop of [`List32Fn`](crate::List32Fn) and [`List64Fn`](crate::List64Fn). An unpack prefetches where
/// `PREFETCH`.
///
/// # Safety
///
/// The contract of these.
#[inline(always)]
pub(crate) unsafe fn list<B: Block, O: Offset, const PACK: bool, const PREFETCH: bool>(
    memory: *mut u8,
    mut packed: *mut u8,
    mut offsets: *const O,
    mut count: usize,
    block: B,
) {
    let bytes = block.bytes();
    // SAFETY: the table has `count` offsets, and the block at each is mapped (contract of `List32Fn`). While `count >= 4 +
    // AHEAD`, the offsets that are prefetched are in the table, too.
    unsafe {
        if PREFETCH && !PACK {
            while count >= 4 + AHEAD {
                for part in 0..4 {
                    prefetch(memory.wrapping_offset((*offsets.add(AHEAD + part)).bytes()));
                }
                for part in 0..4 {
                    let at = memory.wrapping_offset((*offsets.add(part)).bytes());
                    transfer::<B, PACK>(block, at, packed.add(part * bytes));
                }
                offsets = offsets.add(4);
                packed = packed.add(4 * bytes);
                count -= 4;
            }
        }
        while count >= 4 {
            for part in 0..4 {
                let at = memory.wrapping_offset((*offsets.add(part)).bytes());
                transfer::<B, PACK>(block, at, packed.add(part * bytes));
            }
            offsets = offsets.add(4);
            packed = packed.add(4 * bytes);
            count -= 4;
        }
        while count > 0 {
            transfer::<B, PACK>(block, memory.wrapping_offset((*offsets).bytes()), packed);
            offsets = offsets.add(1);
            packed = packed.add(bytes);
            count -= 1;
        }
    }
}
