//! The numbers of the cost model: one table for an architecture, with a part for every family that has any.
//!
//! A table is data: what a number is compared with stands in the file of its family (`families/`). Lengths are in bytes, and those of runs are
//! means over a layout. The values are measured: `bench/results/`.

pub(crate) mod row;
mod sm_90;

pub(crate) use row::Row;
pub(crate) use sm_90::SM_90;

use super::shape::LaunchShape;
use std::ops::Range;

/// The numbers of the cost model for one architecture.
#[derive(Debug)]
pub(crate) struct Tuning {
    pub(crate) words: WordsTuning,
    pub(crate) vectors: VectorsTuning,
    pub(crate) shifted: ShiftedTuning,
    pub(crate) gather: BlockTuning,
    pub(crate) scatter: BlockTuning,
    pub(crate) lines: LinesTuning,
    pub(crate) rows: RowsTuning,
    pub(crate) ordered: OrderedTuning,
    pub(crate) tiles: TilesTuning,
    pub(crate) boxes: BoxesTuning,
    pub(crate) fields: FieldsTuning,
    pub(crate) columns: ColumnsTuning,
    pub(crate) groups: GroupsTuning,
    pub(crate) records: RecordsTuning,
    pub(crate) masks: MasksTuning,
    pub(crate) pieces: PiecesTuning,
    pub(crate) joined: JoinedTuning,
    pub(crate) prefetch: PrefetchTuning,
    pub(crate) generic: GenericTuning,
    pub(crate) tabled: TabledTuning,
}

/// The numbers of kernels for types with index tables.
#[derive(Debug)]
pub(crate) struct TabledTuning {
    /// The launch shape for words of 1, 2, 4, 8 and 16 bytes.
    pub(crate) shapes: [LaunchShape; 5],
}

/// The numbers of families of which only the block is tuned.
#[derive(Debug)]
pub(crate) struct BlockTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
}

/// The numbers of `families/words.rs`.
#[derive(Debug)]
pub(crate) struct WordsTuning {
    /// Words and launch shapes by direction, density and mean run.
    pub(crate) rows: &'static [Row],
    /// Distance from run to run above which no two runs share what a GPU fetches at once.
    pub(crate) sparse_distance: u64,
    /// Offsets of a list that does not stay in the cache between elements, at least.
    pub(crate) long_list: usize,
    /// The shape for words of 16 bytes of listed runs: some are under way while others wait for the list.
    pub(crate) listed_shape: LaunchShape,
    /// Mean runs that take it in packs.
    pub(crate) listed_pack: Range<u64>,
    /// Mean runs that take it in unpacks.
    pub(crate) listed_unpack: Range<u64>,
    /// The same where the runs fill two thirds of memory or more.
    pub(crate) listed_dense_unpack: Range<u64>,
    /// Calls of fewer bytes may have all of their words under way at once.
    pub(crate) resident_bytes: u64,
    /// Words that are all under way at once, at most.
    pub(crate) resident_words: u64,
    /// The same where longer calls unpack in the order of memory.
    pub(crate) resident_disordered_words: u64,
    /// The same where the other way is to put words together from bytes.
    pub(crate) resident_narrow_words: u64,
    /// The shape of calls whose words are all under way at once.
    pub(crate) resident_shape: LaunchShape,
    /// Runs below this length that begin at no multiple of 8 bytes are unpacked in words of 1 or 2 bytes, if wider ones are not aligned.
    pub(crate) short_unpack: [u64; 2],
    /// The shape of unpacks that request sectors of memory before they store parts of them, but for words of 16 bytes, and of 8 inside of sectors.
    pub(crate) requesting_shape: LaunchShape,
    /// The same where neighbours among the packed bytes are none in memory.
    pub(crate) requesting_permuted_shape: LaunchShape,
    /// The same where runs are sparse.
    pub(crate) requesting_sparse_shape: LaunchShape,
    /// Elements of one type whose lists are long enough for prefetches of memory in unpacks, at least.
    pub(crate) prefetched_element: u64,
    /// Threads of a block on few multiprocessors.
    pub(crate) capped_threads: u32,
    /// Bytes that a thread of such a block has under way, if that is no more than `capped_unroll` words.
    pub(crate) capped_bytes: u32,
    /// Words of a thread of such a block, at most.
    pub(crate) capped_unroll: u32,
}

/// The numbers of `families/vectors.rs`.
#[derive(Debug)]
pub(crate) struct VectorsTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Mean runs of single bytes that go by vectors, in bytes, at most.
    pub(crate) most_bytes: u64,
}

/// The numbers of `families/shifted.rs`.
#[derive(Debug)]
pub(crate) struct ShiftedTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Bytes that a thread moves.
    pub(crate) thread_bytes: u32,
}

/// The numbers of `families/lines.rs`.
#[derive(Debug)]
pub(crate) struct LinesTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Bytes of memory that a block has in shared memory.
    pub(crate) span: u32,
}

/// The numbers of `families/ordered.rs`.
#[derive(Debug)]
pub(crate) struct OrderedTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Words that a thread has under way.
    pub(crate) unroll: u32,
    /// Packed bytes of a call with words above `any_word` bytes, at least.
    pub(crate) min_bytes: u64,
    /// Bytes of the widest word that goes so in any call.
    pub(crate) any_word: u32,
    /// Runs of a list whose order makes a difference, at least.
    pub(crate) min_runs: u64,
    /// Of as many runs, one is packed behind one that is behind it in memory, at least.
    pub(crate) back_one_in: u64,
    /// Of as many runs, one is far from the one before, at least.
    pub(crate) far_one_in: u64,
    /// Bytes from run to run in memory from which on the stores of a warp are not beside each other.
    pub(crate) far: u64,
    /// Bytes of a row of an array whose unpacks follow the order of memory, at most.
    pub(crate) max_row: u64,
}

/// The numbers of `families/tiles.rs`.
#[derive(Debug)]
pub(crate) struct TilesTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Packed bytes of a call, at least.
    pub(crate) min_bytes: u64,
    /// Words of a column, at least.
    pub(crate) min_rows: u64,
    /// Columns, at least.
    pub(crate) min_columns: u64,
    /// Rows and columns of a tile of words below 8 bytes.
    pub(crate) narrow_side: u64,
    /// The same of wider words.
    pub(crate) wide_side: u64,
    /// Tiles of a column from which on one more costs less than sectors that two tiles share.
    pub(crate) many: u64,
    /// Loads that a thread has under way of words that are unaligned among the packed bytes: more of them cost registers, and so threads.
    pub(crate) shifted_loads: u32,
    /// Columns of a tile from which on a block notes where its rows are in memory, if the arithmetic may be slower than the memory.
    pub(crate) noted_columns: u32,
    /// Blocks that a multiprocessor has registers for in packs of words of 1, 2, 4, 8 and 16 bytes: 1 bounds nothing.
    pub(crate) packing_blocks: [u32; 5],
    /// The same in unpacks.
    pub(crate) unpacking_blocks: [u32; 5],
    /// Words of a plane that tiles pack, at least.
    pub(crate) min_words: u64,
    /// Bytes of memory that a plane spans, at most, of planes that are packed word by word.
    pub(crate) small_pack: u64,
    /// The same of unpacks.
    pub(crate) small_unpack: u64,
    /// The same of unpacks of words that are wider than a bank of shared memory.
    pub(crate) small_wide_unpack: u64,
}

impl TilesTuning {
    /// Rows and columns of a square tile.
    pub(crate) fn side(&self, word: u32) -> u64 {
        if word < 8 { self.narrow_side } else { self.wide_side }
    }
}

/// The numbers of `families/boxes`.
#[derive(Debug)]
pub(crate) struct BoxesTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Packed bytes of a call, at least.
    pub(crate) min_bytes: u64,
    /// Words of a box, at least.
    pub(crate) min_volume: u64,
    /// Packed bytes of a box, at most.
    pub(crate) box_bytes: u64,
    /// The same of single bytes that threads move one by one on a side, whose boxes have the most steps.
    pub(crate) narrow_box_bytes: u64,
    /// Bytes of shared memory of a box with the gaps against conflicts of banks, at most.
    pub(crate) most_bytes: u64,
    /// Bytes of a run on either side beyond which longer ones gain nothing.
    pub(crate) run_bytes: u64,
    /// Bytes of a run on either side, at least.
    pub(crate) min_run: u64,
    /// Bytes of a word from which on tiles unpack to places with gaps between them, also in small planes.
    pub(crate) tiled_steps: u32,
    /// Bytes of memory up to a gap, at most, for unpacks to request each word's sector and not those at the ends of a box's runs alone.
    pub(crate) parted_run: u64,
    /// Bytes of records from which on boxes move them faster than the kernels for records.
    pub(crate) min_record: u64,
    /// The same where threads move several narrow words at once on both sides.
    pub(crate) min_record_at_once: u64,
    /// The same in packs where they do not. Single bytes are packed by the kernels for records then.
    pub(crate) min_packed_record: u64,
    /// Blocks that a multiprocessor has registers for.
    pub(crate) resident_blocks: u32,
    /// Boxes at most that share the runs of the loaded side, for blocks to go through these first.
    pub(crate) few_boxes: u64,
    /// Bytes that a thread loads before it stores them.
    pub(crate) thread_bytes: u32,
    /// Loads of a thread before it stores, at most.
    pub(crate) most_loads: u32,
    /// Steps up to which the code of a kernel has each of them, so that what depends on the step alone is in the instructions.
    pub(crate) straight_steps: u64,
}

/// The numbers of `families/rows.rs`.
#[derive(Debug)]
pub(crate) struct RowsTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Bytes of permuted rows that begin inside of sectors and are unpacked faster by their words of memory than by single words.
    pub(crate) inside_sectors: Range<u64>,
}

/// The numbers of `families/fields.rs`.
#[derive(Debug)]
pub(crate) struct FieldsTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Packed bytes of a call, at least.
    pub(crate) min_bytes: u64,
    /// The same where words are single bytes.
    pub(crate) min_bytes_odd: u64,
    /// Bytes of memory from the first to the last record of those that follow each other, at least.
    pub(crate) min_array: u64,
    /// Records of a tile by the most packed bytes of a record.
    pub(crate) tile_records: [(u64, u64); 2],
    /// Packed bytes of a tile of longer records.
    pub(crate) tile_bytes: u64,
    /// Words that a thread loads before it stores the first: more of them cost registers, and so threads.
    pub(crate) loads: usize,
    /// Fields of at most this many bytes go before tiles in packs.
    pub(crate) pack_before_tiles: u32,
    /// Records of this many fields of that length, and of more, go behind tiles in packs.
    pub(crate) many_fields: u64,
    /// Columns of tiles from which on these pack fields faster whose sectors several records share.
    pub(crate) shared_columns: u64,
    /// Records from which on boxes pack them, in bytes, where threads of boxes move one word at a time on a side.
    pub(crate) boxed_pack: u64,
    /// Fields of at most this many bytes go before tiles in unpacks.
    pub(crate) unpack_before_tiles: u32,
    /// Of fields of 4 bytes, records of fewer fields do so in unpacks.
    pub(crate) few_fields: u64,
    /// Records of as many fields do not, although their tiles fill no whole warps.
    pub(crate) tiled_fields: Range<u64>,
}

/// The numbers of `families/columns.rs`.
#[derive(Debug)]
pub(crate) struct ColumnsTuning {
    /// Threads of a block, in packs and in unpacks.
    pub(crate) threads: [u32; 2],
    /// Bytes of memory of a tile, in packs and in unpacks.
    pub(crate) tile_bytes: [u64; 2],
    /// Packed bytes of a call, at least.
    pub(crate) min_bytes: u64,
    /// Words of a column that a lane packs in a row, at most.
    pub(crate) pack_rounds: u64,
    /// Places in records that a lane keeps in registers in unpacks, at most.
    pub(crate) unpack_places: u64,
    /// Columns of at most this many bytes go before tiles in packs.
    pub(crate) pack_before_tiles: u32,
    /// How many columns of 1, 2, 4, 8 and 16 bytes do so in unpacks.
    pub(crate) unpack_before_tiles: [Range<u64>; 5],
}

/// The numbers of `families/groups.rs`.
#[derive(Debug)]
pub(crate) struct GroupsTuning {
    /// Threads of a block, in packs and in unpacks.
    pub(crate) threads: [u32; 2],
    /// Packed bytes of a tile, in packs and in unpacks.
    pub(crate) tile_bytes: [u64; 2],
    /// Packed bytes of a call, at least.
    pub(crate) min_bytes: u64,
    /// Alignment of runs above which words are as fast, unless an unpack searches a list for each.
    pub(crate) max_word: u32,
    /// Bytes of the words of a group, on average, from which on they are moved as such and not byte by byte.
    pub(crate) wide_word: u64,
    /// Runs at odd places below this length are packed by groups.
    pub(crate) odd_pack: u64,
    /// The same for unpacks, where no list tells where groups are.
    pub(crate) odd_unpack: u64,
    /// Words that a thread loads before it stores the first: more of them cost registers, and so threads.
    pub(crate) rounds: u64,
}

/// The numbers of `families/records.rs`.
#[derive(Debug)]
pub(crate) struct RecordsTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Packed bytes of a call, at least.
    pub(crate) min_bytes: u64,
    /// Runs of this length and more move by pieces.
    pub(crate) max_run: u64,
    /// Bytes from record to record, at most.
    pub(crate) max_stride: u64,
    /// Bytes of memory of a block, from the line on where it begins.
    pub(crate) tile_bytes: u64,
}

/// The numbers of `families/masks.rs`.
#[derive(Debug)]
pub(crate) struct MasksTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Threads of a multiprocessor, at least, which leaves fewer registers to each.
    pub(crate) resident_threads: u32,
    /// Packed bytes of a call, at least.
    pub(crate) min_bytes: u64,
    /// Runs below this length move by single bytes otherwise, which is as fast where a sector has less than one of them.
    pub(crate) min_run: u64,
    /// Runs of this length and more move as fast by pieces.
    pub(crate) max_run: u64,
    /// Eighths of the sectors of memory that runs touch, at least.
    pub(crate) touched_eighths: u64,
}

/// The numbers of `families/pieces.rs`.
#[derive(Debug)]
pub(crate) struct PiecesTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Packed bytes of a call by the least length of its runs, at least.
    pub(crate) min_bytes: [(u64, u64); 3],
    /// The least length of runs that are packed so, by their alignment: below 4, 4 and more bytes.
    pub(crate) pack_runs: [u64; 3],
    /// The same for unpacks.
    pub(crate) unpack_runs: [u64; 3],
    /// Runs that an unpack stores in words of 2 bytes, if these are aligned, although each word looks up its run.
    pub(crate) in_shorts: Range<u64>,
    /// The least mean of runs of a long list that are faster in words of 8 bytes, although each word looks up its run.
    pub(crate) in_words_of_8: u64,
    /// Means of runs that are faster in words of 4 bytes; packs of runs of one length alone.
    pub(crate) in_words_of_4: Range<u64>,
    /// Packed bytes of an element that has runs for a whole GPU, at least.
    pub(crate) large: u64,
    /// How runs are cut in packs of small elements, by their least length, descending.
    pub(crate) small_pack: &'static [(u64, Cut)],
    /// The same for large elements.
    pub(crate) large_pack: &'static [(u64, Cut)],
    /// The same in unpacks of small elements.
    pub(crate) small_unpack: &'static [(u64, Cut)],
    /// The same for large elements.
    pub(crate) large_unpack: &'static [(u64, Cut)],
    /// Bytes of a piece that one thread unpacks, if places are multiples of 4: aligned words of memory are stored whole, and longer ones are slower
    /// where they touch two sectors.
    pub(crate) aligned_single: u32,
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

/// The numbers of `families/joined.rs`.
#[derive(Debug)]
pub(crate) struct JoinedTuning {
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Runs whose alignment is below 4 bytes.
    pub(crate) odd_runs: Range<u64>,
    /// Packed bytes of a call with such runs, at least.
    pub(crate) odd_min_bytes: u64,
    /// Runs whose alignment is 4 bytes.
    pub(crate) aligned_runs: Range<u64>,
    /// Packed bytes of a call with such runs, at least.
    pub(crate) aligned_min_bytes: u64,
    /// Packed bytes from a block to the one whose lists it brings to the cache.
    pub(crate) lists_ahead: u64,
    /// Listed runs that a thread brings to the cache, of 8 bytes each.
    pub(crate) listed_at_once: u64,
}

/// The numbers of unpacks that bring sectors of memory to the L2 cache before they store parts of them.
#[derive(Debug)]
pub(crate) struct PrefetchTuning {
    /// Runs that are stored so.
    pub(crate) runs: Range<u64>,
    /// Of as many sectors that a run touches, one is stored in part, at least.
    pub(crate) one_in: u64,
}

/// The numbers of the generic kernels, whose time is that of look-ups.
#[derive(Debug)]
pub(crate) struct GenericTuning {
    /// Runs of this length and more, at an alignment of 4 bytes and less, are moved in 8 (packs) or 16 bytes at any alignment.
    pub(crate) min_run: u64,
    /// The same for unpacks of runs at an alignment of 8 bytes.
    pub(crate) min_run_of_8: u64,
}
