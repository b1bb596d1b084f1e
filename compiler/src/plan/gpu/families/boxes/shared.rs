//! Boxes in shared memory, and how many words threads move at once.

use super::array::{Array, Axis};
use crate::plan::gpu::{Analysis, BANK, WIDEST, alignment};

/// A box in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedBox {
    /// The array, and the places that the box has of it.
    pub(super) cut: Array,
    /// Words of shared memory from one place to the next of each axis.
    pub(super) strides: Vec<u64>,
    /// Words that a thread may move at once in memory, where they are neighbours in every box and begin at multiples of themselves: a power of two.
    pub(super) memory: u32,
    /// The same among the packed bytes.
    packed: u32,
    /// Divides where words that are moved at once begin in memory, but for the address of element 0.
    starts: u32,
    /// Threads of a block, at least.
    threads: u32,
}

/// Words that follow each other on a side: those of the places of the nearest axes.
#[derive(Clone, Copy, Debug)]
struct RunWords {
    /// Words of a box.
    extent: u64,
    /// Words of the array.
    count: u64,
}

impl RunWords {
    /// The greatest power of two up to `most` of words that are whole in every box.
    fn divided(&self, most: u32) -> u32 {
        1 << (self.extent | self.count).trailing_zeros().min(most.trailing_zeros())
    }
}

impl SharedBox {
    /// A box in packed order.
    ///
    /// Runs begin at the same places of 16 bytes as among the packed bytes, so that threads can move several words at once. With a `gap`, the places of the
    /// nearest axis of memory are an odd number of words or banks apart, so that neighbours are in different banks; threads move a bank at once then.
    pub(super) fn new(cut: Array, analysis: &Analysis, gap: bool) -> SharedBox {
        let threads = analysis.tuning.boxes.threads;
        let strides = strides(&cut, gap);
        let mut shared = SharedBox { cut, strides, memory: 1, packed: 1, starts: WIDEST, threads };
        let word = shared.cut.word;
        let runs = shared.packed_runs();
        let others = shared.strides[runs.len()..].iter().fold(0, |bits, stride| bits | stride);
        if let Some(run) = runs.last() {
            shared.packed = RunWords { extent: run.extent | others, ..*run }.divided(WIDEST / word);
        }
        let widths = [BANK, BANK / 2].map(|bytes| bytes / word);
        let fitting = |words: &u32| *words > 1 && shared.memory_run(*words).is_some();
        shared.memory = widths.into_iter().find(fitting).unwrap_or(1);
        let run = shared.memory_run(shared.memory).map_or(1, |places| places.len());
        let outside = shared.cut.nearest[run..].iter().map(|&at| shared.cut.axes[at].stride);
        let begins = (analysis.layout.extent() | shared.cut.origin) as u64;
        shared.starts = alignment(outside.fold(begins, |bits, stride| bits | stride as u64));
        shared
    }

    /// Words of shared memory.
    pub(super) fn words(&self) -> u64 {
        let last = |(axis, stride): (&Axis, &u64)| (axis.extent - 1) * stride;
        let last: u64 = self.cut.axes.iter().zip(&self.strides).map(last).sum();
        (last + 1).next_multiple_of(u64::from(WIDEST / self.cut.word))
    }

    /// Whether threads move words one by one on a side.
    pub(super) fn moves_one_by_one(&self) -> bool {
        self.memory == 1 || self.packed == 1
    }

    /// Words that threads move at once in memory, where the address of element 0 is a multiple of `alignment` bytes.
    pub(super) fn memory_at_once(&self, alignment: u32) -> u32 {
        self.memory.min(self.starts.min(alignment) / self.cut.word).max(1)
    }

    /// Words that threads move at once among the packed bytes, which begin at a multiple of `alignment` bytes.
    pub(super) fn packed_at_once(&self, alignment: u32) -> u32 {
        self.packed.min(alignment / self.cut.word).max(1)
    }

    /// The places of the nearest axes of memory along which threads move `words` words at once: all of the nearest, or where these are no multiple, as many of the
    /// next ones as make one, which have room in a step.
    pub(super) fn memory_run(&self, words: u32) -> Option<Vec<u64>> {
        let order = &self.cut.nearest;
        let runs = self.runs(order, |axis| axis.stride as u64);
        let axes = runs.iter().position(|run| run.divided(words) == words)?;
        let mut places: Vec<u64> = order[..=axes].iter().map(|&at| self.cut.axes[at].extent).collect();
        if axes > 0 {
            let inside: u64 = places[..axes].iter().product();
            let words = u64::from(words);
            places[axes] = words >> inside.trailing_zeros().min(words.trailing_zeros());
            if inside * places[axes] / words > u64::from(self.threads) {
                return None;
            }
        }
        Some(places)
    }

    /// Axes of the packed order, from the innermost on, whose places follow each other both packed and in shared memory.
    pub(super) fn packed_axes(&self) -> usize {
        self.packed_runs().len()
    }

    fn packed_runs(&self) -> Vec<RunWords> {
        let order: Vec<usize> = (0..self.cut.axes.len()).collect();
        let mut runs = self.runs(&order, |axis| axis.packed);
        let mut inside = 1;
        let shared = self.strides.iter().zip(&runs).take_while(|&(stride, run)| {
            let follows = *stride == inside;
            inside = run.extent;
            follows
        });
        let joined = shared.count();
        runs.truncate(joined);
        runs
    }

    /// The words that follow each other along the first axis of `order`, the first two, and so on, up to and including the first axis that is cut.
    fn runs(&self, order: &[usize], distance: impl Fn(&Axis) -> u64) -> Vec<RunWords> {
        let (mut runs, mut run) = (Vec::new(), RunWords { extent: 1, count: 1 });
        for axis in order.iter().map(|&at| &self.cut.axes[at]) {
            if run.extent < run.count || distance(axis) != run.count.saturating_mul(self.cut.word.into()) {
                break;
            }
            run = RunWords { extent: run.extent * axis.extent, count: run.count.saturating_mul(axis.count) };
            runs.push(run);
        }
        runs
    }
}

/// Words of shared memory from one place to the next of each axis of a box.
fn strides(cut: &Array, gap: bool) -> Vec<u64> {
    let word = u64::from(cut.word);
    let (bank, unit) = (u64::from(BANK).max(word) / word, u64::from(WIDEST) / word);
    // Whether the places of the axes so far follow each other as they do among the packed bytes.
    let (mut next, mut follows) = (1, true);
    let strides = cut.axes.iter().enumerate().map(|(at, axis)| {
        let mut stride = next;
        if !follows {
            stride += (axis.packed / word + unit - stride % unit) % unit;
        }
        if gap && at == cut.near() && (stride * word).is_multiple_of(u64::from(BANK).max(word) * 2) {
            stride += bank;
        }
        follows &= stride == next && axis.extent == axis.count;
        next = stride * axis.extent;
        stride
    });
    strides.collect()
}
