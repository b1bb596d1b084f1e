//! The lists that kernels read, in one block of memory.

use crate::layout::{NodeId, Run};
use crate::plan::Direction;
use crate::plan::gpu::{Family, KernelList, ListedPiece};
use std::collections::HashMap;
use std::rc::Rc;

/// Words of a group of the rank table.
const GROUP: u64 = 32;

/// Names a list: the node, the bytes of a unit of the packed bytes, and what is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ListName {
    Offsets(NodeId, i64),
    Rank(NodeId, u64),
    Shifts(NodeId, u64),
    Starts(NodeId, u64),
    Places(NodeId),
    Chunks(NodeId, u64),
    /// The offsets of a node of a layout with index tables, by its index.
    Tabled(usize),
    /// A list of a family, by the kernels that read it and its name there.
    OfFamily(Family, Direction, &'static str),
}

/// Lists one after the other, each on a boundary of 16 bytes and kept once.
#[derive(Default)]
pub(super) struct Tables {
    bytes: Vec<u8>,
    known: HashMap<ListName, (u64, bool)>,
    /// First units of the runs of a node, kept because both directions ask for them.
    starts: HashMap<(NodeId, u64), Rc<Vec<u64>>>,
}

impl Tables {
    /// Lists of another type follow, whose nodes have the same names.
    pub(super) fn next_type(&mut self) {
        self.known.clear();
        self.starts.clear();
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Where a list of signed numbers is, and whether its entries have 64 bits: 32 if all fit.
    pub(super) fn signed(
        &mut self,
        name: ListName,
        numbers: impl ExactSizeIterator<Item = i64> + Clone,
    ) -> (u64, bool) {
        self.list(name, |bytes| {
            let wide = numbers.clone().any(|number| i32::try_from(number).is_err());
            if wide {
                append(bytes, numbers.map(i64::to_le_bytes));
            } else {
                append(bytes, numbers.map(|number| (number as i32).to_le_bytes()));
            }
            wide
        })
    }

    /// The same for numbers without a sign, of which the last is the greatest.
    pub(super) fn rising(&mut self, name: ListName, numbers: &[u64]) -> (u64, bool) {
        self.list(name, |bytes| {
            let wide = numbers.last().is_some_and(|&last| u32::try_from(last).is_err());
            if wide {
                append(bytes, numbers.iter().map(|number| number.to_le_bytes()));
            } else {
                append(bytes, numbers.iter().map(|&number| (number as u32).to_le_bytes()));
            }
            wide
        })
    }

    /// Where the runs of a node begin, as [`starts`] tells.
    pub(super) fn starts(&mut self, id: NodeId, runs: &[Run], element: u64, unit: u64) -> Rc<Vec<u64>> {
        self.starts.entry((id, unit)).or_insert_with(|| Rc::new(starts(runs, element, unit))).clone()
    }

    fn list(&mut self, name: ListName, write: impl FnOnce(&mut Vec<u8>) -> bool) -> (u64, bool) {
        if let Some(&known) = self.known.get(&name) {
            return known;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let at = self.bytes.len() as u64;
        let wide = write(&mut self.bytes);
        self.known.insert(name, (at, wide));
        (at, wide)
    }

    /// Where a list of a family is.
    pub(super) fn of_family(&mut self, name: ListName, list: &KernelList) -> u64 {
        let (at, _) = self.list(name, |bytes| {
            match list {
                KernelList::Pieces(pieces) => {
                    let piece = |&(offset, packed): &ListedPiece| packed << 32 | u64::from(offset as u32);
                    append(bytes, pieces.iter().map(|entry| piece(entry).to_le_bytes()));
                }
                KernelList::Numbers(numbers) => append(bytes, numbers.iter().map(|number| number.to_le_bytes())),
                KernelList::Shorts(numbers) => append(bytes, numbers.iter().map(|number| number.to_le_bytes())),
                KernelList::Bytes(numbers) => bytes.extend_from_slice(numbers),
            }
            false
        });
        at
    }

    /// A rank table: for every group of 32 words a mask of the words at which runs begin, and how many runs began before
    /// the group, less one. The run of a word takes one look-up, wherever it is.
    pub(super) fn rank(&mut self, name: ListName, starts: &[u64]) -> u64 {
        let (at, _) = self.list(name, |bytes| {
            let [runs @ .., end] = starts else { return false };
            let mut masks = vec![0u32; end.div_ceil(GROUP) as usize];
            for start in runs {
                masks[(start / GROUP) as usize] |= 1 << (start % GROUP);
            }
            let mut before = u32::MAX;
            let entries = masks.iter().map(|&mask| {
                let entry = u64::from(before) << 32 | u64::from(mask);
                before = before.wrapping_add(mask.count_ones());
                entry.to_le_bytes()
            });
            append(bytes, entries);
            false
        });
        at
    }
}

/// Adds numbers to a table.
pub(super) fn append<const BYTES: usize>(bytes: &mut Vec<u8>, numbers: impl ExactSizeIterator<Item = [u8; BYTES]>) {
    let at = bytes.len();
    bytes.resize(at + numbers.len() * BYTES, 0);
    for (entry, number) in bytes[at..].as_chunks_mut().0.iter_mut().zip(numbers) {
        *entry = number;
    }
}

/// Where runs begin in units of the packed bytes, and where the last one ends. A unit of runs is a byte or a word.
pub(super) fn starts(runs: &[Run], element: u64, unit: u64) -> Vec<u64> {
    let mut starts = vec![0; runs.len() + 1];
    let mut bytes = 0;
    for (start, run) in starts[1..].iter_mut().zip(runs) {
        bytes += run.count * element;
        *start = bytes;
    }
    // Division by a number that the compiler does not know takes longer than all the rest.
    debug_assert!(unit.is_power_of_two());
    starts.iter_mut().for_each(|start| *start >>= unit.trailing_zeros());
    starts
}

/// For every 2^shift units the run at their first, with an end mark; and the shift, for about one run in each.
pub(super) fn chunks(starts: &[u64]) -> (u32, Vec<u64>) {
    let runs = starts.len() as u64 - 1;
    let end = starts.last().copied().unwrap_or(0);
    let shift = (end / runs.max(1)).max(1).ilog2();
    let last = (end.saturating_sub(1) >> shift) as usize;
    let mut chunks = vec![0; last + 2];
    // A run is the one at the first of a chunk from the next whole chunk on, until a later one is.
    for (run, start) in starts.iter().take(runs as usize).enumerate() {
        chunks[((start + (1 << shift) - 1) >> shift) as usize] = run as u64;
    }
    let mut found = 0;
    for chunk in &mut chunks {
        found = found.max(*chunk);
        *chunk = found;
    }
    chunks[last + 1] = runs.saturating_sub(1);
    (shift, chunks)
}
