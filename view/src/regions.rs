//! The memory of a type, region by region: what a page draws of it at any size.
//!
//! A [`Region`] is a node of the canonical layout, with offsets relative to it. It lists its runs if they are few, and otherwise its copies or
//! parts, each a region of its own. Copies of one node share a region, so 4 GiB in planes of rows are two of them.

use dtc_compiler::layout::positions::Positions;
use dtc_compiler::layout::{Edge, Layout, Node, NodeId};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};

/// Runs, copies or parts of a region that are listed. A browser draws this many shapes without a pause.
pub const MOST_ENTRIES: usize = 1024;

/// Entries of all regions together, 70 bytes each: a page stays below 2 MB.
const ALL_ENTRIES: usize = 12_000;

/// Regions of a page. What is below them is drawn as a whole.
const MOST_REGIONS: usize = 256;

/// Consecutive bytes, or a copy of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Offset in memory from the origin of the region, in bytes.
    pub memory: i64,
    /// Offset among the packed bytes of the region.
    pub packed: u64,
    /// Packed bytes.
    pub bytes: u64,
    /// The region that it is a copy of; none for a run, or below the last region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<usize>,
}

/// What a region consists of.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Entries in packed order: all, or some at equal distances in the list.
    Entries {
        /// How many the region has.
        of: u64,
        /// Those that are listed.
        listed: Vec<Entry>,
    },
    /// Copies of a region at a stride.
    Copies {
        /// How many.
        count: u64,
        /// Bytes of memory from copy to copy.
        stride: i64,
        /// The first of them.
        first: Entry,
    },
}

/// A node of a layout, with offsets relative to it.
#[derive(Clone, Debug, Serialize)]
pub struct Region {
    /// Packed bytes.
    pub bytes: u64,
    /// Lowest offset of a byte.
    pub low: i64,
    /// One past the highest offset of a byte.
    pub high: i64,
    /// Contiguous runs.
    pub runs: u64,
    /// Its runs, copies or parts.
    pub content: Content,
}

/// Regions of one or several layouts.
#[derive(Default)]
pub struct Regions {
    regions: Vec<Region>,
    entries: usize,
}

/// A node that becomes a region, and where it first occurs in the layout.
struct Occurrence {
    node: NodeId,
    memory: i64,
    packed: u64,
}

/// The regions of one layout, from its root down.
struct Descent<'a> {
    layout: &'a Layout,
    positions: Positions<'a>,
    /// The region of each node that has one, or will have.
    numbers: HashMap<NodeId, usize>,
    waiting: VecDeque<Occurrence>,
}

impl Regions {
    /// All regions.
    pub fn into_regions(self) -> Vec<Region> {
        self.regions
    }

    /// The region of a number.
    pub fn region(&self, number: usize) -> &Region {
        &self.regions[number]
    }

    /// Adds a region that is no node.
    pub fn push(&mut self, region: Region) -> usize {
        self.regions.push(region);
        self.regions.len() - 1
    }

    /// Entries that one more region may list.
    pub fn most_entries(&self) -> usize {
        (ALL_ENTRIES.saturating_sub(self.entries) / 4).clamp(8, MOST_ENTRIES)
    }

    /// Adds the regions of a layout; returns that of its root. Offsets are relative to the root edge.
    pub fn add(&mut self, layout: &Layout) -> usize {
        let root = layout.root();
        let first = self.regions.len();
        let mut descent = Descent {
            layout,
            positions: Positions::new(layout),
            numbers: HashMap::from([(root.node, first)]),
            waiting: VecDeque::from([Occurrence { node: root.node, memory: root.offset, packed: 0 }]),
        };
        while let Some(occurrence) = descent.waiting.pop_front() {
            let measure = layout.measure(occurrence.node);
            let content = descent.content(&occurrence, first, self.most_entries());
            if let Content::Entries { listed, .. } = &content {
                self.entries += listed.len();
            }
            let (bytes, low, high, runs) = (measure.size, measure.low, measure.high, measure.runs);
            self.regions.push(Region { bytes, low, high, runs, content });
        }
        first
    }
}

/// The places of at most `most` of `length` entries: the first of each of as many equal parts.
pub fn sampled(length: usize, most: usize) -> impl Iterator<Item = usize> {
    let shown = length.min(most);
    (0..shown).map(move |entry| (entry as u128 * length as u128 / shown as u128) as usize)
}

impl Descent<'_> {
    /// The entry of a child that begins at an offset of its parent, which occurs somewhere.
    fn entry(&mut self, parent: &Occurrence, first: usize, child: Edge, packed: u64) -> Entry {
        let measure = self.layout.measure(child.node);
        let next = first + self.numbers.len();
        let known = self.numbers.get(&child.node).copied();
        let region = known.or_else(|| {
            (self.numbers.len() < MOST_REGIONS).then(|| {
                self.numbers.insert(child.node, next);
                let memory = parent.memory.wrapping_add(child.offset);
                self.waiting.push_back(Occurrence { node: child.node, memory, packed: parent.packed + packed });
                next
            })
        });
        Entry { memory: child.offset, packed, bytes: measure.size, region }
    }

    /// The runs of a node that occurs somewhere, all of them.
    fn runs(&self, occurrence: &Occurrence) -> Content {
        let measure = self.layout.measure(occurrence.node);
        let mut packed = 0;
        let run = |segment: dtc_compiler::layout::positions::Segment| {
            let memory = segment.offset.wrapping_sub(occurrence.memory);
            let entry = Entry { memory, packed, bytes: segment.bytes, region: None };
            packed += segment.bytes;
            entry
        };
        let segments = self.positions.segments_within(occurrence.packed, measure.size);
        let listed: Vec<Entry> = segments.map(run).collect();
        Content::Entries { of: listed.len() as u64, listed }
    }

    fn content(&mut self, occurrence: &Occurrence, first: usize, most: usize) -> Content {
        let layout = self.layout;
        if layout.measure(occurrence.node).runs <= most as u64 {
            return self.runs(occurrence);
        }
        match layout.node(occurrence.node) {
            Node::Stream { count, stride, child } => {
                Content::Copies { count: *count, stride: *stride, first: self.entry(occurrence, first, *child, 0) }
            }
            Node::Indexed { offsets, child } => {
                let bytes = layout.measure(child.node).size;
                let copy = |at: usize| {
                    let edge = Edge { offset: offsets[at].wrapping_add(child.offset), ..*child };
                    self.entry(occurrence, first, edge, at as u64 * bytes)
                };
                Content::Entries { of: offsets.len() as u64, listed: sampled(offsets.len(), most).map(copy).collect() }
            }
            Node::Record { parts } => {
                let starts = starts(parts.iter().map(|part| layout.measure(part.node).size));
                let part = |at: usize| self.entry(occurrence, first, parts[at], starts[at]);
                Content::Entries { of: parts.len() as u64, listed: sampled(parts.len(), most).map(part).collect() }
            }
            Node::Runs { runs, kind } => {
                let starts = starts(runs.iter().map(|run| run.count * kind.size()));
                let run = |at: usize| {
                    let bytes = runs[at].count * kind.size();
                    Entry { memory: runs[at].offset, packed: starts[at], bytes, region: None }
                };
                Content::Entries { of: runs.len() as u64, listed: sampled(runs.len(), most).map(run).collect() }
            }
            Node::Dense { .. } => self.runs(occurrence),
        }
    }
}

/// Where each of several parts begins that follow each other.
fn starts(sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let next = |end: &mut u64, size: u64| {
        let start = *end;
        *end += size;
        Some(start)
    };
    sizes.scan(0, next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::Pipeline;
    use dtc_compiler::datatype::text;

    /// The displacement of every byte in packed order, as the regions have it.
    fn displacements(regions: &[Region], number: usize, origin: i64, found: &mut Vec<i64>) {
        let mut each = |entry: &Entry, shift: i64| {
            let at = origin + entry.memory + shift;
            match entry.region {
                Some(region) => displacements(regions, region, at, found),
                None => found.extend(at..at + entry.bytes as i64),
            }
        };
        match &regions[number].content {
            Content::Entries { of, listed } => {
                assert_eq!(*of, listed.len() as u64);
                listed.iter().for_each(|entry| each(entry, 0));
            }
            Content::Copies { count, stride, first } => {
                (0..*count as i64).for_each(|copy| each(first, copy * stride));
            }
        }
    }

    #[test]
    fn regions_have_the_bytes_of_the_reference_walker() {
        for notation in [
            "double",
            "vector 12 1 14 double",
            "vector 3000 1 3 (vector 5 3 7 int)",
            "hvector 50 1 -4000 (hvector 40 1 100 (indexed [1@0, 3@5, 2@1] short))",
            "struct [1@0 (vector 1200 1 3 int), 2@20000 (vector 1100 1 -2 double), 1@90000 char]",
            "indexed_block 1 [0, 90, 40, 20] (hvector 700 1 20 int)",
        ] {
            let pipeline = Pipeline::new(text::parse(notation).expect(notation));
            let mut regions = Regions::default();
            let root = regions.add(pipeline.layout());
            let mut found = Vec::new();
            displacements(&regions.into_regions(), root, pipeline.layout().root().offset, &mut found);
            assert!(pipeline.lowered().displacements().eq(found), "{notation}");
        }
    }

    #[test]
    fn long_lists_are_sampled_and_say_so() {
        let offsets: Vec<String> = (0..5000u64).map(|at| (at * at).to_string()).collect();
        let notation = format!("indexed_block 1 [{}] int", offsets.join(", "));
        let pipeline = Pipeline::new(text::parse(&notation).expect("a type"));
        let mut regions = Regions::default();
        let root = regions.add(pipeline.layout());
        let Content::Entries { of, listed } = &regions.region(root).content else {
            panic!("{:?}", regions.region(root))
        };
        assert!(*of > 4000 && listed.len() == MOST_ENTRIES, "{of}");
        assert_eq!(sampled(10, 4).collect::<Vec<_>>(), [0, 2, 5, 7]);
    }
}
