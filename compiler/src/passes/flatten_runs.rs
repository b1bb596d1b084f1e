//! A short concatenation is written out as its maximal runs.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Kind, Node, NodeId, Run};

pub(super) const PASS: Pass =
    Pass { name: "flatten-runs", summary: "a concatenation of few runs becomes the list of its maximal runs", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    if !rewriter.will_be_written_out(id) || is_flat(rewriter, id) {
        return None;
    }
    let maximal = rewriter.builder.measure(id).runs as usize;
    let mut runs: Vec<Run> = Vec::with_capacity(maximal);
    let mut first = None;
    for piece in rewriter.builder.walk(Edge { offset: 0, node: id }) {
        let offset = piece.offset - *first.get_or_insert(piece.offset);
        match runs.last_mut() {
            Some(last) if last.offset + last.count as i64 == offset => last.count += piece.bytes(),
            _ => runs.push(Run { offset, count: piece.bytes() }),
        }
    }
    let runs = rewriter.builder.runs(runs)?;
    Some(Edge { offset: first?, ..runs })
}

/// Whether a node is a list of maximal runs of bytes already, beginning at 0.
fn is_flat(rewriter: &Rewriter, id: NodeId) -> bool {
    let maximal = rewriter.builder.measure(id).runs;
    match rewriter.builder.node(id) {
        Node::Runs { runs, kind: Kind::Byte } => runs[0].offset == 0 && runs.len() as u64 == maximal,
        Node::Indexed { offsets, child } => {
            let bytes = matches!(rewriter.builder.node(child.node), Node::Dense { kind: Kind::Byte, .. });
            bytes && child.offset == 0 && offsets[0] == 0 && offsets.len() as u64 == maximal
        }
        _ => false,
    }
}
