//! Small groups of runs: a list has one entry for each group, and where the runs of a group lie is constant.

use super::call::Call;
use super::cost;
use super::fields::{Field, FieldWord};
use super::granularity::alignment;
use super::pieces::each_run;
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;

/// Runs of a group at most.
const MOST_RUNS: u64 = 64;

/// Bytes of the widest word that is no vector.
const SCALAR: u32 = 8;

/// Bytes of the widest word.
const WIDEST: u32 = 16;

/// Groups of runs, whose packed bytes pass through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The node of a group.
    pub group: NodeId,
    /// Its packed bytes.
    pub size: u64,
    /// Its runs, in the order of memory. None overlap.
    pub fields: Vec<Field>,
    /// Whether a list tells where groups lie.
    listed: bool,
    /// Whether they have runs of several lengths with few bytes between them.
    close: bool,
    /// Whether their runs have words of several bytes, wherever element 0 is aligned to groups.
    wide: bool,
    /// Divides where every group lies in memory, but for the address of element 0: a power of two.
    starts: u32,
    /// Divides where every run is packed, but for the address of packed byte 0: a power of two.
    packed: u32,
    /// Alignment of element 0 from which on a group has few words.
    least: u32,
}

impl Groups {
    /// Words of a group at most, each of which has an entry in shared memory.
    pub(crate) const MOST_WORDS: usize = 256;

    /// Groups of a tile at most, each of which has an entry in shared memory.
    pub(crate) const MOST_GROUPS: u64 = 512;

    /// Alignments of element 0 and of packed byte 0 beyond which nothing is gained, given the ones of a call.
    pub(super) fn alignments(&self, memory: u32, packed: u32) -> (u32, u32) {
        (memory.min(self.starts), packed.min(self.packed))
    }

    /// Whether a kernel serves calls whose element 0 has this alignment.
    pub(super) fn serves(&self, memory: u32) -> bool {
        memory >= self.least
    }

    /// Whether a call moves by groups, whose alignment is `word`. `gapped`: whether they may also be unpacked byte by byte in the order of memory.
    pub(super) fn pays(&self, direction: Direction, word: u32, gapped: bool, call: &Call) -> bool {
        if !cost::in_groups(direction, word, self.listed, call.bytes) {
            return false;
        }
        let mean = self.size / self.fields.len().max(1) as u64;
        let fits = self.wide || (!gapped && cost::odd_by_groups(direction, self.listed, mean));
        fits && (self.listed || self.close)
    }

    /// Whether a list tells where groups lie.
    pub(super) fn listed(&self) -> bool {
        self.listed
    }

    /// Bytes of the words of memory that packs load, for alignments of element 0 and of packed byte 0. Each is aligned.
    pub(crate) fn loaded(&self, memory: u32, packed: u32) -> u32 {
        let memory = memory.min(self.starts);
        let places = self.fields.iter().fold(0, |places, field| places | field.bytes | field.offset as u64);
        let all_wide = alignment(places).min(memory).min(packed.min(self.packed)) == WIDEST;
        if all_wide { WIDEST } else { memory.min(SCALAR) }
    }

    /// What lanes move of a group, in the order of memory, for alignments of element 0 and of packed byte 0. A pack loads the aligned word around each:
    /// all bytes that a run has of it. An unpack stores words that are aligned. Parts of one length are aligned in shared memory.
    pub(crate) fn words(&self, direction: Direction, memory: u32, packed: u32) -> Vec<FieldWord> {
        let word = self.loaded(memory, packed);
        let mut words = Vec::new();
        let mut places = self.size;
        for field in &self.fields {
            let mut done = 0;
            while done < field.bytes {
                let (offset, packed, left) = (field.offset + done as i64, field.packed + done, field.bytes - done);
                let bytes = match direction {
                    Direction::Pack => left.min(u64::from(word) - (offset as u64 & u64::from(word - 1))) as u32,
                    Direction::Unpack => alignment(offset as u64).min(word).min(1 << left.ilog2().min(WIDEST.ilog2())),
                };
                places |= packed | u64::from(bytes);
                words.push(FieldWord { offset, packed, bytes, part: 1 });
                done += u64::from(bytes);
            }
        }
        let part = alignment(places).min(packed);
        words.iter_mut().for_each(|word| word.part = part);
        words
    }

    /// Whether the word around a part of a group may reach out of the group.
    pub(crate) fn reaches_out(&self, memory: u32, packed: u32) -> bool {
        let word = i64::from(self.loaded(memory, packed));
        let low = self.fields.first().map_or(0, |first| first.offset);
        let high = self.fields.last().map_or(0, |last| last.offset + last.bytes as i64);
        low & (word - 1) != 0 || high & (word - 1) != 0
    }

    /// Groups of a tile. All tiles begin at lines of 16 bytes if the first does.
    pub(crate) fn tile_groups(&self, direction: Direction) -> u64 {
        let each = u64::from(WIDEST / alignment(self.size));
        let groups = (cost::groups_tile(direction) / self.size).min(Groups::MOST_GROUPS);
        (groups / each * each).max(each)
    }

    /// Bytes of shared memory of a tile's packed bytes, which may begin inside a line, and behind which a word may be read.
    pub(crate) fn stage_bytes(&self, direction: Direction) -> u32 {
        (self.tile_groups(direction) * self.size + 2 * u64::from(WIDEST)).next_multiple_of(WIDEST.into()) as u32
    }

    /// Bytes of shared memory of a tile: its packed bytes, where its groups lie, and the words of a group.
    pub(crate) fn shared_bytes(&self, direction: Direction, memory: u32, packed: u32) -> u32 {
        let entries = self.tile_groups(direction) + self.words(direction, memory, packed).len() as u64;
        self.stage_bytes(direction) + (entries as u32 * 8).next_multiple_of(WIDEST)
    }

    /// Bytes of shared memory that suffice for the packed bytes of a tile of any groups.
    pub(crate) fn most_stage_bytes(direction: Direction) -> u64 {
        // Sixteen groups of odd lengths begin at lines again.
        let largest = cost::groups_tile(direction).max(u64::from(WIDEST) * cost::LARGEST_RECORD);
        (largest + 2 * u64::from(WIDEST)).next_multiple_of(WIDEST.into())
    }
}

/// Finds the groups of a layout: the outermost node that is small, behind streams and lists. Copies of a root that goes on through all elements are as many
/// as the call says.
pub(super) fn find(layout: &Layout, continues: bool) -> Option<Groups> {
    let mut at = layout.root();
    let mut starts = layout.extent() as u64;
    let mut listed = false;
    loop {
        starts |= at.offset as u64;
        if let Some(groups) = consider(layout, at.node).filter(|_| !(continues && at == layout.root())) {
            let mixed = groups.fields.windows(2).any(|pair| pair[0].bytes != pair[1].bytes);
            let measure = layout.measure(groups.group);
            let close = mixed && cost::by_groups(groups.size, measure.high.abs_diff(measure.low));
            let groups = Groups { listed, close, starts: alignment(starts), ..groups };
            let words = |memory| groups.words(Direction::Unpack, memory, WIDEST).len();
            let least = [1, 2, 4, 8, 16].into_iter().find(|&memory| words(memory) <= Groups::MOST_WORDS)?;
            let wide = cost::has_wide_words(groups.size, words(groups.starts) as u64);
            return Some(Groups { least, wide, ..groups });
        }
        at = match layout.node(at.node) {
            Node::Stream { stride: next, child, .. } => {
                starts |= *next as u64;
                *child
            }
            Node::Indexed { offsets, child } => {
                starts |= offsets.iter().fold(0, |bits, &offset| bits | offset as u64);
                listed = true;
                *child
            }
            Node::Dense { .. } | Node::Runs { .. } | Node::Record { .. } => return None,
        };
    }
}

/// The group that a node lays out, if it is one.
fn consider(layout: &Layout, group: NodeId) -> Option<Groups> {
    let measure = layout.measure(group);
    let near = [measure.low, measure.high].iter().all(|&bound| i32::try_from(bound).is_ok());
    if !(2..=MOST_RUNS).contains(&measure.runs) || measure.size > cost::LARGEST_RECORD || !near {
        return None;
    }
    let (mut fields, mut size) = (Vec::<Field>::new(), 0);
    each_run(layout, Edge { offset: 0, node: group }, &mut |offset, bytes| {
        match fields.last_mut() {
            Some(last) if last.offset + last.bytes as i64 == offset => last.bytes += bytes,
            _ => fields.push(Field { offset, packed: size, bytes }),
        }
        size += bytes;
    });
    let packed = alignment(fields.iter().fold(size, |places, field| places | field.packed));
    fields.sort_unstable_by_key(|field| field.offset);
    let overlaps = fields.windows(2).any(|pair| pair[0].offset + pair[0].bytes as i64 > pair[1].offset);
    let groups = Groups { group, size, fields, listed: false, close: false, wide: false, starts: 1, packed, least: 1 };
    (!overlaps).then_some(groups)
}
