//! A record of equal children is an indexed list.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass =
    Pass { name: "equal-children", summary: "a record of equal children becomes an indexed list", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Record { parts } = rewriter.builder.node(id) else { return None };
    let child = parts.first()?.node;
    if parts.len() < 2 || parts.iter().any(|part| part.node != child) {
        return None;
    }
    let offsets = parts.iter().map(|part| part.offset).collect();
    let node = rewriter.builder.intern(Node::Indexed { offsets, child: Edge { offset: 0, node: child } })?;
    Some(Edge { offset: 0, node })
}
