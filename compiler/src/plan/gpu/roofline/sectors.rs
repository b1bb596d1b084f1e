//! How many granules and sectors of memory a set of addresses touches.

use crate::layout::address_set::{AddressSet, SetId, SetNode, SetShape};
use crate::plan::gpu::sizes::SECTOR;

/// Bytes that DRAM is read in by default: two sectors. Measured on an H200: a pack of 8 in 64 bytes reads all of memory.
pub(crate) const GRANULE: u64 = 64;

/// What is touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Granules with at least one byte of the set.
    pub(super) granules: u64,
    /// Sectors with at least one byte of the set.
    pub(super) sectors: u64,
    /// Sectors all of whose bytes are in the set.
    pub(super) full: u64,
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            granules: self.granules + other.granules,
            sectors: self.sectors + other.sectors,
            full: self.full + other.full,
        }
    }

    fn whole(granules: u64) -> Counts {
        Counts { granules, sectors: 2 * granules, full: 2 * granules }
    }
}

/// Bytes of the set in either sector of a granule.
type Covered = [u8; 2];

fn counts(covered: Covered) -> Counts {
    let number = |is: fn(u8) -> bool| covered.iter().filter(|&&bytes| is(bytes)).count() as u64;
    Counts { granules: 1, sectors: number(|bytes| bytes > 0), full: number(|bytes| u64::from(bytes) == SECTOR) }
}

/// The bytes of a granule from one on and before another.
fn covered(from: u64, to: u64) -> Covered {
    let sector = |begin: u64| to.min(begin + SECTOR).saturating_sub(from.max(begin)) as u8;
    [sector(0), sector(SECTOR)]
}

/// A set at a place: the granules at its ends, which neighbours may share, and what is between them.
#[derive(Clone, Copy)]
struct Span {
    /// Granules from the one where address 0 of the set is.
    first: u64,
    last: u64,
    head: Covered,
    /// The head again where the first granule is the last.
    tail: Covered,
    between: Counts,
}

impl Span {
    fn block(residue: u64, bytes: u64) -> Span {
        let end = residue + bytes;
        let last = (end - 1) / GRANULE;
        if last == 0 {
            let head = covered(residue, end);
            return Span { first: 0, last, head, tail: head, between: Counts::default() };
        }
        let (head, tail) = (covered(residue, GRANULE), covered(0, end - last * GRANULE));
        Span { first: 0, last, head, tail, between: Counts::whole(last - 1) }
    }

    fn moved(self, granules: u64) -> Span {
        Span { first: self.first + granules, last: self.last + granules, ..self }
    }

    fn is_single(&self) -> bool {
        self.first == self.last
    }

    /// This one and one whose addresses are all higher: they share a granule at most.
    fn then(self, next: Span) -> Span {
        let mut between = self.between.plus(next.between);
        let (mut head, mut tail) = (self.head, next.tail);
        if self.last == next.first {
            let shared = [self.tail[0] + next.head[0], self.tail[1] + next.head[1]];
            match (self.is_single(), next.is_single()) {
                (false, false) => between = between.plus(counts(shared)),
                (single, next_single) => {
                    head = if single { shared } else { head };
                    tail = if next_single { shared } else { tail };
                }
            }
        } else {
            if !self.is_single() {
                between = between.plus(counts(self.tail));
            }
            if !next.is_single() {
                between = between.plus(counts(next.head));
            }
        }
        Span { first: self.first, last: next.last, head, tail, between }
    }

    /// Copies at a distance in granules, by doubling.
    fn repeated(self, mut count: u64, granules: u64) -> Option<Span> {
        let (mut done, mut at) = (None::<Span>, 0);
        let (mut power, mut step) = (self, granules);
        while count > 0 {
            if count & 1 == 1 {
                let moved = power.moved(at);
                done = Some(done.map_or(moved, |done| done.then(moved)));
                at += step;
            }
            count >>= 1;
            if count > 0 {
                power = power.then(power.moved(step));
                step *= 2;
            }
        }
        done
    }

    fn counts(self) -> Counts {
        let ends = counts(self.head).plus(if self.is_single() { Counts::default() } else { counts(self.tail) });
        self.between.plus(ends)
    }
}

/// Spans that may be put together: twice as many took 3 ms on a Zen 5. Sets with long lists may have as many for each of their nodes and
/// parts.
const SPANS: u64 = 1 << 17;

/// What a set touches that begins at an address. Time in proportion to its parts; nothing for sets whose parts begin at too many places
/// inside a granule.
pub(super) fn touched(set: &AddressSet, root: SetId, address: u64) -> Option<Counts> {
    // From parents to children: the places inside a granule where copies of a node begin, as bits.
    let mut residues = vec![0u64; set.nodes().len()];
    let parts = |node: &SetNode| if let SetShape::Parts(parts) = &node.shape { parts.len() as u64 } else { 1 };
    let mut left = SPANS + 2 * set.nodes().iter().map(parts).sum::<u64>();
    residues[root.index()] |= 1 << (address % GRANULE);
    for (index, node) in set.nodes().iter().enumerate().take(root.index() + 1).rev() {
        let each = match &node.shape {
            SetShape::Repeat { count, stride, .. } => 2 * (*count).min(period(*stride)),
            SetShape::Block | SetShape::Parts(_) => parts(node),
        };
        left = left.checked_sub(u64::from(residues[index].count_ones()) * each)?;
        let bits = std::iter::successors(Some(residues[index]), |bits| Some(bits & bits.wrapping_sub(1)));
        for residue in bits.take_while(|&bits| bits != 0).map(|bits| u64::from(bits.trailing_zeros())) {
            match &node.shape {
                SetShape::Block => {}
                SetShape::Repeat { count, stride, child } => {
                    for copy in 0..(*count).min(period(*stride)) {
                        residues[child.index()] |= 1 << ((residue + copy * stride) % GRANULE);
                    }
                }
                SetShape::Parts(parts) => {
                    for (offset, part) in parts {
                        residues[part.index()] |= 1 << ((residue + offset) % GRANULE);
                    }
                }
            }
        }
    }
    // From children to parents: the span of each node from each of these places on.
    let mut spans: Vec<Vec<Span>> = Vec::with_capacity(root.index() + 1);
    for (index, node) in set.nodes().iter().enumerate().take(root.index() + 1) {
        let of = |child: SetId, at: u64| {
            let below = residues[child.index()] & ((1 << (at % GRANULE)) - 1);
            let known = spans[child.index()].get(below.count_ones() as usize);
            known.map(|span| span.moved(at / GRANULE))
        };
        let span = |residue: u64| match &node.shape {
            SetShape::Block => Some(Span::block(residue, set.extent(SetId::at(index)))),
            SetShape::Repeat { count, stride, child } => {
                let period = period(*stride);
                let copies = |from: u64, to: u64| {
                    let spans = (from..to).filter_map(|copy| of(*child, residue + copy * stride));
                    spans.reduce(Span::then)
                };
                if *count <= period {
                    return copies(0, *count);
                }
                let rounds = count / period;
                let all = copies(0, period)?.repeated(rounds, period * stride / GRANULE)?;
                Some(copies(rounds * period, *count).map_or(all, |rest| all.then(rest)))
            }
            SetShape::Parts(parts) => {
                parts.iter().filter_map(|&(offset, part)| of(part, residue + offset)).reduce(Span::then)
            }
        };
        let found = (0..GRANULE).filter(|residue| residues[index] >> residue & 1 == 1);
        spans.push(found.filter_map(span).collect());
    }
    Some(spans[root.index()].first().map_or(Counts::default(), |span| span.counts()))
}

/// Copies at a stride after which they begin at the same place of a granule again.
fn period(stride: u64) -> u64 {
    GRANULE >> stride.trailing_zeros().min(GRANULE.trailing_zeros())
}
