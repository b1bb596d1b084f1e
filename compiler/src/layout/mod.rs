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

pub(crate) mod address_set;
mod builder;
mod description;
mod digest;
mod dot;
pub(crate) mod field;
mod fingerprint;
mod flat;
mod kind;
mod measure;
mod node;
mod overlap;
mod parse;
pub mod positions;
mod print;
mod residues;
mod run_lengths;
mod runs;
pub mod segments;
mod verify;
mod walk;
pub mod wire;

pub use builder::LayoutBuilder;
pub use fingerprint::{Fingerprint, Point, TypeHash};
pub use kind::Kind;
pub use measure::Measure;
pub use node::{Edge, Node, NodeId, Run};
pub use overlap::Overlap;
pub use residues::Residues;
pub(crate) use residues::greatest_common_divisor;
pub use run_lengths::RunLengths;
pub use runs::Runs;
pub use verify::VerifyError;
pub use walk::{Piece, Walk};

/// The sequence of bytes that a datatype describes, with its bounds. Immutable.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// let layout = Layout::parse("layout lb 0 extent 24 {\n  %0 = dense 1 x f64\n  %1 = stream 2 x 16 of %0\n  root %1\n}")?;
/// assert_eq!(layout.size(), 16);
/// assert_eq!(layout.walk().map(|piece| piece.offset).collect::<Vec<_>>(), [0, 16]);
/// # Ok::<(), dtc_compiler::TextError>(())
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

    /// The same bytes, with offsets relative to the root edge, and no extent: a part that is never repeated.
    pub(crate) fn as_part(&self) -> Layout {
        Layout { lb: 0, extent: 0, ..self.without_origin() }
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
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn contiguous(&self) -> Option<(i64, u64)> {
        let measure = self.measure(self.root.node);
        (measure.runs == 1).then_some((self.root.offset + measure.first, measure.size))
    }
}
