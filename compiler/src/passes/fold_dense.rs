//! A stream of touching dense pieces is one dense piece (Pearson et al. 2020, section 4.2.1).

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Kind, Node, NodeId};

pub(super) const PASS: Pass = Pass { name: "fold-dense", summary: "stream N x L of dense L is dense N * L", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Stream { count, stride, child } = *rewriter.builder.node(id) else { return None };
    match *rewriter.builder.node(child.node) {
        Node::Dense { count: bytes, kind: Kind::Byte } if i128::from(stride) == i128::from(bytes) => {
            rewriter.builder.bytes(child.offset, count.checked_mul(bytes)?)
        }
        _ => None,
    }
}
