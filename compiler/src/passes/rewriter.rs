//! The driver of the passes.

use super::report::{Canonical, Report};
use crate::layout::{Edge, Kind, Layout, LayoutBuilder, Measure, Node, NodeId};
use std::fmt;

/// Looks at a node whose children are settled; `Some` is what replaces it.
pub(super) type Rewrite = fn(&mut Rewriter, NodeId) -> Option<Edge>;

/// A named rewrite of one node.
pub struct Pass {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) rewrite: Rewrite,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Pass {
    /// Its name in reports and file tests.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it does, in one line.
    pub fn summary(&self) -> &'static str {
        self.summary
    }
}

/// Copies that all lists of a layout may have for each entry of its description, beside [`COPIES_IN_ANY_CASE`].
const COPIES_PER_ENTRY: u64 = 16;

/// Copies that all lists of a layout may have, however short its description is: 512 KiB of places.
const COPIES_IN_ANY_CASE: u64 = 65_536;

/// The layout under construction, and what the passes may need to know.
pub(super) struct Rewriter {
    pub(super) builder: LayoutBuilder,
    /// Concatenations of at most this many maximal runs are written out.
    limit: u64,
    /// Maximal runs that may still be written out. It bounds the parts of a DAG that overlap: each is within the limit, and
    /// all of them would not be linear in the description.
    budget: u64,
    /// Copies of groups that may still be listed, for the same reason.
    copies: u64,
    /// Those of the current sweep.
    passes: Vec<&'static Pass>,
    report: Report,
}

impl Rewriter {
    pub(super) fn new(limit: u64) -> Rewriter {
        Rewriter::with_budget(limit, limit.saturating_mul(2))
    }

    /// A rewriter that writes out concatenations of at most `limit` runs, and `budget` runs in all.
    pub(super) fn with_budget(limit: u64, budget: u64) -> Rewriter {
        Rewriter {
            builder: LayoutBuilder::new(),
            limit,
            budget,
            copies: 0,
            passes: Vec::new(),
            report: Report::default(),
        }
    }

    /// Copies a layout into the builder, children first, and settles every node on the way.
    pub(super) fn sweep_up(&mut self, passes: &[&'static Pass], layout: &Layout) -> Edge {
        self.passes = passes.to_vec();
        self.copies = layout.entries().saturating_mul(COPIES_PER_ENTRY).saturating_add(COPIES_IN_ANY_CASE);
        let mut settled: Vec<Edge> = Vec::with_capacity(layout.nodes().len());
        for (id, node) in layout.nodes() {
            let node = with_children(node, |edge| displaced(settled[edge.node.index()], edge.offset));
            let edge = self.intern_same(node, *layout.measure(id));
            settled.push(self.settle(edge));
        }
        displaced(settled[layout.root().node.index()], layout.root().offset)
    }

    /// Settles a DAG of the builder from the root down: a node that is written out as runs needs no settled children.
    pub(super) fn sweep_down(&mut self, passes: &'static [&'static Pass], root: Edge) -> Edge {
        self.passes = passes.to_vec();
        let mut settled: Vec<Option<Edge>> = vec![None; self.builder.len()];
        let mut stack = vec![root.node];
        while let Some(&id) = stack.last() {
            if settled[id.index()].is_some() {
                stack.pop();
                continue;
            }
            let edge = Edge { offset: 0, node: id };
            if self.will_be_written_out(id) {
                settled[id.index()] = Some(self.settle(edge));
                stack.pop();
                continue;
            }
            let waiting = self.builder.node(id).edges().iter().map(|edge| edge.node);
            let before = stack.len();
            stack.extend(waiting.filter(|child| settled[child.index()].is_none()));
            if stack.len() > before {
                continue;
            }
            let node = with_children(&self.builder.node(id).clone(), |edge| {
                settled[edge.node.index()].map_or(edge, |settled| displaced(settled, edge.offset))
            });
            let edge = self.intern_same(node, *self.builder.measure(id));
            settled[id.index()] = Some(self.settle(edge));
            stack.pop();
        }
        settled[root.node.index()].map_or(root, |settled| displaced(settled, root.offset))
    }

    /// Whether a node is a concatenation short enough to become a list of runs, or to stay one.
    pub(super) fn will_be_written_out(&self, id: NodeId) -> bool {
        let concatenation =
            matches!(self.builder.node(id), Node::Record { .. } | Node::Indexed { .. } | Node::Runs { .. });
        let measure = self.builder.measure(id);
        let short = concatenation && measure.size > 0 && measure.runs <= self.limit;
        short && (measure.runs <= self.budget || self.is_flat(id))
    }

    /// Whether a node is a list of maximal runs of bytes already, beginning at 0.
    pub(super) fn is_flat(&self, id: NodeId) -> bool {
        let maximal = self.builder.measure(id).runs;
        match self.builder.node(id) {
            Node::Runs { runs, kind: Kind::Byte } => runs[0].offset == 0 && runs.len() as u64 == maximal,
            Node::Indexed { offsets, child } => {
                let bytes = matches!(self.builder.node(child.node), Node::Dense { kind: Kind::Byte, .. });
                bytes && child.offset == 0 && offsets[0] == 0 && offsets.len() as u64 == maximal
            }
            _ => false,
        }
    }

    /// Prepares for a layout whose root will not be written out: its parts have a budget of their own.
    pub(super) fn write_out_parts(&mut self, budget: u64) {
        self.budget = budget;
    }

    /// Counts maximal runs that were written out.
    pub(super) fn wrote_out(&mut self, runs: u64) {
        self.budget = self.budget.saturating_sub(runs);
    }

    /// Takes copies of a group out of those that may still be listed, if there are as many.
    pub(super) fn take_copies(&mut self, copies: u64) -> Option<()> {
        self.copies = self.copies.checked_sub(copies)?;
        Some(())
    }

    /// Applies the passes of the current sweep to a node until none fires.
    pub(super) fn settle(&mut self, mut edge: Edge) -> Edge {
        let mut index = 0;
        while let Some(&pass) = self.passes.get(index) {
            index += 1;
            if let Some(new) = (pass.rewrite)(self, edge.node) {
                debug_assert!(self.means_the_same(edge.node, new), "{} changed the bytes of a node", pass.name);
                log::trace!(
                    "{}: %{} = {} becomes {} + %{} = {}",
                    pass.name,
                    edge.node.index(),
                    self.builder.node(edge.node),
                    new.offset,
                    new.node.index(),
                    self.builder.node(new.node)
                );
                self.report.count(pass.name);
                edge = displaced(new, edge.offset);
                index = 0;
            }
        }
        edge
    }

    /// Whether two nodes agree in size, bounds, ends and number of runs: a cheap check after every rewrite. The whole
    /// sequence is compared by fingerprint when the sweeps are done.
    fn means_the_same(&self, old: NodeId, new: Edge) -> bool {
        let (old, replaced) = (self.builder.measure(old), self.builder.measure(new.node));
        let shifted = |bound: i64| bound + new.offset;
        old.size == replaced.size
            && old.runs == replaced.runs
            && (old.size == 0
                || (old.low, old.high, old.first, old.last)
                    == (shifted(replaced.low), shifted(replaced.high), shifted(replaced.first), shifted(replaced.last)))
    }

    /// Whether the canonical form was reached below an edge: lists are of bytes, and concatenations were written out.
    pub(super) fn is_exact(&self, root: Edge) -> bool {
        match self.below_streams(root) {
            Node::Dense { .. } | Node::Runs { .. } => true,
            Node::Indexed { child, .. } => matches!(self.builder.node(child.node), Node::Dense { .. }),
            Node::Record { parts } => parts.is_empty(),
            Node::Stream { .. } => false,
        }
    }

    /// Whether there are streams and nothing else around one dense node.
    pub(super) fn is_regular(&self, root: Edge) -> bool {
        matches!(self.below_streams(root), Node::Dense { .. })
    }

    /// The first node from the root down that is no stream.
    fn below_streams(&self, root: Edge) -> &Node {
        self.builder.node(self.concatenation(root))
    }

    /// The id of that node.
    pub(super) fn concatenation(&self, root: Edge) -> NodeId {
        let mut id = root.node;
        while let Node::Stream { child, .. } = self.builder.node(id) {
            id = child.node;
        }
        id
    }

    pub(super) fn finish(self, root: Edge, source: &Layout) -> Canonical {
        let layout = self.builder.finish(root, source.lb(), source.extent()).with_entries(source.entries());
        debug_assert_eq!(layout.verify(), Ok(()));
        debug_assert_eq!(layout.type_hash(), source.type_hash(), "the passes changed the bytes of the layout");
        Canonical { layout, report: self.report }
    }

    /// A node that was valid, with that measure, stays so when its children are replaced by what means the same.
    fn intern_same(&mut self, node: Node, measure: Measure) -> Edge {
        match self.builder.intern_measured(node, measure) {
            Some(node) => Edge { offset: 0, node },
            None => self.builder.empty(),
        }
    }
}

/// What is at an edge that is itself displaced.
pub(super) fn displaced(edge: Edge, offset: i64) -> Edge {
    Edge { offset: edge.offset + offset, ..edge }
}

/// The same node with other children.
fn with_children(node: &Node, replace: impl Fn(Edge) -> Edge) -> Node {
    match node {
        Node::Dense { .. } | Node::Runs { .. } => node.clone(),
        Node::Stream { count, stride, child } => {
            Node::Stream { count: *count, stride: *stride, child: replace(*child) }
        }
        Node::Indexed { offsets, child } => Node::Indexed { offsets: offsets.clone(), child: replace(*child) },
        Node::Record { parts } => Node::Record { parts: parts.iter().map(|&part| replace(part)).collect() },
    }
}
