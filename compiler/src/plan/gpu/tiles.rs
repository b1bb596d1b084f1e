//! Transposing layouts: packed neighbours are far apart in memory, and memory neighbours far apart in the packed bytes.

use super::call::Call;
use super::cost;
use super::granularity::Granularity;
use super::grid::{Count, Grid, launched};
use super::sizes::{LINE, SECTOR, WARP};
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;
use std::ops::Range;

/// How a transposing layout is cut into tiles. Words of a column are packed side by side; columns are memory neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Bytes of a word.
    pub word: u32,
    /// The stream whose copies are the columns; `None` when those are the elements of a count.
    pub stream: Option<NodeId>,
    /// Distance from column to column in memory, in bytes.
    pub stride: i64,
    /// Columns of a plane; more than any call has when they are the elements of a count.
    pub columns: u64,
    /// One column.
    pub column: Edge,
    /// Words of a column.
    pub rows: u64,
    /// Words of a column that a tile holds, where words do not lie astride.
    pub tile_rows: u32,
    /// Columns that a tile holds.
    pub tile_columns: u32,
}

impl Tiles {
    /// Whether a call has enough columns.
    pub(super) fn pays(&self, call: &Call) -> bool {
        cost::in_tiles(self.rows * u64::from(self.word), call.bytes)
    }

    /// Words of a column that a tile of a kernel holds: more where words lie astride the packed words, because each row
    /// needs a word beyond its end.
    pub(crate) fn rows_of_tile(&self, shifted: bool) -> u32 {
        let tall = self.word == 8 && self.tile_rows == self.tile_columns && self.rows >= 2 * u64::from(self.tile_rows);
        if shifted && tall { 2 * self.tile_rows } else { self.tile_rows }
    }

    /// Words from column to column of a tile in shared memory: an odd number, so that neighbours of a row lie in different banks.
    pub(crate) fn pitch(&self, shifted: bool) -> u32 {
        (self.rows_of_tile(shifted) + u32::from(shifted)) | 1
    }

    /// Bytes of shared memory that a tile takes.
    pub(crate) fn shared_bytes(&self, shifted: bool) -> u32 {
        self.tile_columns * self.pitch(shifted) * self.word
    }

    /// Rows of a line of the packed bytes, or of the part of one at which the tiles of a pack can begin: 1 where tiles
    /// begin with the columns, because those are short or begin at different places of a line. An unpack has nothing
    /// to gain: lines that two tiles read are in the cache.
    pub(crate) fn line_rows(&self, direction: Direction, shifted: bool) -> u64 {
        let tile_rows = self.rows_of_tile(shifted);
        let rows = common(tile_rows, self.word);
        let lines = tile_rows.is_multiple_of(WARP as u32) && self.rows.is_multiple_of(rows);
        let fits = lines && self.rows >= cost::MANY_TILES * u64::from(tile_rows);
        if direction == Direction::Pack && fits { rows } else { 1 }
    }

    /// Columns of a line of memory, or of the part of one at which tiles can begin.
    pub(crate) fn line_columns(&self) -> u64 {
        common(self.tile_columns, self.word)
    }

    /// The tiles that a call touches: of all columns when it touches several planes.
    pub(crate) fn grid(&self, direction: Direction, shifted: bool, call: &Call) -> TileGrid {
        let word = u64::from(self.word);
        let (begin, end) = (call.first / word, (call.first + call.bytes).div_ceil(word));
        let plane = self.rows.saturating_mul(self.columns);
        let (first, last) = (begin / plane, (end - 1) / plane);
        let columns = if first == last {
            let line = self.line_columns();
            begin % plane / self.rows / line * line..(end - 1) % plane / self.rows + 1
        } else {
            0..self.columns
        };
        let ahead = call.packed.wrapping_sub(call.first) / word % self.line_rows(direction, shifted);
        let row_tiles = (self.rows + ahead).div_ceil(self.rows_of_tile(shifted).into());
        let column_tiles = (columns.end - columns.start).div_ceil(self.tile_columns.into());
        TileGrid { first_plane: first, planes: last - first + 1, columns, ahead, row_tiles, column_tiles }
    }

    /// How the tiles of whole elements, of `size` packed bytes each, are spread over blocks.
    pub(super) fn whole_grid(&self, direction: Direction, shifted: bool, size: u64) -> Grid {
        let word = u64::from(self.word);
        let column_tiles = self.columns.div_ceil(self.tile_columns.into());
        // The columns of a call may go on through its elements; those of a plane do not.
        let open = size < self.rows.saturating_mul(self.columns).saturating_mul(word);
        let (columns, share) = if open { (self.tile_columns.into(), 1) } else { (self.columns, column_tiles) };
        Grid {
            share,
            word,
            line: self.line_rows(direction, shifted),
            rows: self.rows,
            ..Grid::new(Count::Touched, self.rows * columns * word, self.rows_of_tile(shifted).into())
        }
    }

    /// How many tiles a call touches, if there is a grid of as many blocks.
    pub(super) fn blocks(&self, direction: Direction, shifted: bool, call: &Call) -> Option<u32> {
        let TileGrid { planes, row_tiles, column_tiles, .. } = self.grid(direction, shifted, call);
        let tiles = row_tiles.checked_mul(column_tiles)?.checked_mul(planes)?;
        launched(tiles)
    }
}

/// The tiles that a call touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TileGrid {
    /// The first plane that the call touches.
    pub(crate) first_plane: u64,
    /// How many planes it touches.
    planes: u64,
    /// The columns of each plane that have tiles.
    pub(crate) columns: Range<u64>,
    /// Words of a line of the packed bytes before the first column, where the first tile begins.
    pub(crate) ahead: u64,
    /// Tiles of a column.
    pub(crate) row_tiles: u64,
    /// Tiles of a row.
    pub(crate) column_tiles: u64,
}

/// Words of a line that one side of a tile is a multiple of.
fn common(side: u32, word: u32) -> u64 {
    (1 << side.trailing_zeros()).min(LINE / u64::from(word))
}

/// Finds the columns of a transposing layout: the stream, or the count, whose copies are nearest in memory.
pub(super) fn find(layout: &Layout, granularity: Granularity, continues: bool) -> Option<Tiles> {
    let row = super::granularity::row(layout)?;
    let word = u32::try_from(row).ok().filter(|&word| word.is_power_of_two() && word <= granularity.word())?;
    let root = layout.root();
    let mut best: Option<(Option<NodeId>, i64, u64, Edge)> = None;
    let mut consider = |stream, stride: i64, columns, column| {
        let nearer = best.as_ref().is_none_or(|&(_, found, ..)| stride.unsigned_abs() <= found.unsigned_abs());
        if nearer && stride != 0 && cost::near_columns(stride.unsigned_abs(), columns) {
            best = Some((stream, stride, columns, column));
        }
    };
    let words = |edge: Edge| layout.measure(edge.node).size / u64::from(word);
    if !continues {
        // Columns are not bounded by the type; the product with the rows must fit.
        consider(None, layout.extent(), (1 << 62) / words(root).max(1), root);
    }
    let mut at = root;
    while let Node::Stream { count, stride, child } = layout.node(at.node) {
        // The outermost stream of elements without a seam ends with the call.
        let columns = if continues && at == root { (1 << 62) / words(*child).max(1) } else { *count };
        consider(Some(at.node), *stride, columns, *child);
        at = *child;
    }
    let (stream, stride, columns, column) = best?;
    let rows = words(column);
    let far = innermost_stride(layout, column)?;
    if !cost::by_tiles(rows, far, stride.unsigned_abs()) {
        return None;
    }
    let side = cost::tile_side(word);
    let (tile_rows, tile_columns) = if columns < side {
        ((side * side / columns).next_multiple_of(32).min(rows.next_multiple_of(32)), columns)
    } else if rows < side {
        (rows, (side * side / rows).next_multiple_of(32).min(columns))
    } else if rows < cost::MANY_TILES * side {
        // Tiles of equal height, so that none is nearly empty. A sector that two of them store is stored in part by both.
        let tiles = (rows + side / 2) / side;
        let sector = SECTOR / u64::from(word);
        let tile_rows = if tiles == 1 { rows } else { rows.div_ceil(tiles).next_multiple_of(sector) };
        (tile_rows, (side * side / tile_rows).next_multiple_of(32).min(columns))
    } else {
        (side, side)
    };
    Some(Tiles {
        word,
        stream,
        stride,
        columns,
        column,
        rows,
        tile_rows: tile_rows as u32,
        tile_columns: tile_columns as u32,
    })
}

/// How far apart packed neighbours of a column are; those of a list are as far as can be.
fn innermost_stride(layout: &Layout, mut at: Edge) -> Option<u64> {
    let mut innermost = None;
    loop {
        match layout.node(at.node) {
            Node::Stream { stride, child, .. } => {
                innermost = Some(stride.unsigned_abs());
                at = *child;
            }
            Node::Indexed { child, .. } => {
                innermost = Some(u64::MAX);
                at = *child;
            }
            Node::Dense { .. } => return innermost,
            Node::Runs { .. } | Node::Record { .. } => return Some(u64::MAX),
        }
    }
}
