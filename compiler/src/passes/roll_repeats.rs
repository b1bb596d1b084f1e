//! Neighbouring parts of a record that repeat as a group are a stream of the group.
//!
//! Two neighbours at one distance are soon found in any list, and a stream of each such pair is larger than the list, and slower to
//! move. So repeats are taken only if the record becomes much smaller.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass =
    Pass { name: "roll-repeats", summary: "a group of parts that repeats at one distance becomes a stream", rewrite };

/// Longer groups are not looked for, which keeps the search linear in the parts.
const LONGEST_GROUP: usize = 16;

/// Runs of a group from which on a loop around it costs nothing beside them.
const LONG_GROUP: u64 = 32;

/// A record of shorter groups that does not shrink by this factor stays as it is.
const SHRINKS: usize = 2;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    // The canonical form of a short irregular list is the list, whatever repeats inside it.
    if rewriter.will_be_written_out(id) {
        return None;
    }
    let Node::Record { parts } = rewriter.builder.node(id) else { return None };
    let parts = parts.clone();
    let groups = groups(rewriter, &parts)?;
    let mut rolled: Vec<Edge> = Vec::with_capacity(groups.len());
    let mut at = 0;
    for RecordStretch { parts: group, copies } in groups {
        if copies == 1 {
            rolled.push(parts[at]);
            at += 1;
            continue;
        }
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
    let node = rewriter.builder.intern(Node::Record { parts: rolled.into() })?;
    Some(Edge { offset: 0, node })
}

/// A stretch of the parts of a record.
struct RecordStretch {
    /// Parts of one copy.
    parts: usize,
    /// Copies at one distance; 1 for a part that stays alone.
    copies: usize,
}

/// The stretches of a record, if it becomes much smaller by streams of them.
fn groups(rewriter: &Rewriter, parts: &[Edge]) -> Option<Vec<RecordStretch>> {
    let runs = |part: &Edge| rewriter.builder.measure(part.node).runs;
    let mut groups = Vec::new();
    let (mut at, mut entries, mut short) = (0, 0, false);
    while at < parts.len() {
        let best = (2..=LONGEST_GROUP)
            .filter_map(|group| repeats(&parts[at..], group).map(|copies| (group, copies)))
            .max_by_key(|&(group, copies)| (group * copies, std::cmp::Reverse(group)));
        let (group, copies) = best.unwrap_or((1, 1));
        // A stream and its group, or a part.
        entries += group + usize::from(copies > 1);
        let long = parts[at..at + group].iter().fold(0u64, |sum, part| sum.saturating_add(runs(part))) >= LONG_GROUP;
        short |= copies > 1 && !long;
        if short && entries * SHRINKS > parts.len() {
            return None;
        }
        groups.push(RecordStretch { parts: group, copies });
        at += group * copies;
    }
    // Nothing repeats in an empty record.
    (groups.len() < parts.len()).then_some(groups)
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
