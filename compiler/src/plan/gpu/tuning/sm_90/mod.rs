//! GPUs of architecture sm_90, and others until they have a table. Measured on an H100 and an H200.

mod words;

use super::*;

/// Packed bytes of a call from which on reading or writing whole sectors is worth a step in between: shared memory, or a list.
const STAGED: u64 = 2 << 20;

/// Packed bytes of a call, or of an element, that has enough runs of 24 bytes and more for a whole GPU.
const MANY_SHORT: u64 = 4 << 20;

/// Lengths of runs from which on families that look up each run once are faster than words of 4 bytes, which look up the run of each word. Measured in
/// `bench/results/2026-11-25-gpu-families.md`.
const LOOKED_UP_ONCE: u64 = 96;

/// Lengths of runs from which on several lanes move one, and from which on a warp does in any call.
const SHORT: u64 = 24;
const MEDIUM: u64 = 400;

/// Length of runs from which on pieces of runs are unpacked faster than single bytes in shared memory. Measured in
/// `bench/results/2026-11-27-gpu-drawn.md`.
const MEDIUM_ODD: u64 = 64;

const fn cut(bytes: u32, lanes: u32, unroll: u32) -> Cut {
    Cut { bytes, lanes, unroll }
}

pub(crate) static SM_90: Tuning = Tuning {
    words: WordsTuning {
        rows: words::ROWS,
        sparse_distance: 256,
        long_list: 1 << 18,
        // Measured in `bench/results/2026-11-24-gpu-limits.md` and, four words a thread, `bench/results/2026-11-29-gpu-requests.md`.
        listed_shape: LaunchShape { threads: 128, unroll: 4 },
        listed_pack: 16..u64::MAX,
        listed_unpack: 64..256,
        listed_dense_unpack: 32..256,
        // Measured in `bench/results/2026-11-27-gpu-drawn.md`: as many words as the threads of 132 multiprocessors, or a few less. In the order of memory, 9
        // thousand words take 1.4 times as long, and 186 thousand 0.8.
        resident_bytes: STAGED,
        resident_words: 1 << 18,
        resident_disordered_words: 1 << 16,
        resident_narrow_words: 1 << 19,
        resident_shape: LaunchShape { threads: 256, unroll: 1 },
        // Measured in `bench/results/2026-11-29-gpu-vectors.md`: the borders lie between 31 and 63, and 504 and 1,002 bytes.
        short_unpack: [48, 768],
        // Measured in `bench/results/2026-11-29-gpu-requests.md`: what a request costs is shared by the words of a thread.
        requesting_shape: LaunchShape { threads: 128, unroll: 4 },
        // Measured in `bench/results/2026-11-29-gpu-vectors.md`: rows of 56 to 532 bytes; 36 and 72 bytes, far from each other.
        requesting_permuted_shape: LaunchShape { threads: 128, unroll: 8 },
        requesting_sparse_shape: LaunchShape { threads: 512, unroll: 1 },
        prefetched_element: MANY_SHORT,
        // 8 KiB under way in each block: of pinned memory, an eighth of an H200 then reads 51 GB/s, which is what the link gives to kernels (with 4 KiB
        // 41 GB/s), and no more is under way than the link needs: a kernel beside four times as much took 1.4 times as long.
        capped_threads: 512,
        capped_bytes: 16,
        capped_unroll: 4,
    },
    // Measured in `bench/results/2026-11-29-gpu-vectors.md`: the border lies between 5 and 9 bytes.
    vectors: VectorsTuning { threads: 128, most_bytes: 8 },
    shifted: ShiftedTuning { threads: 256, thread_bytes: 16 },
    // Long threads: small blocks leave fewer of them waiting at the end.
    gather: BlockTuning { threads: 128 },
    scatter: BlockTuning { threads: 256 },
    // A block has 2 KiB of packed bytes: a quarter of the memory is packed at least, or the rest is stored as it comes. No other span was measured.
    lines: LinesTuning { threads: 128, span: 8 << 10 },
    // Measured in `bench/results/2026-11-25-gpu-families.md`.
    // Measured in `bench/results/2026-11-29-gpu-words-of-boxes.md`: rows of 24 and 32 bytes.
    rows: RowsTuning { threads: 256, inside_sectors: 24..33 },
    ordered: OrderedTuning {
        threads: 256,
        unroll: 2,
        min_bytes: STAGED,
        any_word: 4,
        min_runs: 256,
        back_one_in: 8,
        far_one_in: 2,
        far: 128,
        // By the rule for lists: rows of 24 and 30 bytes were unpacked at 0.64 and 0.27 of peers that follow the order of memory, in
        // `bench/results/2026-11-28-gpu-peers.md`. Those of 40 and 48 bytes are faster by words since these request sectors:
        // `bench/results/2026-11-29-gpu-words-of-boxes.md`.
        max_row: 36,
    },
    tiles: TilesTuning {
        threads: 256,
        min_bytes: STAGED,
        min_rows: 8,
        min_columns: 2,
        narrow_side: 64,
        wide_side: 32,
        many: 4,
        shifted_loads: 9,
        // Measured in `bench/results/2026-11-28-gpu-drawn-h200.md`: 48 drawn arrays, half of them new, on an H200.
        noted_columns: 8,
        packing_blocks: [8, 8, 8, 6, 6],
        unpacking_blocks: [5, 5, 1, 1, 1],
        // Measured in `bench/results/2026-11-29-gpu-vectors.md`: 288 words, 139 us for 67.
        min_words: 512,
        // Measured in `bench/results/2026-11-28-gpu-small-planes.md`: planes of 14 shapes.
        small_pack: 3584,
        small_unpack: 1536,
        small_wide_unpack: 4 << 10,
    },
    boxes: BoxesTuning {
        // Measured in `bench/results/2026-11-27-gpu-boxes.md`.
        threads: 256,
        min_bytes: STAGED,
        min_volume: 512,
        run_bytes: 512,
        // A sector; shorter ones were not measured.
        min_run: 32,
        // Measured in `bench/results/2026-11-29-gpu-boxes.md`: boxes of 17 to 25 KiB, 8 to 24 loads.
        box_bytes: 25 << 10,
        narrow_box_bytes: 17 << 10,
        most_bytes: 36 << 10,
        min_record: 20,
        // Measured in `bench/results/2026-11-29-gpu-words-of-boxes.md`; `parted_run` is a sector.
        tiled_steps: 8,
        parted_run: 32,
        min_record_at_once: 10,
        min_packed_record: 68,
        // Measured in `bench/results/2026-11-29-gpu-requests.md`: 2 to 8 blocks; 4, 8 and 16 boxes.
        resident_blocks: 4,
        few_boxes: 8,
        thread_bytes: 64,
        most_loads: 16,
        straight_steps: 200,
    },
    fields: FieldsTuning {
        threads: 128,
        min_bytes: STAGED,
        // Measured in `bench/results/2026-11-27-gpu-drawn.md`.
        min_bytes_odd: 512 << 10,
        min_array: 256,
        // Measured in `bench/results/2026-11-25-gpu-generic.md`. Rows of arrays have whole sectors.
        tile_records: [(48, 256), (256, 128)],
        tile_bytes: 20 << 10,
        loads: 16,
        // Measured in `bench/results/2026-11-25-gpu-families.md`. Tiles whose rows fill no whole warps are slower than fields, except those of 32 to 55 rows.
        pack_before_tiles: 4,
        // Measured in `bench/results/2026-11-28-gpu-drawn-h200.md`: 18 and 40 fields, and 8 columns of halves.
        many_fields: 32,
        shared_columns: 8,
        // Measured in `bench/results/2026-11-29-gpu-vectors.md`: records of 34 to 128 bytes.
        boxed_pack: 96,
        unpack_before_tiles: 2,
        few_fields: 16,
        tiled_fields: 32..56,
    },
    columns: ColumnsTuning {
        // Measured in `bench/results/2026-11-23-gpu-classes.md` (packs) and `bench/results/2026-11-24-gpu-columns.md` (unpacks).
        threads: [256, 192],
        tile_bytes: [16 << 10, 6 << 10],
        min_bytes: STAGED,
        pack_rounds: 4,
        unpack_places: 8,
        // Measured in `bench/results/2026-11-25-gpu-families.md`. Tiles are faster where 64 words fill the rows of whole warps.
        pack_before_tiles: 4,
        unpack_before_tiles: [0..u64::MAX, 0..64, 0..64, 5..32, 3..10],
    },
    groups: GroupsTuning {
        // Measured in `bench/results/2026-11-26-gpu-groups.md`. Stores follow soon behind the requests of their sectors.
        threads: [128, 256],
        tile_bytes: [8 << 10, 4 << 10],
        min_bytes: STAGED,
        max_word: 4,
        // Measured in `bench/results/2026-11-27-gpu-drawn.md`. Longer runs are gathered word by word.
        wide_word: 2,
        odd_pack: 16,
        odd_unpack: MEDIUM_ODD,
        rounds: 8,
    },
    // Measured in `bench/results/2026-11-23-gpu-staged.md`.
    records: RecordsTuning {
        threads: 256,
        min_bytes: STAGED,
        max_run: MEDIUM_ODD,
        max_stride: 512,
        tile_bytes: 8 << 10,
    },
    // Measured in `bench/results/2026-11-24-gpu-sectors.md`.
    masks: MasksTuning {
        threads: 128,
        resident_threads: 2048,
        min_bytes: STAGED,
        min_run: 8,
        max_run: 512,
        touched_eighths: 5,
    },
    pieces: PiecesTuning {
        threads: 128,
        min_bytes: [(MEDIUM, 128 << 10), (SHORT, MANY_SHORT), (0, 16 << 10)],
        pack_runs: [0, 256, MEDIUM],
        // Short words cost less than the parts that a run touches of them.
        unpack_runs: [8, LOOKED_UP_ONCE, MEDIUM],
        // Measured in `bench/results/2026-11-25-gpu-families.md`.
        in_shorts: 33..64,
        // Measured in `bench/results/2026-11-29-gpu-requests.md`: lists of 48 MiB, random, in groups and ascending.
        in_words_of_8: 1024,
        in_words_of_4: LOOKED_UP_ONCE..MEDIUM,
        // Measured in `bench/results/2026-11-22-gpu-kernel-families.md`. Pieces of small elements are under way all at once: one load for each lane. Those of
        // large ones are under way for a group of lanes at once, without a loop.
        large: MANY_SHORT,
        small_pack: &[(MEDIUM, cut(1024, 32, 1)), (SHORT, cut(256, 8, 2)), (0, cut(8, 1, 3))],
        large_pack: &[
            (8192, cut(4096, 32, 4)),
            (1024, cut(1024, 16, 2)),
            (MEDIUM, cut(512, 16, 2)),
            (SHORT, cut(256, 8, 2)),
            (0, cut(8, 1, 3)),
        ],
        small_unpack: &[(MEDIUM, cut(1024, 32, 1)), (128, cut(128, 8, 1)), (SHORT, cut(256, 8, 2)), (0, cut(8, 1, 1))],
        large_unpack: &[
            (8192, cut(4096, 32, 4)),
            (1024, cut(1024, 32, 1)),
            (MEDIUM, cut(512, 16, 2)),
            (128, cut(128, 8, 1)),
            (SHORT, cut(256, 8, 2)),
            (0, cut(8, 1, 1)),
        ],
        aligned_single: 4,
    },
    joined: JoinedTuning {
        threads: 128,
        odd_runs: SHORT..MEDIUM,
        odd_min_bytes: 16 << 10,
        aligned_runs: LOOKED_UP_ONCE..256,
        aligned_min_bytes: MANY_SHORT,
        // Measured in `bench/results/2026-11-23-gpu-limits.md`: about half of what is under way on a whole GPU.
        lists_ahead: 2 << 20,
        listed_at_once: 12,
    },
    // Measured in `bench/results/2026-11-24-gpu-sectors.md`. For a run inside of one sector, the request costs as much as the store.
    prefetch: PrefetchTuning { runs: 33..256, one_in: 5 },
    // Measured in `bench/results/2026-11-25-gpu-generic.md`.
    generic: GenericTuning { min_run: 128, min_run_of_8: 1024 },
    // Words of 16 bytes: measured in `bench/results/2026-11-27-gpu-tables.md`, of 4 and 8 in `bench/results/2026-11-29-gpu-vectors.md`. Narrower ones were
    // not.
    tabled: TabledTuning {
        shapes: [
            LaunchShape { threads: 128, unroll: 4 },
            LaunchShape { threads: 128, unroll: 4 },
            LaunchShape { threads: 128, unroll: 8 },
            LaunchShape { threads: 128, unroll: 4 },
            LaunchShape { threads: 128, unroll: 2 },
        ],
    },
};
