//! Which nests are moved in tiles, and which are listed: decisions of the layout alone, on any processor.

use crate::plan::step::Step;

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Shortest stride of rows, in bytes, at which the planes between would be fetched again and again: planes closer than a line share
/// their lines.
const FAR: u64 = 256;

/// Most blocks of a nest for which interpreting the loop around it costs as much as the nest itself.
const SHORT_NEST: u64 = 64;

/// Most blocks that are listed instead: list and lines stay in the first-level cache, even where another load shares it.
const LISTED_BLOCKS: u64 = 512;

/// Whether packed neighbours are far apart in memory and memory neighbours are in another plane.
pub(in crate::plan) fn is_tile(planes: u64, plane_stride: i64, rows: u64, stride: i64, bytes: u64) -> bool {
    bytes <= LINE / 2
        && plane_stride.unsigned_abs() <= LINE / 2
        && stride.unsigned_abs() >= FAR
        && planes >= 4
        && rows >= 8
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
