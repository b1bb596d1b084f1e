//! Records whose fields are in arrays of their own: neighbours in memory belong to records that are packed one after the other.

use super::tiles::{self, Tiles};
use super::{Generic, Instance, KernelFamily, Query};
use super::{boxes, columns};
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, FieldsTuning, Grid, KernelText, SCALAR, SECTOR, Structure, Tuning, Units, WIDEST,
    alignment, signed, word_type,
};
use minijinja::{Value, context};
use std::fmt;

/// A kernel that moves records whose fields are in arrays of their own, through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldsKernel {
    /// Bytes that divide the address of element 0: a power of two.
    pub memory: u32,
    /// Bytes that divide where packed byte 0 would be: a power of two.
    pub packed: u32,
}

/// Fields of a record at most.
const MOST_FIELDS: usize = 64;

/// Packed bytes of a record at most: shared memory holds enough of them for all threads.
pub(super) const LARGEST_RECORD: u64 = 1024;

/// One field of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordField {
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
    /// Records that follow each other in memory before the next ones are elsewhere; `u64::MAX` if they follow each other through all elements.
    pub copies: u64,
    /// Its fields, in packed order.
    pub fields: Vec<RecordField>,
    /// Divides where every record is in memory, but for the address of element 0: a power of two.
    starts: u32,
    /// Whether copies of a stream around the records lie between two of them: the sectors of a field are shared by records that are packed elsewhere.
    interleaved: bool,
    /// Records of a tile.
    tile_records: u64,
}

impl Structure for Fields {}

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
    pub(crate) fn most_tile_records(tuning: &FieldsTuning) -> u64 {
        tuning.tile_records.iter().map(|&(_, records)| records).max().unwrap_or(0)
    }

    /// Groups of records that follow each other in memory, in a tile, at most. A tile may cut the first and the last group.
    pub(crate) fn most_groups(tuning: &FieldsTuning) -> u64 {
        Fields::most_tile_records(tuning) / (tuning.min_array / SECTOR) + 2
    }

    /// Alignments of element 0 and of packed byte 0 beyond which nothing is gained, given the ones of a call.
    pub(crate) fn alignments(&self, memory: u32, packed: u32) -> (u32, u32) {
        let places = self.fields.iter().fold(self.size, |places, field| places | field.packed);
        (memory.min(self.starts), packed.min(alignment(places)))
    }

    /// Records of a tile.
    pub(crate) fn tile_records(&self) -> u64 {
        self.tile_records
    }

    /// Packed bytes of the largest tile of any records.
    pub(crate) fn most_tile_bytes(tuning: &FieldsTuning) -> u64 {
        (1..=LARGEST_RECORD).map(|size| tile_records(size, tuning) * size).max().unwrap_or(0)
    }

    /// Bytes of shared memory that a tile takes, which may begin inside a word.
    fn shared_bytes(&self) -> u32 {
        // Whole groups of eight words, which are permuted.
        (self.tile_records * self.size + u64::from(WIDEST)).next_multiple_of(128) as u32
    }

    /// Whether words of equal fields are in few banks, unless those are permuted.
    fn crowded(&self) -> bool {
        self.size.is_multiple_of(32)
    }

    /// Whether the packed words of a kernel are as long as the shortest field, or as four bytes: shorter ones cost too much.
    fn pay(&self, kernel: FieldsKernel) -> bool {
        let shortest = self.fields.iter().map(|field| field.bytes).min().unwrap_or(1);
        u64::from(kernel.packed) >= shortest.min(4)
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

/// Records of `size` packed bytes in a tile: more of short ones.
fn tile_records(size: u64, tuning: &FieldsTuning) -> u64 {
    match tuning.tile_records.iter().find(|(longest, _)| size <= *longest) {
        Some(&(_, records)) => records,
        // Rows of arrays have whole sectors.
        None => (tuning.tile_bytes / size / SECTOR * SECTOR).max(SECTOR),
    }
}

/// Finds the records of a layout: its elements, or the copies of a stream.
fn find(analysis: &Analysis) -> Option<Fields> {
    let Analysis { layout, continues, tuning: Tuning { fields: tuning, .. }, .. } = analysis;
    let mut at = layout.root();
    let mut starts = layout.extent() as u64;
    let mut stride = layout.extent();
    // The elements of a count are as many as the call says, and copies that go on through them are, too.
    let mut copies = if *continues { 0 } else { u64::MAX };
    let mut nearest = u64::MAX;
    loop {
        starts |= at.offset as u64;
        if let Some(fields) = consider(layout, at.node, (stride, copies), tuning) {
            let interleaved = nearest < stride.unsigned_abs();
            return Some(Fields { starts: alignment(starts), interleaved, ..fields });
        }
        if at != layout.root() {
            nearest = nearest.min(stride.unsigned_abs());
        }
        let Node::Stream { count, stride: next, child } = layout.node(at.node) else { return None };
        copies = if *continues && at == layout.root() { u64::MAX } else { *count };
        stride = *next;
        starts |= stride as u64;
        at = *child;
    }
}

/// The records that a node lays out at a stride, if this family moves them faster: neighbouring records are close to each other, and the fields of
/// one are far apart.
fn consider(layout: &Layout, record: NodeId, (stride, copies): (i64, u64), tuning: &FieldsTuning) -> Option<Fields> {
    let (size, near) = (layout.measure(record).size, stride.unsigned_abs());
    let dense = (1..=SECTOR).contains(&near) && copies.saturating_mul(near) >= tuning.min_array;
    let mut fields = Vec::new();
    if !dense
        || size > LARGEST_RECORD
        || !collect(layout, Edge { offset: 0, node: record }, &mut fields)
        || fields.len() < 2
    {
        return None;
    }
    let mut places: Vec<i64> = fields.iter().map(|field| field.offset).collect();
    places.sort_unstable();
    let far = places.windows(2).map(|pair| pair[1].abs_diff(pair[0])).min()?;
    let tile_records = tile_records(size, tuning);
    let found = Fields { record, size, stride, copies, fields, starts: 1, interleaved: false, tile_records };
    (far >= 2 * near.max(16)).then_some(found)
}

/// Appends the fields below an edge; whether they are few.
fn collect(layout: &Layout, at: Edge, fields: &mut Vec<RecordField>) -> bool {
    let mut append = |offset: i64, bytes: u64| {
        let packed = fields.last().map_or(0, |last| last.packed + last.bytes);
        match fields.last_mut() {
            Some(last) if last.offset.checked_add(last.bytes as i64) == Some(offset) => last.bytes += bytes,
            _ => fields.push(RecordField { offset, packed, bytes }),
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

/// The kernel for the alignments of a call.
fn kernel(fields: &Fields, query: &Query<'_>) -> FieldsKernel {
    let (memory, packed) = fields.alignments(query.memory, query.packed);
    FieldsKernel { memory, packed }
}

/// Serves calls of many records, unless boxes or tiles are faster.
pub(super) fn admits(query: &Query<'_>) -> Option<FieldsKernel> {
    let fields = query.found::<Fields>()?;
    let kernel = kernel(fields, query);
    let tuning = &query.tuning().fields;
    let least = if query.aligned_word() == 1 { tuning.min_bytes_odd } else { tuning.min_bytes };
    // A sector has such fields of several records, and is read for each of them; tiles read it once.
    let shared = |(tiles, _): (&Tiles, _)| tiles.columns >= tuning.shared_columns;
    let interleaved = fields.interleaved && (query.unpacks() || tiles::serving(query).is_some_and(shared));
    let boxed = boxes::before_records(query, if query.unpacks() { 0 } else { tuning.boxed_pack });
    let pays = query.call.bytes >= least && fields.pay(kernel) && !interleaved && !boxed;
    let before = |(tiles, _): (&Tiles, _)| before_tiles(query, tiles) || columns::before_tiles(query, tiles);
    (pays && tiles::serving(query).is_none_or(before)).then_some(kernel)
}

/// Whether records whose fields are the rows of tiles move by their fields.
fn before_tiles(query: &Query<'_>, tiles: &Tiles) -> bool {
    let (word, fields, tuning) = (tiles.word, tiles.rows, &query.tuning().fields);
    match query.direction {
        Direction::Pack => {
            word < tuning.pack_before_tiles || (word == tuning.pack_before_tiles && fields < tuning.many_fields)
        }
        Direction::Unpack if word == 4 => {
            let fill_warps = fields.is_multiple_of(8) || tuning.tiled_fields.contains(&fields);
            fields < tuning.few_fields || !fill_warps
        }
        Direction::Unpack => word <= tuning.unpack_before_tiles,
    }
}

impl KernelFamily for FieldsKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<FieldsKernel> {
        query.found().map(|fields| kernel(fields, query)).into_iter().collect()
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.fields.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let fields = instance.analysis.found::<Fields>()?;
        Some(Grid::new(Units::Inside, fields.size, fields.tile_records))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        instance.analysis.found::<Fields>().map(Fields::shared_bytes)
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let fields = instance.analysis.found::<Fields>()?;
        let words = fields.words(self.memory, self.packed);
        let words: Vec<Value> = words.iter().enumerate().map(word_values).collect();
        let groups: Vec<&[Value]> = words.chunks(instance.analysis.tuning.fields.loads).collect();
        let Fields { record, size, tile_records, .. } = *fields;
        let values = context! { size, records => tile_records, permuted => fields.crowded(), groups };
        let outer = AddressFunction::Records { record, size };
        let bytes = AddressFunction::Elements { unit: 1, run: false };
        Some(KernelText { values, ..KernelText::new("fields", 1, vec![outer, bytes]) })
    }

    fn generic(&self, query: &Query<'_>) -> Generic {
        let tiles = |tiles: &Tiles| tiles.word <= query.aligned_word() && tiles.fit_generic();
        if query.found().is_some_and(tiles) {
            Generic::Tiles
        } else if query.analysis.has_lists() {
            Generic::Fields
        } else {
            Generic::words_or_bytes(query)
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("records through shared memory, fields from arrays of their own")
    }
}

/// What the template reads of a word.
fn word_values((number, word): (usize, &FieldWord)) -> Value {
    let part =
        |at: u32| context! { packed => word.packed + u64::from(at), shift => 8 * at, type => word_type(word.part) };
    let parts: Vec<Value> = (0..word.bytes).step_by(word.part as usize).map(part).collect();
    let divided = parts.len() > 1;
    context! { number, divided, offset => signed(word.offset), type => word_type(word.bytes), parts }
}
