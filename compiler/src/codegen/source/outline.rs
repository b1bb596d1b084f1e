//! What each node of a layout is in a text.

use crate::layout::{Edge, Layout, Node, NodeId};
use crate::passes;
use thiserror::Error;

/// Statements that a text may have at most: parts of records, and nodes.
const MOST_STATEMENTS: u64 = 16_384;

/// Entries that the lists of a text may have at most.
const MOST_ENTRIES: u64 = 1 << 22;

/// Levels of loops and parts in one function; what is deeper is a function of its own.
const NESTED: u32 = 5;

/// Runs that are statements and not a list.
const WRITTEN_OUT: usize = 8;

/// A type that no text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected at most {most} {what}, found {found}")]
pub struct TooLarge {
    /// What there is too much of.
    pub what: &'static str,
    /// How much there is.
    pub found: u64,
    /// The limit.
    pub most: u64,
}

/// A layout whose nodes are placed by the first of their packed bytes: so that every address in a text is that of a byte of the
/// type, and no sum on the way to it leaves the memory of the type.
pub(super) struct Outline {
    layout: Layout,
    /// The functions that nodes are, by node: numbers from 1 in the order in which they are written.
    functions: Vec<Option<usize>>,
    reached: Vec<bool>,
}

/// What a node is.
pub(super) enum NodeShape {
    /// Nothing.
    Empty,
    /// Consecutive bytes.
    Bytes(u64),
    /// A loop.
    Repeat { count: u64, stride: i64, child: NodeId },
    /// A loop over a list of offsets.
    Listed { offsets: Vec<i64>, child: NodeId },
    /// A loop over a list of runs: offset and length in bytes.
    Runs(Vec<(i64, u64)>),
    /// One after the other.
    Parts(Vec<NodePart>),
}

/// A part of a node.
pub(super) struct NodePart {
    /// From the first byte of the node to the first of the part, in memory.
    pub(super) offset: i64,
    pub(super) body: Body,
}

/// What a part is.
#[derive(Clone, Copy)]
pub(super) enum Body {
    Bytes(u64),
    Node(NodeId),
}

impl Outline {
    /// The outline of a canonical layout.
    pub(super) fn new(canonical: &Layout) -> Result<Outline, TooLarge> {
        let layout = passes::regularise(canonical);
        let nodes = layout.nodes().len();
        let (mut reached, mut uses) = (vec![false; nodes], vec![0u64; nodes]);
        let (mut statements, mut entries) = (0, 0);
        let root = layout.root().node;
        (reached[root.index()], uses[root.index()]) = (true, 1);
        // Children have smaller ids.
        let all: Vec<(NodeId, &Node)> = layout.nodes().collect();
        for &(id, node) in all.iter().rev().filter(|(id, _)| id.index() <= root.index()) {
            if !reached[id.index()] {
                continue;
            }
            statements += 1;
            match node {
                Node::Dense { .. } | Node::Stream { .. } => {}
                Node::Indexed { offsets, .. } => entries += offsets.len() as u64,
                Node::Runs { runs, .. } => entries += runs.len() as u64,
                Node::Record { parts } => statements += parts.len() as u64,
            }
            for edge in node.edges() {
                (reached[edge.node.index()], uses[edge.node.index()]) = (true, uses[edge.node.index()] + 1);
            }
        }
        for (what, found, most) in
            [("nodes and parts of records", statements, MOST_STATEMENTS), ("entries of lists", entries, MOST_ENTRIES)]
        {
            if found > most {
                return Err(TooLarge { what, found, most });
            }
        }
        let (mut functions, mut heights, mut number) = (vec![None; nodes], vec![0u32; nodes], 0);
        for (id, node) in all {
            if !reached[id.index()] {
                continue;
            }
            let below = node.edges().iter().filter(|edge| functions[edge.node.index()].is_none());
            let height = 1 + below.map(|edge| heights[edge.node.index()]).max().unwrap_or(0);
            let bytes = matches!(node, Node::Dense { .. });
            heights[id.index()] = height;
            if id != root && !bytes && (uses[id.index()] > 1 || height >= NESTED) {
                number += 1;
                functions[id.index()] = Some(number);
            }
        }
        Ok(Outline { layout, functions, reached })
    }

    /// The layout.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The root.
    pub(super) fn root(&self) -> NodeId {
        self.layout.root().node
    }

    /// From the address of the type to its first packed byte.
    pub(super) fn origin(&self) -> i64 {
        self.first(self.layout.root())
    }

    /// Packed bytes of a node.
    pub(super) fn size(&self, id: NodeId) -> u64 {
        self.layout.measure(id).size
    }

    /// The number of the function that a node is, or `None` if it is written where it is used.
    pub(super) fn function(&self, id: NodeId) -> Option<usize> {
        self.functions[id.index()]
    }

    /// All nodes of the text, children first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.layout.nodes().map(|(id, _)| id).filter(|id| self.reached[id.index()])
    }

    /// The nodes that are functions, children first.
    pub(super) fn functions(&self) -> impl Iterator<Item = (usize, NodeId)> {
        self.nodes().filter_map(|id| Some((self.function(id)?, id)))
    }

    fn first(&self, edge: Edge) -> i64 {
        // Displacements of bytes fit 64 bits, and so do the differences of two; sums on the way to them need not.
        edge.offset.wrapping_add(self.layout.measure(edge.node).first)
    }

    /// What a node is.
    pub(super) fn shape(&self, id: NodeId) -> NodeShape {
        match self.layout.node(id) {
            Node::Dense { count, kind } => NodeShape::Bytes(count * kind.size()),
            Node::Stream { count, stride, child } => {
                NodeShape::Repeat { count: *count, stride: *stride, child: child.node }
            }
            Node::Indexed { offsets, child } => {
                let from_first = |offset: &i64| offset.wrapping_sub(offsets[0]);
                NodeShape::Listed { offsets: offsets.iter().map(from_first).collect(), child: child.node }
            }
            Node::Runs { runs, kind } => {
                let from_first = |offset: i64| offset.wrapping_sub(runs[0].offset);
                let runs = runs.iter().map(|run| (from_first(run.offset), run.count * kind.size()));
                if runs.len() > WRITTEN_OUT {
                    NodeShape::Runs(runs.collect())
                } else {
                    NodeShape::Parts(
                        runs.map(|(offset, bytes)| NodePart { offset, body: Body::Bytes(bytes) }).collect(),
                    )
                }
            }
            Node::Record { parts } => {
                let parts = || parts.iter().filter(|part| self.size(part.node) > 0);
                let Some(first) = parts().next().map(|&part| self.first(part)) else { return NodeShape::Empty };
                let part = |&edge: &Edge| NodePart {
                    offset: self.first(edge).wrapping_sub(first),
                    body: self.body(edge.node),
                };
                NodeShape::Parts(parts().map(part).collect())
            }
        }
    }

    /// A node as a part of another.
    pub(super) fn body(&self, id: NodeId) -> Body {
        match self.layout.node(id) {
            Node::Dense { count, kind } => Body::Bytes(count * kind.size()),
            _ => Body::Node(id),
        }
    }

    /// Packed bytes of a part.
    pub(super) fn size_of(&self, body: Body) -> u64 {
        match body {
            Body::Bytes(bytes) => bytes,
            Body::Node(id) => self.size(id),
        }
    }
}
