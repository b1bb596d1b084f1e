//! Runs of a few blocks of one length become a list of these blocks.
//!
//! Neighbours that touch are one run in the canonical form, so that a list of single elements in rising order becomes runs
//! of one, two or three elements. A list needs no lengths: up to about four blocks a run, its microkernel is faster.

use super::list_cost::{UNROLLED_RUNS, of_blocks, of_runs, of_stretches};
use super::rewriter::Rewriter;
use super::{Pass, split_lengths};
use crate::layout::{Edge, Kind, Node, NodeId, Run, greatest_common_divisor};

pub(super) const PASS: Pass = Pass {
    name: "divide-runs",
    summary: "runs of few blocks of one length become an indexed list of the blocks, if a CPU moves that faster",
    rewrite,
};

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Runs { runs, kind: Kind::Byte } = rewriter.builder.node(id) else { return None };
    let block = block_of(runs)?;
    let runs = runs.clone();
    let blocks = |run: &Run| (0..(run.count / block) as i64).map(move |at| at * block as i64);
    let offsets = runs.iter().flat_map(|run| blocks(run).map(|within| run.offset + within)).collect();
    let child = rewriter.builder.bytes(0, block)?;
    let node = rewriter.builder.intern(Node::Indexed { offsets, child })?;
    Some(Edge { offset: 0, node })
}

/// The length of the blocks that the runs consist of, if moving these costs least. Stretches of equal runs, which have
/// shorter lists and may repeat, are preferred where the costs are close.
fn block_of(runs: &[Run]) -> Option<u64> {
    if runs.len() <= UNROLLED_RUNS {
        return None;
    }
    let mut block = runs[0].count;
    for run in runs {
        block = greatest_common_divisor(block, run.count);
    }
    let bytes = runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.count))?;
    let listed = (bytes / block).checked_mul(of_blocks(block)?)?;
    let pays = listed < of_runs(runs)
        && split_lengths::stretches(runs).is_none_or(|stretches| listed < of_stretches(&stretches) / 4 * 3);
    pays.then_some(block)
}
