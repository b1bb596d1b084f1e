//! Streams, lists and records of one are the one (stream elision in Pearson et al. 2020, section 4.2.2).

use super::Pass;
use super::rewriter::{Rewriter, displaced};
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass =
    Pass { name: "elide-singles", summary: "a stream, list or record of one thing is that thing", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    match rewriter.builder.node(id) {
        Node::Stream { count: 1, child, .. } => Some(*child),
        Node::Indexed { offsets, child } => match offsets[..] {
            [only] => Some(displaced(*child, only)),
            _ => None,
        },
        Node::Record { parts } => match parts[..] {
            [only] => Some(only),
            _ => None,
        },
        Node::Runs { runs, kind } => match runs[..] {
            [only] => {
                let node = Node::Dense { count: only.count, kind: *kind };
                let node = rewriter.builder.intern(node)?;
                Some(Edge { offset: only.offset, node })
            }
            _ => None,
        },
        _ => None,
    }
}
