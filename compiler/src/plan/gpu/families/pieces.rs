//! Layouts of listed runs, moved by their runs and not by the words of the packed bytes: no thread searches for its run.

use super::{Instance, KernelFamily, Query};
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, Call, Cut, Grid, KernelList, KernelText, LibraryPart, ListedPiece, PiecesTuning,
    Structure, Tuning, Units, WARP, WIDEST, alignment,
};
use minijinja::{Value, context};
use std::fmt;

/// A kernel that moves runs, or pieces of long ones, found by their numbers and not by their bytes. Packs of short ones pass through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PiecesKernel;

/// Runs at most of a node that does not list them itself.
const MOST_RUNS: u64 = 1 << 12;

/// Pieces that have a base of their own: the lanes of a warp.
const BASED: usize = WARP as usize;

/// The runs of a node, cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The node that has the runs.
    pub record: NodeId,
    /// Its packed bytes.
    pub size: u64,
    /// The mean length of its runs.
    pub mean: u64,
    /// Whether each run is behind the one before in memory.
    pub ascending: bool,
    /// Whether a list has runs of one length: a division finds the run of a word.
    equal: bool,
    /// The cuts of packs and unpacks, and how many pieces each makes.
    cuts: [(Cut, u64); 2],
}

impl Structure for Pieces {}

impl Pieces {
    /// How a direction cuts runs.
    pub fn cut(&self, direction: Direction) -> Cut {
        self.cuts[direction as usize].0
    }

    /// How many pieces a direction makes of the node.
    pub fn count(&self, direction: Direction) -> u64 {
        self.cuts[direction as usize].1
    }

    /// Nodes that a call touches.
    fn records(&self, call: &Call) -> u64 {
        (call.first + call.bytes).div_ceil(self.size) - call.first / self.size
    }

    /// Bytes of shared memory that `threads` threads pack through, from inside an aligned word on.
    fn shared_bytes(&self, direction: Direction, threads: u32) -> u32 {
        let Cut { bytes, lanes, unroll } = self.cut(direction);
        if lanes == 1 && direction == Direction::Pack { threads * unroll * bytes + 16 } else { 0 }
    }
}

impl Cut {
    /// Calls with offset and packed place of every piece of a run. Pieces that several lanes move end at aligned bytes of the
    /// side that is written.
    fn pieces(self, direction: Direction, offset: i64, packed: u64, length: u64, mut tell: impl FnMut(i64, u64)) {
        let mut at = 0;
        let mut next = u64::from(self.bytes) - self.ahead(direction, offset, packed);
        while at < length {
            tell(offset + at as i64, packed + at);
            at = next;
            next += u64::from(self.bytes);
        }
    }

    /// How many pieces that is.
    fn count(self, direction: Direction, offset: i64, packed: u64, length: u64) -> u64 {
        // Dividing would take longer than all the rest.
        let bytes = u64::from(self.bytes);
        (self.ahead(direction, offset, packed) + length + bytes - 1) >> bytes.trailing_zeros()
    }

    /// Bytes between the last place where pieces may begin and the run.
    fn ahead(self, direction: Direction, offset: i64, packed: u64) -> u64 {
        let written = if direction == Direction::Pack { packed } else { offset as u64 };
        if self.lanes == 1 { 0 } else { written & (u64::from(self.bytes) - 1) }
    }
}

/// Finds the listed runs of a layout that are of more than one length.
fn find(analysis: &Analysis) -> Option<Pieces> {
    let (layout, tuning) = (&analysis.layout, &analysis.tuning.pieces);
    let mut at = layout.root();
    while let Node::Stream { child, .. } = layout.node(at.node) {
        at = *child;
    }
    let measure = layout.measure(at.node);
    let listed = match layout.node(at.node) {
        Node::Runs { .. } => true,
        Node::Record { .. } | Node::Indexed { .. } => measure.runs <= MOST_RUNS.max(2 * layout.entries()),
        Node::Dense { .. } | Node::Stream { .. } => false,
    };
    // Lists of pieces have 32 bits, also what is between the places of a run in memory and among the packed bytes.
    let size = measure.size as i64;
    let bounds = [measure.low, measure.high, size, measure.low.saturating_sub(size)];
    let near = bounds.iter().all(|&bound| i32::try_from(bound).is_ok());
    if !listed || measure.runs < 2 || !near {
        return None;
    }
    let mean = measure.size / measure.runs;
    // Not what the root is displaced by: a batch counts from there.
    let (record, mut places) = (Edge { offset: 0, node: at.node }, layout.extent() as u64);
    let (mut ascending, mut end) = (true, measure.low);
    let mut equal = matches!(layout.node(at.node), Node::Indexed { .. });
    each_run(layout, record, &mut |offset, length| {
        places |= offset as u64;
        equal &= length == mean;
        ascending &= offset >= end;
        end = offset + length as i64;
    });
    let starts = alignment(places);
    let mut cuts =
        [Direction::Pack, Direction::Unpack].map(|direction| (cut(direction, mean, measure.size, starts, tuning), 0));
    let mut packed = 0;
    each_run(layout, record, &mut |offset, length| {
        for (direction, (cut, count)) in [Direction::Pack, Direction::Unpack].into_iter().zip(&mut cuts) {
            *count += cut.count(direction, offset, packed, length);
        }
        packed += length;
    });
    Some(Pieces { record: at.node, size: measure.size, mean, ascending, equal, cuts })
}

/// How a node of `size` packed bytes cuts runs of `mean` bytes on average, at multiples of `starts` in memory.
fn cut(direction: Direction, mean: u64, size: u64, starts: u32, tuning: &PiecesTuning) -> Cut {
    let cuts = match (direction, size >= tuning.large) {
        (Direction::Pack, false) => tuning.small_pack,
        (Direction::Pack, true) => tuning.large_pack,
        (Direction::Unpack, false) => tuning.small_unpack,
        (Direction::Unpack, true) => tuning.large_unpack,
    };
    let (_, cut) = cuts.iter().find(|(least, _)| mean >= *least).unwrap_or(&cuts[0]);
    let aligned = direction == Direction::Unpack && cut.lanes == 1 && starts >= tuning.aligned_single;
    if aligned { Cut { bytes: tuning.aligned_single, ..*cut } } else { *cut }
}

/// Calls with offset and length of every run below an edge, in packed order.
pub(crate) fn each_run(layout: &Layout, at: Edge, tell: &mut impl FnMut(i64, u64)) {
    match layout.node(at.node) {
        Node::Dense { count, kind } => tell(at.offset, count * kind.size()),
        Node::Runs { runs, kind } => runs.iter().for_each(|run| tell(at.offset + run.offset, run.count * kind.size())),
        Node::Stream { count, stride, child } => {
            each_copy(layout, at.offset, (0..*count as i64).map(|copy| copy * stride), *child, tell);
        }
        Node::Indexed { offsets, child } => each_copy(layout, at.offset, offsets.iter().copied(), *child, tell),
        Node::Record { parts } => {
            let displaced = |part: &Edge| Edge { offset: at.offset + part.offset, ..*part };
            parts.iter().for_each(|part| each_run(layout, displaced(part), tell));
        }
    }
}

/// Does so for copies of a child. A call for each copy of a dense one would take longer than what is done with its run.
fn each_copy(
    layout: &Layout,
    base: i64,
    offsets: impl Iterator<Item = i64>,
    child: Edge,
    tell: &mut impl FnMut(i64, u64),
) {
    let base = base + child.offset;
    match layout.node(child.node) {
        Node::Dense { count, kind } => offsets.for_each(|offset| tell(base + offset, count * kind.size())),
        _ => offsets.for_each(|offset| each_run(layout, Edge { offset: base + offset, ..child }, tell)),
    }
}

/// Whether an unpack stores runs of `mean` bytes on average in words of 2 bytes, if these are aligned: faster than pieces, although each word looks up its
/// run.
pub(super) fn in_shorts(query: &Query<'_>, mean: u64) -> bool {
    query.unpacks() && query.word == 2 && query.tuning().pieces.in_shorts.contains(&mean)
}

/// Whether runs are faster in words of `word` bytes, although each word looks up its run: runs of one length, and those of other long lists.
pub(super) fn in_words(analysis: &Analysis, direction: Direction, word: u32) -> bool {
    let Some(&Pieces { equal, mean, size, .. }) = analysis.found() else { return false };
    let tuning = &analysis.tuning.pieces;
    let long = size >= tuning.large;
    match (word, direction) {
        (WIDEST, _) => equal || long,
        (8, _) => equal || (long && mean >= tuning.in_words_of_8),
        (4, Direction::Pack) => equal && tuning.in_words_of_4.contains(&mean),
        (4, Direction::Unpack) => (equal || long) && tuning.in_words_of_4.contains(&mean),
        _ => false,
    }
}

/// Serves calls of many runs that have most of the nodes which they touch. In others, each thread moves words, and searches the list for the run of each.
pub(super) fn admits(query: &Query<'_>) -> Option<PiecesKernel> {
    let (pieces, tuning) = (query.found::<Pieces>()?, &query.tuning().pieces);
    if in_words(query.analysis, query.direction, query.aligned_word()) {
        return None;
    }
    let by_alignment = if query.unpacks() { tuning.unpack_runs } else { tuning.pack_runs };
    let least = match query.word {
        ..4 if !in_shorts(query, pieces.mean) => by_alignment[0],
        4 => by_alignment[1],
        _ => by_alignment[2],
    };
    let many = tuning.min_bytes.iter().find(|(least, _)| pieces.mean >= *least).map_or(0, |&(_, bytes)| bytes);
    let most = query.call.bytes >= pieces.records(&query.call).saturating_mul(pieces.size) / 2;
    (pieces.mean >= least && query.call.bytes >= many && most).then_some(PiecesKernel)
}

/// The pieces of a node as kernels list them, and behind the last where the packed bytes end.
fn listed(pieces: &Pieces, layout: &Layout, direction: Direction) -> Vec<ListedPiece> {
    let mut list = Vec::with_capacity(pieces.count(direction) as usize + 1);
    let (cut, mut packed) = (pieces.cut(direction), 0);
    each_run(layout, Edge { offset: 0, node: pieces.record }, &mut |offset, length| {
        cut.pieces(direction, offset, packed, length, |offset, packed| list.push((offset, packed)));
        packed += length;
    });
    debug_assert_eq!(list.len() as u64, pieces.count(direction));
    list.push((list.last().map_or(0, |last| last.0), packed));
    list
}

/// Pieces as numbers of 32 bits, memory offset and packed place in 16 each, counted from a base for every [`BASED`] of them; and these
/// bases. None if the pieces of a base are too far from each other.
fn near(pieces: &[ListedPiece]) -> Option<(Vec<u32>, Vec<ListedPiece>)> {
    let mut near = Vec::with_capacity(pieces.len());
    let mut bases = Vec::with_capacity(pieces.len().div_ceil(BASED));
    for group in pieces.chunks(BASED) {
        let base = (group.iter().map(|piece| piece.0).min()?, group.first()?.1);
        for piece in group {
            let offset = u16::try_from(piece.0 - base.0).ok()?;
            let packed = u16::try_from(piece.1 - base.1).ok()?;
            near.push(u32::from(packed) << 16 | u32::from(offset));
        }
        bases.push(base);
    }
    Some((near, bases))
}

impl KernelFamily for PiecesKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<PiecesKernel> {
        query.found::<Pieces>().map(|_| PiecesKernel).into_iter().collect()
    }

    fn indices(&self, analysis: &Analysis, direction: Direction, call: &Call) -> u64 {
        let end = call.end();
        let count = |pieces: &Pieces| {
            let touched = pieces.records(call).checked_mul(pieces.count(direction))?;
            Some(touched.max(end / pieces.size))
        };
        analysis.found().and_then(count).unwrap_or(end)
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, capped: bool) -> u32 {
        // On few multiprocessors, as many bytes under way as words have.
        if capped { tuning.words.capped_threads } else { tuning.pieces.threads }
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let pieces = instance.analysis.found::<Pieces>()?;
        let Cut { lanes, unroll, .. } = pieces.cut(instance.direction);
        let each = if lanes == 1 { instance.threads * unroll } else { instance.threads / lanes };
        let grid = Grid::new(Units::Touched, pieces.size, each.into());
        Some(Grid { share: pieces.count(instance.direction), ..grid })
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        let pieces = instance.analysis.found::<Pieces>()?;
        Some(pieces.shared_bytes(instance.direction, instance.threads))
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        instance.may_prefetch() && !instance.analysis.whole_sectors
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let (pieces, direction) = (instance.analysis.found::<Pieces>()?, instance.direction);
        let Cut { bytes, lanes, unroll } = pieces.cut(direction);
        let list = listed(pieces, &instance.analysis.layout, direction);
        // Pieces of a few bytes have short entries where they are near to each other.
        let (lists, bases) = match (lanes == 1).then(|| near(&list)).flatten() {
            Some((near, bases)) => {
                (vec![("list", KernelList::Numbers(near)), ("bases", KernelList::Pieces(bases))], Value::UNDEFINED)
            }
            None => (vec![("list", KernelList::Pieces(list))], context! { bases => () }),
        };
        let (template, library) = match direction {
            _ if lanes > 1 => ("long_runs", vec![LibraryPart::Funnel]),
            Direction::Pack => ("short_runs", vec![]),
            Direction::Unpack => ("short_runs", vec![LibraryPart::StoreBytes]),
        };
        let values = context! {
            size => pieces.size, pieces => pieces.count(direction), piece => bytes, lanes, unroll,
            // Bytes of either end that a lane has: fewer than a word together.
            edge => WIDEST.div_ceil(lanes),
            single => bytes <= lanes * unroll * WIDEST,
            ..bases
        };
        let outer = AddressFunction::Records { record: pieces.record, size: pieces.size };
        Some(KernelText { values, lists, library, ..KernelText::new(template, 1, vec![outer]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("runs, each found by its number")
    }
}
