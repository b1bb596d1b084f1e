//! The addresses of a layout as a set: in ascending order and without overlaps, whatever the packed order.
//!
//! A nest of loops is a sum of sets of offsets, and sums commute: loops are nested here by their strides, so that a transpose
//! becomes the block that it covers. A node of the set is a block, copies that do not overlap, or parts that do not overlap.
//! What interleaves otherwise is written out run by run, up to a budget.

use super::{Layout, Node as LayoutNode};
use std::collections::HashMap;

/// Runs and parts that may be written out beyond those that the layout lists. 2^15 of them take 2 MiB and 3 ms on a Zen 5.
const BUDGET: u64 = 1 << 15;

/// Loops that a sum is carried through. Copies that do not overlap double the extent at least, so 64 bits hold no more; only
/// records reach it.
const DEEPEST: u32 = 64;

/// The set has no structure that fits the budget.
#[derive(Debug)]
pub(crate) struct TooComplex;

/// Names a node; children have smaller numbers than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SetId(u32);

impl SetId {
    pub(crate) fn at(index: usize) -> SetId {
        SetId(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node holds. The lowest address of each is 0.
#[derive(Debug)]
pub(crate) enum SetShape {
    /// All addresses up to the extent.
    Block,
    /// Copies whose distance is at least the extent of one.
    Repeat { count: u64, stride: u64, child: SetId },
    /// Parts at ascending offsets, each beyond the one before.
    Parts(Vec<(u64, SetId)>),
}

#[derive(Debug)]
pub(crate) struct SetNode {
    /// One past the highest address.
    extent: u64,
    /// Blocks, at most. Saturates.
    runs: u64,
    pub(crate) shape: SetShape,
}

/// Offsets from 0 on, ascending and distinct.
enum OffsetSet {
    Progression { count: u64, stride: u64 },
    List(Vec<u64>),
}

impl OffsetSet {
    /// The least distance of two neighbours.
    fn gap(&self) -> u64 {
        match self {
            OffsetSet::Progression { stride, .. } => *stride,
            OffsetSet::List(list) => list.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(u64::MAX),
        }
    }

    fn count(&self) -> u64 {
        match self {
            OffsetSet::Progression { count, .. } => *count,
            OffsetSet::List(list) => list.len() as u64,
        }
    }

    fn at(&self, index: u64) -> u64 {
        match self {
            OffsetSet::Progression { stride, .. } => index * stride,
            OffsetSet::List(list) => list[index as usize],
        }
    }
}

/// See the [module](self).
pub(crate) struct AddressSet {
    nodes: Vec<SetNode>,
    blocks: HashMap<u64, SetId>,
    budget: u64,
}

impl Layout {
    /// The bytes of memory that `count` elements have, each counted once: fewer than their packed bytes if elements overlap, or
    /// an element itself does. An unpack stores several values to one byte then, and which one stays is not defined.
    ///
    /// In at most 10 ms for short descriptions; `None` where offsets leave 63 bits, or overlaps are too irregular to be
    /// counted in this time.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  %1 = stream 3 x 4 of %0\n  root %1\n}")?;
    /// assert_eq!((layout.size(), layout.distinct_bytes(1)), (24, Some(16)));
    /// assert_eq!((layout.size() * 2, layout.distinct_bytes(2)), (48, Some(24)));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn distinct_bytes(&self, count: u64) -> Option<u64> {
        if count == 0 || self.size() == 0 {
            return Some(0);
        }
        match AddressSet::of(self, count) {
            Ok(set) => Some(set.map_or(0, |(_, set, root)| set.bytes(root))),
            Err(TooComplex) => None,
        }
    }

    /// Whether the offsets of `count` elements, and their packed bytes, fit 62 bits.
    pub(crate) fn fits_62_bits(&self, count: u64) -> bool {
        let last = i128::from(count.saturating_sub(1)) * i128::from(self.extent());
        let bounds = [i128::from(self.true_lb()) + last.min(0), i128::from(self.true_ub()) + last.max(0)];
        let size = i128::from(self.size()) * i128::from(count);
        bounds.into_iter().chain([size]).all(|bound| bound.unsigned_abs() < 1 << 62)
    }
}

impl AddressSet {
    /// The set of `count` elements: where its lowest address is, counted from element 0, the set, and its root; nothing for
    /// a layout without bytes. It is too complex, too, if its offsets leave 62 bits.
    pub(crate) fn of(layout: &Layout, count: u64) -> Result<Option<(i64, AddressSet, SetId)>, TooComplex> {
        if !layout.fits_62_bits(count) {
            return Err(TooComplex);
        }
        let budget = BUDGET + 2 * layout.nodes().map(|(_, node)| node.list_entries()).sum::<u64>();
        let mut set = AddressSet { nodes: Vec::new(), blocks: HashMap::new(), budget };
        let mut found: Vec<Option<(i64, SetId)>> = Vec::with_capacity(layout.nodes().len());
        for (_, node) in layout.nodes() {
            let of = |edge: &super::Edge| found[edge.node.index()].map(|(low, id)| (low + edge.offset, id));
            let placed = match node {
                LayoutNode::Dense { count, kind } => Some((0, set.block(count * kind.size()))),
                LayoutNode::Stream { count, stride, child } => match of(child) {
                    Some(child) => Some(set.repeated(*count, *stride, child)?),
                    None => None,
                },
                LayoutNode::Indexed { offsets, child } => match of(child) {
                    Some((low, child)) => {
                        let mut sorted = offsets.to_vec();
                        sorted.sort_unstable();
                        sorted.dedup();
                        let first = sorted[0];
                        let list = sorted.iter().map(|offset| offset.abs_diff(first)).collect();
                        Some((low + first, set.sum(&OffsetSet::List(list), child, 0)?))
                    }
                    None => None,
                },
                LayoutNode::Runs { runs, kind } => {
                    let parts = runs.iter().map(|run| (run.offset, set.block(run.count * kind.size()))).collect();
                    set.union(parts)?
                }
                LayoutNode::Record { parts } => set.union(parts.iter().filter_map(of).collect())?,
            };
            found.push(placed);
        }
        let root = layout.root();
        let Some((low, id)) = found.get(root.node.index()).copied().flatten() else { return Ok(None) };
        let (low, id) = set.repeated(count, layout.extent(), (low + root.offset, id))?;
        Ok(Some((low, set, id)))
    }

    pub(crate) fn nodes(&self) -> &[SetNode] {
        &self.nodes
    }

    /// The number of addresses of a node.
    fn bytes(&self, id: SetId) -> u64 {
        let mut bytes: Vec<u64> = Vec::with_capacity(id.index() + 1);
        for node in &self.nodes[..=id.index()] {
            bytes.push(match &node.shape {
                SetShape::Block => node.extent,
                SetShape::Repeat { count, child, .. } => bytes[child.index()].saturating_mul(*count),
                SetShape::Parts(parts) => parts.iter().map(|(_, part)| bytes[part.index()]).sum(),
            });
        }
        bytes[id.index()]
    }

    pub(crate) fn extent(&self, id: SetId) -> u64 {
        self.nodes[id.index()].extent
    }

    fn add(&mut self, extent: u64, runs: u64, shape: SetShape) -> SetId {
        self.nodes.push(SetNode { extent, runs, shape });
        SetId::at(self.nodes.len() - 1)
    }

    fn block(&mut self, bytes: u64) -> SetId {
        if let Some(&block) = self.blocks.get(&bytes) {
            return block;
        }
        let block = self.add(bytes, 1, SetShape::Block);
        self.blocks.insert(bytes, block);
        block
    }

    fn is_block(&self, id: SetId) -> bool {
        matches!(self.nodes[id.index()].shape, SetShape::Block)
    }

    fn spend(&mut self, entries: u64) -> Result<(), TooComplex> {
        self.budget = self.budget.checked_sub(entries).ok_or(TooComplex)?;
        Ok(())
    }

    /// Copies at a stride of either sign.
    fn repeated(&mut self, count: u64, stride: i64, (low, child): (i64, SetId)) -> Result<(i64, SetId), TooComplex> {
        if count == 1 || stride == 0 {
            return Ok((low, child));
        }
        let low = if stride < 0 { low + (count - 1) as i64 * stride } else { low };
        let offsets = OffsetSet::Progression { count, stride: stride.unsigned_abs() };
        Ok((low, self.sum(&offsets, child, 0)?))
    }

    /// A copy of a set at each offset.
    fn sum(&mut self, offsets: &OffsetSet, set: SetId, depth: u32) -> Result<SetId, TooComplex> {
        if depth > DEEPEST {
            return Err(TooComplex);
        }
        if offsets.count() == 1 {
            return Ok(set);
        }
        if offsets.gap() >= self.extent(set) || self.is_block(set) {
            return self.placed(offsets, set);
        }
        match &self.nodes[set.index()].shape {
            &SetShape::Repeat { count, stride, child } => {
                let inner = self.sum(offsets, child, depth + 1)?;
                self.placed(&OffsetSet::Progression { count, stride }, inner)
            }
            SetShape::Parts(parts) => {
                let parts = parts.clone();
                self.spend(parts.len() as u64)?;
                let mut sums = HashMap::new();
                let mut placed = Vec::with_capacity(parts.len());
                for (offset, part) in parts {
                    let sum = match sums.get(&part) {
                        Some(&sum) => sum,
                        None => {
                            let sum = self.sum(offsets, part, depth + 1)?;
                            sums.insert(part, sum);
                            sum
                        }
                    };
                    placed.push((offset as i64, sum));
                }
                self.union(placed).map(|union| union.map_or(set, |(_, union)| union))
            }
            SetShape::Block => self.placed(offsets, set),
        }
    }

    /// The same where the set is not taken apart: copies may overlap only in ways that leave a structure.
    fn placed(&mut self, offsets: &OffsetSet, set: SetId) -> Result<SetId, TooComplex> {
        let extent = self.extent(set);
        let (count, stride) = match offsets {
            OffsetSet::List(list) if offsets.gap() >= extent || self.is_block(set) => {
                self.spend(list.len() as u64)?;
                let parts = list.iter().map(|&offset| (offset as i64, set)).collect();
                return self.union(parts).map(|union| union.map_or(set, |(_, union)| union));
            }
            OffsetSet::List(_) => return self.written_out(offsets, set),
            &OffsetSet::Progression { count, stride } => (count, stride),
        };
        let end = (count - 1) * stride + extent;
        match self.nodes[set.index()].shape {
            SetShape::Block if stride <= extent => Ok(self.block(end)),
            // The copies continue each other at the stride of their own parts.
            SetShape::Repeat { count: inner, stride: step, child }
                if stride.is_multiple_of(step) && stride / step <= inner =>
            {
                let count = inner + (count - 1) * (stride / step);
                self.placed(&OffsetSet::Progression { count, stride: step }, child)
            }
            _ if stride >= extent => {
                let runs = self.nodes[set.index()].runs.saturating_mul(count);
                Ok(self.add(end, runs, SetShape::Repeat { count, stride, child: set }))
            }
            _ => self.written_out(offsets, set),
        }
    }

    /// The runs of copies that interleave.
    fn written_out(&mut self, offsets: &OffsetSet, set: SetId) -> Result<SetId, TooComplex> {
        self.spend(self.nodes[set.index()].runs.saturating_mul(offsets.count()))?;
        let mut one = Vec::new();
        self.runs_of(0, set, &mut one);
        let all =
            (0..offsets.count()).flat_map(|index| one.iter().map(move |&(at, bytes)| (at + offsets.at(index), bytes)));
        let parts = merged(all.collect()).into_iter().map(|(at, bytes)| (at as i64, self.block(bytes))).collect();
        self.union(parts).map(|union| union.map_or(set, |(_, union)| union))
    }

    /// The blocks of a set, in any order.
    fn runs_of(&self, at: u64, set: SetId, runs: &mut Vec<(u64, u64)>) {
        let mut stack = vec![(at, set)];
        while let Some((at, set)) = stack.pop() {
            let SetNode { extent, shape, .. } = &self.nodes[set.index()];
            match shape {
                SetShape::Block => runs.push((at, *extent)),
                SetShape::Repeat { count, stride, child } => {
                    stack.extend((0..*count).map(|copy| (at + copy * stride, *child)));
                }
                SetShape::Parts(parts) => stack.extend(parts.iter().map(|&(offset, part)| (at + offset, part))),
            }
        }
    }

    /// Sets at offsets, which may overlap: the lowest address, and the set from there on. Nothing if there are none.
    fn union(&mut self, mut parts: Vec<(i64, SetId)>) -> Result<Option<(i64, SetId)>, TooComplex> {
        parts.sort_unstable_by_key(|&(offset, _)| offset);
        let Some(&(low, _)) = parts.first() else { return Ok(None) };
        let relative: Vec<(u64, SetId)> = parts.iter().map(|&(offset, set)| (offset.abs_diff(low), set)).collect();
        drop(parts);
        let mut apart: Vec<(u64, SetId)> = Vec::with_capacity(relative.len());
        let mut from = 0;
        while from < relative.len() {
            let (mut to, mut end) = (from + 1, relative[from].0 + self.extent(relative[from].1));
            let mut blocks = self.is_block(relative[from].1);
            // Blocks are joined where they touch, too.
            while let Some(&(offset, set)) = relative.get(to)
                && (offset < end || (offset == end && blocks && self.is_block(set)))
            {
                end = end.max(offset + self.extent(set));
                blocks &= self.is_block(set);
                to += 1;
            }
            let group = &relative[from..to];
            from = to;
            match group {
                [single] => apart.push(*single),
                _ if blocks => apart.push((group[0].0, self.block(end - group[0].0))),
                _ => self.disentangle(group, &mut apart)?,
            }
        }
        if let [(0, single)] = apart[..] {
            return Ok(Some((low, single)));
        }
        let runs = apart.iter().fold(0u64, |sum, (_, part)| sum.saturating_add(self.nodes[part.index()].runs));
        let extent = apart.last().map_or(0, |&(offset, part)| offset + self.extent(part));
        Ok(Some((low, self.add(extent, runs, SetShape::Parts(apart)))))
    }

    /// Sets that overlap or interleave, as sets that do not: fields of one array of records become the record, repeated.
    fn disentangle(&mut self, group: &[(u64, SetId)], apart: &mut Vec<(u64, SetId)>) -> Result<(), TooComplex> {
        let first = group[0].0;
        let loop_of = |set: SetId| match self.nodes[set.index()].shape {
            SetShape::Repeat { count, stride, child } => Some((count, stride, child)),
            _ => None,
        };
        if let Some((count, stride, _)) = loop_of(group[0].1) {
            let fields: Option<Vec<(i64, SetId)>> = group
                .iter()
                .map(|&(offset, set)| {
                    let (same_count, same_stride, child) = loop_of(set)?;
                    let inside = offset - first + self.extent(child) <= stride;
                    ((same_count, same_stride) == (count, stride) && inside).then_some(((offset - first) as i64, child))
                })
                .collect();
            if let Some(fields) = fields
                && let Some((_, record)) = self.union(fields)?
            {
                let records = self.placed(&OffsetSet::Progression { count, stride }, record)?;
                apart.push((first, records));
                return Ok(());
            }
        }
        let mut runs = Vec::new();
        for &(offset, set) in group {
            self.spend(self.nodes[set.index()].runs)?;
            self.runs_of(offset, set, &mut runs);
        }
        for (at, bytes) in merged(runs) {
            let block = self.block(bytes);
            apart.push((at, block));
        }
        Ok(())
    }
}

/// Runs in ascending order, joined where they overlap or touch.
fn merged(mut runs: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    runs.sort_unstable();
    runs.dedup_by(|next, kept| {
        let joined = next.0 <= kept.0 + kept.1;
        if joined {
            kept.1 = kept.1.max(next.0 + next.1 - kept.0);
        }
        joined
    });
    runs
}
