//! The fixed layouts of a call in packed order, those of a table at once.

use super::{TabledEdge, TabledLayout, TabledNode};

/// The entries of a table, signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries<'a> {
    /// Of 32 bits.
    Narrow(&'a [i32]),
    /// Of 64 bits.
    Wide(&'a [i64]),
}

impl Entries<'_> {
    /// How many there are.
    pub fn len(self) -> usize {
        match self {
            Entries::Narrow(entries) => entries.len(),
            Entries::Wide(entries) => entries.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// An entry.
    ///
    /// # Panics
    ///
    /// There are no more than `index`.
    #[inline]
    pub fn get(self, index: usize) -> i64 {
        match self {
            Entries::Narrow(entries) => entries[index].into(),
            Entries::Wide(entries) => entries[index],
        }
    }
}

/// How an entry leads to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryStep {
    /// The place is this many bytes times the entry further on.
    Pitch(i64),
    /// The entry is an address.
    Address,
}

impl EntryStep {
    /// What an entry adds to a place; nothing if it is skipped.
    #[inline]
    pub(super) fn shift(self, entry: i64) -> Option<i64> {
        match self {
            EntryStep::Pitch(pitch) => (entry >= 0).then(|| entry.wrapping_mul(pitch)),
            EntryStep::Address => (entry != 0).then_some(entry),
        }
    }
}

/// Copies of one fixed layout that follow each other in the packed bytes.
#[derive(Clone, Copy, Debug)]
pub struct TabledBlock<'a> {
    /// Its place in [`TabledLayout::fixed_layouts`].
    pub fixed: usize,
    /// The first packed byte of the first copy.
    pub position: u64,
    /// Packed bytes of a copy.
    pub bytes: u64,
    place: u64,
    absolute: bool,
    copies: Option<(Entries<'a>, EntryStep)>,
    /// The first copy that is asked for.
    first: usize,
    /// One past the last.
    end: usize,
}

/// One copy of a fixed layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TabledCopy {
    /// The first packed byte.
    pub position: u64,
    /// Where the origin of the fixed layout lies: relative to the memory of the call, or an address. Modulo 2^64.
    pub place: u64,
    /// Whether `place` is an address.
    pub absolute: bool,
}

impl TabledBlock<'_> {
    /// The copies that are asked for and not skipped, in packed order.
    #[inline]
    pub fn copies(&self) -> impl Iterator<Item = TabledCopy> {
        (self.first..self.end).filter_map(|index| {
            let position = self.position + index as u64 * self.bytes;
            let Some((entries, step)) = self.copies else {
                return Some(TabledCopy { position, place: self.place, absolute: self.absolute });
            };
            let place = self.place.wrapping_add(step.shift(entries.get(index))? as u64);
            Some(TabledCopy { position, place, absolute: self.absolute || step == EntryStep::Address })
        })
    }
}

/// Yields the blocks of a range of a call's packed bytes. Depth costs heap memory, not stack.
#[derive(Clone, Debug)]
pub struct TabledBlocks<'a> {
    layout: &'a TabledLayout,
    tables: &'a [Entries<'a>],
    sizes: Vec<u64>,
    stack: Vec<Open>,
    first: u64,
    end: u64,
}

/// A node on the path to the current block.
#[derive(Clone, Copy, Debug)]
struct Open {
    edge: TabledEdge,
    absolute: bool,
    /// The next child, and the first packed byte of it.
    next: u64,
    position: u64,
}

impl TabledLayout {
    /// The blocks that have packed bytes `first..end` of a call with these tables. Nothing if their number or lengths are wrong. Blocks at the ends
    /// may have more bytes than are asked for, by less than a copy.
    pub fn blocks<'a>(&'a self, tables: &'a [Entries<'a>], first: u64, end: u64) -> TabledBlocks<'a> {
        let lengths: Vec<u64> = tables.iter().map(|table| table.len() as u64).collect();
        let sizes = self.sizes(&lengths);
        let open = Open { edge: self.root, absolute: false, next: 0, position: 0 };
        let stack = sizes.iter().map(|_| open).collect();
        TabledBlocks { layout: self, tables, sizes: sizes.unwrap_or_default(), stack, first, end }
    }
}

/// A child, and how many follow it: copies of it all, or parts that differ.
struct Next<'a> {
    count: u64,
    child: Option<&'a TabledEdge>,
    shift: i64,
    absolute: bool,
}

impl<'a> TabledBlocks<'a> {
    fn next_of(&self, node: &'a TabledNode, next: u64, absolute: bool) -> Next<'a> {
        let listed = |table: usize, child: &'a TabledEdge, step: EntryStep| {
            let entries = self.tables[table];
            let entry = if next < entries.len() as u64 { entries.get(next as usize) } else { -1 };
            let shift = step.shift(entry);
            let absolute = absolute || step == EntryStep::Address;
            Next { count: entries.len() as u64, child: shift.map(|_| child), shift: shift.unwrap_or(0), absolute }
        };
        match node {
            TabledNode::Fixed { .. } => Next { count: 0, child: None, shift: 0, absolute },
            TabledNode::Stream { count, stride, child } => {
                Next { count: *count, child: Some(child), shift: stride.wrapping_mul(next as i64), absolute }
            }
            TabledNode::Indexed { offsets, child } => {
                let shift = offsets.get(next as usize).copied().unwrap_or(0);
                Next { count: offsets.len() as u64, child: Some(child), shift, absolute }
            }
            TabledNode::Record { parts } => {
                Next { count: parts.len() as u64, child: parts.get(next as usize), shift: 0, absolute }
            }
            TabledNode::Table { table, pitch, child, .. } => listed(*table, child, EntryStep::Pitch(*pitch)),
            TabledNode::Addresses { table, child } => listed(*table, child, EntryStep::Address),
        }
    }

    /// The block that a node is: a fixed layout, or a table over one.
    fn block(&self, open: &Open) -> Option<TabledBlock<'a>> {
        let nodes = &self.layout.nodes;
        let (fixed, copies) = match &nodes[open.edge.node.index()] {
            TabledNode::Fixed { fixed } => (*fixed, None),
            TabledNode::Table { table, pitch, child, .. } => match nodes[child.node.index()] {
                TabledNode::Fixed { fixed } => (fixed, Some((self.tables[*table], EntryStep::Pitch(*pitch)))),
                _ => return None,
            },
            TabledNode::Addresses { table, child } => match nodes[child.node.index()] {
                TabledNode::Fixed { fixed } => (fixed, Some((self.tables[*table], EntryStep::Address))),
                _ => return None,
            },
            _ => return None,
        };
        let bytes = self.layout.fixed_layouts[fixed].size();
        let count = copies.map_or(1, |(entries, _)| entries.len());
        let within = |position: u64| position.saturating_sub(open.position);
        let first = (within(self.first) / bytes).min(count as u64) as usize;
        let end = within(self.end).div_ceil(bytes).min(count as u64) as usize;
        let (position, place) = (open.position, open.edge.offset as u64);
        Some(TabledBlock { fixed, position, bytes, place, absolute: open.absolute, copies, first, end })
    }
}

impl<'a> Iterator for TabledBlocks<'a> {
    type Item = TabledBlock<'a>;

    fn next(&mut self) -> Option<TabledBlock<'a>> {
        loop {
            let mut open = self.stack.pop()?;
            if open.position >= self.end {
                self.stack.clear();
                return None;
            }
            // Any number of copies may have no bytes in this call.
            if self.sizes[open.edge.node.index()] == 0 {
                continue;
            }
            if let Some(block) = self.block(&open) {
                if block.first < block.end {
                    return Some(block);
                }
                continue;
            }
            let node = &self.layout.nodes[open.edge.node.index()];
            // Copies before the range are passed over at once.
            if let ([child], false) = (node.edges(), matches!(node, TabledNode::Record { .. })) {
                let bytes = self.sizes[child.node.index()];
                let behind = self.first.saturating_sub(open.position).checked_div(bytes).unwrap_or(0);
                open.next += behind;
                open.position += behind * bytes;
            }
            let Next { count, child, shift, absolute } = self.next_of(node, open.next, open.absolute);
            if open.next >= count {
                continue;
            }
            let edge = child.or(node.edges().first());
            let bytes = edge.map_or(0, |edge| self.sizes[edge.node.index()]);
            let (position, following) = (open.position, open.position + bytes);
            self.stack.push(Open { next: open.next + 1, position: following, ..open });
            if let Some(child) = child
                && following > self.first
            {
                let offset = open.edge.offset.wrapping_add(shift).wrapping_add(child.offset);
                self.stack.push(Open { edge: TabledEdge { offset, ..*child }, absolute, next: 0, position });
            }
        }
    }
}
