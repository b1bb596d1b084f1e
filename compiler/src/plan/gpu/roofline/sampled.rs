//! What a layout touches, estimated from granules drawn at random, where its structure is too irregular to count.

use super::footprint::Footprint;
use super::sectors::GRANULE;
use crate::layout::positions::Positions;
use crate::layout::{Edge, Layout, Measure, Node, NodeId, Run};
use crate::plan::gpu::sizes::SECTOR;
use std::ops::Range;

/// Granules that are drawn, at most. The relative error is below the spread of bytes a granule over 128.
const SAMPLES: u64 = 1 << 14;

/// Granules below which there is no estimate.
const FEWEST: u64 = 1 << 6;

/// Copies and list entries that the samples may look at together: twice as many took 4 ms on a Zen 5. Lists add their length for each of
/// the fewest samples.
const LOOKED_AT: u64 = 1 << 18;

/// Estimates what `count` elements from an address on touch. A granule is drawn with a probability in proportion to the packed
/// bytes in it, and weighs their inverse: so the mean is that of all granules, however far apart they are.
pub(super) fn footprint(layout: &Layout, count: u64, address: u64) -> Option<Footprint> {
    let positions = Positions::new(layout);
    let total = layout.size().checked_mul(count)?;
    let strata = 1 << SAMPLES.min(total).ilog2();
    let mut sums = [SampleMoments::default(); 4];
    let ascending = ascending(layout);
    let entries: u64 = layout.nodes().map(|(_, node)| node.list_entries()).sum();
    let (mut samples, mut budget) = (0u64, LOOKED_AT + FEWEST * entries);
    while samples < strata {
        // One position in each of as many equal ranges, which are taken in an order that spreads: an odd multiple modulo a
        // power of two. Both factors are those of the golden ratio.
        let draw = (samples + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let stratum = draw % strata;
        let (begin, end) = (part(total, stratum, strata), part(total, stratum + 1, strata));
        let position = begin + part(end - begin, draw >> 32, 1 << 32);
        let at = positions.memory_of(position)?;
        let granule = at - (at as u64).wrapping_add(address).rem_euclid(GRANULE) as i64;
        let search = GranuleSearch {
            layout,
            ascending: &ascending,
            budget: &mut budget,
            mask: 0,
            bytes: 0.0,
            stack: Vec::new(),
        };
        let Some((mask, bytes)) = search.inside(count, granule) else { break };
        samples += 1;
        let halves = [mask as u32, (mask >> SECTOR) as u32];
        let number = |is: fn(u32) -> bool| halves.iter().filter(|&&half| is(half)).count() as f64;
        let (touched, full) = (number(|half| half != 0), number(|half| half == u32::MAX));
        for (sum, what) in sums.iter_mut().zip([1.0, touched, full, 2.0 * touched - full]) {
            sum.add(what / bytes.max(1.0));
        }
    }
    if samples < FEWEST.min(strata) {
        return None;
    }
    let scaled = |sum: &SampleMoments| (sum.mean(samples) * total as f64).round() as u64;
    Some(Footprint {
        granules: scaled(&sums[0]),
        sectors: scaled(&sums[1]),
        full_sectors: scaled(&sums[2]).min(scaled(&sums[1])),
        error: sums[0].error(samples).max(sums[3].error(samples)),
    })
}

/// A share of a number.
fn part(of: u64, numerator: u64, denominator: u64) -> u64 {
    (u128::from(of) * u128::from(numerator) / u128::from(denominator.max(1))) as u64
}

#[derive(Clone, Copy, Default)]
struct SampleMoments {
    values: f64,
    squares: f64,
}

impl SampleMoments {
    fn add(&mut self, value: f64) {
        self.values += value;
        self.squares += value * value;
    }

    fn mean(&self, samples: u64) -> f64 {
        self.values / samples.max(1) as f64
    }

    /// Two standard errors of the mean, relative to it.
    fn error(&self, samples: u64) -> f64 {
        let mean = self.mean(samples);
        let variance = (self.squares / samples.max(1) as f64 - mean * mean).max(0.0);
        if mean == 0.0 { 0.0 } else { 2.0 * (variance / samples as f64).sqrt() / mean }
    }
}

/// Whether the list of each node is in ascending order, and a search can leave out most of it. Runs do not overlap then.
fn ascending(layout: &Layout) -> Vec<bool> {
    let is = |node: &Node| match node {
        Node::Indexed { offsets, .. } => offsets.is_sorted(),
        Node::Runs { runs, kind } => {
            runs.windows(2).all(|pair| pair[0].offset + (pair[0].count * kind.size()) as i64 <= pair[1].offset)
        }
        _ => false,
    };
    layout.nodes().map(|(_, node)| is(node)).collect()
}

/// A search for the bytes of a granule. Offsets fit 62 bits, so that differences of two of them fit 63.
struct GranuleSearch<'a> {
    layout: &'a Layout,
    ascending: &'a [bool],
    /// Nodes and entries that may still be looked at.
    budget: &'a mut u64,
    /// The bytes that were found.
    mask: u64,
    /// How often they were found in all.
    bytes: f64,
    /// Where nodes are that are to be looked at, from the granule on, and how often each is there.
    stack: Vec<(i64, Edge, f64)>,
}

/// Bytes of a granule.
const LENGTH: i64 = GRANULE as i64;

impl GranuleSearch<'_> {
    /// The bytes of a granule that `count` elements have, as bits, and how often they have them in all; nothing where the budget does
    /// not suffice. The granule counts from element 0.
    fn inside(mut self, count: u64, granule: i64) -> Option<(u64, f64)> {
        self.repeat(-granule, &StridedCopies { count, stride: self.layout.extent(), child: self.layout.root() }, 1.0)?;
        while let Some((at, edge, times)) = self.stack.pop() {
            self.look_at(at, edge.node, times)?;
        }
        Some((self.mask, self.bytes))
    }

    fn spend(&mut self, steps: u64) -> Option<()> {
        *self.budget = self.budget.checked_sub(steps)?;
        Some(())
    }

    fn cover(&mut self, offset: i64, length: u64, times: f64) {
        let from = offset.clamp(0, LENGTH) as u32;
        let to = (offset + length as i64).clamp(0, LENGTH) as u32;
        if from < to {
            self.mask |= (u64::MAX >> (u64::BITS - (to - from))) << from;
            self.bytes += f64::from(to - from) * times;
        }
    }

    /// Has a node looked at, unless it does not reach into the granule.
    fn push(&mut self, at: i64, edge: Edge, times: f64) {
        let Measure { low, high, .. } = *self.layout.measure(edge.node);
        if at + high > 0 && at + low < LENGTH {
            self.stack.push((at, edge, times));
        }
    }

    fn repeat(&mut self, at: i64, copies: &StridedCopies, times: f64) -> Option<()> {
        let &StridedCopies { count, stride, child } = copies;
        let at = at + child.offset;
        if stride == 0 {
            self.push(at, child, times * count as f64);
            return Some(());
        }
        let within = copies.within(self.layout, at);
        self.spend(within.end.abs_diff(within.start))?;
        within.for_each(|copy| self.push(at + copy * stride, child, times));
        Some(())
    }

    fn look_at(&mut self, at: i64, node: NodeId, times: f64) -> Option<()> {
        self.spend(1)?;
        let ascending = self.ascending[node.index()];
        match self.layout.node(node) {
            Node::Dense { count, kind } => self.cover(at, count * kind.size(), times),
            Node::Runs { runs, kind } => {
                let bytes = |run: &Run| run.count * kind.size();
                let reached = if ascending {
                    let from = runs.partition_point(|run| at + run.offset + bytes(run) as i64 <= 0);
                    let to = runs.partition_point(|run| at + run.offset < LENGTH);
                    &runs[from..to.max(from)]
                } else {
                    runs
                };
                self.spend(reached.len() as u64)?;
                reached.iter().for_each(|run| self.cover(at + run.offset, bytes(run), times));
            }
            &Node::Stream { count, stride, child } => {
                self.repeat(at, &StridedCopies { count, stride, child }, times)?
            }
            Node::Indexed { offsets, child } => {
                let at = at + child.offset;
                let Measure { low, high, .. } = *self.layout.measure(child.node);
                let reached = if ascending {
                    let from = offsets.partition_point(|offset| at + offset + high <= 0);
                    let to = offsets.partition_point(|offset| at + offset + low < LENGTH);
                    &offsets[from..to.max(from)]
                } else {
                    offsets
                };
                self.spend(reached.len() as u64)?;
                reached.iter().for_each(|offset| self.push(at + offset, *child, times));
            }
            Node::Record { parts } => {
                self.spend(parts.len() as u64)?;
                parts.iter().for_each(|part| self.push(at + part.offset, *part, times));
            }
        }
        Some(())
    }
}

/// Copies at a stride.
struct StridedCopies {
    count: u64,
    stride: i64,
    child: Edge,
}

impl StridedCopies {
    /// The copies whose bounds reach into the granule, by the place of the first; the stride is not 0.
    fn within(&self, layout: &Layout, at: i64) -> Range<i64> {
        let Measure { low, high, .. } = *layout.measure(self.child.node);
        let (from, to) = if self.stride > 0 {
            ((-high - at).div_euclid(self.stride) + 1, (LENGTH - 1 - low - at).div_euclid(self.stride) + 1)
        } else {
            let back = -self.stride;
            ((low + at - LENGTH).div_euclid(back) + 1, (high - 1 + at).div_euclid(back) + 1)
        };
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        let from = from.clamp(0, count);
        from..to.clamp(from, count)
    }
}
