//! The form of the tables of words and launch shapes.

use crate::plan::Direction;

/// What a table says of runs of a mean length and density, in one direction.
pub(super) struct Row {
    /// The direction of the calls.
    pub(super) direction: Direction,
    /// How far from each other the runs are.
    pub(super) density: Density,
    /// Mean length of the runs in bytes from which on the row holds, unless another one has more.
    pub(super) least: u64,
    /// Bytes of the best word.
    pub(super) word: u32,
    /// Threads of a block and words of a thread, for words of 1, 2, 4, 8 and 16 bytes.
    pub(super) shapes: [(u32, u32); 5],
}

/// How far from each other runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Density {
    /// Less than a sector of 32 bytes from run to run.
    Close,
    /// Neither of the others.
    Near,
    /// At least 256 bytes from run to run, and four times as much as a run has.
    Sparse,
}
