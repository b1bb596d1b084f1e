//! Arrays of records that are packed field by field: neighbours in memory belong to columns that are packed far apart.

use super::call::Call;
use super::cost;
use super::granularity::alignment;
use super::sizes::SECTOR;
use crate::layout::{Edge, Layout, Node};
use crate::plan::Direction;
use std::ops::Range;

/// Bytes of the widest word that kernels put packed words together from.
const WIDEST: u32 = 4;

/// One field of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Offset in memory from the first byte of the record that any field has, in bytes.
    pub offset: u64,
    /// Offset of the field of record 0 in the packed element, in bytes.
    pub packed: u64,
    /// Length in bytes.
    pub width: u64,
}

/// How the elements of a layout are moved through shared memory, if each is an array of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Records of an element.
    pub records: u64,
    /// Bytes from record to record in memory.
    pub stride: u64,
    /// Offset in memory of the first byte of record 0 that any field has, from the beginning of its element, in bytes.
    pub low: i64,
    /// Bytes from the first to behind the last that any field of a record has.
    pub span: u64,
    /// Packed bytes of an element.
    pub size: u64,
    /// The fields, in packed order.
    pub columns: Vec<Column>,
    /// Divides where every element and every record lies in memory, but for the address of element 0: a power of two.
    starts: u32,
}

impl Columns {
    /// Columns of an array at most.
    pub(crate) const MOST: usize = 64;

    /// Alignment of element 0 beyond which nothing is gained, given the one of a call.
    pub(super) fn alignment(&self, memory: u32) -> u32 {
        memory.min(self.starts).min(WIDEST)
    }

    /// Whether a call moves whole elements, and enough of them.
    pub(super) fn pays(&self, call: &Call) -> bool {
        call.first.is_multiple_of(self.size) && call.bytes.is_multiple_of(self.size) && cost::in_columns(call.bytes)
    }

    /// Bytes of the words that a column is moved in, for an alignment of element 0.
    pub(crate) fn unit(&self, column: &Column, memory: u32) -> u32 {
        let offset = self.low.wrapping_add(column.offset as i64) as u64;
        alignment(offset | column.width).min(self.starts).min(memory).min(WIDEST)
    }

    /// The bytes of a record that fields have, as ranges of offsets in ascending order with gaps between.
    pub(crate) fn segments(&self) -> Vec<Range<u64>> {
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
    pub(crate) fn stored_unit(&self, memory: u32) -> u32 {
        let ends = self.segments().iter().fold(0, |ends, segment| ends | segment.start | segment.end);
        alignment(self.low as u64 | ends).min(self.starts).min(memory).min(WIDEST)
    }

    /// Records of a tile.
    pub(crate) fn tile_records(&self, direction: Direction) -> u64 {
        cost::tile_records(direction, self.stride)
    }

    /// Bytes of the words of a column that unpacks put words of `stored` bytes together from: each belongs to one column.
    pub(crate) fn staged_unit(&self, stored: u32) -> u32 {
        let places = self.columns.iter().fold(0, |places, column| places | column.offset | column.width);
        alignment(places).min(stored)
    }

    /// Lines of 16 bytes of shared memory that a column of a tile takes in unpacks, where it may begin inside of a line.
    pub(crate) fn lines(&self, column: &Column) -> u64 {
        (self.tile_records(Direction::Unpack) * column.width + 30) / 16
    }

    /// Bytes of shared memory that the columns of a tile take in unpacks, and a word behind them that may be read.
    pub(crate) fn stage_bytes(&self) -> u32 {
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
    pub(crate) fn shared_bytes(&self, direction: Direction) -> u32 {
        match direction {
            // A tile may begin inside a word, and reads a unit behind the last record. A word lies between every 32.
            Direction::Pack => {
                let bytes = ((self.tile_records(direction) + 1) * self.stride + 32) as u32;
                (bytes + bytes / 32).next_multiple_of(16)
            }
            // Behind the columns lies where the units of a record are.
            Direction::Unpack => self.stage_bytes() + (self.stride as u32 * 4).next_multiple_of(16),
        }
    }

    /// Bytes of memory of the largest tile of any columns.
    pub(crate) fn most_tile_bytes(direction: Direction) -> u64 {
        let bytes = |stride| cost::tile_records(direction, stride) * stride;
        (1..=cost::WIDEST_RECORD).map(bytes).max().unwrap_or(0)
    }

    /// Lines of 16 bytes that any columns of a tile take in unpacks, at most.
    pub(crate) fn most_lines() -> u64 {
        (Columns::most_tile_bytes(Direction::Unpack) + 30 * Columns::MOST as u64) / 16
    }

    /// Bytes of shared memory that suffice for a tile of any columns, whose bytes have a place each in unpacks.
    pub(crate) fn most_shared_bytes(direction: Direction) -> u64 {
        match direction {
            Direction::Pack => {
                let bytes = Columns::most_tile_bytes(direction) + cost::WIDEST_RECORD + 32;
                (bytes + bytes / 32).next_multiple_of(16)
            }
            Direction::Unpack => (Columns::most_lines() + 1) * 16 + cost::WIDEST_RECORD * 4,
        }
    }

    /// Tiles of an element.
    pub(crate) fn tiles(&self, direction: Direction) -> u64 {
        self.records.div_ceil(self.tile_records(direction))
    }
}

/// Finds the columns of a layout whose elements are arrays of records.
pub(super) fn find(layout: &Layout) -> Option<Columns> {
    let root = layout.root();
    let mut found = Found { array: None, columns: Vec::new(), packed: 0 };
    found.collect(layout, root)?;
    let (records, stride) = found.array?;
    let low = found.columns.iter().map(|(offset, ..)| *offset).min()?;
    let high = found.columns.iter().map(|(offset, _, width)| offset + *width as i64).max()?;
    let span = high.abs_diff(low);
    let columns: Vec<Column> = found
        .columns
        .iter()
        .map(|&(offset, packed, width)| Column { offset: offset.abs_diff(low), packed, width })
        .collect();
    let record_size = columns.iter().map(|column| column.width).sum();
    let places = layout.extent() as u64 | stride;
    let pays = columns.len() > 1 && span <= stride && cost::by_columns(record_size, stride, records);
    pays.then(|| Columns {
        records,
        stride,
        low,
        span,
        size: layout.size(),
        columns,
        starts: alignment(places | root.offset as u64),
    })
}

/// Columns found so far.
struct Found {
    /// Records, and bytes from one to the next: the same for all columns.
    array: Option<(u64, u64)>,
    /// Offset in memory, packed offset and length of the field of record 0.
    columns: Vec<(i64, u64, u64)>,
    packed: u64,
}

impl Found {
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
