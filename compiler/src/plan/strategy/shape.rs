//! Which nests are moved in tiles, and which are listed: decisions of the layout alone, on any processor.

use crate::plan::step::Step;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Shortest stride of rows, in bytes, at which the planes between would be fetched again and again, however few rows there are: planes
/// closer than a line share their lines.
const FAR: u64 = 256;

/// Bytes of memory under the rows of a plane from which on every plane fetches all of them again: a second-level cache. Fields of records in 3 to
/// 90 MiB that are not transposed in registers took 0.22 to 0.85 of the time in tiles, in 32 to 768 KiB 0.14 to 3.1, on Emerald Rapids
/// (`bench/results/2026-11-29-permutes-cpu.md`).
const SECOND_LEVEL: u64 = 1 << 20;

/// Most blocks of a nest for which interpreting the loop around it costs as much as the nest itself.
const SHORT_NEST: u64 = 64;

/// Most blocks that are listed instead: list and lines stay in the first-level cache, even where another load shares it.
const LISTED_BLOCKS: u64 = 512;

/// Whether memory neighbours are in another plane, and packed neighbours far apart in memory, or more than the caches hold until the next plane.
pub(in crate::plan) fn is_tile(planes: u64, plane_stride: i64, rows: u64, stride: i64, bytes: u64) -> bool {
    let (near, step) = (plane_stride.unsigned_abs(), stride.unsigned_abs());
    let many = || {
        // A line has several of such rows: planes that reach into the next rows would not be unpacked in order.
        let apart = (planes - 1).saturating_mul(near).saturating_add(bytes) <= step;
        apart && rows.saturating_mul(step) > SECOND_LEVEL
    };
    bytes <= LINE / 2 && near <= LINE / 2 && planes >= 4 && rows >= 8 && (step >= FAR || many())
}

/// Whether `count` copies of a nest, or of a list of such copies, are listed block by block.
pub(in crate::plan) fn is_listed(body: &Step, count: u64) -> bool {
    let (blocks, bytes) = match *body {
        Step::Planes { planes, rows, bytes, .. } => match planes.checked_mul(rows) {
            Some(blocks) if blocks <= SHORT_NEST => (blocks, bytes),
            _ => return false,
        },
        Step::List { ref offsets, bytes } => (offsets.len() as u64, bytes),
        _ => return false,
    };
    bytes <= super::INLINE_BYTES && count.checked_mul(blocks).is_some_and(|blocks| blocks <= LISTED_BLOCKS)
}
