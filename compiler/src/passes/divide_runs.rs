//! Runs of a few blocks of one length become a list of these blocks.
//!
//! Neighbours that touch are one run in the canonical form, so that a list of single elements in rising order becomes runs
//! of one, two or three elements. A list needs no lengths: up to about four blocks a run, its microkernel is faster.

use super::rewriter::Rewriter;
use super::{Pass, split_lengths};
use crate::layout::{Edge, Kind, Node, NodeId, Run};

pub(super) const PASS: Pass = Pass {
    name: "divide-runs",
    summary: "runs of few blocks of one length become an indexed list of the blocks, if a CPU moves that faster",
    rewrite,
};

/// Runs above which the list pays off. Kernels move shorter tables by straight code.
pub(crate) const UNROLLED_RUNS: usize = 64;

/// The longest block that is listed, in bytes: beyond a vector, a run costs what a block does.
const LONGEST_BLOCK: u64 = 64;

/// Cost of a run of up to 64 bytes, in hundredths of a nanosecond. This and the costs below were measured in the first- and
/// second-level cache of an AMD EPYC (Zen 5), 1,024 to 65,536 blocks.
const RUN: u64 = 110;

/// Cost of every further 64 bytes of a run, in hundredths of a nanosecond.
const RUN_LINE: u64 = 50;

/// Cost of mispredicted branches where runs of up to 64 bytes and longer ones alternate, in hundredths of a nanosecond.
const MISPREDICTION: u64 = 1500;

/// Runs whose lengths the branch predictor learns: it had learned 5,000 and not 6,600.
const LEARNED_RUNS: usize = 4096;

/// Cost of the call of a microkernel for a stretch of equal runs, in hundredths of a nanosecond.
const STRETCH: u64 = 1000;

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

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Cost of a listed block, in hundredths of a nanosecond; `None` for blocks that are not listed instead of runs.
fn of_blocks(bytes: u64) -> Option<u64> {
    Some(match bytes {
        1 | 2 | 4 | 8 => 25,
        16 => 40,
        0..16 => 65,
        17..=32 => 75,
        33..=LONGEST_BLOCK => 95,
        _ => return None,
    })
}

/// Cost of runs, in hundredths of a nanosecond.
fn of_runs(runs: &[Run]) -> u64 {
    let beyond_first_line = |run: &Run| (run.count - 1) / 64;
    let lines = runs.iter().fold(0u64, |sum, run| sum.saturating_add(beyond_first_line(run)));
    let long = runs.iter().filter(|run| beyond_first_line(run) > 0).count();
    let mispredicted = if runs.len() > LEARNED_RUNS { long.min(runs.len() - long) } else { 0 };
    (runs.len() as u64 * RUN).saturating_add(lines.saturating_mul(RUN_LINE)) + mispredicted as u64 * MISPREDICTION
}

/// Cost of stretches of equal runs, in hundredths of a nanosecond.
fn of_stretches(stretches: &[&[Run]]) -> u64 {
    stretches.iter().fold(0u64, |sum, stretch| {
        let runs = of_blocks(stretch[0].count).map_or_else(|| of_runs(stretch), |block| block * stretch.len() as u64);
        sum.saturating_add(STRETCH).saturating_add(runs)
    })
}
