//! The hash-consing builder of layouts.

use super::{Edge, Kind, Layout, Measure, Node, NodeId, Run};
use hashbrown::HashTable;
use smallvec::{SmallVec, smallvec};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Builders with fewer nodes than this compare nodes one by one; larger ones use a hash table.
const SMALL: usize = 40;

/// Builds a layout from its innermost nodes up. A node equal to an existing one gets the same id.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::{Edge, Kind, LayoutBuilder, Node};
/// let mut builder = LayoutBuilder::new();
/// let element = builder.intern(Node::Dense { count: 1, kind: Kind::F64 }).unwrap();
/// let again = builder.intern(Node::Dense { count: 1, kind: Kind::F64 }).unwrap();
/// assert_eq!(element, again);
/// let child = Edge { offset: 0, node: element };
/// let column = builder.intern(Node::Stream { count: 8, stride: 64, child }).unwrap();
/// let layout = builder.finish(Edge { offset: 0, node: column }, 0, 512);
/// assert_eq!(layout.size(), 64);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LayoutBuilder {
    nodes: Vec<Node>,
    measures: Vec<Measure>,
    /// Empty below [`SMALL`] nodes.
    table: HashTable<InternedNode>,
    /// Seeded when the table is first filled.
    hasher: Option<RandomState>,
}

/// A node in the table, with the hash of all its entries, so that growing the table reads no list again.
#[derive(Clone, Copy, Debug)]
struct InternedNode {
    hash: u64,
    index: u32,
}

/// Whether two nodes are equal. Streams, which blocks of an indexed type are, are compared without a call.
#[inline]
fn equal(one: &Node, other: &Node) -> bool {
    match (one, other) {
        (Node::Stream { count, stride, child }, Node::Stream { count: counted, stride: step, child: copied }) => {
            (count, stride, child) == (counted, step, copied)
        }
        (Node::Stream { .. }, _) | (_, Node::Stream { .. }) => false,
        _ => one == other,
    }
}

impl LayoutBuilder {
    /// An empty builder.
    pub fn new() -> LayoutBuilder {
        LayoutBuilder::default()
    }

    /// The id of a node, new or existing. `None` if a size or bound does not fit 64 bits, if a node that must not be
    /// empty is empty, or if a child does not exist.
    pub fn intern(&mut self, node: Node) -> Option<NodeId> {
        if node.edges().iter().any(|edge| edge.node.index() >= self.nodes.len()) {
            return None;
        }
        let hash = match self.find(&node) {
            Ok(found) => return Some(found),
            Err(hash) => hash,
        };
        let measure = Measure::of(&node, |edge| self.measures[edge.node.index()])?;
        self.push(node, measure, hash)
    }

    /// The id of a node whose measure is known, because it has the same bytes as a measured node.
    pub(crate) fn intern_measured(&mut self, node: Node, measure: Measure) -> Option<NodeId> {
        debug_assert_eq!(Measure::of(&node, |edge| self.measures[edge.node.index()]), Some(measure));
        match self.find(&node) {
            Ok(found) => Some(found),
            Err(hash) => self.push(node, measure, hash),
        }
    }

    /// The id of an existing node, or the hash of a new one if there is a table.
    fn find(&self, node: &Node) -> Result<NodeId, Option<u64>> {
        let Some(hasher) = &self.hasher else {
            let found = self.nodes.iter().position(|known| equal(known, node));
            return found.map(|found| NodeId(found as u32)).ok_or(None);
        };
        let hash = hasher.hash_one(node);
        let same = |known: &InternedNode| known.hash == hash && self.nodes[known.index as usize] == *node;
        self.table.find(hash, same).map(|known| NodeId(known.index)).ok_or(Some(hash))
    }

    /// Adds a new node, with the hash that [`LayoutBuilder::find`] computed.
    fn push(&mut self, node: Node, measure: Measure, hash: Option<u64>) -> Option<NodeId> {
        let index = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        self.measures.push(measure);
        if let Some(hash) = hash {
            self.table.insert_unique(hash, InternedNode { hash, index }, |known| known.hash);
        } else if self.nodes.len() == SMALL {
            // The hash is seeded by the operating system and covers all entries, so an attacker cannot prepare nodes
            // that collide.
            let hasher = self.hasher.insert(RandomState::new());
            for (node, index) in self.nodes.iter().zip(0..) {
                let hash = hasher.hash_one(node);
                self.table.insert_unique(hash, InternedNode { hash, index }, |known| known.hash);
            }
        }
        Some(NodeId(index))
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node with an id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Size, bounds and runs of a node.
    pub fn measure(&self, id: NodeId) -> &Measure {
        &self.measures[id.index()]
    }

    /// The layout without bytes, at offset 0.
    pub fn empty(&mut self) -> Edge {
        let node = self.intern(Node::Record { parts: [].into() });
        // An empty record has no child and no size, so interning it never fails.
        Edge { offset: 0, node: node.unwrap_or(NodeId(0)) }
    }

    /// `bytes` consecutive bytes at an offset.
    pub fn bytes(&mut self, offset: i64, bytes: u64) -> Option<Edge> {
        let node = self.intern(Node::Dense { count: bytes, kind: Kind::Byte })?;
        Some(Edge { offset, node })
    }

    /// Runs of bytes with a known measure, as an edge at offset 0.
    pub(crate) fn runs_measured(&mut self, runs: Arc<[Run]>, measure: Measure) -> Option<Edge> {
        let node = self.intern_measured(Node::Runs { runs, kind: Kind::Byte }, measure)?;
        Some(Edge { offset: 0, node })
    }

    /// Runs of bytes; `None` if there are none.
    pub fn runs(&mut self, runs: Vec<Run>) -> Option<Edge> {
        let node = self.intern(Node::Runs { runs: runs.into(), kind: Kind::Byte })?;
        Some(Edge { offset: 0, node })
    }

    /// Finishes the layout with this root. Nodes that the root does not reach are dropped; the others keep their order.
    pub fn finish(self, root: Edge, lb: i64, extent: i64) -> Layout {
        let mut keep: SmallVec<[bool; 32]> = smallvec![false; self.nodes.len()];
        if let Some(kept) = keep.get_mut(root.node.index()) {
            *kept = true;
        }
        for index in (0..self.nodes.len()).rev() {
            if keep[index] {
                for edge in self.nodes[index].edges() {
                    keep[edge.node.index()] = true;
                }
            }
        }
        if keep.iter().all(|&kept| kept) {
            let LayoutBuilder { nodes, measures, .. } = self;
            let entries = nodes.iter().map(|node: &Node| 1 + node.list_entries()).sum();
            return Layout { nodes, measures, root, lb, extent, entries, exact: false };
        }
        let mut renamed = vec![NodeId(0); self.nodes.len()];
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut measures = Vec::with_capacity(self.nodes.len());
        for (index, (mut node, measure)) in self.nodes.into_iter().zip(self.measures).enumerate() {
            if !keep[index] {
                continue;
            }
            renamed[index] = NodeId(nodes.len() as u32);
            let rename = |edge: Edge| Edge { node: renamed[edge.node.index()], ..edge };
            match &mut node {
                Node::Dense { .. } | Node::Runs { .. } => {}
                Node::Stream { child, .. } | Node::Indexed { child, .. } => *child = rename(*child),
                Node::Record { parts } => *parts = parts.iter().map(|&part| rename(part)).collect(),
            }
            nodes.push(node);
            measures.push(measure);
        }
        let root = Edge { node: renamed[root.node.index()], ..root };
        let entries = nodes.iter().map(|node: &Node| 1 + node.list_entries()).sum();
        Layout { nodes, measures, root, lb, extent, entries, exact: false }
    }
}
