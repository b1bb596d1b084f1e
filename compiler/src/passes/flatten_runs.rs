//! A short concatenation is written out as its maximal runs.

use super::Pass;
use super::rewriter::Rewriter;
use crate::layout::{Edge, LayoutBuilder, Node, NodeId, Run};
use std::sync::Arc;

pub(super) const PASS: Pass =
    Pass { name: "flatten-runs", summary: "a concatenation of few runs becomes the list of its maximal runs", rewrite };

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    if !rewriter.will_be_written_out(id) || rewriter.is_flat(id) {
        return None;
    }
    let measure = *rewriter.builder.measure(id);
    let mut list = MaximalRuns::new(measure.first, measure.first, measure.runs);
    list.write_out(&rewriter.builder, id);
    rewriter.wrote_out(measure.runs);
    let runs = rewriter.builder.runs_measured(list.finish(), measure.shifted(measure.first.checked_neg()?)?)?;
    Some(Edge { offset: measure.first, ..runs })
}

/// Maximal runs, as far as they are known, counted from some offset.
pub(super) struct MaximalRuns {
    runs: Arc<[Run]>,
    length: usize,
    origin: i64,
    /// The run that the next piece may continue.
    start: i64,
    end: i64,
}

impl MaximalRuns {
    /// A list with room for `maximal` runs, before its first piece, which begins at `first`.
    pub(super) fn new(origin: i64, first: i64, maximal: u64) -> MaximalRuns {
        // An `Arc` from the start, so that a node takes the list without a copy.
        let runs = std::iter::repeat_n(Run { offset: 0, count: 0 }, maximal as usize).collect();
        MaximalRuns { runs, length: 0, origin, start: first, end: first }
    }

    /// Adds pieces: offsets and lengths. All that changes with a piece is in registers meanwhile, where a vector that grows
    /// would keep its length in memory: half of the time of a list of thousands.
    #[inline]
    pub(super) fn extend(&mut self, pieces: impl Iterator<Item = (i64, u64)>) {
        let MaximalRuns { origin, mut start, mut end, mut length, .. } = *self;
        let runs = Arc::make_mut(&mut self.runs);
        for (offset, bytes) in pieces {
            if offset != end {
                if let Some(run) = runs.get_mut(length) {
                    *run = Run { offset: start - origin, count: (end - start) as u64 };
                }
                length += 1;
                start = offset;
            }
            end = offset + bytes as i64;
        }
        (self.start, self.end, self.length) = (start, end, length);
    }

    /// The runs of all pieces, of which there was at least one.
    pub(super) fn finish(mut self) -> Arc<[Run]> {
        debug_assert_eq!(self.length + 1, self.runs.len());
        if let Some(last) = Arc::make_mut(&mut self.runs).last_mut() {
            *last = Run { offset: self.start - self.origin, count: (self.end - self.start) as u64 };
        }
        self.runs
    }

    /// Adds all pieces of a node: what [`Layout::walk`](crate::layout::Layout::walk) yields, with a loop of its own for the
    /// lists that make a description long.
    fn write_out(&mut self, builder: &LayoutBuilder, id: NodeId) {
        let mut stack = vec![(Edge { offset: 0, node: id }, 0)];
        while let Some((Edge { offset: base, node }, at)) = stack.pop() {
            // Children that are dense are moved in a loop; of others the next one goes on the stack.
            let dense = |child: Edge| match builder.node(child.node) {
                Node::Dense { count, kind } => Some((base + child.offset, count * kind.size())),
                _ => None,
            };
            let mut next = None;
            match builder.node(node) {
                Node::Dense { count, kind } => self.extend([(base, count * kind.size())].into_iter()),
                Node::Runs { runs, kind } => {
                    let size = kind.size();
                    self.extend(runs.iter().map(|run| (base + run.offset, run.count * size)));
                }
                Node::Stream { count, stride, child } => match dense(*child) {
                    Some((base, bytes)) => self.extend((0..*count as i64).map(|copy| (base + copy * stride, bytes))),
                    None => next = (at < *count).then(|| (child.offset + at as i64 * stride, child.node)),
                },
                Node::Indexed { offsets, child } => match dense(*child) {
                    Some((base, bytes)) => self.extend(offsets.iter().map(|offset| (base + offset, bytes))),
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
