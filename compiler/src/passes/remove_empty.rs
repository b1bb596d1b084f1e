//! Parts without bytes leave their record.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass = Pass { name: "remove-empty", summary: "a part without bytes leaves its record", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Record { parts } = rewriter.builder.node(id) else { return None };
    let has_bytes = |part: &&Edge| rewriter.builder.measure(part.node).size > 0;
    if parts.iter().all(|part| has_bytes(&part)) {
        return None;
    }
    let parts = parts.iter().filter(has_bytes).copied().collect();
    let node = rewriter.builder.intern(Node::Record { parts })?;
    Some(Edge { offset: 0, node })
}
