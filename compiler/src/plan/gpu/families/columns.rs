//! Arrays of records that are packed field by field: neighbours in memory belong to columns that are packed far apart.

use super::boxes;
use super::tiles::{self, Tiles};
use super::{Generic, Instance, KernelFamily, Query};
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, ColumnsTuning, Grid, KernelText, LINE, LibraryPart, SECTOR, Structure, Tuning, Units,
    WARP, alignment, number, signed, word_type,
};
use minijinja::{Value, context};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// A kernel that moves arrays of records, packed field by field, through shared memory. Whole elements only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnsKernel {
    /// Bytes that divide the address of element 0: a power of two.
    pub memory: u32,
}

/// Bytes of the widest word that kernels put packed words together from.
const WIDEST: u32 = 4;

/// Bytes at most from record to record: a tile has at least 32 of them.
const WIDEST_RECORD: u64 = 256;

/// One field of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Offset in memory from the first byte of the record that any field has, in bytes.
    pub offset: u64,
    /// Offset of the field of record 0 in the packed array, in bytes.
    pub packed: u64,
    /// Length in bytes.
    pub width: u64,
}

/// How a layout is moved through shared memory whose elements are arrays of records, or several such arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The node of an array.
    pub array: NodeId,
    /// Records of an array.
    pub records: u64,
    /// Bytes from record to record in memory.
    pub stride: u64,
    /// Offset in memory of the first byte of record 0 that any field has, from the beginning of its array, in bytes.
    pub low: i64,
    /// Bytes from the first to behind the last that any field of a record has.
    pub span: u64,
    /// Packed bytes of an array.
    pub size: u64,
    /// The fields, in packed order.
    pub columns: Vec<Column>,
    /// Divides where every array and every record is in memory, but for the address of element 0: a power of two.
    starts: u32,
    /// Records of a tile, in packs and in unpacks.
    tile_records: [u64; 2],
}

impl Structure for Columns {}

impl Columns {
    /// Columns of an array at most.
    pub(crate) const MOST: usize = 64;

    /// Alignment of element 0 beyond which nothing is gained, given the one of a call.
    pub(super) fn alignment(&self, memory: u32) -> u32 {
        memory.min(self.starts).min(WIDEST)
    }

    /// Bytes of the words that a column is moved in, for an alignment of element 0.
    fn unit(&self, column: &Column, memory: u32) -> u32 {
        let offset = self.low.wrapping_add(column.offset as i64) as u64;
        alignment(offset | column.width).min(self.starts).min(memory).min(WIDEST)
    }

    /// The bytes of a record that fields have, as ranges of offsets in ascending order with gaps between.
    fn segments(&self) -> Vec<Range<u64>> {
        let mut fields: Vec<Range<u64>> =
            self.columns.iter().map(|column| column.offset..column.offset + column.width).collect();
        fields.sort_unstable_by_key(|field| field.start);
        let mut segments: Vec<Range<u64>> = Vec::new();
        for field in fields {
            match segments.last_mut() {
                Some(last) if last.end >= field.start => last.end = last.end.max(field.end),
                _ => segments.push(field),
            }
        }
        segments
    }

    /// Bytes of the words that records are stored in, for an alignment of element 0: they are all inside of segments.
    fn stored_unit(&self, memory: u32) -> u32 {
        let ends = self.segments().iter().fold(0, |ends, segment| ends | segment.start | segment.end);
        alignment(self.low as u64 | ends).min(self.starts).min(memory).min(WIDEST)
    }

    /// Records of a tile.
    pub(crate) fn tile_records(&self, direction: Direction) -> u64 {
        self.tile_records[direction as usize]
    }

    /// Bytes of the words of a column that unpacks put words of `stored` bytes together from: each belongs to one column.
    fn staged_unit(&self, stored: u32) -> u32 {
        let places = self.columns.iter().fold(0, |places, column| places | column.offset | column.width);
        alignment(places).min(stored)
    }

    /// Lines of 16 bytes of shared memory that a column of a tile takes in unpacks, where it may begin inside of a line.
    pub(crate) fn lines(&self, column: &Column) -> u64 {
        (self.tile_records(Direction::Unpack) * column.width + 30) / 16
    }

    /// Bytes of shared memory that the columns of a tile take in unpacks, and a word behind them that may be read.
    fn stage_bytes(&self) -> u32 {
        (self.columns.iter().map(|column| self.lines(column)).sum::<u64>() * 16 + 16) as u32
    }

    /// Whether most sectors of memory are stored in part, if record 0 begins at one.
    pub(crate) fn mostly_in_part(&self) -> bool {
        let segments = self.segments();
        let whole = |sector: &u64| {
            (sector * SECTOR..(sector + 1) * SECTOR)
                .all(|at| segments.iter().any(|its| its.contains(&(at % self.stride))))
        };
        // The sectors that repeat, or as many of them as tell.
        let sectors = self.stride;
        2 * (0..sectors).filter(whole).count() as u64 <= sectors
    }

    /// Bytes of shared memory that a tile takes.
    fn shared_bytes(&self, direction: Direction) -> u32 {
        match direction {
            // A tile may begin inside a word, and reads a unit behind the last record. A word is between every 32.
            Direction::Pack => {
                let bytes = ((self.tile_records(direction) + 1) * self.stride + 32) as u32;
                (bytes + bytes / 32).next_multiple_of(16)
            }
            // Behind the columns is where the units of a record are.
            Direction::Unpack => self.stage_bytes() + (self.stride as u32 * 4).next_multiple_of(16),
        }
    }

    /// Bytes of memory of the largest tile of any columns.
    pub(crate) fn most_tile_bytes(direction: Direction, tuning: &ColumnsTuning) -> u64 {
        let bytes = |stride| tile_records(direction, stride, tuning) * stride;
        (1..=WIDEST_RECORD).map(bytes).max().unwrap_or(0)
    }

    /// Lines of 16 bytes that any columns of a tile take in unpacks, at most.
    pub(crate) fn most_lines(tuning: &ColumnsTuning) -> u64 {
        (Columns::most_tile_bytes(Direction::Unpack, tuning) + 30 * Columns::MOST as u64) / 16
    }

    /// Bytes of shared memory that suffice for a tile of any columns, whose bytes have a place each in unpacks.
    pub(crate) fn most_shared_bytes(direction: Direction, tuning: &ColumnsTuning) -> u64 {
        match direction {
            Direction::Pack => {
                let bytes = Columns::most_tile_bytes(direction, tuning) + WIDEST_RECORD + 32;
                (bytes + bytes / 32).next_multiple_of(16)
            }
            Direction::Unpack => (Columns::most_lines(tuning) + 1) * 16 + WIDEST_RECORD * 4,
        }
    }

    /// Whether each element of the layout is one array.
    pub fn are_elements(&self, layout: &Layout) -> bool {
        self.array == layout.root().node
    }

    /// Tiles of an array.
    pub(crate) fn tiles(&self, direction: Direction) -> u64 {
        self.records.div_ceil(self.tile_records(direction))
    }
}

/// Finds the arrays of records of a layout: its elements, or the copies of its outer streams.
fn find(analysis: &Analysis) -> Option<Columns> {
    let Analysis { layout, tuning: Tuning { columns: tuning, .. }, .. } = analysis;
    let mut at = layout.root();
    let mut starts = layout.extent() as u64;
    loop {
        starts |= at.offset as u64;
        if let Some(columns) = consider(layout, at.node, tuning) {
            return Some(Columns { starts: alignment(starts | columns.stride), ..columns });
        }
        let Node::Stream { stride, child, .. } = layout.node(at.node) else { return None };
        starts |= *stride as u64;
        at = *child;
    }
}

/// The columns of a node, if it is an array of records that is packed field by field.
fn consider(layout: &Layout, array: NodeId, tuning: &ColumnsTuning) -> Option<Columns> {
    let mut found = FoundColumns { array: None, columns: Vec::new(), packed: 0 };
    found.collect(layout, Edge { offset: 0, node: array })?;
    let (records, stride) = found.array?;
    let low = found.columns.iter().map(|(offset, ..)| *offset).min()?;
    let high = found.columns.iter().map(|(offset, _, width)| offset + *width as i64).max()?;
    let span = high.abs_diff(low);
    let columns: Vec<Column> = found
        .columns
        .iter()
        .map(|&(offset, packed, width)| Column { offset: offset.abs_diff(low), packed, width })
        .collect();
    let record_size: u64 = columns.iter().map(|column| column.width).sum();
    let tile_records = [Direction::Pack, Direction::Unpack].map(|direction| tile_records(direction, stride, tuning));
    // All sectors of memory are read.
    let full = stride <= SECTOR || record_size.saturating_mul(2) >= stride;
    let fits = stride <= WIDEST_RECORD && records >= tile_records[Direction::Pack as usize];
    let pays = columns.len() > 1 && span <= stride && full && fits;
    let size = layout.measure(array).size;
    pays.then_some(Columns { array, records, stride, low, span, size, columns, starts: 1, tile_records })
}

/// Records of a tile of records `stride` bytes apart: whole sectors of columns of single bytes.
fn tile_records(direction: Direction, stride: u64, tuning: &ColumnsTuning) -> u64 {
    (tuning.tile_bytes[direction as usize] / stride.max(1) / SECTOR).max(1) * SECTOR
}

/// Columns found so far.
struct FoundColumns {
    /// Records, and bytes from one to the next: the same for all columns.
    array: Option<(u64, u64)>,
    /// Offset in memory, packed offset and length of the field of record 0.
    columns: Vec<(i64, u64, u64)>,
    packed: u64,
}

impl FoundColumns {
    /// Adds the columns below an edge, unless there is anything else.
    fn collect(&mut self, layout: &Layout, at: Edge) -> Option<()> {
        let below = |offset: i64, child: &Edge| {
            Some(Edge { offset: at.offset.checked_add(offset)?.checked_add(child.offset)?, ..*child })
        };
        match layout.node(at.node) {
            Node::Stream { count, stride, child } => match layout.node(child.node) {
                Node::Dense { count: elements, kind } => {
                    let array = (*count, u64::try_from(*stride).ok()?);
                    if *self.array.get_or_insert(array) != array || self.columns.len() == Columns::MOST {
                        return None;
                    }
                    let width = elements * kind.size();
                    self.columns.push((below(0, child)?.offset, self.packed, width));
                    self.packed += width * count;
                    Some(())
                }
                _ => (0..i64::try_from(*count).ok().filter(|&count| count <= Columns::MOST as i64)?)
                    .try_for_each(|copy| self.collect(layout, below(copy * stride, child)?)),
            },
            Node::Record { parts } => parts.iter().try_for_each(|part| self.collect(layout, below(0, part)?)),
            Node::Indexed { offsets, child } => {
                offsets.iter().try_for_each(|&offset| self.collect(layout, below(offset, child)?))
            }
            Node::Dense { .. } | Node::Runs { .. } => None,
        }
    }
}

/// The columns of a call of whole elements, if it has enough of them.
fn serving<'a>(query: &Query<'a>) -> Option<&'a Columns> {
    let enough = query.call.bytes >= query.tuning().columns.min_bytes;
    query.found::<Columns>().filter(|_| query.has_whole_elements() && enough)
}

/// Serves calls of many whole elements, unless tiles or boxes are faster.
pub(super) fn admits(query: &Query<'_>) -> Option<ColumnsKernel> {
    let columns = serving(query).filter(|_| !boxes::before_records(query, 0))?;
    let before = |(tiles, _): (&Tiles, _)| before_tiles(query, tiles);
    tiles::serving(query).is_none_or(before).then(|| ColumnsKernel { memory: columns.alignment(query.memory) })
}

/// Whether a call that columns serve moves by these where tiles could move it too.
pub(super) fn before_tiles(query: &Query<'_>, tiles: &Tiles) -> bool {
    let (word, tuning) = (tiles.word, &query.tuning().columns);
    let faster = |columns: &Columns| match query.direction {
        Direction::Pack => word <= tuning.pack_before_tiles,
        Direction::Unpack => {
            let counts = &tuning.unpack_before_tiles[word.trailing_zeros().min(4) as usize];
            counts.contains(&(columns.columns.len() as u64))
        }
    };
    serving(query).is_some_and(faster)
}

impl KernelFamily for ColumnsKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<ColumnsKernel> {
        let columns = query.found::<Columns>().filter(|_| query.has_whole_elements());
        columns.map(|columns| ColumnsKernel { memory: columns.alignment(query.memory) }).into_iter().collect()
    }

    fn threads(&self, tuning: &Tuning, direction: Direction, _capped: bool) -> u32 {
        tuning.columns.threads[direction as usize]
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let columns = instance.analysis.found::<Columns>()?;
        Some(Grid { share: columns.tiles(instance.direction), ..Grid::new(Units::Touched, columns.size, 1) })
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        instance.analysis.found::<Columns>().map(|columns| columns.shared_bytes(instance.direction))
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        instance.may_prefetch() && instance.analysis.found::<Columns>().is_some_and(Columns::mostly_in_part)
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let columns = instance.analysis.found::<Columns>()?;
        let (direction, threads, tuning) = (instance.direction, instance.threads, &instance.analysis.tuning.columns);
        let tile_records = columns.tile_records(direction);
        let warps = u64::from(threads) / WARP;
        let (own, library) = match direction {
            Direction::Pack => {
                let rounds = (tile_records * columns.stride + 15).div_ceil(16).div_ceil(threads.into());
                let classes = classes(columns, self.memory, warps, tuning);
                (context! { classes, rounds }, vec![LibraryPart::Staged])
            }
            Direction::Unpack => (unpack_values(columns, self.memory, threads, tuning), vec![]),
        };
        let values = context! {
            warps, tile_records,
            records => number(columns.records),
            tiles => number(columns.tiles(direction)),
            stride => columns.stride,
            span => columns.span,
            low => signed(columns.low),
            size => number(columns.size),
            ..own
        };
        let outer = AddressFunction::Records { record: columns.array, size: columns.size };
        Some(KernelText { values, library, ..KernelText::new("columns", 1, vec![outer]) })
    }

    fn generic(&self, query: &Query<'_>) -> Generic {
        let layout = &query.analysis.layout;
        if query.found::<Columns>().is_some_and(|columns| columns.are_elements(layout)) {
            Generic::Columns
        } else {
            tiles::generic(query)
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("records through shared memory, packed field by field")
    }
}

/// What only unpacks need: columns in lines of shared memory, and how warps go through the records.
fn unpack_values(columns: &Columns, memory: u32, threads: u32, tuning: &ColumnsTuning) -> Value {
    let mut lines = 0;
    let each: Vec<Value> = columns
        .columns
        .iter()
        .map(|column| {
            let line = lines;
            lines += columns.lines(column);
            context! { offset => column.offset, packed => number(column.packed), width => column.width, line }
        })
        .collect();
    let stored = columns.stored_unit(memory);
    let unit = columns.staged_unit(stored);
    let fields: Vec<usize> = (0..columns.stride)
        .step_by(unit as usize)
        .map(|at| {
            let has = |column: &Column| (column.offset..column.offset + column.width).contains(&at);
            columns.columns.iter().position(has).unwrap_or(columns.columns.len())
        })
        .collect();
    let warps = u64::from(threads) / WARP;
    let row = WARP * u64::from(stored);
    // A lane is at the same place of a record again after `period` rows, which have `each_period` records.
    let common = 1 << (columns.stride | row).trailing_zeros();
    let (period, each_period) = (columns.stride / common, row / common);
    // A tile may begin inside of a line.
    let rows = (columns.tile_records(Direction::Unpack) * columns.stride + LINE + row).div_ceil(row);
    let periods = rows.div_ceil(period);
    let parts = u64::from(stored / unit);
    let chunks = period.div_ceil((tuning.unpack_places / parts).max(1));
    let kept = period.div_ceil(chunks);
    // As many items as give all warps the same number of them.
    let groups = (1..=warps).find(|groups| (chunks * groups).is_multiple_of(warps)).unwrap_or(warps).min(periods);
    context! {
        count => each.len(),
        columns => each,
        slots => fields.len(),
        fields,
        unit,
        stored,
        stored_type => word_type(stored),
        parts,
        lines,
        rounds => lines.div_ceil(threads.into()),
        stage_bytes => columns.stage_bytes(),
        row,
        period,
        each => each_period,
        chunks,
        kept,
        unroll => (6 / kept).clamp(1, 4),
        items => chunks * groups,
        item_rounds => periods.div_ceil(groups),
    }
}

/// Columns of one width that are moved in units of one size share their text: a warp packs some words of one column at a time.
fn classes(columns: &Columns, memory: u32, warps: u64, tuning: &ColumnsTuning) -> Vec<Value> {
    let tile_records = columns.tile_records(Direction::Pack);
    let mut by_kind: BTreeMap<(u64, u32), Vec<Value>> = BTreeMap::new();
    for column in &columns.columns {
        let own = context! { offset => column.offset, packed => number(column.packed) };
        by_kind.entry((column.width, columns.unit(column, memory))).or_default().push(own);
    }
    let mut before = 0;
    let mut class = |((width, unit), own): ((u64, u32), Vec<Value>)| {
        let words = (tile_records * width).div_ceil(4);
        let rounds = words.div_ceil(WARP).min(tuning.pack_rounds);
        let chunks = words.div_ceil(WARP * rounds);
        let items = own.len() as u64 * chunks;
        // The classes before leave off at a warp; this one begins with the next.
        let turn = (warps - before % warps) % warps;
        before += items;
        context! { width, unit, count => own.len(), columns => own, rounds, chunks, items, turn }
    };
    by_kind.into_iter().map(&mut class).collect()
}
