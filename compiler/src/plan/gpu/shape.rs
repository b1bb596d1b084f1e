//! The launch shape of kernels that move words.

/// Threads of a block, and words for each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Threads of a block.
    pub threads: u32,
    /// Words that a thread moves, a block's width apart, loaded before the first is stored.
    pub unroll: u32,
}
