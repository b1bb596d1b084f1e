//! Leaves become bytes: pack and unpack need no kinds.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Kind, Node, NodeId, Run};

pub(super) const PASS: Pass =
    Pass { name: "erase-kinds", summary: "N elements of K bytes become N * K bytes", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let node = match rewriter.builder.node(id) {
        Node::Dense { count, kind } if *kind != Kind::Byte => {
            Node::Dense { count: count * kind.size(), kind: Kind::Byte }
        }
        Node::Runs { runs, kind } if *kind != Kind::Byte => {
            let size = kind.size();
            let runs = runs.iter().map(|run| Run { offset: run.offset, count: run.count * size }).collect();
            Node::Runs { runs, kind: Kind::Byte }
        }
        _ => return None,
    };
    // The same bytes, so nothing is measured again.
    let measure = *rewriter.builder.measure(id);
    let node = rewriter.builder.intern_measured(node, measure)?;
    Some(Edge { offset: 0, node })
}
