//! Which bytes of an array's elements a layout has, wherever in the array it is applied.

use super::{Edge, Layout, Node};
use std::collections::BTreeSet;

/// Most ranges that are looked at: a few milliseconds. Layouts that are made of whole array elements need one for each entry of
/// their lists.
const MOST_RANGES: usize = 1 << 22;

/// Remainders of displacements, as disjoint ranges in ascending order that do not touch.
type Ranges = Vec<(u64, u64)>;

/// What remains of displacements divided by the size of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residues(Ranges);

impl Residues {
    /// The lowest one that is not among `others`.
    pub fn first_outside(&self, others: &Residues) -> Option<u64> {
        self.0.iter().find_map(|&(start, end)| {
            let before = others.0.partition_point(|other| other.0 <= start);
            let reached = before.checked_sub(1).map_or(start, |last| others.0[last].1.max(start));
            (reached < end).then_some(reached)
        })
    }
}

impl Layout {
    /// The remainders of the displacements of all bytes of any number of elements, divided by `modulus`, which is not 0; nothing if
    /// the layout is too irregular to find out in a few milliseconds.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let text = |stride| format!("layout lb 0 extent 48 {{\n  %0 = dense 4 x byte\n  %1 = stream 9 x {stride} of %0\n  root %1\n}}");
    /// let [same, others] = [24, 16].map(|stride| Layout::parse(&text(stride)).map(|layout| layout.residues(24)));
    /// let (same, others) = (same?.expect("regular"), others?.expect("regular"));
    /// assert_eq!(same.first_outside(&others), None);
    /// assert_eq!(others.first_outside(&same), Some(8));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn residues(&self, modulus: u64) -> Option<Residues> {
        let mut sets: Vec<Ranges> = Vec::with_capacity(self.nodes.len());
        let mut left = MOST_RANGES;
        for node in &self.nodes {
            let mut sum = RangeSum { modulus, ranges: Vec::new(), left: &mut left };
            match node {
                Node::Dense { count, kind } => sum.range(0, count * kind.size())?,
                Node::Runs { runs, kind } => {
                    runs.iter().try_for_each(|run| sum.range(run.offset, run.count * kind.size()))?;
                }
                Node::Stream { count, stride, child } => sum.copies(&sets, *child, *count, *stride)?,
                Node::Indexed { offsets, child } => {
                    let remainders: BTreeSet<i64> =
                        offsets.iter().map(|&offset| remainder(offset, modulus) as i64).collect();
                    remainders.into_iter().try_for_each(|offset| sum.copy(&sets, *child, offset))?;
                }
                Node::Record { parts } => parts.iter().try_for_each(|&part| sum.copy(&sets, part, 0))?,
            }
            let set = sum.finish();
            sets.push(set);
        }
        let mut sum = RangeSum { modulus, ranges: Vec::new(), left: &mut left };
        sum.copies(&sets, self.root, u64::MAX, self.extent)?;
        Some(Residues(sum.finish()))
    }
}

/// Ranges that are collected for a node.
struct RangeSum<'a> {
    modulus: u64,
    ranges: Ranges,
    /// How many more may be looked at.
    left: &'a mut usize,
}

impl RangeSum<'_> {
    /// Adds `length` bytes at a displacement.
    fn range(&mut self, offset: i64, length: u64) -> Option<()> {
        *self.left = self.left.checked_sub(1)?;
        let start = remainder(offset, self.modulus);
        if length >= self.modulus {
            self.ranges.push((0, self.modulus));
        } else if length > self.modulus - start {
            self.ranges.extend([(start, self.modulus), (0, length - (self.modulus - start))]);
        } else if length > 0 {
            self.ranges.push((start, start + length));
        }
        Some(())
    }

    /// Adds a child that is displaced further.
    fn copy(&mut self, sets: &[Ranges], child: Edge, shift: i64) -> Option<()> {
        let offset = (remainder(child.offset, self.modulus) + remainder(shift, self.modulus)) % self.modulus;
        sets[child.node.index()]
            .iter()
            .try_for_each(|&(start, end)| self.range(((start + offset) % self.modulus) as i64, end - start))
    }

    /// Adds copies of a child at a stride: those of other remainders than the first ones.
    fn copies(&mut self, sets: &[Ranges], child: Edge, count: u64, stride: i64) -> Option<()> {
        let step = remainder(stride, self.modulus);
        let others = self.modulus / greatest_common_divisor(self.modulus, step);
        let mut shift = 0;
        for _ in 0..count.min(others) {
            self.copy(sets, child, shift as i64)?;
            shift = (shift + step) % self.modulus;
        }
        Some(())
    }

    fn finish(mut self) -> Ranges {
        self.ranges.sort_unstable();
        let mut merged: Ranges = Vec::new();
        for (start, end) in self.ranges {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        merged
    }
}

fn remainder(offset: i64, modulus: u64) -> u64 {
    // Less than the modulus, which is a size in memory and fits 63 bits.
    i128::from(offset).rem_euclid(modulus.into()) as u64
}

pub(crate) fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}
