//! Word sizes and launch shapes.
//!
//! The rules are measured on an H200: `bench/results/`. Words as wide as the runs are best where lines are full. On
//! sparse strides every word costs a line of its own, and narrow words in large blocks keep more lines in flight.

use crate::layout::Layout;
use crate::plan::Direction;

/// Bytes from run to run above which no two share what a GPU fetches at once.
const SPARSE: u64 = 256;

/// Threads of a block, and words for each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Threads of a block.
    pub threads: u32,
    /// Words that a thread moves, a block's width apart, loaded before the first is stored.
    pub unroll: u32,
}

/// The runs of a layout as the cost model sees them, in bytes.
pub(super) struct Runs {
    /// Mean length.
    pub(super) mean: u64,
    /// Mean distance from run to run.
    distance: u64,
}

impl Runs {
    pub(super) fn of(layout: &Layout) -> Runs {
        let measure = layout.measure(layout.root().node);
        let runs = measure.runs.max(1);
        let span = measure.high.abs_diff(measure.low).max(measure.size);
        let distance = if runs == 1 { layout.extent().unsigned_abs() } else { span / runs };
        Runs { mean: (measure.size / runs).max(1), distance }
    }

    fn sparse(&self) -> bool {
        self.distance >= SPARSE && self.distance >= 4 * self.mean
    }
}

/// The word that moves runs best, no wider than `widest`.
pub(super) fn word(direction: Direction, widest: u32, runs: &Runs) -> u32 {
    let best = match direction {
        Direction::Pack if runs.mean >= 48 => 16,
        Direction::Pack if runs.sparse() && runs.mean < 32 => 4,
        Direction::Unpack if runs.mean >= 128 => 16,
        Direction::Unpack if runs.sparse() && runs.mean <= 32 => 4,
        _ => 8,
    };
    best.min(widest)
}

/// The launch shape for words of a size.
pub(super) fn shape(direction: Direction, word: u32, runs: &Runs) -> Shape {
    let (threads, unroll) = match direction {
        Direction::Pack if word == 16 && runs.mean >= 128 => (128, 1),
        Direction::Pack if word == 16 || runs.sparse() => (1024, 1),
        Direction::Pack => (128, 16 / word.max(4)),
        Direction::Unpack if runs.mean >= 128 => (128, 16 / word.max(4)),
        Direction::Unpack if runs.mean >= 32 && word == 8 => (256, 1),
        Direction::Unpack if runs.mean > 32 || (word <= 4 && runs.distance < 32) => (256, 2),
        Direction::Unpack => (1024, 1),
    };
    Shape { threads, unroll }
}

/// The launch shape of kernels on few multiprocessors. A quarter of an H200 reads 51 GB/s of pinned memory with 16 KiB under
/// way in each block, which is what the link gives to kernels, and 41 GB/s with 2 KiB.
pub(super) fn capped_shape(word: u32) -> Shape {
    Shape { threads: 1024, unroll: (16 / word).clamp(1, 4) }
}
