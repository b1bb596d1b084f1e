//! Records whose fields lie in arrays of their own: neighbours in memory belong to records that are packed one after the other.

use super::call::Call;
use super::cost;
use super::granularity::alignment;
use crate::layout::{Edge, Layout, Node, NodeId};

/// Fields of a record at most.
const MOST_FIELDS: usize = 64;

/// Bytes of the widest load that is no vector.
const SCALAR: u32 = 8;

/// Bytes of the widest word.
const WIDEST: u32 = 16;

/// One field of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset in memory from the beginning of the record, in bytes.
    pub offset: i64,
    /// Offset in the packed record, in bytes.
    pub packed: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// How the records of a layout are moved through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The node that lays a record out.
    pub record: NodeId,
    /// Packed bytes of a record.
    pub size: u64,
    /// Bytes from record to record in memory.
    pub stride: i64,
    /// Records that follow each other in memory before the next ones lie elsewhere; `u64::MAX` if they follow each other through all elements.
    pub copies: u64,
    /// Its fields, in packed order.
    pub fields: Vec<Field>,
    /// Divides where every record lies in memory, but for the address of element 0: a power of two.
    starts: u32,
}

/// A word of a field, which one instruction loads and one stores.
pub(crate) struct FieldWord {
    /// Offset in memory from the beginning of the record, in bytes.
    pub(crate) offset: i64,
    /// Offset in the packed record, in bytes.
    pub(crate) packed: u64,
    /// Bytes of the word: 1, 2, 4, 8 or 16.
    pub(crate) bytes: u32,
    /// Bytes of its parts that are aligned in shared memory.
    pub(crate) part: u32,
}

impl Fields {
    /// Records of a tile, at most.
    pub(crate) const MOST_TILE_RECORDS: u64 = cost::MOST_TILE_RECORDS;

    /// Groups of records that follow each other in memory, in a tile, at most.
    pub(crate) const MOST_GROUPS: u64 = cost::MOST_GROUPS;

    /// Alignments of element 0 and of packed byte 0 beyond which nothing is gained, given the ones of a call.
    pub(crate) fn alignments(&self, memory: u32, packed: u32) -> (u32, u32) {
        let places = self.fields.iter().fold(self.size, |places, field| places | field.packed);
        (memory.min(self.starts), packed.min(alignment(places)))
    }

    /// Whether a call moves by fields, given what divides its packed places.
    pub(super) fn pays(&self, packed: u32, call: &Call) -> bool {
        let shortest = self.fields.iter().map(|field| field.bytes).min().unwrap_or(1);
        cost::in_fields(shortest, packed, call.bytes)
    }

    /// Records of a tile.
    pub(crate) fn tile_records(&self) -> u64 {
        cost::fields_tile_records(self.size)
    }

    /// Packed bytes of the largest tile of any records.
    pub(crate) fn most_tile_bytes() -> u64 {
        (1..=cost::LARGEST_RECORD).map(|size| cost::fields_tile_records(size) * size).max().unwrap_or(0)
    }

    /// Bytes of shared memory that a tile takes, which may begin inside a word.
    pub(crate) fn shared_bytes(&self) -> u32 {
        // Whole groups of eight words, which are permuted.
        (self.tile_records() * self.size + u64::from(WIDEST)).next_multiple_of(128) as u32
    }

    /// Whether words of equal fields lie in few banks, unless those are permuted.
    pub(crate) fn crowded(&self) -> bool {
        self.size.is_multiple_of(32)
    }

    /// The words of all fields, for alignments of element 0 and of packed byte 0.
    pub(crate) fn words(&self, memory: u32, packed: u32) -> Vec<FieldWord> {
        let mut words = Vec::new();
        for field in &self.fields {
            let mut done = 0;
            while done < field.bytes {
                let (offset, place) = (field.offset + done as i64, field.packed + done);
                let left = 1 << (field.bytes - done).ilog2().min(WIDEST.ilog2());
                let aligned = alignment(offset as u64).min(self.starts).min(memory);
                let part = alignment(place | self.size).min(packed);
                let bytes = aligned.min(left);
                let bytes = if part < bytes { bytes.min(SCALAR) } else { bytes };
                words.push(FieldWord { offset, packed: place, bytes, part: part.min(bytes) });
                done += u64::from(bytes);
            }
        }
        words
    }
}

/// Finds the records of a layout: its elements, or the copies of a stream.
pub(super) fn find(layout: &Layout, continues: bool) -> Option<Fields> {
    let mut at = layout.root();
    let mut starts = layout.extent() as u64;
    let mut stride = layout.extent();
    // The elements of a count are as many as the call says, and copies that go on through them are, too.
    let mut copies = if continues { 0 } else { u64::MAX };
    loop {
        starts |= at.offset as u64;
        if let Some(fields) = consider(layout, at.node, stride, copies) {
            return Some(Fields { starts: alignment(starts), ..fields });
        }
        let Node::Stream { count, stride: next, child } = layout.node(at.node) else { return None };
        copies = if continues && at == layout.root() { u64::MAX } else { *count };
        stride = *next;
        starts |= stride as u64;
        at = *child;
    }
}

/// The records that a node lays out, if moving them as such pays.
fn consider(layout: &Layout, record: NodeId, stride: i64, copies: u64) -> Option<Fields> {
    let (size, near) = (layout.measure(record).size, stride.unsigned_abs());
    let mut fields = Vec::new();
    if !cost::by_fields(size, copies, near, u64::MAX)
        || !collect(layout, Edge { offset: 0, node: record }, &mut fields)
        || fields.len() < 2
    {
        return None;
    }
    let mut places: Vec<i64> = fields.iter().map(|field| field.offset).collect();
    places.sort_unstable();
    let far = places.windows(2).map(|pair| pair[1].abs_diff(pair[0])).min()?;
    cost::by_fields(size, copies, near, far).then_some(Fields { record, size, stride, copies, fields, starts: 1 })
}

/// Appends the fields below an edge; whether they are few.
fn collect(layout: &Layout, at: Edge, fields: &mut Vec<Field>) -> bool {
    let mut append = |offset: i64, bytes: u64| {
        let packed = fields.last().map_or(0, |last| last.packed + last.bytes);
        match fields.last_mut() {
            Some(last) if last.offset.checked_add(last.bytes as i64) == Some(offset) => last.bytes += bytes,
            _ => fields.push(Field { offset, packed, bytes }),
        }
        fields.len() <= MOST_FIELDS
    };
    match layout.node(at.node) {
        Node::Dense { count, kind } => append(at.offset, count * kind.size()),
        Node::Runs { runs, kind } => runs.iter().all(|run| append(at.offset + run.offset, run.count * kind.size())),
        Node::Stream { count, stride, child } => (0..*count as i64)
            .all(|copy| collect(layout, Edge { offset: at.offset + copy * stride + child.offset, ..*child }, fields)),
        Node::Indexed { offsets, child } => offsets
            .iter()
            .all(|offset| collect(layout, Edge { offset: at.offset + offset + child.offset, ..*child }, fields)),
        Node::Record { parts } => {
            parts.iter().all(|part| collect(layout, Edge { offset: at.offset + part.offset, ..*part }, fields))
        }
    }
}
