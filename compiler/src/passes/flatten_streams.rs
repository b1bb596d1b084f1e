//! Nested streams that continue each other are one stream.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass =
    Pass { name: "flatten-streams", summary: "stream N x (M * T) of stream M x T is stream N * M x T", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Stream { count, stride, child } = *rewriter.builder.node(id) else { return None };
    match *rewriter.builder.node(child.node) {
        Node::Stream { count: inner, stride: step, child: element }
            if child.offset == 0 && i128::from(stride) == i128::from(inner) * i128::from(step) =>
        {
            let node = Node::Stream { count: count.checked_mul(inner)?, stride: step, child: element };
            let node = rewriter.builder.intern(node)?;
            Some(Edge { offset: 0, node })
        }
        _ => None,
    }
}
