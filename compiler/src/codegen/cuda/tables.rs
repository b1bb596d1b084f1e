//! The lists that kernels read, in one block of memory.

use crate::layout::{NodeId, Run};
use std::collections::HashMap;

/// Words of a group of the rank table.
const GROUP: u64 = 32;

/// Names a list: the node, the bytes of a unit of the packed bytes, and what is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum List {
    Offsets(NodeId, i64),
    Rank(NodeId, u64),
    Shifts(NodeId, u64),
    Starts(NodeId, u64),
    Places(NodeId),
    Chunks(NodeId, u64),
}

/// Lists one after the other, each on a boundary of 16 bytes and kept once.
#[derive(Default)]
pub(super) struct Tables {
    bytes: Vec<u8>,
    known: HashMap<List, (u64, bool)>,
}

impl Tables {
    /// Lists of another type follow, whose nodes have the same names.
    pub(super) fn next_type(&mut self) {
        self.known.clear();
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Where a list of signed numbers lies, and whether its entries have 64 bits: 32 if all fit.
    pub(super) fn signed(&mut self, list: List, numbers: impl Iterator<Item = i64> + Clone) -> (u64, bool) {
        self.list(list, |bytes| {
            let wide = numbers.clone().any(|number| i32::try_from(number).is_err());
            for number in numbers {
                if wide {
                    bytes.extend_from_slice(&number.to_le_bytes());
                } else {
                    bytes.extend_from_slice(&(number as i32).to_le_bytes());
                }
            }
            wide
        })
    }

    /// The same for numbers without a sign, of which the last is the greatest.
    pub(super) fn rising(&mut self, list: List, numbers: &[u64]) -> (u64, bool) {
        self.list(list, |bytes| {
            let wide = numbers.last().is_some_and(|&last| u32::try_from(last).is_err());
            for number in numbers {
                let number = number.to_le_bytes();
                bytes.extend_from_slice(if wide { &number } else { &number[..4] });
            }
            wide
        })
    }

    fn list(&mut self, list: List, write: impl FnOnce(&mut Vec<u8>) -> bool) -> (u64, bool) {
        if let Some(&known) = self.known.get(&list) {
            return known;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let at = self.bytes.len() as u64;
        let wide = write(&mut self.bytes);
        self.known.insert(list, (at, wide));
        (at, wide)
    }

    /// A rank table: for every group of 32 words a mask of the words at which runs begin, and how many runs began before
    /// the group, less one. The run of a word takes one look-up, wherever it lies.
    pub(super) fn rank(&mut self, list: List, starts: &[u64]) -> u64 {
        let (at, _) = self.list(list, |bytes| {
            let [runs @ .., end] = starts else { return false };
            let mut next = 0;
            for group in 0..end.div_ceil(GROUP) {
                let before = (next as u32).wrapping_sub(1);
                let mut mask = 0u32;
                while let Some(start) = runs.get(next).filter(|&&start| start < (group + 1) * GROUP) {
                    mask |= 1 << (start % GROUP);
                    next += 1;
                }
                bytes.extend_from_slice(&mask.to_le_bytes());
                bytes.extend_from_slice(&before.to_le_bytes());
            }
            false
        });
        at
    }
}

/// Where runs begin in units of the packed bytes, and where the last one ends.
pub(super) fn starts(runs: &[Run], element: u64, unit: u64) -> Vec<u64> {
    let mut starts = Vec::with_capacity(runs.len() + 1);
    let mut at = 0;
    for run in runs {
        starts.push(at);
        at += run.count * element / unit;
    }
    starts.push(at);
    starts
}

/// For every 2^shift units the run at their first, with an end mark; and the shift, for about one run in each.
pub(super) fn chunks(starts: &[u64]) -> (u32, Vec<u64>) {
    let runs = starts.len() as u64 - 1;
    let end = starts.last().copied().unwrap_or(0);
    let shift = (end / runs.max(1)).max(1).ilog2();
    let mut chunks = Vec::with_capacity((end >> shift) as usize + 2);
    let mut run = 0;
    for chunk in 0..=(end.saturating_sub(1) >> shift) {
        while starts[run + 1] <= chunk << shift {
            run += 1;
        }
        chunks.push(run as u64);
    }
    chunks.push(runs.saturating_sub(1));
    (shift, chunks)
}
