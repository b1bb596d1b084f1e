//! What a layout touches, estimated from granules drawn at random, where its structure is too irregular to count.

use super::footprint::Footprint;
use super::sectors::GRANULE;
use crate::layout::positions::Positions;
use crate::layout::{Edge, Layout, Node};
use crate::plan::gpu::sizes::SECTOR;

/// Granules that are drawn, at most. The relative error is below the spread of bytes a granule over 128.
const SAMPLES: u64 = 1 << 14;

/// Granules that are drawn however long each takes.
const FEWEST: u64 = 1 << 8;

/// Copies and list entries that the samples may look at together beyond the fewest: about a second.
const LOOKED_AT: u64 = 1 << 26;

/// Estimates what `count` elements from an address on touch. A granule is drawn with a probability in proportion to the packed
/// bytes in it, and weighs their inverse: so the mean is that of all granules, however far apart they are.
pub(super) fn footprint(layout: &Layout, count: u64, address: u64) -> Option<Footprint> {
    let positions = Positions::new(layout);
    let total = layout.size().checked_mul(count)?;
    let strata = 1 << SAMPLES.min(total).ilog2();
    let mut sums = [Sum::default(); 4];
    let (mut samples, mut looked_at) = (0, 0);
    while samples < strata && (samples < FEWEST || looked_at < LOOKED_AT) {
        // One position in each of as many equal ranges, which are taken in an order that spreads: an odd multiple modulo a
        // power of two. Both factors are those of the golden ratio.
        let draw = (samples + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let stratum = draw % strata;
        let (begin, end) = (part(total, stratum, strata), part(total, stratum + 1, strata));
        let position = begin + part(end - begin, draw >> 32, 1 << 32);
        let at = i128::from(positions.memory_of(position)?) + i128::from(address);
        let granule = at.div_euclid(i128::from(GRANULE)) * i128::from(GRANULE);
        let (mask, bytes, looked) = inside(layout, count, granule - i128::from(address));
        looked_at += looked;
        samples += 1;
        let halves = [mask as u32, (mask >> SECTOR) as u32];
        let number = |is: fn(u32) -> bool| halves.iter().filter(|&&half| is(half)).count() as f64;
        let (touched, full) = (number(|half| half != 0), number(|half| half == u32::MAX));
        for (sum, what) in sums.iter_mut().zip([1.0, touched, full, 2.0 * touched - full]) {
            sum.add(what / bytes.max(1) as f64);
        }
    }
    let scaled = |sum: &Sum| (sum.mean(samples) * total as f64).round() as u64;
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
struct Sum {
    values: f64,
    squares: f64,
}

impl Sum {
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

/// The bytes of a granule that the elements have, as bits, how often they have them in all, and how many nodes and entries were
/// looked at. Offsets count from element 0.
fn inside(layout: &Layout, count: u64, granule: i128) -> (u64, u64, u64) {
    let (mut mask, mut bytes, mut looked_at) = (0u64, 0u64, 0u64);
    let mut cover = |offset: i128, length: u64| {
        let from = (offset - granule).clamp(0, i128::from(GRANULE)) as u32;
        let to = (offset + i128::from(length) - granule).clamp(0, i128::from(GRANULE)) as u32;
        if from < to {
            mask |= (u64::MAX >> (u64::BITS - (to - from))) << from;
            bytes += u64::from(to - from);
        }
    };
    let bounds = |edge: &Edge| {
        let measure = layout.measure(edge.node);
        (i128::from(measure.low), i128::from(measure.high))
    };
    // Copies at a stride whose bounds, from an offset on, reach into the granule.
    let copies = |at: i128, (low, high): (i128, i128), count: u64, stride: i64| {
        let stride = i128::from(stride);
        let (from, to) = match stride.signum() {
            0 => (0, i128::from(count)),
            1 => (
                (granule - high - at).div_euclid(stride) + 1,
                (granule + i128::from(GRANULE) - 1 - low - at).div_euclid(stride) + 1,
            ),
            _ => {
                let back = -stride;
                (
                    (at + low - granule - i128::from(GRANULE)).div_euclid(back) + 1,
                    (at + high - 1 - granule).div_euclid(back) + 1,
                )
            }
        };
        from.clamp(0, i128::from(count))..to.clamp(0, i128::from(count))
    };
    let root = layout.root();
    let mut stack: Vec<(i128, Edge)> = Vec::new();
    let at = i128::from(root.offset);
    stack.extend(
        copies(at, bounds(&root), count, layout.extent()).map(|copy| (at + copy * i128::from(layout.extent()), root)),
    );
    while let Some((at, edge)) = stack.pop() {
        let (low, high) = bounds(&edge);
        if at + high <= granule || at + low >= granule + i128::from(GRANULE) {
            continue;
        }
        looked_at += 1;
        match layout.node(edge.node) {
            Node::Dense { count, kind } => cover(at, count * kind.size()),
            Node::Runs { runs, kind } => {
                looked_at += runs.len() as u64;
                runs.iter().for_each(|run| cover(at + i128::from(run.offset), run.count * kind.size()));
            }
            Node::Stream { count, stride, child } => {
                let at = at + i128::from(child.offset);
                let copies = copies(at, bounds(child), *count, *stride);
                stack.extend(copies.map(|copy| (at + copy * i128::from(*stride), *child)));
            }
            Node::Indexed { offsets, child } => {
                let at = at + i128::from(child.offset);
                looked_at += offsets.len() as u64;
                stack.extend(offsets.iter().map(|&offset| (at + i128::from(offset), *child)));
            }
            Node::Record { parts } => {
                stack.extend(parts.iter().map(|part| (at + i128::from(part.offset), *part)));
            }
        }
    }
    (mask, bytes, looked_at)
}
