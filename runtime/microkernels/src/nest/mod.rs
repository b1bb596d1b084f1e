//! Nests of rows: one folder entry for each [`NestMethod`], and the dispatch by the strategy of the level.

#[cfg(target_arch = "x86_64")]
mod every_other;
mod few;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gather;
#[cfg(target_arch = "x86_64")]
pub(crate) mod non_temporal;
#[cfg(target_arch = "x86_64")]
mod overhanging;
#[cfg(target_arch = "x86_64")]
mod pairs;
#[cfg(target_arch = "x86_64")]
mod reversed;
pub(crate) mod rows;
#[cfg(target_arch = "x86_64")]
mod shuffled;
pub(crate) mod whole;
#[cfg(target_arch = "x86_64")]
mod words;

use crate::block::Block;
use crate::direction::direction;
#[cfg(target_arch = "x86_64")]
use crate::tile::rectangle::{self, Columns};
use dtc_compiler::plan::strategy::{self, FEW_BYTES, Level, Nest, NestMethod, RowLoop};

/// Moves a nest by the method that the strategy of the level chooses for its counts and strides.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn), on a CPU of the level; `nest.bytes` is that of the block.
#[inline(always)]
pub(crate) unsafe fn planes<B: Block, const PACK: bool>(
    level: Level,
    memory: *mut u8,
    packed: *mut u8,
    block: B,
    nest: &Nest,
) {
    if B::EXACT == 0 {
        // SAFETY: every level compiles these lengths in, so a block of another class has none of them.
        unsafe { core::hint::assert_unchecked(!matches!(nest.bytes, 1 | 2 | 4 | 8 | 16)) };
    }
    if !B::SHORT {
        // SAFETY: the classes of all levels that are not short are for more bytes.
        unsafe { core::hint::assert_unchecked(nest.bytes > FEW_BYTES) };
    }
    // SAFETY: every row of the nest is mapped on both sides (contract of `PlanesFn`). The strategy chooses only methods whose
    // instructions the level has, and only for the lengths, counts and strides that they are written for.
    unsafe {
        match strategy::nest(level, direction::<PACK>(), nest) {
            NestMethod::Planes(_) if !B::LONG => few::planes::<B, PACK>(memory, packed, block, nest),
            NestMethod::Rows(how) => rows::planes::<B, PACK>(memory, packed, block, nest, how),
            #[cfg(target_arch = "x86_64")]
            NestMethod::Shuffled(group) => shuffled::planes::<PACK>(memory, packed, nest, group),
            #[cfg(target_arch = "x86_64")]
            NestMethod::EveryOtherWord => every_other::planes(memory, packed, nest),
            #[cfg(target_arch = "x86_64")]
            NestMethod::Reversed => reversed::planes::<B, PACK>(memory, packed, nest),
            #[cfg(target_arch = "x86_64")]
            NestMethod::Overhanging => overhanging::planes(memory, packed, block, nest),
            #[cfg(target_arch = "x86_64")]
            NestMethod::Pairs => pairs::planes(memory, packed, block, nest),
            #[cfg(target_arch = "x86_64")]
            NestMethod::Transposed => {
                let Nest { rows, stride, planes: columns, .. } = *nest;
                let columns = Columns { columns, rows, stride, pitch: rows * B::EXACT };
                rectangle::elements::<PACK>(level, B::EXACT, memory, packed, &columns);
            }
            #[cfg(target_arch = "x86_64")]
            NestMethod::Gathered => gather::planes(memory, packed, block, nest),
            // These are chosen for whole nests alone.
            _ => rows::planes::<B, PACK>(memory, packed, block, nest, RowLoop::PLAIN),
        }
    }
}
