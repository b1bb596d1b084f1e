//! The form of the tables of words and launch shapes, which `bench/gpu/tune.cu` writes.

use crate::plan::Direction;

/// The word and the launch shapes for runs of a mean length and density, in one direction.
#[derive(Debug)]
pub(crate) struct Row {
    /// The direction of the calls.
    pub(crate) direction: Direction,
    /// How far from each other the runs are.
    pub(crate) density: Density,
    /// Mean length of the runs in bytes from which on the row holds, unless another one has more.
    pub(crate) least: u64,
    /// Bytes of the best word.
    pub(crate) word: u32,
    /// Threads of a block and words of a thread, for words of 1, 2, 4, 8 and 16 bytes.
    pub(crate) shapes: [(u32, u32); 5],
}

/// How far from each other runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Density {
    /// Less than a sector of 32 bytes from run to run.
    Close,
    /// Neither of the others.
    Near,
    /// At least 256 bytes from run to run, and four times as much as a run has.
    Sparse,
}
