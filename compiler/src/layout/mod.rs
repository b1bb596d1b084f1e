//! Layouts: what a datatype means, as a DAG of streams, lists and records of bytes.
//!
//! A [`Layout`] is an arena of hash-consed nodes, so equal parts are one node. Offsets live on edges. The nodes mean
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
//! and is the judge of every other stage; [`Layout::verify`] checks what the arena promises; [`Layout::type_hash`]
//! identifies the sequence whatever the form; [`positions`] answers where a packed byte lies.

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

/// Names a node of one layout; children have smaller numbers than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(u32);

impl NodeId {
    /// The position of the node in the arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node, displaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// In bytes.
    pub offset: i64,
    /// What lies there.
    pub node: NodeId,
}

/// Consecutive elements at an offset. Laid out as C does, because leaves of the runtime read tables of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(C)]
pub struct Run {
    /// In bytes.
    pub offset: i64,
    /// Number of elements, at least 1.
    pub count: u64,
}

/// One node of a layout. See the [module](self) for what each means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// Consecutive elements.
    Dense {
        /// Number of elements, at least 1.
        count: u64,
        /// What they are.
        kind: Kind,
    },
    /// Copies at equal distances.
    Stream {
        /// Number of copies, at least 1.
        count: u64,
        /// From one copy to the next, in bytes.
        stride: i64,
        /// What is copied; not empty.
        child: Edge,
    },
    /// Copies at listed offsets.
    Indexed {
        /// Of each copy, in bytes; at least one.
        offsets: Arc<[i64]>,
        /// What is copied; not empty.
        child: Edge,
    },
    /// Contiguous runs of differing length.
    Runs {
        /// In packed order; at least one.
        runs: Arc<[Run]>,
        /// What the elements are.
        kind: Kind,
    },
    /// Differing children.
    Record {
        /// In packed order; none for the empty layout.
        parts: Arc<[Edge]>,
    },
}

impl Hash for Node {
    /// Reads every entry of a list: what a hash leaves out, hostile descriptions differ in alone.
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

/// Hashes the words of all entries 512 bytes at a time, which hashers take several times as fast as single words.
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
    /// How many numbers the node writes down beside itself.
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

/// The sequence of bytes that a datatype means, with its bounds. Immutable.
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
    /// The node behind an id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Size, bounds and runs of a node.
    pub fn measure(&self, id: NodeId) -> &Measure {
        &self.measures[id.index()]
    }

    /// The whole.
    pub fn root(&self) -> Edge {
        self.root
    }

    /// Every node, children before parents.
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

    /// From one element of a count to the next, in bytes.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Lowest displacement of a byte; 0 for an empty layout. Derived from the layout itself, so it guards memory.
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

    /// Whether this is the canonical form that is a function of the byte sequence alone. `false` when the layout has
    /// not been canonicalised, or has too many runs to be written out.
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// Length of the description the layout was lowered from: its nodes and the entries of its lists.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The same layout with the length of another description of it.
    pub(crate) fn with_entries(self, entries: u64) -> Layout {
        Layout { entries, ..self }
    }

    /// The same bytes, counted from where the root lies.
    pub(crate) fn without_origin(&self) -> Layout {
        Layout { root: Edge { offset: 0, ..self.root }, ..self.clone() }
    }

    /// Whether another layout has the same nodes and bounds, and differs at most in where its root lies.
    pub(crate) fn equals_without_origin(&self, other: &Layout) -> bool {
        let bounds = |layout: &Layout| (layout.root.node, layout.lb, layout.extent);
        bounds(self) == bounds(other) && self.nodes == other.nodes
    }

    /// The same layout, known to be the canonical one.
    pub(crate) fn proved_exact(self) -> Layout {
        Layout { exact: true, ..self }
    }

    /// Whether one element is a single run, and how long it is: `Some((offset, bytes))`.
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
