//! The nodes of layouts with index tables.

use std::sync::Arc;

/// Id of a node in one layout. Children have smaller ids than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TabledNodeId(pub(super) u32);

impl TabledNodeId {
    /// Index of the node among those of the layout.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TabledEdge {
    /// Offset in bytes.
    pub offset: i64,
    /// The node at the offset.
    pub node: TabledNodeId,
}

/// One node. The [module](super) defines each kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TabledNode {
    /// A layout that no table moves.
    Fixed {
        /// Its place in [`TabledLayout::fixed_layouts`](super::TabledLayout::fixed_layouts).
        fixed: usize,
    },
    /// Copies at a constant stride.
    Stream {
        /// Number of copies, at least 2.
        count: u64,
        /// Bytes from one copy to the next.
        stride: i64,
        /// The copied node.
        child: TabledEdge,
    },
    /// Copies at listed offsets.
    Indexed {
        /// Offset of each copy in bytes; at least two.
        offsets: Arc<[i64]>,
        /// The copied node.
        child: TabledEdge,
    },
    /// Copies at the places that a table lists.
    Table {
        /// The number of the table.
        table: usize,
        /// Entries are below.
        places: u64,
        /// Bytes from one place to the next.
        pitch: i64,
        /// The copied node.
        child: TabledEdge,
    },
    /// Copies at the addresses that a table lists.
    Addresses {
        /// The number of the table.
        table: usize,
        /// The copied node.
        child: TabledEdge,
    },
    /// Differing children, in packed order; none in the layout without bytes.
    Record {
        /// The children.
        parts: Arc<[TabledEdge]>,
    },
}

impl TabledNode {
    /// The edges to the children, in packed order.
    pub fn edges(&self) -> &[TabledEdge] {
        match self {
            TabledNode::Fixed { .. } => &[],
            TabledNode::Stream { child, .. }
            | TabledNode::Indexed { child, .. }
            | TabledNode::Table { child, .. }
            | TabledNode::Addresses { child, .. } => std::slice::from_ref(child),
            TabledNode::Record { parts } => parts,
        }
    }
}
