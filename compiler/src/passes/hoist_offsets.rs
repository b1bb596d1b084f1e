//! Offsets move towards the root, so that equal shapes in different places are one node.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId, Run};

pub(super) const STREAMS: Pass =
    Pass { name: "hoist-offsets", summary: "the offset of a stream's child moves to the stream", rewrite: streams };

pub(super) const LISTS: Pass =
    Pass { name: "rebase-lists", summary: "a list or record begins at offset 0, displaced as a whole", rewrite: lists };

fn streams(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    match *rewriter.builder.node(id) {
        Node::Stream { count, stride, child } if child.offset != 0 => {
            let node = Node::Stream { count, stride, child: Edge { offset: 0, ..child } };
            let node = rewriter.builder.intern(node)?;
            Some(Edge { offset: child.offset, node })
        }
        _ => None,
    }
}

fn lists(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let (offset, node) = match rewriter.builder.node(id) {
        Node::Indexed { offsets, child } if offsets[0] != 0 || child.offset != 0 => {
            let first = offsets[0];
            let offsets = offsets.iter().map(|offset| offset.checked_sub(first)).collect::<Option<_>>()?;
            let hoisted = first.checked_add(child.offset)?;
            (hoisted, Node::Indexed { offsets, child: Edge { offset: 0, ..*child } })
        }
        Node::Runs { runs, kind } if runs[0].offset != 0 => {
            let first = runs[0].offset;
            let rebase = |run: &Run| Some(Run { offset: run.offset.checked_sub(first)?, ..*run });
            (first, Node::Runs { runs: runs.iter().map(rebase).collect::<Option<_>>()?, kind: *kind })
        }
        Node::Record { parts } if parts.first().is_some_and(|first| first.offset != 0) => {
            let first = parts[0].offset;
            let rebase = |part: &Edge| Some(Edge { offset: part.offset.checked_sub(first)?, ..*part });
            (first, Node::Record { parts: parts.iter().map(rebase).collect::<Option<_>>()? })
        }
        _ => return None,
    };
    let node = rewriter.builder.intern(node)?;
    Some(Edge { offset, node })
}
