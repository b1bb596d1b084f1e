//! The direction that microkernels are compiled for, as strategies name it.

use dtc_compiler::plan::Direction;

/// The direction of `PACK`.
#[inline(always)]
pub(crate) fn direction<const PACK: bool>() -> Direction {
    if PACK { Direction::Pack } else { Direction::Unpack }
}
