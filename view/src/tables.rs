//! Types with index tables: an example table for each, and where its entries lead.

use crate::regions::{Content, Entry, MOST_ENTRIES, Region, Regions};
use dtc_compiler::datatype::{TableFacts, TableKind};
use dtc_compiler::tabled::{TabledEdge, TabledLayout, TabledNode};
use serde::Serialize;

/// Entries of an example table.
const ENTRIES: u64 = 6;

/// The place of an entry that is skipped, to show what that means.
pub const SKIPPED: usize = 2;

/// A table that a call may have.
#[derive(Serialize)]
pub struct ExampleTable {
    /// What a table may hold.
    pub facts: String,
    /// What this one holds.
    pub entries: Vec<i64>,
}

/// A copy, and the entries that led to it: numbers of tables and places in them.
type Origins = Vec<(usize, usize)>;

/// The memory of a call with example tables.
pub struct Example {
    /// The tables.
    pub tables: Vec<ExampleTable>,
    /// The region of the call.
    pub root: usize,
    /// Where each of its entries comes from.
    pub origins: Vec<Origins>,
    /// Whether places are addresses.
    pub absolute: bool,
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// A table as calls have it: out of order, without a repetition, and one entry skipped. Addresses are `apart` bytes from each other.
fn example(facts: &TableFacts, apart: u64) -> Vec<i64> {
    let places = match facts.kind {
        TableKind::Places(places) => places,
        TableKind::Addresses(_) => ENTRIES + 1,
    };
    let length = facts.most.min(ENTRIES).min(places.max(1));
    let near = (places as u128 * 5 / 8) as u64;
    let step = (1..=near).rev().find(|&step| greatest_common_divisor(step, places) == 1).unwrap_or(1);
    let place = |entry: u64| (u128::from(entry + 1) * u128::from(step) % u128::from(places.max(1))) as i64;
    let skips = length as usize > SKIPPED + 1;
    (0..length)
        .map(|entry| match facts.kind {
            TableKind::Places(_) if skips && entry as usize == SKIPPED => -1,
            TableKind::Addresses(_) if skips && entry as usize == SKIPPED => 0,
            TableKind::Places(_) => place(entry),
            TableKind::Addresses(_) => (place(entry) + 1).saturating_mul(apart as i64),
        })
        .collect()
}

/// A walk over the copies of fixed layouts.
struct CopyWalk<'a> {
    layout: &'a TabledLayout,
    tables: &'a [ExampleTable],
    sizes: Vec<u64>,
    /// The region of each fixed layout, and where its root edge is.
    fixed: &'a [(usize, i64)],
    packed: u64,
    path: Origins,
    listed: Vec<Entry>,
    origins: Vec<Origins>,
    absolute: bool,
    complete: bool,
}

impl CopyWalk<'_> {
    /// The copies below an edge. Types with tables are not deep: their walkers may recurse.
    fn descend(&mut self, base: i64, edge: &TabledEdge) {
        if self.listed.len() >= MOST_ENTRIES {
            self.complete = false;
            return;
        }
        let at = base.wrapping_add(edge.offset);
        match &self.layout.nodes()[edge.node.index()] {
            TabledNode::Fixed { fixed } => {
                let (region, origin) = self.fixed[*fixed];
                let bytes = self.sizes[edge.node.index()];
                let memory = at.wrapping_add(origin);
                self.listed.push(Entry { memory, packed: self.packed, bytes, region: Some(region) });
                self.origins.push(self.path.clone());
                self.packed += bytes;
            }
            TabledNode::Stream { count, stride, child } => {
                for copy in 0..*count as i64 {
                    if !self.complete {
                        return;
                    }
                    self.descend(at.wrapping_add(copy.wrapping_mul(*stride)), child);
                }
            }
            TabledNode::Indexed { offsets, child } => {
                offsets.iter().for_each(|shift| self.descend(at.wrapping_add(*shift), child));
            }
            TabledNode::Record { parts } => parts.iter().for_each(|part| self.descend(at, part)),
            TabledNode::Table { table, pitch, child, .. } => {
                let place = |entry: i64| (entry >= 0).then(|| at.wrapping_add(entry.wrapping_mul(*pitch)));
                self.entries(*table, child, &place);
            }
            TabledNode::Addresses { table, child } => {
                self.absolute = true;
                self.entries(*table, child, &|entry| (entry != 0).then(|| at.wrapping_add(entry)));
            }
        }
    }

    /// The copies at the entries of a table; packed bytes of those that are skipped stay as they are.
    fn entries(&mut self, table: usize, child: &TabledEdge, place: &dyn Fn(i64) -> Option<i64>) {
        let tables = self.tables;
        for (index, &entry) in tables[table].entries.iter().enumerate() {
            match place(entry) {
                Some(place) => {
                    self.path.push((table, index));
                    self.descend(place, child);
                    self.path.pop();
                }
                None => self.packed += self.sizes[child.node.index()],
            }
        }
    }
}

impl Example {
    /// An example call of a layout, whose regions are added.
    pub fn of(layout: &TabledLayout, regions: &mut Regions) -> Example {
        let fixed_layouts = layout.fixed_layouts().iter();
        let fixed: Vec<(usize, i64)> = fixed_layouts.map(|fixed| (regions.add(fixed), fixed.root().offset)).collect();
        let spans = layout.fixed_layouts().iter().map(|fixed| fixed.true_ub().abs_diff(fixed.true_lb()));
        let span = spans.max().unwrap_or(0).max(1);
        let table = |facts: &TableFacts| {
            let alignment = if let TableKind::Addresses(alignment) = facts.kind { alignment.max(1) } else { 1 };
            let apart = span.saturating_mul(2).checked_next_multiple_of(alignment).unwrap_or(alignment);
            ExampleTable { facts: facts.to_string(), entries: example(facts, apart) }
        };
        let tables: Vec<ExampleTable> = layout.tables().iter().map(table).collect();
        let lengths: Vec<u64> = tables.iter().map(|table| table.entries.len() as u64).collect();
        let mut walk = CopyWalk {
            layout,
            tables: &tables,
            sizes: layout.sizes(&lengths).unwrap_or_default(),
            fixed: &fixed,
            packed: 0,
            path: Vec::new(),
            listed: Vec::new(),
            origins: Vec::new(),
            absolute: false,
            complete: true,
        };
        walk.descend(0, &layout.root());
        let (listed, origins, absolute, complete) = (walk.listed, walk.origins, walk.absolute, walk.complete);
        let low =
            |entry: &Entry| entry.memory.saturating_add(entry.region.map_or(0, |region| regions.region(region).low));
        let high =
            |entry: &Entry| entry.memory.saturating_add(entry.region.map_or(0, |region| regions.region(region).high));
        let runs = listed.iter().filter_map(|entry| entry.region).map(|region| regions.region(region).runs);
        let region = Region {
            bytes: layout.size(&lengths).unwrap_or(0),
            low: listed.iter().map(low).min().unwrap_or(0),
            high: listed.iter().map(high).max().unwrap_or(0),
            runs: runs.fold(0, u64::saturating_add),
            // More are not counted: the page says that these are the first.
            content: Content::Entries { of: listed.len() as u64 + u64::from(!complete), listed },
        };
        Example { tables, root: regions.push(region), origins, absolute }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::TabledDatatype;
    use dtc_compiler::tabled::Entries;

    #[test]
    fn copies_are_where_the_reference_walker_has_them() {
        for notation in [
            "hvector 2 1 512 (table 0 8 4 64 (contiguous 8 double))",
            "table 0 100 9 640 (vector 3 2 5 int)",
            "addresses 0 64 256 (table 1 32 5 100 (vector 2 1 2 int))",
            "struct [1@0 (table 0 16 6 8 double), 1@900 (indexed_block 1 [5, 0, 2] int)]",
        ] {
            let datatype: TabledDatatype = notation.parse().expect(notation);
            let layout = TabledLayout::new(&datatype);
            let mut regions = Regions::default();
            let example = Example::of(&layout, &mut regions);
            let tables: Vec<Entries<'_>> = example.tables.iter().map(|table| Entries::Wide(&table.entries)).collect();
            let mut expected = Vec::new();
            for piece in layout.walk(&tables) {
                expected.extend((0..piece.bytes).map(|byte| (piece.position + byte, piece.place as i64 + byte as i64)));
            }
            let Content::Entries { listed, .. } = &regions.region(example.root).content else { panic!("{notation}") };
            let mut found = Vec::new();
            for entry in listed {
                let Content::Entries { listed, .. } = &regions.region(entry.region.expect("a region")).content else {
                    panic!("{notation}")
                };
                for run in listed {
                    let (packed, memory) = (entry.packed + run.packed, entry.memory + run.memory);
                    found.extend((0..run.bytes).map(|byte| (packed + byte, memory + byte as i64)));
                }
            }
            assert_eq!(found, expected, "{notation}");
            assert_eq!(example.origins.len(), listed.len());
        }
    }

    #[test]
    fn examples_are_within_their_places() {
        let facts = |places, most| TableFacts { kind: TableKind::Places(places), most };
        assert_eq!(example(&facts(8, 4), 0), [5, 2, -1, 4]);
        assert_eq!(example(&facts(1, 9), 0), [0]);
        assert!(example(&facts(u64::MAX >> 1, 9), 0).iter().all(|&entry| entry >= -1));
        let addresses = TableFacts { kind: TableKind::Addresses(64), most: 4 };
        assert_eq!(example(&addresses, 128), [640, 256, 0, 384]);
    }
}
