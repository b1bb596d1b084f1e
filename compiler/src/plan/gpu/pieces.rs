//! Layouts of listed runs, moved by their runs and not by the words of the packed bytes: no thread searches for its run.

use super::call::Call;
use super::cost::{self, Cut};
use super::granularity::alignment;
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;

/// Runs at most of a node that does not list them itself.
const MOST_RUNS: u64 = 1 << 12;

/// The runs of a node, cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The node that has the runs.
    pub record: NodeId,
    /// Its packed bytes.
    pub size: u64,
    /// The mean length of its runs.
    pub mean: u64,
    /// Whether each run lies behind the one before in memory.
    pub ascending: bool,
    /// The cuts of packs and unpacks, and how many pieces each makes.
    cuts: [(Cut, u64); 2],
}

impl Pieces {
    /// How a direction cuts runs.
    pub fn cut(&self, direction: Direction) -> Cut {
        self.cuts[direction as usize].0
    }

    /// How many pieces a direction makes of the node.
    pub fn count(&self, direction: Direction) -> u64 {
        self.cuts[direction as usize].1
    }

    /// Whether a call has most of the pieces of the nodes that it touches.
    pub(super) fn pays(&self, call: &Call) -> bool {
        call.bytes >= self.records(call).saturating_mul(self.size) / 2
    }

    /// Nodes that a call touches.
    fn records(&self, call: &Call) -> u64 {
        (call.first + call.bytes).div_ceil(self.size) - call.first / self.size
    }

    /// Pieces of the nodes that a call touches.
    pub(super) fn of_call(&self, direction: Direction, call: &Call) -> Option<u64> {
        self.records(call).checked_mul(self.count(direction))
    }

    /// Bytes of shared memory that `threads` threads pack through, from inside an aligned word on.
    pub(crate) fn shared_bytes(&self, direction: Direction, threads: u32) -> u32 {
        let Cut { bytes, lanes, unroll } = self.cut(direction);
        if lanes == 1 && direction == Direction::Pack { threads * unroll * bytes + 16 } else { 0 }
    }
}

impl Cut {
    /// Calls with offset and packed place of every piece of a run. Pieces that several lanes move end at aligned bytes of the
    /// side that is written.
    pub(crate) fn pieces(
        self,
        direction: Direction,
        offset: i64,
        packed: u64,
        length: u64,
        mut tell: impl FnMut(i64, u64),
    ) {
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
pub(super) fn find(layout: &Layout) -> Option<Pieces> {
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
    each_run(layout, record, &mut |offset, length| {
        places |= offset as u64;
        ascending &= offset >= end;
        end = offset + length as i64;
    });
    let starts = alignment(places);
    let mut cuts =
        [Direction::Pack, Direction::Unpack].map(|direction| (cost::cut(direction, mean, measure.size, starts), 0));
    let mut packed = 0;
    each_run(layout, record, &mut |offset, length| {
        for (direction, (cut, count)) in [Direction::Pack, Direction::Unpack].into_iter().zip(&mut cuts) {
            *count += cut.count(direction, offset, packed, length);
        }
        packed += length;
    });
    Some(Pieces { record: at.node, size: measure.size, mean, ascending, cuts })
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
