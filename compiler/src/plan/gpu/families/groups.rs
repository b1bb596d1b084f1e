//! Small groups of runs: a list has one entry for each group, and the places of the runs of a group are constant.

use super::fields::{FieldWord, LARGEST_RECORD, RecordField};
use super::pieces::each_run;
use super::records::Records;
use super::{Generic, Instance, KernelFamily, Query};
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, Grid, GroupsTuning, KernelList, KernelText, ListedPiece, SCALAR, Structure, Tuning,
    Units, WIDEST, alignment, word_type,
};
use minijinja::{Value, context};
use std::fmt;

/// A kernel that moves small groups of runs through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupsKernel {
    /// Bytes that divide the address of element 0: a power of two.
    pub memory: u32,
    /// Bytes that divide where packed byte 0 would be: a power of two.
    pub packed: u32,
}

/// Runs of a group at most.
const MOST_RUNS: u64 = 64;

/// Groups of runs, whose packed bytes pass through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The node of a group.
    pub group: NodeId,
    /// Its packed bytes.
    pub size: u64,
    /// Its runs, in the order of memory. None overlap.
    pub fields: Vec<RecordField>,
    /// Whether a list tells where groups are.
    listed: bool,
    /// Whether they have runs of several lengths with few bytes between them.
    close: bool,
    /// Whether their runs have words of several bytes, wherever element 0 is aligned to groups.
    wide: bool,
    /// Divides where every group is in memory, but for the address of element 0: a power of two.
    starts: u32,
    /// Divides where every run is packed, but for the address of packed byte 0: a power of two.
    packed: u32,
    /// Alignment of element 0 from which on a group has few words.
    least: u32,
    /// Groups of a tile, in packs and in unpacks. All tiles begin at lines of 16 bytes if the first does.
    tile_groups: [u64; 2],
}

impl Structure for Groups {}

impl Groups {
    /// Alignment of packed bytes for which the generic kernels have words of memory: none is wider than a scalar.
    pub(crate) const GENERIC_PACKED: u32 = SCALAR;

    /// Maximum of words in a group. Each word has an entry in shared memory.
    pub(crate) const MOST_WORDS: usize = 256;

    /// Maximum of groups in a tile. Each group has an entry in shared memory.
    pub(crate) const MOST_GROUPS: u64 = 512;

    /// Alignments of element 0 and of packed byte 0 beyond which nothing is gained, given the ones of a call.
    pub(super) fn alignments(&self, memory: u32, packed: u32) -> (u32, u32) {
        (memory.min(self.starts), packed.min(self.packed))
    }

    /// Whether a kernel serves calls whose element 0 has this alignment.
    pub(super) fn serves(&self, memory: u32) -> bool {
        memory >= self.least
    }

    /// Whether a list tells where groups are.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// Whether the generic kernels serve calls whose element 0 has this alignment: the words in their tables are aligned.
    fn fit_generic(&self, memory: u32) -> bool {
        self.loaded(memory, Groups::GENERIC_PACKED) == self.loaded(u32::MAX, Groups::GENERIC_PACKED)
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
    fn reaches_out(&self, memory: u32, packed: u32) -> bool {
        let word = i64::from(self.loaded(memory, packed));
        let low = self.fields.first().map_or(0, |first| first.offset);
        let high = self.fields.last().map_or(0, |last| last.offset + last.bytes as i64);
        low & (word - 1) != 0 || high & (word - 1) != 0
    }

    /// The words of a group as kernels read them: the offset of each in memory; and where it is packed, with its length from bit 16 on. A pack has the
    /// offset of the aligned word around it, its length in bytes, and from bit 24 on where it begins in that word; an unpack has the logarithm of
    /// its length.
    pub(crate) fn entries(&self, direction: Direction, memory: u32, packed: u32) -> Vec<ListedPiece> {
        let word = i64::from(self.loaded(memory, packed));
        let entry = |its: &FieldWord| match direction {
            Direction::Pack => {
                let ahead = its.offset & (word - 1);
                (its.offset - ahead, its.packed | u64::from(its.bytes) << 16 | (ahead as u64) << 24)
            }
            Direction::Unpack => (its.offset, its.packed | u64::from(its.bytes.ilog2()) << 16),
        };
        self.words(direction, memory, packed).iter().map(entry).collect()
    }

    /// Groups of a tile.
    pub(crate) fn tile_groups(&self, direction: Direction) -> u64 {
        self.tile_groups[direction as usize]
    }

    /// Bytes of shared memory of a tile's packed bytes, which may begin inside a line, and behind which a word may be read.
    fn stage_bytes(&self, direction: Direction) -> u32 {
        (self.tile_groups(direction) * self.size + 2 * u64::from(WIDEST)).next_multiple_of(WIDEST.into()) as u32
    }

    /// Bytes of shared memory of a tile: its packed bytes, where its groups are, and the words of a group.
    fn shared_bytes(&self, direction: Direction, memory: u32, packed: u32) -> u32 {
        let entries = self.tile_groups(direction) + self.words(direction, memory, packed).len() as u64;
        self.stage_bytes(direction) + (entries as u32 * 8).next_multiple_of(WIDEST)
    }

    /// Bytes of shared memory that suffice for the packed bytes of a tile of any groups.
    pub(crate) fn most_stage_bytes(direction: Direction, tuning: &GroupsTuning) -> u64 {
        // Sixteen groups of odd lengths begin at lines again.
        let largest = tuning.tile_bytes[direction as usize].max(u64::from(WIDEST) * LARGEST_RECORD);
        (largest + 2 * u64::from(WIDEST)).next_multiple_of(WIDEST.into())
    }
}

/// Finds the groups of a layout: the outermost node that is small, behind streams and lists. Copies of a root that goes on through all elements are as many
/// as the call says.
fn find(analysis: &Analysis) -> Option<Groups> {
    let Analysis { layout, continues, tuning: Tuning { groups: tuning, .. }, .. } = analysis;
    let mut at = layout.root();
    let mut starts = layout.extent() as u64;
    let mut listed = false;
    loop {
        starts |= at.offset as u64;
        if let Some(groups) = consider(layout, at.node).filter(|_| !(*continues && at == layout.root())) {
            let mixed = groups.fields.windows(2).any(|pair| pair[0].bytes != pair[1].bytes);
            let measure = layout.measure(groups.group);
            // Few bytes are between their runs. Measured in `bench/results/2026-11-27-gpu-drawn.md`.
            let close = mixed && groups.size.saturating_mul(2) >= measure.high.abs_diff(measure.low);
            let groups = Groups { listed, close, starts: alignment(starts), ..groups };
            let words = |memory| groups.words(Direction::Unpack, memory, WIDEST).len();
            let least = [1, 2, 4, 8, 16].into_iter().find(|&memory| words(memory) <= Groups::MOST_WORDS)?;
            let wide = groups.size >= (words(groups.starts) as u64).saturating_mul(tuning.wide_word);
            let tile_groups = tuning.tile_bytes.map(|bytes| tile_groups(groups.size, bytes));
            return Some(Groups { least, wide, tile_groups, ..groups });
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
    if !(2..=MOST_RUNS).contains(&measure.runs) || measure.size > LARGEST_RECORD || !near {
        return None;
    }
    let (mut fields, mut size) = (Vec::<RecordField>::new(), 0);
    each_run(layout, Edge { offset: 0, node: group }, &mut |offset, bytes| {
        match fields.last_mut() {
            Some(last) if last.offset + last.bytes as i64 == offset => last.bytes += bytes,
            _ => fields.push(RecordField { offset, packed: size, bytes }),
        }
        size += bytes;
    });
    let packed = alignment(fields.iter().fold(size, |places, field| places | field.packed));
    fields.sort_unstable_by_key(|field| field.offset);
    let overlaps = fields.windows(2).any(|pair| pair[0].offset + pair[0].bytes as i64 > pair[1].offset);
    let (listed, close, wide, tile_groups) = (false, false, false, [1; 2]);
    let groups = Groups { group, size, fields, listed, close, wide, starts: 1, packed, least: 1, tile_groups };
    (!overlaps).then_some(groups)
}

/// Groups of `size` packed bytes in a tile of about `bytes`.
fn tile_groups(size: u64, bytes: u64) -> u64 {
    let each = u64::from(WIDEST / alignment(size));
    let groups = (bytes / size).min(Groups::MOST_GROUPS);
    (groups / each * each).max(each)
}

/// Whether runs of `mean` bytes on average at odd places move by groups, in single bytes.
fn odd_pay(direction: Direction, listed: bool, mean: u64, tuning: &GroupsTuning) -> bool {
    match direction {
        Direction::Pack => mean < tuning.odd_pack,
        Direction::Unpack => listed || mean < tuning.odd_unpack,
    }
}

/// The groups of a layout, for element 0 at the alignment of a call, and their kernel.
fn fitting<'a>(query: &Query<'a>) -> Option<(&'a Groups, GroupsKernel)> {
    let groups = query.found::<Groups>().filter(|groups| groups.serves(query.memory))?;
    let (memory, packed) = groups.alignments(query.memory, query.packed);
    Some((groups, GroupsKernel { memory, packed }))
}

/// Serves calls of many groups. Packs by words of 8 bytes and more are as fast, and unpacks where no list is searched for each.
pub(super) fn admits(query: &Query<'_>) -> Option<GroupsKernel> {
    let (groups, kernel) = fitting(query)?;
    let Groups { listed, close, wide, .. } = *groups;
    let tuning = &query.tuning().groups;
    let mean = groups.size / groups.fields.len().max(1) as u64;
    // Records may also be unpacked byte by byte in the order of memory.
    let odd = !query.analysis.has::<Records>() && odd_pay(query.direction, listed, mean, tuning);
    let narrow = query.word <= tuning.max_word || (query.unpacks() && listed);
    // Rows of words of 2 bytes that are no neighbours among the packed bytes would share words of memory.
    let apart = query.unpacks() && query.word == 2 && query.analysis.runs.permuted;
    let pays = narrow && query.call.bytes >= tuning.min_bytes && (wide || odd) && (listed || close || apart);
    pays.then_some(kernel)
}

impl KernelFamily for GroupsKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<GroupsKernel> {
        fitting(query).map(|(_, kernel)| kernel).into_iter().collect()
    }

    fn threads(&self, tuning: &Tuning, direction: Direction, _capped: bool) -> u32 {
        tuning.groups.threads[direction as usize]
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let groups = instance.analysis.found::<Groups>()?;
        Some(Grid::new(Units::Inside, groups.size, groups.tile_groups(instance.direction)))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        let groups = instance.analysis.found::<Groups>()?;
        Some(groups.shared_bytes(instance.direction, self.memory, self.packed))
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        let Analysis { runs, granularity, whole_sectors, .. } = instance.analysis;
        let word = granularity.word();
        let in_part = word < 4 || instance.analysis.stored_in_part(runs.mean, word);
        instance.may_prefetch() && !whole_sectors && in_part
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let groups = instance.analysis.found::<Groups>()?;
        let outer = AddressFunction::Records { record: groups.group, size: groups.size };
        let bytes = AddressFunction::Elements { unit: 1, run: false };
        let words = groups.entries(instance.direction, self.memory, self.packed);
        let (values, lists) = (values(groups, *self, instance), vec![("list", KernelList::Pieces(words))]);
        Some(KernelText { values, lists, ..KernelText::new("groups", 1, vec![outer, bytes]) })
    }

    fn generic(&self, query: &Query<'_>) -> Generic {
        let fit = query.found::<Groups>().is_some_and(|groups| groups.fit_generic(self.memory));
        if fit && query.analysis.has_lists() { Generic::Groups } else { Generic::words_or_bytes(query) }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("groups of runs through shared memory")
    }
}

/// What the template reads.
fn values(groups: &Groups, kernel: GroupsKernel, instance: &Instance<'_>) -> Value {
    let (GroupsKernel { memory, packed }, direction) = (kernel, instance.direction);
    let words = groups.words(direction, memory, packed);
    let tile_groups = groups.tile_groups(direction);
    let mut widths: Vec<u32> = words.iter().map(|word| word.bytes).collect();
    widths.sort_unstable_by_key(|width| std::cmp::Reverse(*width));
    widths.dedup();
    let part = words.first().map_or(1, |word| word.part);
    let widest = match direction {
        Direction::Pack => groups.loaded(memory, packed),
        Direction::Unpack => widths.first().copied().unwrap_or(1),
    };
    let mixed = widths.iter().any(|&width| width != widest);
    let common = context! {
        size => groups.size,
        groups => tile_groups,
        words => words.len(),
        mixed,
        widest,
        part,
        part_type => word_type(part),
        stage_bytes => groups.stage_bytes(direction),
    };
    let threads = u64::from(instance.threads);
    match direction {
        Direction::Pack => {
            let rounds = (tile_groups * words.len() as u64).div_ceil(threads);
            // Rounds of one length.
            let rounds = rounds.div_ceil(rounds.div_ceil(instance.analysis.tuning.groups.rounds));
            let shifts = words.iter().any(|word| word.offset as u64 & u64::from(widest - 1) != 0);
            let parts: Vec<Value> =
                (0..widest).step_by(part as usize).map(|at| context! { at, shift => 8 * at }).collect();
            let checked = groups.reaches_out(memory, packed);
            context! { rounds, shifts, divided => part < widest, parts, checked, word_type => word_type(widest), ..common }
        }
        Direction::Unpack => {
            let rounds = (tile_groups * groups.size + 30).div_ceil(16).div_ceil(threads);
            let widths: Vec<Value> =
                widths.iter().map(|width| context! { log => width.ilog2(), type => word_type(*width) }).collect();
            // Words of several widths are shifted out of the widest scalar.
            let own = if part < widest { word_type(widest.max(4)) } else { word_type(widest) };
            context! { rounds, widths, word_type => own, ..common }
        }
    }
}
