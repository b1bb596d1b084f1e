//! Layouts with index tables: functions from the tables of a call to layouts.
//!
//! A [`TabledLayout`] consists of fixed layouts, which no table moves, each in its canonical form, and nodes above them:
//!
//! ```text
//! stream N x S of X                 N copies of X, S bytes apart
//! indexed [o0 o1 ...] of X          copies of X at the given offsets
//! table T below P x S of X          copies of X at table[i] * S, for the entries of table T
//! addresses T of X                  copies of X at the addresses in table T, instead of offsets in the memory of the call
//! record [o0: X0, o1: X1, ...]      differing children
//! ```
//!
//! An entry below 0, or 0 in a table of addresses, is skipped: its packed bytes stay as they are. [`TabledLayout::walk`] yields the bytes of a
//! call and is the reference for every other stage. Sizes depend on how long the tables of the call are ([`TabledLayout::sizes`]); bounds
//! do not. A layout without tables stays a [`Layout`]: it is the sequence of its bytes, and a tabled one is not.

mod blocks;
mod digest;
mod lower;
mod node;
mod normal;
mod print;
mod roofline;
mod walk;

pub use blocks::{Entries, TabledBlock, TabledBlocks, TabledCopy};
pub use node::{TabledEdge, TabledNode, TabledNodeId};
pub use roofline::TabledRoofline;
pub use walk::TabledPiece;

use crate::datatype::{TableFacts, TableKind};
use crate::layout::Layout;
use crate::plan::gpu::{Granularity, alignment};

/// What a datatype with index tables describes. Immutable.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::TabledDatatype;
/// use dtc_compiler::tabled::{Entries, TabledLayout};
/// let pages: TabledDatatype = "hvector 2 1 512 (table 0 8 4 64 (contiguous 8 double))".parse()?;
/// let layout = TabledLayout::new(&pages);
/// assert_eq!(layout.size(&[3]), Some(2 * 3 * 64));
/// let pieces = layout.walk(&[Entries::Wide(&[5, -1, 0])]);
/// let pieces: Vec<(u64, u64)> = pieces.iter().map(|piece| (piece.position, piece.place)).collect();
/// assert_eq!(pieces, [(0, 320), (128, 0), (192, 832), (320, 512)]);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TabledLayout {
    nodes: Vec<TabledNode>,
    fixed_layouts: Vec<Layout>,
    root: TabledEdge,
    tables: Vec<TableFacts>,
    true_lb: i64,
    true_ub: i64,
}

impl TabledLayout {
    /// All nodes, children before parents.
    pub fn nodes(&self) -> &[TabledNode] {
        &self.nodes
    }

    /// The layouts that no table moves, at offset 0.
    pub fn fixed_layouts(&self) -> &[Layout] {
        &self.fixed_layouts
    }

    /// The edge to the whole.
    pub fn root(&self) -> TabledEdge {
        self.root
    }

    /// The tables of a call.
    pub fn tables(&self) -> &[TableFacts] {
        &self.tables
    }

    /// Lowest displacement of a byte in the memory of a call, whatever the tables hold.
    pub fn true_lb(&self) -> i64 {
        self.true_lb
    }

    /// One past the highest.
    pub fn true_ub(&self) -> i64 {
        self.true_ub
    }

    /// Packed bytes of each node, for tables of these lengths. `None` if a length is missing, or above the bound of its table.
    pub fn sizes(&self, lengths: &[u64]) -> Option<Vec<u64>> {
        let fits = |(facts, &length): (&TableFacts, &u64)| length <= facts.most;
        if lengths.len() != self.tables.len() || !self.tables.iter().zip(lengths).all(fits) {
            return None;
        }
        let mut sizes: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            // The size for the longest tables fits, so those of all others do.
            let size = match node {
                TabledNode::Fixed { fixed } => self.fixed_layouts[*fixed].size(),
                TabledNode::Stream { count, child, .. } => count * sizes[child.node.index()],
                TabledNode::Indexed { offsets, child } => offsets.len() as u64 * sizes[child.node.index()],
                TabledNode::Table { table, child, .. } | TabledNode::Addresses { table, child } => {
                    lengths[*table] * sizes[child.node.index()]
                }
                TabledNode::Record { parts } => parts.iter().map(|part| sizes[part.node.index()]).sum(),
            };
            sizes.push(size);
        }
        Some(sizes)
    }

    /// Packed bytes for tables of these lengths. `None` as for [`TabledLayout::sizes`].
    pub fn size(&self, lengths: &[u64]) -> Option<u64> {
        Some(self.sizes(lengths)?[self.root.node.index()])
    }

    /// Packed bytes for the longest tables.
    pub fn most_bytes(&self) -> u64 {
        let lengths: Vec<u64> = self.tables.iter().map(|table| table.most).collect();
        self.size(&lengths).unwrap_or(0)
    }

    /// What the lengths of all runs, and the places of all that lie in the memory of a call, are multiples of: a power of two, at
    /// most 16.
    pub fn granularity(&self) -> u32 {
        let mut bits = self.root.offset as u64;
        for node in &self.nodes {
            bits |= match node {
                TabledNode::Fixed { fixed } => Granularity::of(&self.fixed_layouts[*fixed]).word().into(),
                TabledNode::Stream { stride, .. } => *stride as u64,
                TabledNode::Indexed { offsets, .. } => offsets.iter().fold(0, |bits, &offset| bits | offset as u64),
                TabledNode::Table { pitch, .. } => *pitch as u64,
                TabledNode::Addresses { .. } | TabledNode::Record { .. } => 0,
            };
            bits |= node.edges().iter().fold(0, |bits, edge| bits | edge.offset as u64);
        }
        for table in &self.tables {
            if let TableKind::Addresses(alignment) = table.kind {
                bits |= alignment;
            }
        }
        alignment(bits)
    }
}
