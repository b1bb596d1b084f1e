//! The generic kernels for transposing layouts, and what they read beside an interpreter's program.

use super::division::half;
use super::template::{TemplateError, render};
use crate::plan::Direction;
use crate::plan::gpu::{Call, Tiles, Variant, word_type};
use minijinja::context;

/// Numbers of 64 bits that tell the tiles of a call.
pub(super) const NUMBERS: usize = 11;

/// A namespace with what a block does, and the kernel of that name.
pub(super) fn kernel(namespace: &str, entry: &str, variant: &Variant) -> Result<String, TemplateError> {
    let threads = variant.threads();
    let words = [1, 2, 4, 8, 16].map(|word| (word, word_type(word)));
    let pack = variant.direction == Direction::Pack;
    let body = context! { pack, threads, words, most_bytes => Tiles::GENERIC_BYTES, most_rows => Tiles::GENERIC_ROWS };
    let body = render("interpreted_tiles", &body)?;
    let entry = context! { entry, threads, resident => 1, shared => true, capped => false, call => "Program" };
    Ok(format!("\nnamespace {namespace} {{\n\n{body}\n{}\n}}\n", render("entry", &entry)?))
}

/// The tiles of a call, behind the nodes of a program.
pub(super) fn numbers(tiles: &Tiles, direction: Direction, prefetches: bool, call: &Call) -> [u64; NUMBERS] {
    let grid = tiles.touched(direction, false, call);
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
