//! A short concatenation is written out as its maximal runs.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, Kind, LayoutBuilder, Node, NodeId, Run};

pub(super) const PASS: Pass =
    Pass { name: "flatten-runs", summary: "a concatenation of few runs becomes the list of its maximal runs", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    if !rewriter.will_be_written_out(id) || is_flat(rewriter, id) {
        return None;
    }
    let measure = *rewriter.builder.measure(id);
    let mut list = List { runs: Vec::with_capacity(measure.runs as usize), first: measure.first, end: None };
    list.extend(&rewriter.builder, id);
    let runs = rewriter.builder.runs_measured(list.runs, measure.shifted(measure.first.checked_neg()?)?)?;
    Some(Edge { offset: measure.first, ..runs })
}

/// Maximal runs, as far as they are known.
struct List {
    runs: Vec<Run>,
    /// Where offsets are counted from.
    first: i64,
    /// The end of the last run.
    end: Option<i64>,
}

impl List {
    #[inline]
    fn push(&mut self, offset: i64, bytes: u64) {
        match self.runs.last_mut() {
            Some(last) if self.end == Some(offset) => last.count += bytes,
            _ => self.runs.push(Run { offset: offset - self.first, count: bytes }),
        }
        self.end = Some(offset + bytes as i64);
    }

    /// Adds all pieces of a node: what [`Layout::walk`](crate::layout::Layout::walk) yields, with a loop of its own for the
    /// lists that make a description long.
    fn extend(&mut self, builder: &LayoutBuilder, id: NodeId) {
        let mut stack = vec![(Edge { offset: 0, node: id }, 0)];
        while let Some((Edge { offset: base, node }, at)) = stack.pop() {
            // Children that are dense are moved in a loop; of others the next one goes on the stack.
            let dense = |child: Edge| match builder.node(child.node) {
                Node::Dense { count, kind } => Some((base + child.offset, count * kind.size())),
                _ => None,
            };
            let mut next = None;
            match builder.node(node) {
                Node::Dense { count, kind } => self.push(base, count * kind.size()),
                Node::Runs { runs, kind } => {
                    runs.iter().for_each(|run| self.push(base + run.offset, run.count * kind.size()));
                }
                Node::Stream { count, stride, child } => match dense(*child) {
                    Some((base, bytes)) => (0..*count as i64).for_each(|copy| self.push(base + copy * stride, bytes)),
                    None => next = (at < *count).then(|| (child.offset + at as i64 * stride, child.node)),
                },
                Node::Indexed { offsets, child } => match dense(*child) {
                    Some((base, bytes)) => offsets.iter().for_each(|offset| self.push(base + offset, bytes)),
                    None => next = offsets.get(at as usize).map(|offset| (child.offset + offset, child.node)),
                },
                Node::Record { parts } => next = parts.get(at as usize).map(|part| (part.offset, part.node)),
            }
            if let Some((shift, child)) = next {
                stack.push((Edge { offset: base, node }, at + 1));
                stack.push((Edge { offset: base + shift, node: child }, 0));
            }
        }
    }
}

/// Whether a node is a list of maximal runs of bytes already, beginning at 0.
fn is_flat(rewriter: &Rewriter, id: NodeId) -> bool {
    let maximal = rewriter.builder.measure(id).runs;
    match rewriter.builder.node(id) {
        Node::Runs { runs, kind: Kind::Byte } => runs[0].offset == 0 && runs.len() as u64 == maximal,
        Node::Indexed { offsets, child } => {
            let bytes = matches!(rewriter.builder.node(child.node), Node::Dense { kind: Kind::Byte, .. });
            bytes && child.offset == 0 && offsets[0] == 0 && offsets.len() as u64 == maximal
        }
        _ => false,
    }
}
