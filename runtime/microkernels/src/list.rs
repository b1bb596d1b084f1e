//! Equal blocks at listed offsets.

use super::block::{Block, transfer};
use super::rows::fetch;

/// An entry of an offset table.
pub(super) trait Offset: Copy {
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

/// So many blocks ahead, an unpack fetches the lines that it will write.
const AHEAD: usize = 16;

/// The loop of [`List32Fn`](super::List32Fn) and [`List64Fn`](super::List64Fn). Where `FAR`, blocks lie beyond the first-level
/// cache, and an unpack fetches ahead: see [`super::rows`].
///
/// # Safety
///
/// The contract of these.
#[inline(always)]
pub(super) unsafe fn list<B: Block, O: Offset, const PACK: bool, const FAR: bool>(
    memory: *mut u8,
    mut packed: *mut u8,
    mut offsets: *const O,
    mut count: usize,
    block: B,
) {
    let bytes = block.bytes();
    // SAFETY: the caller guarantees `count` offsets and the block at each of them.
    unsafe {
        if FAR && !PACK {
            while count >= 4 + AHEAD {
                for part in 0..4 {
                    fetch(memory.wrapping_offset((*offsets.add(AHEAD + part)).bytes()));
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
