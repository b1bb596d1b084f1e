//! A list whose offsets grow by one step is a stream.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass =
    Pass { name: "arithmetic-offsets", summary: "an indexed list with equal steps becomes a stream", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Indexed { offsets, child } = rewriter.builder.node(id) else { return None };
    let stride = offsets.get(1)?.checked_sub(offsets[0])?;
    if offsets.windows(2).any(|pair| pair[1].checked_sub(pair[0]) != Some(stride)) {
        return None;
    }
    let (first, node) = (offsets[0], Node::Stream { count: offsets.len() as u64, stride, child: *child });
    let node = rewriter.builder.intern(node)?;
    Some(Edge { offset: first, node })
}
