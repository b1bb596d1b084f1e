//! The runs of a layout as the cost model sees them.

use super::sizes::{LINE, SECTOR};
use super::tuning::WordsTuning;
use super::tuning::row::Density;
use crate::layout::{Layout, Node};

/// The runs of a layout as the cost model sees them, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunStatistics {
    /// Mean length.
    pub(crate) mean: u64,
    /// Mean distance from run to run.
    pub(crate) distance: u64,
    /// Distance from run to run of those that follow each other in memory: the mean one, or that in groups of many.
    pub(crate) step: u64,
    /// Whether a list that does not stay in the cache says where they are.
    pub(crate) listed: bool,
    /// How far from each other they are.
    pub(crate) density: Density,
    /// Whether runs that follow each other among the packed bytes are further from each other in memory than those of a loop around them: words of memory
    /// that two runs share are then written at different times.
    pub(crate) permuted: bool,
}

/// Runs of a group of equal distances, at least.
const GROUP: u64 = 8;

/// The distance from run to run of those that the innermost stream repeats, if they are as many as a group; without end otherwise.
fn within_groups(layout: &Layout) -> u64 {
    let mut at = layout.root().node;
    let mut innermost = u64::MAX;
    while let Node::Stream { count, stride, child } = layout.node(at) {
        innermost = if *count >= GROUP { stride.unsigned_abs() } else { u64::MAX };
        at = child.node;
    }
    if matches!(layout.node(at), Node::Dense { .. }) { innermost } else { u64::MAX }
}

/// Whether a loop of a nest has shorter steps than one inside of it.
fn is_permuted(layout: &Layout) -> bool {
    let mut outer: Option<u64> = None;
    let mut at = layout.root().node;
    while let Node::Stream { stride, child, .. } = layout.node(at) {
        let stride = stride.unsigned_abs();
        if outer.is_some_and(|outer| outer < stride) {
            return true;
        }
        (outer, at) = (Some(stride), child.node);
    }
    false
}

/// Whether the layout lists runs of several lengths. A search finds the run of a word there, where what is left of the run is needed, too.
pub(crate) fn is_searched(layout: &Layout) -> bool {
    layout.nodes().any(|(_, node)| matches!(node, Node::Runs { .. }))
}

/// The length of the shortest run that a layout is written with, in bytes.
pub(crate) fn shortest_run(layout: &Layout) -> u64 {
    let runs = layout.nodes().filter_map(|(_, node)| match node {
        Node::Dense { count, kind } => Some(count * kind.size()),
        Node::Runs { runs, kind } => runs.iter().map(|run| run.count * kind.size()).min(),
        _ => None,
    });
    runs.min().unwrap_or(0)
}

impl RunStatistics {
    pub(crate) fn of(layout: &Layout, tuning: &WordsTuning) -> RunStatistics {
        let measure = layout.measure(layout.root().node);
        let runs = measure.runs.max(1);
        let span = measure.high.abs_diff(measure.low).max(measure.size);
        let mean = (measure.size / runs).max(1);
        let distance = if runs == 1 { layout.extent().unsigned_abs() } else { span / runs };
        let listed = |node: &Node| matches!(node, Node::Indexed { offsets, .. } if offsets.len() >= tuning.long_list);
        let listed = layout.nodes().any(|(_, node)| listed(node));
        let step = distance.min(within_groups(layout));
        let density = match distance {
            ..SECTOR => Density::Close,
            // Neighbours may be near in groups that are far from each other.
            // Short ones are moved as their mean distance says: measured for 16 bytes and for 704.
            _ if (if mean < LINE { distance } else { step }) >= tuning.sparse_distance.max(mean.saturating_mul(4)) => {
                Density::Sparse
            }
            _ => Density::Near,
        };
        RunStatistics { mean, distance, step, listed, density, permuted: is_permuted(layout) }
    }
}
