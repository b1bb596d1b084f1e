//! The generic kernels for transposing layouts, and what they read beside an interpreter's program.

use super::division::half;
use super::template::{CodegenError, render, word_type};
use crate::plan::Direction;
use crate::plan::gpu::{Call, Family, Tiles, Variant};
use minijinja::context;

/// Bytes of shared memory of the largest tile.
const MOST_BYTES: u32 = 32 << 10;

/// Rows of the tallest tile.
const MOST_ROWS: u32 = 256;

/// Where both sides are aligned.
pub(super) const FAMILY: Family = Family::Tiles { shifted: false };

/// Numbers of 64 bits that tell the tiles of a call.
pub(super) const NUMBERS: usize = 11;

/// Whether the generic kernels have memory for the tiles of a layout.
pub(super) fn fit(tiles: &Tiles) -> bool {
    tiles.shared_bytes(false) <= MOST_BYTES && tiles.tile_rows <= MOST_ROWS
}

/// A namespace with what a block does, and the kernel of that name.
pub(super) fn kernel(namespace: &str, entry: &str, variant: &Variant) -> Result<String, CodegenError> {
    let threads = variant.threads();
    let words = [1, 2, 4, 8, 16].map(|word| (word, word_type(word)));
    let pack = variant.direction == Direction::Pack;
    let body = context! { pack, threads, words, most_bytes => MOST_BYTES, most_rows => MOST_ROWS };
    let body = render("interpreted_tiles", &body)?;
    let entry = context! { entry, threads, resident => 1, shared => true, capped => false, call => "Program" };
    Ok(format!("\nnamespace {namespace} {{\n\n{body}\n{}\n}}\n", render("entry", &entry)?))
}

/// The tiles of a call, behind the nodes of a program.
pub(super) fn numbers(tiles: &Tiles, direction: Direction, prefetches: bool, call: &Call) -> [u64; NUMBERS] {
    let grid = tiles.grid(direction, false, call);
    let pair = |low: u64, high: u64| low | high << 32;
    let (tile_rows, tile_columns) = (u64::from(tiles.tile_rows), u64::from(tiles.tile_columns));
    [
        tiles.rows,
        tiles.columns,
        grid.first_plane,
        grid.columns.start,
        grid.columns.end,
        tiles.stride as u64,
        pair(tile_rows, tile_columns),
        pair(half(tile_rows), half(tile_columns)),
        // Of more tiles than this, no grid is launched.
        pair(grid.row_tiles.min(u32::MAX.into()), grid.column_tiles.min(u32::MAX.into())),
        pair(grid.ahead, prefetches.into()),
        tiles.word.into(),
    ]
}
