//! Neighbouring parts of a record, or entries of a list, that repeat as a group are a stream of the group.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass =
    Pass { name: "roll-repeats", summary: "a group of parts that repeats at one distance becomes a stream", rewrite };

/// Longer groups are not looked for, which keeps the search linear in the parts.
const LONGEST_GROUP: usize = 16;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    // The canonical form of a short irregular list is the list, whatever repeats inside it.
    if rewriter.will_be_written_out(id) {
        return None;
    }
    let parts: Vec<Edge> = match rewriter.builder.node(id) {
        Node::Record { parts } => parts.to_vec(),
        Node::Indexed { offsets, child } => {
            offsets.iter().map(|&offset| Edge { offset: offset + child.offset, ..*child }).collect()
        }
        _ => return None,
    };
    let mut rolled: Vec<Edge> = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let best = (2..=LONGEST_GROUP)
            .filter_map(|group| repeats(&parts[at..], group).map(|copies| (group, copies)))
            .max_by_key(|&(group, copies)| (group * copies, std::cmp::Reverse(group)));
        let Some((group, copies)) = best else {
            rolled.push(parts[at]);
            at += 1;
            continue;
        };
        let first = parts[at].offset;
        let stride = parts[at + group].offset - first;
        let members = parts[at..at + group].iter().map(|part| Edge { offset: part.offset - first, ..*part });
        let member = Node::Record { parts: members.collect() };
        let member = rewriter.builder.intern(member)?;
        let child = rewriter.settle(Edge { offset: 0, node: member });
        let node = rewriter.builder.intern(Node::Stream { count: copies as u64, stride, child })?;
        let stream = rewriter.settle(Edge { offset: 0, node });
        rolled.push(Edge { offset: first + stream.offset, ..stream });
        at += group * copies;
    }
    if rolled.len() == parts.len() {
        return None;
    }
    let node = rewriter.builder.intern(Node::Record { parts: rolled.into() })?;
    Some(Edge { offset: 0, node })
}

/// How often the first `group` parts repeat at one distance, if at least twice.
fn repeats(parts: &[Edge], group: usize) -> Option<usize> {
    let stride = parts.get(group)?.offset.checked_sub(parts[0].offset)?;
    let continues = |&at: &usize| {
        parts[at].node == parts[at - group].node
            && parts[at].offset.checked_sub(parts[at - group].offset) == Some(stride)
    };
    let matching = (group..parts.len()).take_while(continues).count();
    let copies = 1 + matching / group;
    (copies >= 2).then_some(copies)
}
