//! Layouts: the bytes of a datatype in packed order, as a DAG of streams, lists and records.
//!
//! A [`Layout`] is an arena of hash-consed nodes, so equal parts are one node. Offsets are on edges. The nodes are
//!
//! ```text
//! dense N x kind                N consecutive elements of a kind
//! stream N x S of X             N copies of X, S bytes apart
//! indexed [o0 o1 ...] of X      copies of X at the given offsets, in that order
//! runs [(o0 n0) (o1 n1)] x kind contiguous runs of differing length
//! record [o0: X0, o1: X1, ...]  differing children, in that order; `record []` is empty
//! ```
//!
//! and a layout is written
//!
//! ```text
//! layout lb 0 extent 64 {
//!   %0 = dense 2 x f64
//!   %1 = stream 3 x 24 of %0
//!   root 8: %1
//! }
//! ```
//!
//! The form round-trips through [`Layout::parse`] and `Display`. [`Layout::walk`] yields the exact sequence of bytes
//! and is the reference for every other stage. [`Layout::verify`] checks the invariants of the arena.
//! [`Layout::type_hash`] identifies the sequence in any form. [`positions`] maps packed bytes to memory.

mod builder;
mod dot;
pub(crate) mod field;
mod fingerprint;
mod kind;
mod measure;
mod parse;
pub mod positions;
mod print;
mod run_lengths;
pub mod segments;
mod verify;
mod walk;
pub mod wire;

pub use builder::LayoutBuilder;
pub use fingerprint::{Fingerprint, Point, TypeHash};
pub use kind::Kind;
pub use measure::Measure;
pub use parse::ParseError;
pub use run_lengths::RunLengths;
pub use verify::VerifyError;
pub use walk::{Piece, Walk};

use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Id of a node in one layout. Children have smaller ids than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(u32);

impl NodeId {
    /// Index of the node in the arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// Offset in bytes.
    pub offset: i64,
    /// The node at the offset.
    pub node: NodeId,
}

/// Consecutive elements at an offset. It has the representation of C, because microkernels read tables of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(C)]
pub struct Run {
    /// Offset in bytes.
    pub offset: i64,
    /// Number of elements, at least 1.
    pub count: u64,
}

/// One node of a layout. The [module](self) defines each kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// Consecutive elements.
    Dense {
        /// Number of elements, at least 1.
        count: u64,
        /// Kind of the elements.
        kind: Kind,
    },
    /// Copies at a constant stride.
    Stream {
        /// Number of copies, at least 1.
        count: u64,
        /// Bytes from one copy to the next.
        stride: i64,
        /// The copied node; not empty.
        child: Edge,
    },
    /// Copies at listed offsets.
    Indexed {
        /// Offset of each copy in bytes; at least one.
        offsets: Arc<[i64]>,
        /// The copied node; not empty.
        child: Edge,
    },
    /// Contiguous runs of differing length.
    Runs {
        /// The runs in packed order; at least one.
        runs: Arc<[Run]>,
        /// Kind of the elements.
        kind: Kind,
    },
    /// Differing children.
    Record {
        /// The children in packed order; none in the empty layout.
        parts: Arc<[Edge]>,
    },
}

impl Hash for Node {
    /// Hashes every entry of a list: hostile descriptions would differ only in entries left out.
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Node::Dense { count, kind } => (count, kind).hash(state),
            Node::Stream { count, stride, child } => (count, stride, child).hash(state),
            Node::Indexed { offsets, child } => {
                hash_list(offsets, |&offset| [offset as u64], state);
                child.hash(state);
            }
            Node::Runs { runs, kind } => {
                hash_list(runs, |run| [run.offset as u64, run.count], state);
                kind.hash(state);
            }
            Node::Record { parts } => hash_list(parts, |part| [part.offset as u64, part.node.0.into()], state),
        }
    }
}

/// Hashes the words of all entries in blocks of 512 bytes, which is several times as fast as single words.
fn hash_list<T, H: Hasher, const WORDS: usize>(list: &[T], words: impl Fn(&T) -> [u64; WORDS], state: &mut H) {
    const BLOCK: usize = 64;
    let mut block = [0u8; BLOCK * size_of::<u64>()];
    state.write_usize(list.len());
    for entries in list.chunks(BLOCK / WORDS) {
        let places = block.as_chunks_mut::<{ size_of::<u64>() }>().0;
        for (place, word) in places.iter_mut().zip(entries.iter().flat_map(&words)) {
            *place = word.to_ne_bytes();
        }
        state.write(&block[..entries.len() * WORDS * size_of::<u64>()]);
    }
}

impl Node {
    /// Number of list entries of the node.
    fn list_entries(&self) -> u64 {
        (match self {
            Node::Dense { .. } | Node::Stream { .. } => 0,
            Node::Indexed { offsets, .. } => offsets.len(),
            Node::Runs { runs, .. } => runs.len(),
            Node::Record { parts } => parts.len(),
        }) as u64
    }

    /// The edges to the children, in packed order.
    pub fn edges(&self) -> &[Edge] {
        match self {
            Node::Dense { .. } | Node::Runs { .. } => &[],
            Node::Stream { child, .. } | Node::Indexed { child, .. } => std::slice::from_ref(child),
            Node::Record { parts } => parts,
        }
    }
}

/// The sequence of bytes that a datatype describes, with its bounds. Immutable.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// let layout = Layout::parse("layout lb 0 extent 24 {\n  %0 = dense 1 x f64\n  %1 = stream 2 x 16 of %0\n  root %1\n}")?;
/// assert_eq!(layout.size(), 16);
/// assert_eq!(layout.walk().map(|piece| piece.offset).collect::<Vec<_>>(), [0, 16]);
/// # Ok::<(), dtc_compiler::layout::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Layout {
    nodes: Vec<Node>,
    measures: Vec<Measure>,
    root: Edge,
    lb: i64,
    extent: i64,
    entries: u64,
    exact: bool,
}

impl Layout {
    /// The node with an id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Size, bounds and runs of a node.
    pub fn measure(&self, id: NodeId) -> &Measure {
        &self.measures[id.index()]
    }

    /// The root edge, which covers the whole layout.
    pub fn root(&self) -> Edge {
        self.root
    }

    /// All nodes, children before parents.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u32), node))
    }

    /// Packed bytes of one element.
    pub fn size(&self) -> u64 {
        self.measure(self.root.node).size
    }

    /// Lower bound in bytes.
    pub fn lb(&self) -> i64 {
        self.lb
    }

    /// Bytes from one element of a count to the next.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Lowest displacement of a byte; 0 for an empty layout. It is computed from the nodes and not from declared
    /// bounds, so memory checks may rely on it.
    pub fn true_lb(&self) -> i64 {
        self.shift_bound(self.measure(self.root.node).low)
    }

    /// One past the highest displacement of a byte; 0 for an empty layout.
    pub fn true_ub(&self) -> i64 {
        self.shift_bound(self.measure(self.root.node).high)
    }

    fn shift_bound(&self, bound: i64) -> i64 {
        if self.size() == 0 { 0 } else { self.root.offset + bound }
    }

    /// Whether this is the canonical form, which depends on the byte sequence alone. `false` if the layout was not
    /// canonicalised, or has too many runs to enumerate.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// Length of the description that the layout was lowered from: its nodes plus the entries of its lists.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The same layout, with the length of another description of it.
    pub(crate) fn with_entries(self, entries: u64) -> Layout {
        Layout { entries, ..self }
    }

    /// The same bytes, with offsets relative to the root edge.
    pub(crate) fn without_origin(&self) -> Layout {
        Layout { root: Edge { offset: 0, ..self.root }, ..self.clone() }
    }

    /// Whether another layout has the same nodes and bounds. The offset of the root edge may differ.
    pub(crate) fn equals_without_origin(&self, other: &Layout) -> bool {
        let bounds = |layout: &Layout| (layout.root.node, layout.lb, layout.extent);
        bounds(self) == bounds(other) && self.nodes == other.nodes
    }

    /// The same layout, marked as canonical.
    pub(crate) fn proved_exact(self) -> Layout {
        Layout { exact: true, ..self }
    }

    /// `Some((offset, bytes))` if one element is a single run.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root 4: %0\n}")?;
    /// assert_eq!(layout.contiguous(), Some((4, 8)));
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn contiguous(&self) -> Option<(i64, u64)> {
        let measure = self.measure(self.root.node);
        (measure.runs == 1).then_some((self.root.offset + measure.first, measure.size))
    }
}
