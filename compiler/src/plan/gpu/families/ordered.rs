//! Lists, and short rows of arrays, whose packed order is not that of memory, to be unpacked in the order of memory.
//!
//! A load from anywhere costs a GPU a sector; a store of a part of one makes it read the sector, and write it back.

use super::pieces::each_run;
use super::{Instance, KernelFamily, Query};
use crate::layout::{Edge, Layout, LayoutBuilder, Node, NodeId, Run};
use crate::passes;
use crate::plan::Direction;
use crate::plan::gpu::{AddressFunction, Analysis, Call, Grid, KernelText, SECTOR, SLOT, Structure, Tuning, Units};
use minijinja::context;
use std::fmt;

/// A kernel that moves words of blocks in the order of memory. Unpacks of whole elements only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OrderedKernel {
    /// Bytes of a word: 1, 2, 4, 8 or 16.
    pub word: u32,
}

/// A packed order that is so far from that of memory that unpacks follow the latter.
#[derive(Debug)]
pub struct Disorder;

impl Structure for Disorder {}

/// Loops around rows that share sectors of memory with rows which are packed far away.
#[derive(Debug)]
pub struct PermutedRows;

impl Structure for PermutedRows {}

/// An axis of an array: how many places it has, and the bytes from one to the next in memory and among the packed bytes.
struct ArrayAxis {
    count: u64,
    stride: i64,
    packed: i64,
}

/// The axes of an array, outermost first, the offset of its first row, and the bytes of a row. Nothing for other layouts, and where an axis goes backwards.
fn array(layout: &Layout) -> Option<(Vec<ArrayAxis>, i64, u64)> {
    let (mut axes, mut at, mut origin) = (Vec::new(), layout.root(), layout.root().offset);
    while let Node::Stream { count, stride, child } = layout.node(at.node) {
        axes.push(ArrayAxis { count: *count, stride: *stride, packed: layout.measure(child.node).size as i64 });
        origin = origin.checked_add(child.offset)?;
        at = *child;
    }
    let Node::Dense { count, kind } = layout.node(at.node) else { return None };
    axes.iter().all(|axis| axis.stride > 0).then_some((axes, origin, count * kind.size()))
}

/// Finds out whether unpacks of an array follow the order of memory: its rows end inside of sectors, whose other rows are packed far away.
fn permuted(analysis: &Analysis) -> Option<PermutedRows> {
    let (layout, tuning) = (&analysis.layout, &analysis.tuning.ordered);
    let (axes, _, row) = array(layout)?;
    let nearest = axes.iter().min_by_key(|axis| axis.stride)?;
    let starts = u64::from(analysis.granularity.starts);
    let shared =
        nearest.stride as u64 <= row.next_multiple_of(SECTOR) && (!row.is_multiple_of(SECTOR) || starts < SECTOR);
    let far = nearest.packed as u64 >= tuning.far;
    (shared && far && row <= tuning.max_row).then_some(PermutedRows)
}

/// Finds out whether unpacks of a layout follow the order of memory. Looks at each run once, and sorts nothing.
fn find(analysis: &Analysis) -> Option<Disorder> {
    let (layout, tuning) = (&analysis.layout, &analysis.tuning.ordered);
    let at = listed(layout);
    let measure = layout.measure(at);
    if measure.runs > 2 * layout.entries() {
        return None;
    }
    // Runs that are packed behind one that is behind them in memory, and behind one that is far away.
    let (mut back, mut far, mut before) = (0, 0, measure.low);
    each_run(layout, Edge { offset: 0, node: at }, &mut |offset, _| {
        back += u64::from(offset < before);
        far += u64::from(offset.abs_diff(before) >= tuning.far);
        before = offset;
    });
    let (runs, span) = (measure.runs, measure.high.abs_diff(measure.low));
    // What is stored of sectors, if no two runs share one.
    let stored = runs.saturating_mul(SECTOR).max(measure.size);
    let in_part = stored >= span && measure.size < stored;
    let disordered = back >= runs / tuning.back_one_in && far >= runs / tuning.far_one_in;
    (runs >= tuning.min_runs && disordered && in_part).then_some(Disorder)
}

/// Whether words of a call may be moved in the order of memory.
fn fits(query: &Query<'_>) -> bool {
    let words = query.analysis.granularity.word() <= query.aligned_word();
    let found = query.analysis.has::<Disorder>() || query.analysis.has::<PermutedRows>();
    query.unpacks() && found && query.has_whole_elements() && words
}

/// Serves unpacks of whole elements.
pub(super) fn admits(query: &Query<'_>) -> Option<OrderedKernel> {
    let (word, tuning) = (query.word, &query.tuning().ordered);
    let wide = word >= 4 || query.analysis.runs.mean < SLOT;
    let many = word <= tuning.any_word || query.call.bytes >= tuning.min_bytes;
    let wide = wide || (word > 1 && query.analysis.has::<PermutedRows>());
    (fits(query) && wide && many).then_some(OrderedKernel { word })
}

impl KernelFamily for OrderedKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
        analysis.add(permuted(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<OrderedKernel> {
        if fits(query) { vec![OrderedKernel { word: query.word }] } else { Vec::new() }
    }

    fn indices(&self, _analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(self.word)
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.ordered.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let each = u64::from(instance.threads * instance.analysis.tuning.ordered.unroll);
        Some(Grid::new(Units::Filled, self.word.into(), each))
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let [memory, packed] = ordered(&instance.analysis.layout)?;
        let places = AddressFunction::InOrder { word: self.word, packed, memory };
        let values = context! { unroll => instance.analysis.tuning.ordered.unroll };
        Some(KernelText { values, ..KernelText::new("ordered", self.word, vec![places]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "words of {} bytes in the order of memory", self.word)
    }
}

/// The node below the streams that the root may be.
fn listed(layout: &Layout) -> NodeId {
    let mut at = layout.root().node;
    while let Node::Stream { child, .. } = layout.node(at) {
        at = child.node;
    }
    at
}

/// The pieces of a disordered layout in the order of memory: by their places there, and by their places among the packed bytes. `None`
/// where numbers leave 64 bits.
fn ordered(layout: &Layout) -> Option<[Layout; 2]> {
    if let Some((axes, origin, row)) = array(layout) {
        return array_in_order(layout, axes, origin, row);
    }
    let node = listed(layout);
    let (mut runs, mut end, mut unit) = (Vec::new(), 0, 0);
    each_run(layout, Edge { offset: 0, node }, &mut |offset, length| {
        runs.push((offset, end, length));
        end += length as i64;
        unit = common_divisor(unit, length);
    });
    // Equal pieces need no search, unless there are many more of them.
    if end as u64 / unit <= 2 * runs.len() as u64 {
        let cut = |&(offset, packed, length): &(i64, i64, u64)| {
            (0..length as i64).step_by(unit as usize).map(move |at| (offset + at, packed + at, unit))
        };
        runs = runs.iter().flat_map(cut).collect();
    }
    runs.sort_unstable();
    let equal = runs.iter().all(|run| run.2 == unit);
    let [in_memory, in_packed] =
        [true, false].map(|in_memory| listed_as(layout, &runs, equal.then_some(unit), in_memory));
    Some([passes::regularise(&passes::canonicalise(&in_memory?).layout), in_packed?])
}

/// The rows of an array in the order of memory: by their places there, and by their places among the packed bytes.
fn array_in_order(layout: &Layout, mut axes: Vec<ArrayAxis>, origin: i64, row: u64) -> Option<[Layout; 2]> {
    axes.sort_by_key(|axis| axis.stride);
    let made = [true, false].map(|in_memory| {
        let mut nodes = LayoutBuilder::new();
        let mut root = nodes.bytes(0, row)?;
        for axis in &axes {
            let stride = if in_memory { axis.stride } else { axis.packed };
            root = Edge { offset: 0, node: nodes.intern(Node::Stream { count: axis.count, stride, child: root })? };
        }
        let (lb, extent) = if in_memory { (layout.lb(), layout.extent()) } else { (0, layout.size() as i64) };
        let made = nodes.finish(Edge { offset: if in_memory { origin } else { 0 }, ..root }, lb, extent);
        Some(passes::regularise(&passes::canonicalise(&made).layout))
    });
    let [in_memory, in_packed] = made;
    Some([in_memory?, in_packed?])
}

/// Pieces of a layout below the streams of its root, by their places in memory or among the packed bytes.
fn listed_as(layout: &Layout, runs: &[(i64, i64, u64)], equal: Option<u64>, in_memory: bool) -> Option<Layout> {
    let mut nodes = LayoutBuilder::new();
    let place = |run: &(i64, i64, u64)| if in_memory { run.0 } else { run.1 };
    let list = if let Some(unit) = equal {
        let child = nodes.bytes(0, unit)?;
        nodes.intern(Node::Indexed { offsets: runs.iter().map(place).collect(), child })?
    } else {
        nodes.runs(runs.iter().map(|run| Run { offset: place(run), count: run.2 }).collect())?.node
    };
    let mut streams = Vec::new();
    let mut at = layout.root();
    while let Node::Stream { count, stride, child } = layout.node(at.node) {
        streams.push((at.offset, *count, if in_memory { *stride } else { layout.measure(child.node).size as i64 }));
        at = *child;
    }
    let origin = |offset: i64| if in_memory { offset } else { 0 };
    let mut root = Edge { offset: origin(at.offset), node: list };
    for (offset, count, stride) in streams.into_iter().rev() {
        root = Edge { offset: origin(offset), node: nodes.intern(Node::Stream { count, stride, child: root })? };
    }
    let (lb, extent) = if in_memory { (layout.lb(), layout.extent()) } else { (0, layout.size() as i64) };
    Some(nodes.finish(root, lb, extent))
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
