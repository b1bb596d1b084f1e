//! Runs of a few blocks of one length become a list of these blocks.
//!
//! Neighbours that touch are one run in the canonical form, so that a list of single elements in rising order becomes runs
//! of one, two or three elements. A list needs no lengths: up to about four blocks a run, its microkernel is faster.
//!
//! Several arrays that are picked by one list have blocks of several lengths. The list is cut where the length changes: it is looked at
//! in windows, and runs at the border of two stretches go to the one with the longer blocks.

use super::list_cost::{self, UNROLLED_RUNS, of_blocks, of_runs, of_stretches};
use super::rewriter::Rewriter;
use super::{Pass, split_lengths};
use crate::layout::{Edge, Kind, Node, NodeId, Run, greatest_common_divisor};

pub(super) const PASS: Pass = Pass {
    name: "divide-runs",
    summary: "runs of few blocks of one length become an indexed list of the blocks, if a CPU moves that faster",
    rewrite,
};

/// Runs in which a length of blocks is looked for. A list as short is moved before another microkernel is called.
const WINDOW: usize = 32;

/// Lists in place of one, at most: each is a step of a plan.
const MOST_LISTS: usize = 16;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Runs { runs, kind: Kind::Byte } = rewriter.builder.node(id) else { return None };
    let parts = divide(runs)?;
    let runs = runs.clone();
    if let [RunRange { block: Some(block), .. }] = parts[..] {
        return listed(rewriter, &runs, block);
    }
    let mut edges = Vec::with_capacity(parts.len());
    for RunRange { start, end, block } in parts {
        let runs = &runs[start..end];
        let edge = match block {
            Some(block) => listed(rewriter, runs, block)?,
            None => rewriter.builder.runs(runs.to_vec())?,
        };
        edges.push(rewriter.settle(edge));
    }
    let node = rewriter.builder.intern(Node::Record { parts: edges.into() })?;
    Some(Edge { offset: 0, node })
}

/// Runs as the list of their blocks.
fn listed(rewriter: &mut Rewriter, runs: &[Run], block: u64) -> Option<Edge> {
    let blocks = |run: &Run| (0..(run.count / block) as i64).map(move |at| at * block as i64);
    let offsets = runs.iter().flat_map(|run| blocks(run).map(|within| run.offset + within)).collect();
    let child = rewriter.builder.bytes(0, block)?;
    let node = rewriter.builder.intern(Node::Indexed { offsets, child })?;
    Some(Edge { offset: 0, node })
}

/// Runs from `start` to `end`, and the length of the blocks that they are listed as; none, if they stay runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunRange {
    start: usize,
    end: usize,
    block: Option<u64>,
}

/// The lists that moving costs least. Stretches of equal runs, which have shorter lists and may repeat, are preferred where the costs are
/// close.
fn divide(runs: &[Run]) -> Option<Vec<RunRange>> {
    if runs.len() <= UNROLLED_RUNS {
        return None;
    }
    let (whole, cost) = cheapest(runs, 0, runs.len(), block_of(runs));
    let parts = stretches(runs).and_then(|stretches| {
        let (parts, costs): (Vec<RunRange>, Vec<u64>) =
            stretches.into_iter().map(|Stretch { start, end, block }| cheapest(runs, start, end, block)).unzip();
        let sum = costs.iter().fold(0u64, |sum, &cost| sum.saturating_add(cost).saturating_add(list_cost::STRETCH));
        (sum < cost).then_some((parts, sum))
    });
    let (parts, cost) = parts.unwrap_or((vec![whole], cost));
    let pays = cost < of_runs(runs)
        && split_lengths::stretches(runs).is_none_or(|stretches| cost < of_stretches(&stretches) / 4 * 3);
    pays.then_some(parts)
}

/// Some of the runs, as blocks or as they are, and what moving them costs.
fn cheapest(runs: &[Run], start: usize, end: usize, block: u64) -> (RunRange, u64) {
    let runs = &runs[start..end];
    let as_runs = of_runs(runs);
    let bytes = runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.count));
    let listed = bytes.and_then(|bytes| (bytes / block).checked_mul(of_blocks(block)?));
    match listed {
        Some(listed) if listed < as_runs => (RunRange { start, end, block: Some(block) }, listed),
        _ => (RunRange { start, end, block: None }, as_runs),
    }
}

/// The longest blocks that runs consist of.
fn block_of(runs: &[Run]) -> u64 {
    runs.iter().fold(0, |block, run| greatest_common_divisor(block, run.count))
}

/// Runs that consist of blocks of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    start: usize,
    end: usize,
    block: u64,
}

/// Stretches of runs with blocks of one length each, if there are a few.
fn stretches(runs: &[Run]) -> Option<Vec<Stretch>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for start in (0..runs.len()).step_by(WINDOW) {
        let end = runs.len().min(start + WINDOW);
        let block = block_of(&runs[start..end]);
        match stretches.last_mut() {
            Some(last) if last.block == block => last.end = end,
            _ => stretches.push(Stretch { start, end, block }),
        }
        // A window at each border may have a length of its own.
        if stretches.len() > 2 * MOST_LISTS {
            return None;
        }
    }
    let consists = |at: usize, block: u64| runs[at].count.is_multiple_of(block);
    for right in 1..stretches.len() {
        let (left, mut border) = (right - 1, stretches[right].start);
        if stretches[left].block > stretches[right].block {
            border += (border..stretches[right].end).take_while(|&at| consists(at, stretches[left].block)).count();
        } else {
            let before = stretches[left].start..border;
            border -= before.rev().take_while(|&at| consists(at, stretches[right].block)).count();
        }
        (stretches[left].end, stretches[right].start) = (border, border);
    }
    stretches.retain(|stretch| stretch.start < stretch.end);
    (2..=MOST_LISTS).contains(&stretches.len()).then_some(stretches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(counts: impl IntoIterator<Item = u64>) -> Vec<Run> {
        counts.into_iter().enumerate().map(|(at, count)| Run { offset: at as i64 * 100, count }).collect()
    }

    #[test]
    fn a_border_inside_a_window_goes_to_the_longer_blocks() {
        let lengths = |at: u64| [at % 2 + 1, 1][usize::from(at.is_multiple_of(3))];
        for border in [70, 96, 100] {
            let rising = runs((0..border).map(|at| 8 * lengths(at)).chain((0..90).map(|at| 24 * lengths(at))));
            let end = rising.len();
            let expected = [
                Stretch { start: 0, end: border as usize, block: 8 },
                Stretch { start: border as usize, end, block: 24 },
            ];
            assert_eq!(stretches(&rising).unwrap(), expected);
            let falling = runs((0..border).map(|at| 24 * lengths(at)).chain((0..90).map(|at| 20 * lengths(at))));
            assert_eq!(stretches(&falling).unwrap().iter().map(|stretch| stretch.block).collect::<Vec<_>>(), [24, 20]);
        }
    }

    #[test]
    fn lengths_that_change_often_are_no_stretches() {
        assert_eq!(stretches(&runs((0..4000).map(|at| 1 + at * at % 97))), None);
        assert_eq!(stretches(&runs([8; 100])), None);
    }
}
