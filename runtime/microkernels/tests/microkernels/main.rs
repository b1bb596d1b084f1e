//! Every microkernel of every level of this CPU against a byte loop, between protected pages.

mod accumulate;
mod contiguous;
mod groups;

use dtc_compiler::plan::strategy::Nest;
use dtc_microkernels::*;
use std::ops::Range;

const PAGE: usize = 4096;
const POISON: u8 = 0xa5;
/// Poisoned bytes checked on the open side of a buffer.
const MARGIN: usize = 192;

/// Accessible memory between two protected pages.
struct Guarded {
    mapping: *mut u8,
    bytes: usize,
}

impl Guarded {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(PAGE);
        // SAFETY: an anonymous mapping at an address of the system's choice.
        let mapping = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), bytes + 2 * PAGE, libc::PROT_NONE, flags, -1, 0)
        };
        assert_ne!(mapping, libc::MAP_FAILED);
        let guarded = Self { mapping: mapping.cast(), bytes };
        guarded.open(0..bytes);
        guarded
    }

    /// The first accessible byte.
    fn start(&self) -> *mut u8 {
        self.mapping.wrapping_add(PAGE)
    }

    /// Makes these bytes accessible; both ends are borders of pages.
    fn open(&self, range: Range<usize>) {
        self.protect(range, libc::PROT_READ | libc::PROT_WRITE);
    }

    fn protect(&self, range: Range<usize>, protection: libc::c_int) {
        // SAFETY: pages of our own mapping.
        let status = unsafe { libc::mprotect(self.start().add(range.start).cast(), range.len(), protection) };
        assert_eq!(status, 0);
    }

    fn slice(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.bytes);
        // SAFETY: within the accessible part, which is initialised to zero by the system.
        unsafe { std::slice::from_raw_parts_mut(self.start().add(range.start), range.len()) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing refers to any more.
        unsafe { libc::munmap(self.mapping.cast(), self.bytes + 2 * PAGE) };
    }
}

/// A small generator of test values (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Blocks of `memory` in packed order: offset and length.
type Blocks = Vec<(isize, usize)>;

/// Two buffers, the bytes to fill them with, and the images expected of them.
struct Bench {
    memory: Guarded,
    packed: Guarded,
    noise: Vec<u8>,
    expected: Vec<u8>,
}

impl Bench {
    fn new(memory: usize, packed: usize) -> Self {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let noise = (0..memory.max(packed)).map(|_| random.next() as u8).collect();
        Self { memory: Guarded::new(memory), packed: Guarded::new(packed), noise, expected: Vec::new() }
    }

    /// Calls a microkernel with both buffers against the lower and against the upper protected page, and at odd places between.
    fn check(&mut self, pack: bool, blocks: &Blocks, label: &dyn Fn() -> String, call: &dyn Fn(*mut u8, *mut u8)) {
        let low = blocks.iter().map(|block| block.0).min().unwrap_or(0);
        let high = blocks.iter().map(|block| block.0 + block.1 as isize).max().unwrap_or(0);
        let span = (high - low) as usize;
        let total = blocks.iter().map(|block| block.1).sum::<usize>();
        assert!(span + MARGIN <= self.memory.bytes && total + MARGIN <= self.packed.bytes, "{}", label());
        let spare = (self.memory.bytes - span, self.packed.bytes - total);
        for (first, dense) in [(0, spare.1), (spare.0, 0), (MARGIN / 2 + 1, MARGIN / 2 + 5)] {
            let base = self.memory.start().wrapping_add(first).wrapping_offset(-low);
            let packed = self.packed.start().wrapping_add(dense);
            let around =
                |at: usize, bytes: usize, limit: usize| at.saturating_sub(MARGIN)..(at + bytes + MARGIN).min(limit);
            let near_memory = around(first, span, self.memory.bytes);
            let near_packed = around(dense, total, self.packed.bytes);
            self.expected.clear();
            if pack {
                let memory = self.memory.slice(first..first + span);
                memory.copy_from_slice(&self.noise[..span]);
                self.packed.slice(near_packed.clone()).fill(POISON);
                self.expected.resize(near_packed.len(), POISON);
                let mut at = dense - near_packed.start;
                for &(offset, bytes) in blocks {
                    let from = (offset - low) as usize;
                    self.expected[at..at + bytes].copy_from_slice(&self.noise[from..from + bytes]);
                    at += bytes;
                }
                call(base, packed);
                assert!(self.packed.slice(near_packed) == &self.expected[..], "pack {} at {first} {dense}", label());
            } else {
                self.packed.slice(dense..dense + total).copy_from_slice(&self.noise[..total]);
                self.memory.slice(near_memory.clone()).fill(POISON);
                self.expected.resize(near_memory.len(), POISON);
                let mut at = 0;
                for &(offset, bytes) in blocks {
                    let to = (offset - low) as usize + first - near_memory.start;
                    self.expected[to..to + bytes].copy_from_slice(&self.noise[at..at + bytes]);
                    at += bytes;
                }
                call(base, packed);
                assert!(self.memory.slice(near_memory) == &self.expected[..], "unpack {} at {first} {dense}", label());
            }
        }
    }

    fn rows(&mut self, level: Level, pack: bool, rows: usize, bytes: usize, stride: isize, non_temporal: bool) {
        let size = bytes as u64;
        let microkernel =
            if pack { select_pack_rows(level, size, non_temporal) } else { select_unpack_rows(level, size) };
        let blocks = (0..rows as isize).map(|row| (row * stride, bytes)).collect();
        let label = || format!("{level:?} rows={rows} bytes={bytes} stride={stride} non_temporal={non_temporal}");
        self.check(pack, &blocks, &label, &|memory, packed| {
            // SAFETY: `check` has sized both buffers for the blocks.
            unsafe { microkernel(memory, packed, rows, bytes, stride) }
        });
        let nest = Nest { planes: 1, plane_stride: 0, rows, stride, bytes };
        self.direct(level, pack, nest, &blocks);
    }

    /// Calls the microkernel of this very nest, if there is one.
    fn direct(&mut self, level: Level, pack: bool, nest: Nest, blocks: &Blocks) {
        let select = if pack { select_nest::<true> } else { select_nest::<false> };
        let Some(direct) = select(level, &nest) else { return };
        self.check(pack, blocks, &|| format!("{level:?} direct {nest:?}"), &|memory, packed| {
            // SAFETY: `check` has sized both buffers for the blocks.
            unsafe { direct(memory, packed, nest.planes, nest.plane_stride, nest.rows, nest.stride) }
        });
    }

    fn nest(
        &mut self,
        level: Level,
        pack: bool,
        outer: (usize, isize),
        inner: (usize, isize),
        bytes: usize,
        non_temporal: bool,
    ) {
        let blocks = (0..outer.0 as isize)
            .flat_map(|plane| (0..inner.0 as isize).map(move |row| (plane * outer.1 + row * inner.1, bytes)))
            .collect();
        let label =
            |shape| move || format!("{level:?} {shape} {outer:?} {inner:?} bytes={bytes} non_temporal={non_temporal}");
        let size = bytes as u64;
        let planes =
            if pack { select_pack_planes(level, size, non_temporal) } else { select_unpack_planes(level, size) };
        self.check(pack, &blocks, &label("planes"), &|memory, packed| {
            // SAFETY: `check` has sized both buffers for the blocks.
            unsafe { planes(memory, packed, outer.0, outer.1, inner.0, inner.1, bytes) }
        });
        let numbers = Nest { planes: outer.0, plane_stride: outer.1, rows: inner.0, stride: inner.1, bytes };
        self.direct(level, pack, numbers, &blocks);
        let tile = if pack { select_pack_tile } else { select_unpack_tile }(level, size);
        self.check(pack, &blocks, &label("tile"), &|memory, packed| {
            // SAFETY: `check` has sized both buffers for the blocks.
            unsafe { tile(memory, packed, outer.0, outer.1, inner.0, inner.1, bytes, inner.0 * bytes) }
        });
    }

    fn list(&mut self, level: Level, pack: bool, offsets: &[i64], bytes: usize) {
        let blocks = offsets.iter().map(|&offset| (offset as isize, bytes)).collect();
        let short = offsets.iter().map(|&offset| offset as i32).collect::<Vec<_>>();
        let label = || format!("{level:?} list bytes={bytes} {offsets:?}");
        for prefetch in [false, true] {
            let size = bytes as u64;
            let list64 =
                if pack { select_pack_list64(level, size) } else { select_unpack_list64(level, size, prefetch) };
            self.check(pack, &blocks, &label, &|memory, packed| {
                // SAFETY: `check` has sized both buffers for the blocks.
                unsafe { list64(memory, packed, offsets.as_ptr(), offsets.len(), bytes) }
            });
            let list32 =
                if pack { select_pack_list32(level, size) } else { select_unpack_list32(level, size, prefetch) };
            self.check(pack, &blocks, &label, &|memory, packed| {
                // SAFETY: `check` has sized both buffers for the blocks.
                unsafe { list32(memory, packed, short.as_ptr(), short.len(), bytes) }
            });
        }
    }

    fn runs(&mut self, level: Level, pack: bool, runs: &[Run]) {
        let blocks = runs.iter().map(|run| (run.offset as isize, run.count as usize)).collect();
        let microkernel = if pack { select_pack_runs } else { select_unpack_runs }(level);
        self.check(pack, &blocks, &|| format!("{level:?} {runs:?}"), &|memory, packed| {
            // SAFETY: `check` has sized both buffers for the blocks.
            unsafe { microkernel(memory, packed, runs.as_ptr(), runs.len()) }
        });
    }
}

/// The levels whose instructions this CPU has.
fn levels() -> impl Iterator<Item = Level> {
    let best = detect_level().instructions();
    Level::ALL.into_iter().filter(move |level| level.instructions() <= best)
}

/// Each level of this CPU in each direction, and packs that stream.
fn variants() -> impl Iterator<Item = (Level, bool, bool)> {
    levels().flat_map(|level| [(level, true, false), (level, false, false), (level, true, true)])
}

/// Sizes in which a class begins, ends or is compiled in.
fn sizes() -> impl Iterator<Item = usize> {
    (0..=300).chain([511, 512, 513, 1000, 1023, 1024, 1025, 2048, 3000, 4096])
}

#[test]
fn rows_of_every_size_at_every_kind_of_stride() {
    let mut bench = Bench::new(1 << 21, 1 << 19);
    let mut random = Random(1);
    for (level, pack, non_temporal) in variants() {
        for bytes in sizes() {
            let width = bytes as isize;
            for stride in [0, 1, width - 1, width, width + 1, width + 3, 2 * width, 3 * width + 7, 4096, 8192] {
                let most = if bytes > 300 || stride >= 4096 { 12 } else { 71 };
                // Short pieces do not bypass the caches.
                let most = if non_temporal { 2 * most } else { most };
                for stride in [stride, -stride] {
                    if pack || stride.unsigned_abs() >= bytes {
                        bench.rows(level, pack, random.below(most), bytes, stride, non_temporal);
                    }
                }
            }
        }
    }
}

#[test]
fn planes_of_every_other_word() {
    let mut bench = Bench::new(1 << 13, 1 << 12);
    for (level, pack, non_temporal) in variants() {
        for bytes in [1, 2, 4, 8] {
            // Whole vectors of rows, and rows beyond or one short of them.
            for rows in
                (1..=4).flat_map(|vectors| [64 * vectors / bytes - 1, 64 * vectors / bytes, 64 * vectors / bytes + 3])
            {
                let stride = 2 * bytes as isize;
                let plane = (rows as isize + 3) * stride;
                bench.nest(level, pack, (5, plane), (rows, stride), bytes, non_temporal);
                bench.nest(level, pack, (5, -plane), (rows, stride), bytes, non_temporal);
            }
        }
    }
}

#[test]
fn short_rows_of_every_count() {
    let mut bench = Bench::new(1 << 14, 1 << 13);
    for (level, pack, non_temporal) in variants() {
        for bytes in [1, 2, 3, 4, 7, 8, 12, 16, 17, 20, 24, 31, 32, 40] {
            for stride in [bytes, bytes + 1, bytes + 2, 2 * bytes, 16, 24, 33, 64, 112] {
                if stride >= bytes {
                    for rows in 0..=70 {
                        bench.rows(level, pack, rows, bytes, stride as isize, non_temporal);
                    }
                }
            }
        }
    }
}

#[test]
fn many_rows() {
    let mut bench = Bench::new(1 << 20, 1 << 19);
    for (level, pack, non_temporal) in variants() {
        for (rows, bytes, stride) in
            [(9000, 1, 3), (5001, 4, 8), (7600, 12, 24), (301, 40, 112), (77, 2048, 4099), (33, 6144, 9000)]
        {
            bench.rows(level, pack, rows, bytes, stride, non_temporal);
            bench.rows(level, pack, rows, bytes, -stride, non_temporal);
        }
    }
}

#[test]
fn nests_in_both_orders_of_strides() {
    let mut bench = Bench::new(1 << 21, 1 << 19);
    let mut random = Random(2);
    for (level, pack, non_temporal) in variants() {
        for bytes in (0..=70).chain([92, 128, 129, 300]) {
            for _ in 0..6 {
                let (short, long) = (random.below(40), random.below(30));
                let near = bytes as isize + [0, 0, 1, 8][random.below(4)];
                let prefetch = near * short.max(1) as isize + [0, 1, 64, 512][random.below(4)];
                for sign in [1, -1] {
                    bench.nest(level, pack, (long, prefetch), (short, near * sign), bytes, non_temporal);
                    bench.nest(level, pack, (short, near * sign), (long, prefetch * sign), bytes, non_temporal);
                    bench.nest(level, pack, (short, near), (long, -prefetch), bytes, non_temporal);
                }
            }
        }
        for bytes in [4, 8, 16] {
            for (columns, rows) in [(16, 16), (31, 33), (64, 5), (5, 64), (128, 128)] {
                let width = bytes as isize;
                bench.nest(level, pack, (columns, width), (rows, 4096), bytes, non_temporal);
                bench.nest(level, pack, (columns, width), (rows, width * columns as isize), bytes, non_temporal);
                bench.nest(level, pack, (columns, -width), (rows, 4096 + 4), bytes, non_temporal);
            }
        }
        if pack {
            bench.nest(level, pack, (7, 0), (9, 0), 16, non_temporal);
            bench.nest(level, pack, (33, 3), (20, 5), 8, non_temporal);
        }
    }
}

#[test]
fn shapes_that_have_a_way_of_their_own() {
    let mut bench = Bench::new(1 << 20, 1 << 17);
    for (level, pack, non_temporal) in variants() {
        // Unpacks that prefetch.
        for (rows, bytes, stride) in [(512, 8, 256), (601, 16, 300), (700, 4, -260), (1030, 1, 511)] {
            bench.rows(level, pack, rows, bytes, stride, non_temporal);
        }
        for (outer, inner) in [((40, 4096), (15, 256)), ((3, 70_000), (200, 272)), ((600, 800), (1, 300))] {
            bench.nest(level, pack, outer, inner, 8, non_temporal);
            bench.nest(level, pack, (outer.0, -outer.1), inner, 16, non_temporal);
        }
        // Words prefetch apart, in multiples of sixteen and other counts.
        for rows in [1, 3, 4, 15, 16, 17, 32, 48, 66] {
            bench.nest(level, pack, (1, 0), (rows, 72), 8, non_temporal);
            bench.nest(level, pack, (7, 72 * rows as isize), (rows, 72), 8, non_temporal);
            bench.nest(level, pack, (5, -100), (rows, 1000), 8, non_temporal);
            bench.nest(level, pack, (0, 8), (rows, -200), 8, non_temporal);
        }
        // Reversed words, and every other word.
        for planes in 1..20 {
            bench.nest(level, pack, (planes, 100), (4, -8), 8, non_temporal);
            bench.nest(level, pack, (planes, -40), (4, -8), 8, non_temporal);
            bench.nest(level, pack, (planes, 2072), (59 + 5 * planes, 16), 8, non_temporal);
        }
    }
}

/// Planes that are neighbours: every number of rows and columns of a rectangle, around the lines of pairs and triples, and beyond.
#[test]
fn transposes_of_every_shape() {
    let mut bench = Bench::new(1 << 19, 1 << 18);
    let few = 1..=20usize;
    let shapes: Vec<_> = few
        .clone()
        .flat_map(|rows| few.clone().map(move |columns| (rows, columns)))
        .chain(
            [2, 3].into_iter().flat_map(|few| (60..=68).chain([128, 129, 200]).flat_map(move |n| [(few, n), (n, few)])),
        )
        .chain([(33, 70), (70, 33), (100, 100)])
        .collect();
    for (level, pack, non_temporal) in variants().filter(|&(.., non_temporal)| !non_temporal) {
        for bytes in [1, 2, 4, 8, 16] {
            for &(rows, columns) in &shapes {
                let width = (columns * bytes) as isize;
                for stride in [width, width + 3, -width - 8] {
                    bench.nest(level, pack, (columns, bytes as isize), (rows, stride), bytes, non_temporal);
                }
            }
        }
    }
}

/// Two nests between each other: what the pitch leaves out of one is the other.
#[test]
fn tiles_with_a_pitch() {
    let mut bench = Bench::new(1 << 19, 1 << 17);
    for (level, pack, _) in variants().filter(|&(.., non_temporal)| !non_temporal) {
        for bytes in [1, 2, 4, 8, 12, 16, 20] {
            for (columns, rows, layers) in [(5, 9, 2), (16, 16, 3), (33, 20, 2), (40, 64, 2), (64, 7, 3)] {
                let (near, prefetch) = (bytes as isize, (bytes * columns * layers) as isize);
                let between = (bytes * columns) as isize;
                let tile = if pack { select_pack_tile } else { select_unpack_tile }(level, bytes as u64);
                let (layer, pitch) = (rows * bytes, layers * rows * bytes);
                let places = (0..columns as isize).flat_map(|column| {
                    (0..layers as isize).flat_map(move |layer| {
                        (0..rows as isize).map(move |row| (column * near + layer * between + row * prefetch, bytes))
                    })
                });
                let label = || format!("{level:?} tiles {columns} {rows} {layers} bytes={bytes}");
                bench.check(pack, &places.collect(), &label, &|memory, packed| {
                    for at in 0..layers {
                        let memory = memory.wrapping_offset(at as isize * between);
                        // SAFETY: `check` has sized both buffers for the blocks of all layers.
                        unsafe { tile(memory, packed.add(at * layer), columns, near, rows, prefetch, bytes, pitch) }
                    }
                });
            }
        }
    }
}

#[test]
fn long_planes_of_short_rows() {
    let mut bench = Bench::new(1 << 17, 1 << 15);
    let mut random = Random(5);
    for (level, pack, non_temporal) in variants() {
        for bytes in [1, 2, 3, 4, 7, 8, 12, 16, 24, 31] {
            for step in [bytes, bytes + 1, 2 * bytes, 24, 33, 64, 136] {
                for (planes, gap) in [(1, 0), (2, 1), (5, 500)] {
                    let rows = 64 + random.below(77);
                    let plane = (rows * step + gap) as isize;
                    if step >= bytes {
                        bench.nest(level, pack, (planes, plane), (rows, step as isize), bytes, non_temporal);
                        bench.nest(level, pack, (planes, -plane), (rows, -(step as isize)), bytes, non_temporal);
                    }
                }
            }
        }
    }
}

#[test]
fn planes_of_few_rows() {
    let mut bench = Bench::new(1 << 17, 1 << 15);
    for (level, pack, non_temporal) in variants() {
        for bytes in (1..=34).chain([40, 64, 128, 129, 256, 288]) {
            for rows in 1..=9 {
                for (stride, gap) in [(bytes, 1), (bytes + 5, 0), (300, 8)] {
                    let (stride, plane) = (stride as isize, (stride * rows + gap) as isize);
                    bench.nest(level, pack, (7, plane), (rows, stride), bytes, non_temporal);
                    bench.nest(level, pack, (5, -plane), (rows, -stride), bytes, non_temporal);
                    bench.nest(level, pack, (6, stride), (rows, stride * 6), bytes, non_temporal);
                }
            }
        }
    }
}

#[test]
fn reversed_rows_of_every_count() {
    let mut bench = Bench::new(1 << 14, 1 << 13);
    for (level, pack, non_temporal) in variants() {
        for bytes in [1, 2, 4, 8] {
            for rows in 1..=140 {
                let width = bytes as isize;
                bench.rows(level, pack, rows, bytes, -width, non_temporal);
                bench.nest(level, pack, (3, width * rows as isize), (rows, -width), bytes, non_temporal);
                bench.nest(level, pack, (3, -width * (rows + 3) as isize), (rows, -width), bytes, non_temporal);
            }
        }
    }
}

#[test]
fn lists_of_every_size_in_any_order() {
    let mut bench = Bench::new(1 << 19, 1 << 18);
    let mut random = Random(3);
    for (level, pack, _) in variants().filter(|&(.., non_temporal)| !non_temporal) {
        for bytes in sizes() {
            for most in [4, 71] {
                let count = random.below(if bytes > 300 { 12 } else { most });
                let mut offsets = (0..count).map(|place| (place * (bytes + 3)) as i64 - 500).collect::<Vec<_>>();
                for place in (1..count).rev() {
                    offsets.swap(place, random.below(place + 1));
                }
                bench.list(level, pack, &offsets, bytes);
            }
        }
        bench.list(level, true, &[5; 40], 12);
    }
}

#[test]
fn runs_of_every_size() {
    let mut bench = Bench::new(1 << 19, 1 << 18);
    let mut random = Random(4);
    for (level, pack, _) in variants() {
        for bytes in sizes() {
            for count in [1, 2, 17, 40] {
                let mut offset = -700;
                let mut runs = (0..count)
                    .map(|index| {
                        let bytes = if index == count / 2 { bytes } else { random.below(200) };
                        let run = Run { offset, count: bytes as u64 };
                        offset += (bytes + random.below(9)) as i64;
                        run
                    })
                    .collect::<Vec<_>>();
                if bytes % 2 == 1 {
                    runs.reverse();
                }
                bench.runs(level, pack, &runs);
            }
        }
        bench.runs(level, pack, &[]);
    }
}

/// Rows that are 8 KiB and more apart, against borders of pages, with every page protected that holds no row.
#[test]
fn gaps_may_be_unmapped() {
    const ROWS: usize = 17;
    let mut packed = Guarded::new(1 << 17);
    for stride in [2 * PAGE, 3 * PAGE, 5 * PAGE] {
        let mut memory = Guarded::new(ROWS * stride + PAGE);
        for (level, pack, non_temporal) in variants() {
            for bytes in (1..=130).chain([300, 1000, 1024, 4000, 4096]) {
                for start in [0, PAGE - bytes] {
                    memory.open(0..memory.bytes);
                    let total = ROWS * bytes;
                    for row in 0..ROWS {
                        let at = row * stride + start;
                        memory.slice(at..at + bytes).fill(if pack { row as u8 + 1 } else { POISON });
                        packed.slice(row * bytes..(row + 1) * bytes).fill(if pack { POISON } else { row as u8 + 1 });
                        memory.protect(row * stride + PAGE..(row + 1) * stride, libc::PROT_NONE);
                    }
                    let base = memory.start().wrapping_add(start);
                    let dense = packed.start();
                    let offsets = std::array::from_fn::<_, ROWS, _>(|row| (row * stride) as i64);
                    let runs = offsets.map(|offset| Run { offset, count: bytes as u64 });
                    let prefetch = stride as isize;
                    let size = bytes as u64;
                    // SAFETY: the rows are mapped, and nothing else needs to be.
                    unsafe {
                        if pack {
                            select_pack_rows(level, size, non_temporal)(base, dense, ROWS, bytes, prefetch);
                            select_pack_planes(level, size, non_temporal)(
                                base, dense, 1, prefetch, ROWS, prefetch, bytes,
                            );
                            select_pack_list64(level, size)(base, dense, offsets.as_ptr(), ROWS, bytes);
                            select_pack_tile(level, size)(base, dense, 1, size as isize, ROWS, prefetch, bytes, total);
                            select_pack_runs(level)(base, dense, runs.as_ptr(), ROWS);
                        } else {
                            select_unpack_rows(level, size)(base, dense, ROWS, bytes, prefetch);
                            select_unpack_planes(level, size)(base, dense, 1, prefetch, ROWS, prefetch, bytes);
                            select_unpack_list64(level, size, non_temporal)(base, dense, offsets.as_ptr(), ROWS, bytes);
                            select_unpack_tile(level, size)(
                                base,
                                dense,
                                1,
                                size as isize,
                                ROWS,
                                prefetch,
                                bytes,
                                total,
                            );
                            select_unpack_runs(level)(base, dense, runs.as_ptr(), ROWS);
                        }
                    }
                    for row in 0..ROWS {
                        let at = row * stride + start;
                        let moved = if pack {
                            packed.slice(row * bytes..(row + 1) * bytes)
                        } else {
                            memory.slice(at..at + bytes)
                        };
                        assert!(
                            moved.iter().all(|&byte| byte == row as u8 + 1),
                            "{level:?} bytes={bytes} stride={stride} of {total}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn copies_of_every_size() {
    let source = (0..5000_u32).map(|index| index as u8).collect::<Vec<_>>();
    for bytes in sizes() {
        let mut destination = vec![POISON; bytes + 8];
        // SAFETY: both buffers hold `bytes` bytes.
        unsafe { copy(destination.as_mut_ptr(), source.as_ptr(), bytes) };
        assert_eq!(destination[..bytes], source[..bytes]);
        assert_eq!(destination[bytes..], [POISON; 8]);
    }
}

#[test]
fn the_threshold_is_sensible() {
    assert!(non_temporal_threshold() >= 1 << 18);
    assert_eq!(non_temporal_threshold(), non_temporal_threshold());
}
