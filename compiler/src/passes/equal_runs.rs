//! Runs of one length are an indexed list.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass =
    Pass { name: "equal-runs", summary: "runs of one length become an indexed list of dense", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Runs { runs, kind } = rewriter.builder.node(id) else { return None };
    let count = runs[0].count;
    if runs.len() < 2 || runs.iter().any(|run| run.count != count) {
        return None;
    }
    let (offsets, kind) = (runs.iter().map(|run| run.offset).collect(), *kind);
    let child = rewriter.builder.intern(Node::Dense { count, kind })?;
    let node = rewriter.builder.intern(Node::Indexed { offsets, child: Edge { offset: 0, node: child } })?;
    Some(Edge { offset: 0, node })
}
