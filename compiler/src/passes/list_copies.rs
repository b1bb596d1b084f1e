//! Parts of a record that are copies of one group, alone or in streams, become a list of the copies.
//!
//! A mask of records, or a list of blocks of a few structs each, is a record of streams of the struct, of as many lengths as there are.
//! A machine prefers one list: the struct is in the code, once, and no part begins a loop of its own. Streams of a single run are faster as they are, up to as
//! many as a kernel has code for.

use super::Pass;
use super::list_cost::MOST_PARTS;
use super::rewriter::Rewriter;
use super::split_stretches::MOST_STREAMS_OF_GROUPS;
use crate::layout::{Edge, Node, NodeId};

pub(super) const PASS: Pass = Pass {
    name: "list-copies",
    summary: "parts that are copies of one group, or streams of it, become a list",
    rewrite,
};

/// Parts that become a list, at least. Fewer are as fast by loops of their own, which `split-stretches` makes of such a list.
const FEWEST_PARTS: usize = MOST_STREAMS_OF_GROUPS + 1;

/// The smallest group that is listed, in bytes, where streams are long: twice what its place in the list takes.
const SMALLEST_GROUP: u64 = 16;

/// Most copies in a stream, on average, that are listed whatever the size of the group: to begin the loop of a stream takes as long as some
/// 16 places of the list. 319 streams of 1,252 groups of 15 bytes took 10.5 us, and 3.5 us as a list (Zen 4).
const SHORT_STREAM: u64 = 64;

/// A record that does not shrink by this factor stays as it is.
const SHRINKS: usize = 2;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let Node::Record { parts } = rewriter.builder.node(id) else { return None };
    if parts.len() < FEWEST_PARTS {
        return None;
    }
    let parts = parts.clone();
    let (mut left, mut shorter) = (&parts[..], Vec::new());
    while let [first, rest @ ..] = left {
        match copies(rewriter, left, parts.len() > MOST_PARTS) {
            Some((group, length)) => {
                let offsets = places(rewriter, group, &left[..length])?;
                let child = Edge { offset: 0, node: group };
                let node = rewriter.builder.intern(Node::Indexed { offsets: offsets.into(), child })?;
                shorter.push(rewriter.settle(Edge { offset: 0, node }));
                left = &left[length..];
            }
            None => {
                shorter.push(*first);
                left = rest;
            }
        }
        if shorter.len() * SHRINKS > parts.len() {
            return None;
        }
    }
    if let [only] = shorter[..] {
        return Some(only);
    }
    let node = rewriter.builder.intern(Node::Record { parts: shorter.into() })?;
    Some(Edge { offset: 0, node })
}

/// The group that most of the first parts are copies of, and how many are, if these are enough. It may be a single run where `runs`.
fn copies(rewriter: &Rewriter, parts: &[Edge], runs: bool) -> Option<(NodeId, usize)> {
    let first = parts.first()?.node;
    let inner = match rewriter.builder.node(first) {
        Node::Stream { child, .. } => Some(child.node),
        _ => None,
    };
    let length = |group| {
        let copies = parts.iter().map_while(|part| copies_in(rewriter, group, part));
        let (length, places) =
            copies.fold((0, 0u64), |(length, places), (count, ..)| (length + 1, places.saturating_add(count)));
        let pays = rewriter.builder.measure(group).size >= SMALLEST_GROUP || places / SHORT_STREAM <= length as u64;
        if pays { length } else { 0 }
    };
    let groups = [Some(first), inner].into_iter().flatten().filter(|&group| is_group(rewriter, group, runs));
    let (group, length) = groups.map(|group| (group, length(group))).max_by_key(|&(_, length)| length)?;
    (length >= FEWEST_PARTS).then_some((group, length))
}

/// Whether a node is more than one run, or may be one, and is large enough.
fn is_group(rewriter: &Rewriter, node: NodeId, runs: bool) -> bool {
    let measure = rewriter.builder.measure(node);
    runs && measure.size >= SMALLEST_GROUP || measure.runs > 1
}

/// How many copies of a group a part is, how far apart, and where the first is.
fn copies_in(rewriter: &Rewriter, group: NodeId, part: &Edge) -> Option<(u64, i64, i64)> {
    match *rewriter.builder.node(part.node) {
        _ if part.node == group => Some((1, 0, part.offset)),
        Node::Stream { count, stride, child } if child.node == group => {
            Some((count, stride, part.offset.checked_add(child.offset)?))
        }
        _ => None,
    }
}

/// The places of all copies of a group, if they are not too many.
fn places(rewriter: &mut Rewriter, group: NodeId, parts: &[Edge]) -> Option<Vec<i64>> {
    let mut places = Vec::with_capacity(parts.len());
    for part in parts {
        let (count, stride, first) = copies_in(rewriter, group, part)?;
        rewriter.take_copies(count)?;
        // Copies of a stream are within 64 bits, as its measure says.
        places.extend((0..count as i64).map(|copy| first.wrapping_add(stride.wrapping_mul(copy))));
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::layout::{Layout, Node};
    use crate::passes::{REGULARISE, apply};

    /// A layout of `number` records, each of 17 streams of 2,500 copies.
    fn records(number: i64) -> Layout {
        let mut text =
            "layout lb 0 extent 100000000 {\n  %0 = runs [(0 12) (22 6)] x byte\n  %1 = stream 2500 x 40 of %0\n"
                .to_owned();
        for record in 0..number {
            let parts: Vec<String> =
                (0..17).map(|part| format!("{}: %1", record + part * 120_000 + part * part)).collect();
            text += &format!("  %{} = record [{}]\n", record + 2, parts.join(", "));
        }
        let parts: Vec<String> = (0..number).map(|record| format!("{}: %{}", record * 4_000_000, record + 2)).collect();
        text += &format!("  %{} = record [{}]\n  root %{0}\n}}", number + 2, parts.join(", "));
        Layout::parse(&text).unwrap()
    }

    #[test]
    fn streams_of_a_run_are_listed_where_no_kernel_has_code_for_them() {
        for (number, lists) in [(512, 0), (513, 1)] {
            let parts: Vec<String> =
                (0..number).map(|part| format!("{}: %{}", part * 4096 + part * part % 1000, 1 + part % 2)).collect();
            let text = format!(
                "layout lb 0 extent 100000000 {{\n  %0 = dense 36 x byte\n  %1 = stream 2 x 40 of %0\n  \
                 %2 = stream 30 x 40 of %0\n  %3 = record [{}]\n  root %3\n}}",
                parts.join(", ")
            );
            let plan = apply(REGULARISE, &Layout::parse(&text).unwrap()).layout;
            assert_eq!(plan.nodes().filter(|(_, node)| matches!(node, Node::Indexed { .. })).count(), lists);
            let parts = plan.nodes().map(|(_, node)| if let Node::Record { parts } = node { parts.len() } else { 0 });
            assert!(parts.sum::<usize>() <= 512);
        }
    }

    #[test]
    fn lists_of_a_layout_have_a_budget_together() {
        for number in [1, 2, 20] {
            let listed = apply(&[&PASS], &records(number)).layout;
            let lists = listed.nodes().filter(|(_, node)| matches!(node, Node::Indexed { .. })).count();
            assert_eq!(lists, 1, "of {number} records");
        }
    }
}
