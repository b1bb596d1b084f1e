//! The launch shape of kernels that move words.

use super::grid::launched;

/// Threads of a block, and words for each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Threads of a block.
    pub threads: u32,
    /// Words that a thread moves, a block's width apart, loaded before the first is stored.
    pub unroll: u32,
}

impl LaunchShape {
    /// Blocks that move `bytes` bytes in words of `word` bytes, or `None` when no grid is that large.
    pub(crate) fn blocks(self, word: u32, bytes: u64) -> Option<u32> {
        let LaunchShape { threads, unroll } = self;
        launched((bytes / u64::from(word)).div_ceil((threads * unroll).into()).max(1))
    }
}
