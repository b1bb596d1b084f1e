//! The reference walker: the pieces of a call in packed order.

use super::{Entries, TabledEdge, TabledLayout, TabledNode};

/// Consecutive bytes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TabledPiece {
    /// The first packed byte.
    pub position: u64,
    /// Where the bytes lie: relative to the memory of the call, or an address if a table of addresses leads there. Modulo 2^64.
    pub place: u64,
    /// Whether `place` is an address.
    pub absolute: bool,
    /// How many bytes they are.
    pub bytes: u64,
}

impl TabledLayout {
    /// The pieces of a call with these tables, in packed order and without those of skipped entries. They define the meaning of the layout. Nothing if
    /// the number of the tables or their lengths are wrong.
    ///
    /// Written as the definition is, and not for speed: it recurses, and lists all pieces.
    ///
    /// See [`TabledLayout`] for an example.
    pub fn walk(&self, tables: &[Entries<'_>]) -> Vec<TabledPiece> {
        let lengths: Vec<u64> = tables.iter().map(|table| table.len() as u64).collect();
        let mut pieces = Vec::new();
        if let Some(sizes) = self.sizes(&lengths) {
            let mut walk = TabledWalk { layout: self, tables, sizes, position: 0, pieces: &mut pieces };
            walk.node(self.root, false);
        }
        pieces
    }
}

struct TabledWalk<'a> {
    layout: &'a TabledLayout,
    tables: &'a [Entries<'a>],
    sizes: Vec<u64>,
    position: u64,
    pieces: &'a mut Vec<TabledPiece>,
}

impl TabledWalk<'_> {
    fn child(&mut self, base: i64, child: &TabledEdge, absolute: bool) {
        self.node(TabledEdge { offset: base.wrapping_add(child.offset), ..*child }, absolute);
    }

    fn node(&mut self, TabledEdge { offset, node }: TabledEdge, absolute: bool) {
        if self.sizes[node.index()] == 0 {
            return;
        }
        match &self.layout.nodes[node.index()] {
            TabledNode::Fixed { fixed } => {
                for piece in self.layout.fixed_layouts[*fixed].walk() {
                    let (place, bytes) = (offset.wrapping_add(piece.offset) as u64, piece.bytes());
                    self.pieces.push(TabledPiece { position: self.position, place, absolute, bytes });
                    self.position += bytes;
                }
            }
            TabledNode::Stream { count, stride, child } => {
                (0..*count as i64)
                    .for_each(|copy| self.child(offset.wrapping_add(copy.wrapping_mul(*stride)), child, absolute));
            }
            TabledNode::Indexed { offsets, child } => {
                offsets.iter().for_each(|shift| self.child(offset.wrapping_add(*shift), child, absolute));
            }
            TabledNode::Record { parts } => parts.iter().for_each(|part| self.child(offset, part, absolute)),
            TabledNode::Table { table, pitch, child, .. } => {
                for index in 0..self.tables[*table].len() {
                    match self.tables[*table].get(index) {
                        entry @ 0.. => self.child(offset.wrapping_add(entry.wrapping_mul(*pitch)), child, absolute),
                        _ => self.position += self.sizes[child.node.index()],
                    }
                }
            }
            TabledNode::Addresses { table, child } => {
                for index in 0..self.tables[*table].len() {
                    match self.tables[*table].get(index) {
                        0 => self.position += self.sizes[child.node.index()],
                        address => self.child(offset.wrapping_add(address), child, true),
                    }
                }
            }
        }
    }
}
