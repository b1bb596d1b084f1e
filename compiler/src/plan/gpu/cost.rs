//! The cost model: which family moves what, word sizes and launch shapes.
//!
//! The rules are measured on an H200: `bench/results/`. Words as wide as the runs are best where lines are full. On
//! sparse strides every word costs a line of its own, and narrow words in large blocks keep more lines in flight. Words and shapes of
//! launches are in tables, which `bench/gpu/tune.cu` can write for any GPU.

use super::shapes::{Density, Row};
use super::sizes::{LINE, SECTOR};
use super::sm_90::SM_90;
use crate::layout::{Layout, Node};
use crate::plan::Direction;

/// Bytes from run to run above which no two share what a GPU fetches at once.
const SPARSE: u64 = 256;

/// Offsets from which on a list is too long to stay in the cache between elements.
pub(crate) const LONG_LIST: usize = 1 << 18;

/// Mean length of runs in bytes from which on several lanes move one.
const SHORT: u64 = 24;

/// Mean length of runs in bytes from which on pieces of runs are unpacked faster than single bytes in shared memory. Measured in
/// `bench/results/2026-11-27-gpu-drawn.md`.
const MEDIUM_ODD: u64 = 64;

/// Mean length of runs in bytes from which on a warp moves one in any call.
const MEDIUM: u64 = 400;

/// Mean length of runs in bytes from which on families that look up each run once are faster than words of 4 bytes, which look up the run of each word.
/// Measured in `bench/results/2026-11-25-gpu-families.md`.
const LOOKED_UP_ONCE: u64 = 96;

/// Mean length of runs in bytes from which on pieces of runs are as fast as masks.
const MOST_MASKED: u64 = 512;

/// Mean length of runs in bytes from which on a warp has several words a lane under way.
const LONG: u64 = 8192;

/// Packed bytes of a call that has enough runs of [`MEDIUM`] bytes and more.
const MANY_LONG: u64 = 1 << 17;

/// Packed bytes of a call that has enough runs of [`SHORT`] bytes and more.
pub(super) const MANY_SHORT: u64 = 1 << 22;

/// Packed bytes of a call that has enough runs that single threads move.
const MANY_SINGLE: u64 = 1 << 14;

/// Packed bytes of a call from which on reading or writing whole sectors is worth a step in between: shared memory, or a list.
const MANY_WORDS: u64 = 1 << 21;

/// Words that are all under way at once: as many as the threads that the 132 multiprocessors of an H100 have, or a few less.
const RESIDENT_WORDS: u64 = 1 << 18;

/// The same where longer calls unpack in the order of memory: of 9 thousand words 0.7 of the time of words in that order, of 186 thousand 1.3. Measured in
/// `bench/results/2026-11-27-gpu-drawn.md`.
const RESIDENT_DISORDERED_WORDS: u64 = 1 << 16;

/// The same where bytes of runs at any alignment are the other way.
const RESIDENT_NARROW_WORDS: u64 = 1 << 19;

/// Threads of a block of such a call.
const RESIDENT_SHAPE: Shape = Shape { threads: 256, unroll: 1 };

/// Runs of a node from which on their order in memory makes a difference.
const MANY_RUNS: u64 = 256;

/// Words of a column below which tiles are no faster.
const FEWEST_ROWS: u64 = 8;

/// Columns below which tiles are no faster.
const FEWEST_COLUMNS: u64 = 2;

/// Tiles of a column from which on one more costs less than sectors that two tiles share.
pub(super) const MANY_TILES: u64 = 4;

/// Packed bytes of a record at most whose fields a thread moves: shared memory holds enough of them for all threads.
pub(super) const LARGEST_RECORD: u64 = 1024;

/// Bytes of memory from the first to the last record of those that follow each other, from which on their fields lie in arrays.
const SHORTEST_ARRAY: u64 = 2 * LINE;

/// Records of a tile whose fields threads move, at most.
pub(super) const MOST_TILE_RECORDS: u64 = 256;

/// Groups of records that follow each other in memory, in such a tile, at most. A tile may cut the first and the last group.
pub(super) const MOST_GROUPS: u64 = MOST_TILE_RECORDS / (SHORTEST_ARRAY / SECTOR) + 2;

/// Bytes at most from record to record of an array that is packed field by field: a tile has at least 32 of them.
pub(super) const WIDEST_RECORD: u64 = 256;

/// Bytes at most from record to record whose bytes are unpacked in the order of memory.
const WIDEST_GAPPED: u64 = 512;

/// Bytes of memory of a block that unpacks such records, from the line on where it begins. Measured in `bench/results/2026-11-23-gpu-staged.md`.
pub(super) const RECORDS_TILE: u64 = 8 << 10;

/// Packed bytes from a block that joins words to the one whose lists it brings to the cache: about half of what is under way on a whole GPU.
/// Measured in `bench/results/2026-11-23-gpu-limits.md`.
pub(crate) const LISTS_AHEAD: u64 = 2 << 20;

/// Words that a thread has under way of blocks in the order of memory.
pub(super) const ORDERED_WORDS: u32 = 2;

/// Threads of a block, and words for each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Threads of a block.
    pub threads: u32,
    /// Words that a thread moves, a block's width apart, loaded before the first is stored.
    pub unroll: u32,
}

/// How runs are cut into pieces, and who moves one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of a piece at most: a power of two.
    pub bytes: u32,
    /// Threads that move a piece.
    pub lanes: u32,
    /// Words of a thread that are under way at a time; or pieces, where one thread moves one.
    pub unroll: u32,
}

/// The runs of a layout as the cost model sees them, in bytes.
pub(super) struct Runs {
    /// Mean length.
    pub(super) mean: u64,
    /// Mean distance from run to run.
    distance: u64,
    /// Whether a list that does not stay in the cache says where they are.
    listed: bool,
}

impl Runs {
    pub(super) fn of(layout: &Layout) -> Runs {
        let measure = layout.measure(layout.root().node);
        let runs = measure.runs.max(1);
        let span = measure.high.abs_diff(measure.low).max(measure.size);
        let distance = if runs == 1 { layout.extent().unsigned_abs() } else { span / runs };
        let listed = |node: &Node| matches!(node, Node::Indexed { offsets, .. } if offsets.len() >= LONG_LIST);
        let listed = layout.nodes().any(|(_, node)| listed(node));
        Runs { mean: (measure.size / runs).max(1), distance, listed }
    }

    fn density(&self) -> Density {
        match self.distance {
            ..SECTOR => Density::Close,
            SPARSE.. if self.distance >= self.mean.saturating_mul(4) => Density::Sparse,
            _ => Density::Near,
        }
    }
}

/// Whether words of 16 bytes of listed runs, two a thread, are under way while others wait for the list. Measured in
/// `bench/results/2026-11-24-gpu-limits.md`.
fn waits_for_list(direction: Direction, word: u32, runs: &Runs) -> bool {
    let lengths = match direction {
        Direction::Pack => 16..u64::MAX,
        // Blocks that fill most of memory.
        Direction::Unpack if runs.distance.saturating_mul(2) < runs.mean.saturating_mul(3) => SECTOR..256,
        Direction::Unpack => 64..256,
    };
    runs.listed && word == 16 && lengths.contains(&runs.mean)
}

/// The row of runs in a direction.
fn row(direction: Direction, runs: &Runs) -> &'static Row {
    let density = runs.density();
    let holds = |row: &&Row| row.direction == direction && row.density == density && row.least <= runs.mean;
    SM_90.iter().rev().find(holds).unwrap_or(&SM_90[0])
}

/// The word that moves runs best, no wider than `widest`.
pub(super) fn word(direction: Direction, widest: u32, runs: &Runs) -> u32 {
    if waits_for_list(direction, widest, runs) { widest } else { row(direction, runs).word.min(widest) }
}

/// The launch shape for words of a size.
pub(super) fn shape(direction: Direction, word: u32, runs: &Runs) -> Shape {
    let (threads, unroll) = if waits_for_list(direction, word, runs) {
        (128, 2)
    } else {
        row(direction, runs).shapes[word.trailing_zeros().min(4) as usize]
    };
    Shape { threads, unroll }
}

/// What else would move a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// Words in the order of memory.
    Ordered,
    /// Bytes at any alignment.
    Bytes,
    /// Any other family.
    Structure,
}

/// The launch shape of a call of `bytes` bytes whose words, of `word` bytes, are all under way at once, each by a thread of its own. Such a call takes the
/// latency of the memory, and what is done in between adds to it. Measured in `bench/results/2026-11-27-gpu-drawn.md`.
pub(super) fn resident(word: u32, bytes: u64, otherwise: Otherwise) -> Option<Shape> {
    let most = match otherwise {
        Otherwise::Ordered => RESIDENT_DISORDERED_WORDS,
        Otherwise::Bytes => RESIDENT_NARROW_WORDS,
        Otherwise::Structure => RESIDENT_WORDS,
    };
    (bytes < MANY_WORDS && bytes / u64::from(word) <= most).then_some(RESIDENT_SHAPE)
}

/// How a node of `size` packed bytes cuts runs of `mean` bytes on average, at multiples of `starts` in memory. Measured in
/// `bench/results/2026-11-22-gpu-kernel-families.md`.
pub(super) fn cut(direction: Direction, mean: u64, size: u64, starts: u32) -> Cut {
    let large = size >= MANY_SHORT;
    let (bytes, lanes, unroll) = match (direction, mean) {
        (_, LONG..) if large => (4096, 32, 4),
        (Direction::Pack, 1024..) if large => (1024, 16, 2),
        // Pieces that a group of lanes has under way at once, without a loop.
        (_, MEDIUM..1024) if large => (512, 16, 2),
        // One load for each lane: pieces of a small call are under way all at once.
        (Direction::Unpack, MEDIUM..) => (1024, 32, 1),
        (Direction::Pack, MEDIUM..) if !large => (1024, 32, 1),
        (Direction::Pack, SHORT..) => (256, 8, 2),
        (Direction::Unpack, SHORT..128) => (256, 8, 2),
        (Direction::Unpack, SHORT..) => (128, 8, 1),
        (Direction::Pack, _) => (8, 1, 3),
        // Aligned words of memory are stored whole: longer ones are slower where they touch two sectors.
        (Direction::Unpack, _) => (if starts >= 4 { 4 } else { 8 }, 1, 1),
    };
    Cut { bytes, lanes, unroll }
}

/// Whether a call of `bytes` bytes assigns listed runs of `mean` bytes on average to threads by their numbers. Otherwise each
/// thread moves words of `word` bytes, and searches the list for the run of each.
pub(super) fn by_pieces(direction: Direction, word: u32, mean: u64, bytes: u64) -> bool {
    let least = match direction {
        Direction::Pack if word < 4 => 0,
        Direction::Pack if word == 4 => 256,
        // Short words cost less than the parts that a run touches of them.
        Direction::Unpack if word < 4 && !in_shorts(direction, word, mean) => 8,
        Direction::Unpack if word == 4 => LOOKED_UP_ONCE,
        _ => MEDIUM,
    };
    let many = match mean {
        MEDIUM.. => MANY_LONG,
        SHORT.. => MANY_SHORT,
        _ => MANY_SINGLE,
    };
    mean >= least && bytes >= many
}

/// Whether an unpack stores listed runs of `mean` bytes on average in words of 2 bytes, if these are aligned (`word`): faster than pieces, although each
/// word looks up its run. Measured in `bench/results/2026-11-25-gpu-families.md`.
pub(super) fn in_shorts(direction: Direction, word: u32, mean: u64) -> bool {
    direction == Direction::Unpack && word == 2 && (33..64).contains(&mean)
}

/// Whether an unpack of `bytes` bytes fills words of 8 bytes from rows of `row` bytes rather than storing words of `word`. Measured in
/// `bench/results/2026-11-25-gpu-families.md`.
pub(super) fn in_rows(direction: Direction, word: u32, row: u64, bytes: u64) -> bool {
    direction == Direction::Unpack && word == 4 && (256..2048).contains(&row) && bytes >= MANY_WORDS
}

/// Whether a pack of `bytes` bytes joins words of 16 bytes from listed runs of `mean` bytes on average, whose alignment is `word`.
pub(super) fn joined(direction: Direction, word: u32, mean: u64, bytes: u64) -> bool {
    let (means, many) = if word < 4 { (SHORT..MEDIUM, MANY_SINGLE) } else { (LOOKED_UP_ONCE..256, MANY_SHORT) };
    direction == Direction::Pack && word <= 4 && means.contains(&mean) && bytes >= many
}

/// Whether `runs` runs of `size` packed bytes in all, packed in the order of memory, are unpacked sector by sector: they touch most sectors
/// of the `span` bytes of memory. Measured in `bench/results/2026-11-24-gpu-sectors.md`.
pub(super) fn by_masks(runs: u64, size: u64, span: u64) -> bool {
    let touched = runs.saturating_mul(SECTOR - 1).saturating_add(size);
    // Runs below 8 bytes go by single bytes otherwise, which is as fast where a sector has less than one of them.
    let dense = size >= runs.saturating_mul(8) || runs.saturating_mul(SECTOR) >= span;
    dense && size < runs.saturating_mul(MOST_MASKED) && touched >= span / 8 * 5
}

/// Whether an unpack of `bytes` bytes does so, if [`by_masks`] says so for its layout, whose runs have an alignment of `word`.
pub(super) fn in_masks(direction: Direction, word: u32, bytes: u64) -> bool {
    direction == Direction::Unpack && word < 4 && bytes >= MANY_WORDS
}

/// Whether an unpack of runs of `bytes` bytes, at multiples of `granularity` bytes, brings sectors to the L2 cache that it stores in part: at least
/// a fifth of those that it touches. For a run inside of one sector, the request costs as much as the store. Measured in
/// `bench/results/2026-11-24-gpu-sectors.md`.
pub(super) fn prefetches(bytes: u64, granularity: u32) -> bool {
    // Of a sector, what is on average in front of a run that begins in it.
    let outside = SECTOR - u64::from(granularity).min(SECTOR);
    (SECTOR + 1..8 * SECTOR).contains(&bytes) && 5 * 2 * outside >= bytes + outside
}

/// Whether records of `size` packed bytes, `stride` bytes apart, are unpacked byte by byte in the order of memory: few of those
/// bytes are between fields.
pub(super) fn by_records(size: u64, stride: u64) -> bool {
    stride <= WIDEST_GAPPED && size.saturating_mul(2) >= stride
}

/// Whether an unpack of `bytes` bytes does so, if [`by_records`] says so for its layout, whose runs have `mean` bytes on average. Longer
/// runs move by pieces, and aligned words of `word` bytes as such where they have four bytes and more.
pub(super) fn in_records(direction: Direction, word: u32, mean: u64, bytes: u64) -> bool {
    direction == Direction::Unpack && word < 4 && mean < MEDIUM_ODD && bytes >= MANY_WORDS
}

/// Whether an interpreter, whose time is that of its look-ups, moves runs of a mean length in 8 (packs) or 16 bytes at any alignment
/// rather than in aligned words.
pub(super) fn interprets_bytes(direction: Direction, word: u32, mean: u64) -> bool {
    match direction {
        Direction::Pack => word <= 4 && mean >= 128,
        Direction::Unpack => (word <= 4 && mean >= 128) || (word == 8 && mean >= 1024),
    }
}

/// Whether unpacks follow the order of memory: of `runs` runs with `size` bytes in all, which span `span` bytes of memory, `back`
/// are packed behind one that lies behind them, and `far` behind one that lies far away.
pub(super) fn by_order(runs: u64, size: u64, span: u64, back: u64, far: u64) -> bool {
    // What is stored of sectors, if no two runs share one.
    let stored = runs.saturating_mul(SECTOR).max(size);
    runs >= MANY_RUNS && back >= runs / 8 && far >= runs / 2 && stored >= span && size < stored
}

/// Whether a call of `bytes` bytes unpacks words of `word` bytes in the order of memory, if [`by_order`] says so for its layout.
pub(super) fn in_order(word: u32, bytes: u64) -> bool {
    word <= 4 || bytes >= MANY_WORDS
}

/// Whether columns `stride` bytes apart share sectors of memory, and there are several.
pub(super) fn near_columns(stride: u64, columns: u64) -> bool {
    stride <= SECTOR && columns >= FEWEST_COLUMNS
}

/// Whether columns, `stride` bytes apart, of `rows` words that are at least `far` bytes apart move through tiles.
pub(super) fn by_tiles(rows: u64, far: u64, stride: u64) -> bool {
    rows >= FEWEST_ROWS && far >= stride.saturating_mul(2)
}

/// Whether a call of `bytes` bytes does so, if [`by_tiles`] says so for its layout, whose columns have `column` bytes.
pub(super) fn in_tiles(column: u64, bytes: u64) -> bool {
    bytes >= column.saturating_mul(FEWEST_COLUMNS).max(MANY_WORDS)
}

/// Rows and columns of a tile of words of `word` bytes.
pub(super) fn tile_side(word: u32) -> u64 {
    if word >= 8 { 32 } else { 64 }
}

/// Whether records of `fields` fields, of `word` bytes each, move by their fields where tiles could move them too. Measured in
/// `bench/results/2026-11-25-gpu-families.md`.
pub(super) fn fields_before_tiles(direction: Direction, word: u32, fields: u64) -> bool {
    match (direction, word) {
        (Direction::Pack, ..=4) | (Direction::Unpack, ..=2) => true,
        // Tiles whose rows fill no whole warps are slower than fields, except those of 32 to 55 rows.
        (Direction::Unpack, 4) => fields < 24 || (!fields.is_multiple_of(8) && !(32..56).contains(&fields)),
        _ => false,
    }
}

/// Whether arrays of `columns` columns, of `word` bytes each, move by these where tiles could move them too. Measured in
/// `bench/results/2026-11-25-gpu-families.md`.
pub(super) fn columns_before_tiles(direction: Direction, word: u32, columns: u64) -> bool {
    match (direction, word) {
        // Tiles are faster where 64 words fill the rows of whole warps.
        (Direction::Unpack, 2 | 4) => columns < 64,
        (_, ..=4) => true,
        (Direction::Unpack, 8) => (5..32).contains(&columns),
        (Direction::Unpack, _) => (3..10).contains(&columns),
        (Direction::Pack, _) => false,
    }
}

/// Records of `size` packed bytes in a tile whose fields threads move: more of short ones. Measured in `bench/results/2026-11-25-gpu-generic.md`.
pub(super) fn fields_tile_records(size: u64) -> u64 {
    match size {
        0..=48 => MOST_TILE_RECORDS,
        49..=256 => 128,
        // About 20 KiB, and rows of arrays that have whole sectors.
        _ => ((20 << 10) / size / 32 * 32).max(32),
    }
}

/// Whether a call of `bytes` bytes moves records by their fields, if [`by_fields`] says so for its layout, whose shortest is
/// `shortest` bytes long, and whose packed places are multiples of `packed`.
pub(super) fn in_fields(shortest: u64, packed: u32, bytes: u64) -> bool {
    bytes >= MANY_WORDS && u64::from(packed) >= shortest.min(4)
}

/// Whether records move by their fields: of `size` packed bytes, `copies` of them `near` bytes apart in memory, whose fields are at
/// least `far` bytes apart.
pub(super) fn by_fields(size: u64, copies: u64, near: u64, far: u64) -> bool {
    let dense = (1..=SECTOR).contains(&near) && copies.saturating_mul(near) >= SHORTEST_ARRAY;
    dense && size <= LARGEST_RECORD && far >= 2 * near.max(16)
}

/// Packed bytes of a tile of small groups. Measured in `bench/results/2026-11-26-gpu-groups.md`.
pub(super) fn groups_tile(direction: Direction) -> u64 {
    match direction {
        Direction::Pack => 8 << 10,
        // Stores follow soon behind the requests of their sectors.
        Direction::Unpack => 4 << 10,
    }
}

/// Whether groups of `size` packed bytes, which span `span` bytes of memory, move by groups where no list tells where they lie: few bytes are
/// between their runs. Measured in `bench/results/2026-11-27-gpu-drawn.md`.
pub(super) fn by_groups(size: u64, span: u64) -> bool {
    size.saturating_mul(2) >= span
}

/// Whether `words` words that move groups of `size` packed bytes are of two bytes on average, or wider. Measured in
/// `bench/results/2026-11-27-gpu-drawn.md`.
pub(super) fn has_wide_words(size: u64, words: u64) -> bool {
    size >= words.saturating_mul(2)
}

/// Whether a call of `bytes` bytes moves groups of runs, whose alignment is `word`, by groups. Packs by words of 8 bytes and more are as fast, and unpacks
/// where no list is searched for each. Measured in `bench/results/2026-11-26-gpu-groups.md` and `bench/results/2026-11-27-gpu-drawn.md`.
pub(super) fn in_groups(direction: Direction, word: u32, listed: bool, bytes: u64) -> bool {
    (word <= 4 || (direction == Direction::Unpack && listed)) && bytes >= MANY_WORDS
}

/// Whether groups of runs of `mean` bytes on average at odd places move by groups, in single bytes. Measured in
/// `bench/results/2026-11-27-gpu-drawn.md`.
pub(super) fn odd_by_groups(direction: Direction, listed: bool, mean: u64) -> bool {
    match direction {
        // Longer ones are gathered word by word.
        Direction::Pack => mean < 16,
        Direction::Unpack => listed || mean < MEDIUM_ODD,
    }
}

/// Whether elements that are arrays of `records` records, `stride` bytes apart, move by columns: `size` packed bytes of each record,
/// field by field.
pub(super) fn by_columns(size: u64, stride: u64, records: u64) -> bool {
    // All sectors of memory are read.
    let full = stride <= SECTOR || size.saturating_mul(2) >= stride;
    full && stride <= WIDEST_RECORD && records >= tile_records(Direction::Pack, stride)
}

/// Whether a call of `bytes` bytes moves by columns, if [`by_columns`] says so for its layout.
pub(super) fn in_columns(bytes: u64) -> bool {
    bytes >= MANY_WORDS
}

/// Bytes of memory of a tile of records that are packed field by field, and threads of its block. Measured in
/// `bench/results/2026-11-23-gpu-classes.md` (packs) and `bench/results/2026-11-24-gpu-columns.md` (unpacks).
pub(super) fn columns_tile(direction: Direction) -> (u64, u32) {
    match direction {
        Direction::Pack => (16 << 10, 256),
        Direction::Unpack => (6 << 10, 192),
    }
}

/// Records of a tile of records `stride` bytes apart: whole sectors of columns of single bytes.
pub(super) fn tile_records(direction: Direction, stride: u64) -> u64 {
    let (bytes, _) = columns_tile(direction);
    (bytes / stride.max(1) / SECTOR).max(1) * SECTOR
}

/// Bytes of memory that a block of the generic kernel for short runs has in shared memory. It has 2 KiB of packed bytes: a quarter of the memory is packed
/// at least, or the rest is stored as it comes. No other span was measured.
pub(crate) const SHORT_RUNS_SPAN: u32 = 8 << 10;

/// The launch shape of kernels on few multiprocessors: 8 KiB under way in each block. Of pinned memory an eighth of an H200 then
/// reads 51 GB/s, which is what the link gives to kernels (with 4 KiB 41 GB/s), and no more is under way than the link needs: a
/// kernel beside four times as much took 1.4 times as long.
pub(super) fn capped_shape(word: u32) -> Shape {
    Shape { threads: 512, unroll: (16 / word).clamp(1, 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_density_has_a_row() {
        for direction in [Direction::Pack, Direction::Unpack] {
            for density in [Density::Close, Density::Near, Density::Sparse] {
                let of = |row: &&Row| row.direction == direction && row.density == density;
                let least: Vec<u64> = SM_90.iter().filter(of).map(|row| row.least).collect();
                assert_eq!(least.first(), Some(&0), "{direction} {density:?}");
                assert!(least.is_sorted(), "{direction} {density:?}: {least:?}");
            }
        }
    }
}
