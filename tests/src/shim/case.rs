//! Initial and expected contents of one launch.

use super::kernel::Kernel;
use crate::reduce;
use dtc_compiler::layout::Layout;
use dtc_compiler::operation::Reduction;
use rand::Rng;
use rand::rngs::SmallRng;

/// Allowed accesses to some bytes, and their comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only; unchanged afterwards.
    Read,
    /// Written only.
    Write,
    /// Written only, with any value: an unpack to a byte that is in the map twice.
    WriteAny,
    /// Read and written.
    Update,
    /// Read and written, with any value afterwards.
    UpdateAny,
}

/// Bytes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte: a displacement in memory, or a packed byte relative to the first one of the call.
    pub position: i64,
    /// Allowed accesses.
    pub access: Access,
    /// Contents at the launch.
    pub before: Vec<u8>,
    /// Expected contents afterwards; empty if the access determines them.
    pub after: Vec<u8>,
}

/// A buffer. All bytes outside its ranges are poisoned and must stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Address of position 0, modulo 4096.
    pub alignment: usize,
    /// Disjoint and ascending; all other bytes are closed. If no byte of a page is in a range, touching the page is a
    /// fault.
    pub ranges: Vec<Range>,
}

/// One launch.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name in messages.
    pub name: String,
    /// Kernel to launch.
    pub kernel: Kernel,
    /// First packed byte of the call.
    pub first: u64,
    /// Number of packed bytes.
    pub bytes: u64,
    /// Memory, with displacement 0 of element 0 at position 0.
    pub memory: Buffer,
    /// The packed bytes, with byte `first` at position 0.
    pub packed: Buffer,
}

/// The alignments of a case: addresses modulo 4096.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Address of displacement 0.
    pub memory: usize,
    /// Address of packed byte `first`.
    pub packed: usize,
}

impl Placement {
    /// Random alignments.
    pub fn random(rng: &mut SmallRng) -> Placement {
        Placement { memory: rng.random_range(0..4096), packed: rng.random_range(0..4096) }
    }

    /// Random addresses that are multiples of `to` bytes.
    pub fn aligned(rng: &mut SmallRng, to: usize) -> Placement {
        let any = Placement::random(rng);
        Placement { memory: any.memory / to * to, packed: any.packed / to * to }
    }
}

/// Positions of packed bytes `first..first + bytes` of a count of elements, according to the reference walker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// First packed byte.
    pub first: u64,
    /// Number of packed bytes.
    pub bytes: u64,
    /// Displacement and length of maximal pieces in packed order.
    pub pieces: Vec<(i64, u64)>,
    /// Lowest displacement of a byte of all elements, moved or not.
    pub low: i64,
    /// One past the highest displacement.
    pub high: i64,
}

/// A range of displacements that one or more pieces cover.
struct Stretch {
    start: i64,
    end: i64,
    twice: bool,
}

/// Kernels may read across gaps shorter than this, in bytes.
const READABLE_GAP: i64 = 4096;
/// Alignment and bytes of the granules that kernels may read around a byte of the map.
const GRANULE: i64 = 16;

impl Fragment {
    /// Walks the layout.
    ///
    /// # Panics
    ///
    /// `count` elements have fewer than `first + bytes` bytes.
    pub fn new(layout: &Layout, count: u64, first: u64, bytes: u64) -> Fragment {
        let size = layout.size();
        let end = first + bytes;
        assert!(end <= size * count, "packed bytes {first}..{end} of {} requested for", size * count);
        let mut pieces: Vec<(i64, u64)> = Vec::new();
        let elements = if bytes == 0 { 0..0 } else { first / size..end.div_ceil(size) };
        for element in elements {
            let mut position = element * size;
            let shift = if element == 0 { 0 } else { element as i64 * layout.extent() };
            for piece in layout.walk() {
                let (from, to) = (position.max(first), (position + piece.bytes()).min(end));
                if from < to {
                    let displacement = shift + piece.offset + (from - position) as i64;
                    match pieces.last_mut() {
                        Some((last, length)) if *last + *length as i64 == displacement => *length += to - from,
                        _ => pieces.push((displacement, to - from)),
                    }
                }
                position += piece.bytes();
                if position >= end {
                    break;
                }
            }
        }
        // A single element has no use for the extent, which may be anything.
        let last = if count <= 1 { 0 } else { (count - 1) as i64 * layout.extent() };
        let (low, high) = (layout.true_lb() + last.min(0), layout.true_ub() + last.max(0));
        Fragment { first, bytes, pieces, low, high }
    }

    /// Whether two pieces share bytes.
    pub fn overlaps(&self) -> bool {
        self.stretches().iter().any(|stretch| stretch.twice)
    }

    /// The covered ranges, ascending and disjoint.
    fn stretches(&self) -> Vec<Stretch> {
        let mut borders: Vec<(i64, i32)> =
            self.pieces.iter().flat_map(|&(at, length)| [(at, 1), (at + length as i64, -1)]).collect();
        borders.sort_unstable();
        let mut stretches: Vec<Stretch> = Vec::new();
        let (mut depth, mut start) = (0, 0);
        for (at, step) in borders {
            if depth > 0 && at > start {
                let twice = depth > 1;
                match stretches.last_mut() {
                    Some(last) if last.end == start && last.twice == twice => last.end = at,
                    _ => stretches.push(Stretch { start, end: at, twice }),
                }
            }
            (depth, start) = (depth + step, at);
        }
        stretches
    }

    /// Bytes that a pack may read: aligned granules around the bytes that it moves, and short gaps between those.
    /// Nothing before the first or after the last byte of all elements may be read.
    fn readable(&self, alignment: usize) -> Vec<(i64, i64)> {
        let alignment = alignment as i64;
        let mut readable: Vec<(i64, i64)> = Vec::new();
        let mut previous = i64::MIN / 2;
        for Stretch { start, end, .. } in self.stretches() {
            let from = ((start + alignment).div_euclid(GRANULE) * GRANULE - alignment).max(self.low);
            let to = (-(-(end + alignment)).div_euclid(GRANULE) * GRANULE - alignment).min(self.high);
            match readable.last_mut() {
                // The gap is counted from the last byte of one stretch to the first byte of the next.
                Some(last) if from <= last.1 || start - (previous - 1) < READABLE_GAP => last.1 = to,
                _ => readable.push((from, to)),
            }
            previous = end;
        }
        readable
    }
}

fn random_bytes(rng: &mut SmallRng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes[..]);
    bytes
}

/// The range that contains a displacement, as index and offset.
fn find(ranges: &[Range], displacement: i64) -> (usize, usize) {
    let index = ranges.partition_point(|range| range.position <= displacement) - 1;
    (index, (displacement - ranges[index].position) as usize)
}

impl Case {
    /// A case that packs random bytes. It allows the reads beyond the map that dtc's kernels may make.
    pub fn pack(name: &str, kernel: &Kernel, fragment: &Fragment, placement: Placement, rng: &mut SmallRng) -> Case {
        let range = |(from, to): (i64, i64)| Range {
            position: from,
            access: Access::Read,
            before: random_bytes(rng, (to - from) as usize),
            after: Vec::new(),
        };
        let ranges: Vec<Range> = fragment.readable(placement.memory).into_iter().map(range).collect();
        let mut after = Vec::with_capacity(fragment.bytes as usize);
        for &(displacement, length) in &fragment.pieces {
            let (index, at) = find(&ranges, displacement);
            after.extend_from_slice(&ranges[index].before[at..at + length as usize]);
        }
        let packed = Range { position: 0, access: Access::Write, before: random_bytes(rng, after.len()), after };
        Case::new(name, kernel, fragment, placement, ranges, packed)
    }

    /// A case that unpacks random bytes.
    pub fn unpack(name: &str, kernel: &Kernel, fragment: &Fragment, placement: Placement, rng: &mut SmallRng) -> Case {
        let source = random_bytes(rng, fragment.bytes as usize);
        let mut ranges: Vec<Range> = Vec::new();
        for Stretch { start, end, twice } in fragment.stretches() {
            let before = random_bytes(rng, (end - start) as usize);
            let access = if twice { Access::WriteAny } else { Access::Write };
            ranges.push(Range { position: start, access, after: before.clone(), before });
        }
        let mut position = 0;
        for &(displacement, length) in &fragment.pieces {
            // A piece is in several ranges if others cover parts of it.
            let end = displacement + length as i64;
            let mut at = displacement;
            while at < end {
                let (index, offset) = find(&ranges, at);
                let target = &mut ranges[index].after[offset..];
                let taken = target.len().min((end - at) as usize);
                target[..taken].copy_from_slice(&source[position..position + taken]);
                (at, position) = (at + taken as i64, position + taken);
            }
        }
        let packed = Range { position: 0, access: Access::Read, before: source, after: Vec::new() };
        Case::new(name, kernel, fragment, placement, ranges, packed)
    }

    /// A case that accumulates random elements. The fragment has whole elements, and no byte twice.
    pub fn accumulate(
        name: &str,
        kernel: &Kernel,
        fragment: &Fragment,
        placement: Placement,
        reduction: Reduction,
        rng: &mut SmallRng,
    ) -> Case {
        let (mut before, mut packed, mut after) = (Vec::new(), Vec::new(), Vec::new());
        while before.len() < fragment.bytes as usize {
            let [mine, theirs, result] = reduce::draw_both(reduction, rng);
            before.extend(mine);
            packed.extend(theirs);
            after.extend(result);
        }
        let update = |Stretch { start, end, .. }: Stretch| {
            let bytes = vec![0; (end - start) as usize];
            Range { position: start, access: Access::Update, before: bytes.clone(), after: bytes }
        };
        let mut ranges: Vec<Range> = fragment.stretches().into_iter().map(update).collect();
        let mut position = 0;
        for &(displacement, length) in &fragment.pieces {
            let (index, at) = find(&ranges, displacement);
            let (from, to) = (position..position + length as usize, at..at + length as usize);
            ranges[index].before[to.clone()].copy_from_slice(&before[from.clone()]);
            ranges[index].after[to].copy_from_slice(&after[from.clone()]);
            position = from.end;
        }
        let packed = Range { position: 0, access: Access::Read, before: packed, after: Vec::new() };
        Case::new(name, kernel, fragment, placement, ranges, packed)
    }

    /// A case that copies random bytes between the elements of two fragments; the target replaces the packed bytes and
    /// has no byte twice.
    pub fn copy(
        name: &str,
        kernel: &Kernel,
        source: &Fragment,
        target: &Fragment,
        placement: Placement,
        rng: &mut SmallRng,
    ) -> Case {
        let packed = Case::pack(name, kernel, source, placement, rng);
        let write = |Stretch { start, end, .. }: Stretch| {
            let before = random_bytes(rng, (end - start) as usize);
            Range { position: start, access: Access::Write, after: before.clone(), before }
        };
        let mut ranges: Vec<Range> = target.stretches().into_iter().map(write).collect();
        let mut rest = packed.packed.ranges.first().map_or(&[][..], |range| &range.after);
        for &(displacement, length) in &target.pieces {
            let (index, at) = find(&ranges, displacement);
            let (taken, left) = rest.split_at(length as usize);
            ranges[index].after[at..at + taken.len()].copy_from_slice(taken);
            rest = left;
        }
        Case { packed: Buffer { alignment: placement.packed, ranges }, ..packed }
    }

    fn new(
        name: &str,
        kernel: &Kernel,
        fragment: &Fragment,
        placement: Placement,
        memory: Vec<Range>,
        packed: Range,
    ) -> Case {
        let &Fragment { first, bytes, .. } = fragment;
        Case {
            name: format!(
                "{name}, packed bytes {first}..{}, memory at {} and packed at {} modulo 4096",
                first + bytes,
                placement.memory,
                placement.packed
            ),
            kernel: kernel.clone(),
            first,
            bytes,
            memory: Buffer { alignment: placement.memory, ranges: memory },
            packed: Buffer { alignment: placement.packed, ranges: if bytes == 0 { Vec::new() } else { vec![packed] } },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fragment of all bytes of a type.
    fn fragment(pieces: &[(i64, u64)]) -> Fragment {
        let low = pieces.iter().map(|piece| piece.0).min().unwrap_or(0);
        let high = pieces.iter().map(|&(at, length)| at + length as i64).max().unwrap_or(0);
        Fragment { first: 0, bytes: pieces.iter().map(|piece| piece.1).sum(), pieces: pieces.to_vec(), low, high }
    }

    #[test]
    fn walks_fragments_across_elements() {
        let text = "layout lb 0 extent 20 {\n  %0 = dense 4 x byte\n  %1 = indexed [12 0] of %0\n  root %1\n}";
        let layout = Layout::parse(text).unwrap();
        let fragment = Fragment::new(&layout, 3, 6, 12);
        assert_eq!(fragment.pieces, [(2, 2), (32, 4), (20, 4), (52, 2)]);
        assert_eq!((fragment.low, fragment.high), (0, 56));
        assert_eq!(Fragment::new(&layout, 3, 24, 0).pieces, []);
    }

    #[test]
    fn reads_are_limited() {
        // Granules are aligned by address; the ends of the map are closed for any granule.
        assert_eq!(fragment(&[(10_000, 3), (5, 3)]).readable(2), [(5, 14), (9998, 10_003)]);
        // A distance of 4095 bytes from the last byte to the next may be read across, 4096 may not.
        assert_eq!(fragment(&[(0, 1), (4095, 1)]).readable(0), [(0, 4096)]);
        assert_eq!(fragment(&[(0, 1), (4096, 1)]).readable(0), [(0, 16), (4096, 4097)]);
        assert_eq!(fragment(&[]).readable(0), []);
        // Bytes of the type that the call does not move extend the readable range.
        let part = Fragment { low: -100, high: 8, ..fragment(&[(4, 2)]) };
        assert_eq!(part.readable(0), [(0, 8)]);
    }

    #[test]
    fn bytes_under_two_pieces_may_get_either_value() {
        let stretches = fragment(&[(0, 8), (4, 8), (12, 1)]).stretches();
        let found: Vec<_> = stretches.iter().map(|s| (s.start, s.end, s.twice)).collect();
        assert_eq!(found, [(0, 4, false), (4, 8, true), (8, 13, false)]);
    }
}
