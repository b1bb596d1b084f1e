//! Regular stretches inside a list of runs become streams, and streams of streams.
//!
//! The canonical form of an irregular list is the list. A machine prefers the loops in it: a struct of subarrays is a
//! handful of nests, not a thousand rows.

use super::Pass;
use super::list_cost::MOST_PARTS;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Kind, Node, NodeId};

pub(super) const PASS: Pass = Pass {
    name: "split-stretches",
    summary: "regular stretches inside a list become streams, if the list shrinks to an eighth",
    rewrite,
};

/// Fewest entries of a stretch: any two entries form an arithmetic sequence.
const SHORTEST: usize = 3;

/// A list that does not shrink by this factor stays: a microkernel walks it faster than loops over short stretches.
const SHRINKS: usize = 8;

/// Streams in place of a list of groups of runs, at most: each is a step of a plan, where one step moves the list.
pub(super) const MOST_STREAMS_OF_GROUPS: usize = 16;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let mut parts: Vec<Edge> = match rewriter.builder.node(id).clone() {
        Node::Indexed { offsets, child }
            if !are_divided(&offsets, rewriter.builder.measure(child.node).size)
                && worthwhile(&offsets, |&offset| (offset, 0)) =>
        {
            offsets.iter().map(|&offset| Edge { offset: offset + child.offset, ..child }).collect()
        }
        Node::Runs { runs, kind: Kind::Byte } if worthwhile(&runs, |run| (run.offset, run.count)) => {
            runs.iter().map(|run| rewriter.builder.bytes(run.offset, run.count)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let before = parts.len();
    let groups = parts.iter().any(|part| !matches!(rewriter.builder.node(part.node), Node::Dense { .. }));
    loop {
        let grouped = group(rewriter, &parts)?;
        if grouped.len() == parts.len() {
            break;
        }
        parts = grouped;
    }
    if parts.len() * SHRINKS > before || parts.len() > if groups { MOST_STREAMS_OF_GROUPS } else { MOST_PARTS } {
        return None;
    }
    let node = rewriter.builder.intern(Node::Record { parts: parts.into() })?;
    Some(Edge { offset: 0, node })
}

/// Whether some blocks of a list touch. Canonical lists have none: `divide-runs` has made this one of runs, which this pass has
/// seen, and would only merge them again.
fn are_divided(offsets: &[i64], block: u64) -> bool {
    offsets.windows(2).any(|pair| i128::from(pair[1]) - i128::from(pair[0]) == i128::from(block))
}

/// Whether a list of offsets and lengths falls into few enough stretches for a closer look. Three entries that do not
/// go on regularly are a break: there are at most half as many as entries. An entry of three breaks is in no stretch and
/// stays as it is: at most an eighth may.
fn worthwhile<T>(list: &[T], entry: impl Fn(&T) -> (i64, u64)) -> bool {
    if list.len() < SHRINKS {
        return false;
    }
    let (mut breaks, mut in_a_row, mut alone) = (0, 0, 0);
    // An irregular list is given up as soon as it has too many.
    list.windows(3).all(|entries| {
        let [first, second, third] = [0, 1, 2].map(|at| entry(&entries[at]));
        let goes_on = third.0.wrapping_sub(second.0) == second.0.wrapping_sub(first.0) && third.1 == second.1;
        in_a_row = if goes_on { 0 } else { in_a_row + 1 };
        breaks += usize::from(!goes_on);
        alone += usize::from(in_a_row >= 3);
        breaks <= list.len() / 2 && alone <= list.len() / SHRINKS
    })
}

/// Replaces every stretch of equal parts at equal steps by a stream.
fn group(rewriter: &mut Rewriter, parts: &[Edge]) -> Option<Vec<Edge>> {
    let mut grouped = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let length = stretch(&parts[at..]);
        if length < SHORTEST {
            grouped.push(parts[at]);
            at += 1;
            continue;
        }
        let stride = parts[at + 1].offset - parts[at].offset;
        let child = Edge { offset: 0, ..parts[at] };
        let node = rewriter.builder.intern(Node::Stream { count: length as u64, stride, child })?;
        grouped.push(Edge { offset: parts[at].offset, node });
        at += length;
    }
    Some(grouped)
}

/// How many parts from the first on are equal and at equal steps.
fn stretch(parts: &[Edge]) -> usize {
    let Some(second) = parts.get(1) else { return 1 };
    let Some(stride) = second.offset.checked_sub(parts[0].offset) else { return 1 };
    let continues =
        |pair: &&[Edge]| pair[0].node == pair[1].node && pair[1].offset.checked_sub(pair[0].offset) == Some(stride);
    1 + parts.windows(2).take_while(continues).count()
}
