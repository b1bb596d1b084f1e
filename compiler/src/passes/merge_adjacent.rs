//! Neighbours in a record that continue each other are one piece.

use super::Pass;
use super::flatten_runs::MaximalRuns;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Kind, Node, NodeId};

pub(super) const PASS: Pass = Pass {
    name: "merge-adjacent",
    summary: "neighbours that touch in packed order and in memory become one, streams that continue too",
    rewrite,
};

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let measure = *rewriter.builder.measure(id);
    let maximal = measure.runs;
    match rewriter.builder.node(id) {
        Node::Record { parts } => {
            let parts = parts.clone();
            merge_parts(rewriter, &parts)
        }
        Node::Runs { runs, kind: Kind::Byte } if worthwhile(rewriter, id, runs.len()) => {
            let mut merged = MaximalRuns::new(0, measure.first, maximal);
            merged.extend(runs.iter().map(|run| (run.offset, run.count)));
            rewriter.builder.runs_measured(merged.finish(), measure)
        }
        Node::Indexed { offsets, child } if worthwhile(rewriter, id, offsets.len()) => {
            let &Node::Dense { count, kind: Kind::Byte } = rewriter.builder.node(child.node) else { return None };
            let base = child.offset;
            let mut merged = MaximalRuns::new(0, measure.first, maximal);
            merged.extend(offsets.iter().map(|offset| (offset + base, count)));
            rewriter.builder.runs_measured(merged.finish(), measure)
        }
        _ => None,
    }
}

/// A list that will be written out as its maximal runs is merged then, at the latest; before, only where that makes writing out
/// what it is part of much shorter.
fn worthwhile(rewriter: &Rewriter, id: NodeId, length: usize) -> bool {
    let (maximal, length) = (rewriter.builder.measure(id).runs, length as u64);
    if rewriter.will_be_written_out(id) { maximal <= length / 2 } else { maximal < length }
}

fn merge_parts(rewriter: &mut Rewriter, parts: &[Edge]) -> Option<Edge> {
    let mut merged: Vec<Edge> = Vec::with_capacity(parts.len());
    for &part in parts {
        match merged.last().and_then(|&last| join(rewriter, last, part)) {
            Some(joined) => {
                merged.pop();
                merged.push(joined);
            }
            None => merged.push(part),
        }
    }
    if merged.len() == parts.len() {
        return None;
    }
    let node = rewriter.builder.intern(Node::Record { parts: merged.into() })?;
    Some(Edge { offset: 0, node })
}

/// Two neighbours as one, if they continue each other.
fn join(rewriter: &mut Rewriter, first: Edge, next: Edge) -> Option<Edge> {
    let builder = &mut rewriter.builder;
    let gap = next.offset.checked_sub(first.offset)?;
    match (builder.node(first.node), builder.node(next.node)) {
        (&Node::Dense { count, kind: Kind::Byte }, &Node::Dense { count: more, kind: Kind::Byte }) => {
            (gap == count as i64).then(|| builder.bytes(first.offset, count.checked_add(more)?))?
        }
        (
            &Node::Stream { count, stride, child },
            &Node::Stream { count: more, stride: same_stride, child: same_child },
        ) if stride == same_stride && child == same_child => {
            let continues = i128::from(gap) == i128::from(count) * i128::from(stride);
            let node = Node::Stream { count: count.checked_add(more)?, stride, child };
            continues.then(|| builder.intern(node).map(|node| Edge { offset: first.offset, node }))?
        }
        (&Node::Stream { count, stride, child }, _) if child.offset == 0 && child.node == next.node => {
            let continues = i128::from(gap) == i128::from(count) * i128::from(stride);
            let node = Node::Stream { count: count.checked_add(1)?, stride, child };
            continues.then(|| builder.intern(node).map(|node| Edge { offset: first.offset, node }))?
        }
        (_, &Node::Stream { count, stride, child }) if child.offset == 0 && child.node == first.node => {
            let node = Node::Stream { count: count.checked_add(1)?, stride, child };
            (gap == stride).then(|| builder.intern(node).map(|node| Edge { offset: first.offset, node }))?
        }
        _ => None,
    }
}
