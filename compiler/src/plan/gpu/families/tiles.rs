//! Transposing layouts: packed neighbours are far apart in memory, and memory neighbours far apart in the packed bytes.

use super::{Generic, Instance, KernelFamily, Query};
use crate::layout::{Edge, Layout, Node, NodeId};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, BANK, Call, Grid, KernelText, LINE, SCALAR, SECTOR, Structure, TilesTuning, Tuning,
    Units, WARP, launched,
};
use minijinja::context;
use std::fmt;
use std::ops::Range;

/// A kernel that moves tiles through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TilesKernel {
    /// Whether words of memory are unaligned among the packed bytes.
    pub shifted: bool,
}

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
    /// Words of a column that a tile holds, if words are aligned.
    pub tile_rows: u32,
    /// Columns that a tile holds.
    pub tile_columns: u32,
    /// Tiles of a column from which on one more costs less than sectors that two tiles share.
    many: u64,
}

/// Steps of a square tile for each one that another shape saves, at most; otherwise tiles are square. Measured in `bench/results/2026-11-28-gpu-drawn-h200.md`:
/// with 8, unpacks of 198 columns fall from 1,343 to 1,146 GB/s, and no array gains more than 2 %.
const FEWER: u64 = 4;

/// Bytes of shared memory that the place of a row takes.
const PLACE: u32 = 8;

impl Structure for Tiles {}

impl Tiles {
    /// Bytes of shared memory of the largest tile that the generic kernels move.
    pub(crate) const GENERIC_BYTES: u32 = 32 << 10;

    /// Rows of the tallest tile that the generic kernels move.
    pub(crate) const GENERIC_ROWS: u32 = 256;

    /// Whether columns are neighbours with gaps, several in each sector.
    fn has_gaps_in_sectors(&self) -> bool {
        (u64::from(self.word) + 1..SECTOR).contains(&self.stride.unsigned_abs())
    }

    /// Bytes of memory that a plane spans, if its rows are of one stride.
    fn span(&self, layout: &Layout) -> Option<u64> {
        let Node::Stream { count, stride, child } = layout.node(self.column.node) else { return None };
        let rows =
            (*count == self.rows && matches!(layout.node(child.node), Node::Dense { .. })).then_some(self.rows - 1)?;
        let columns = (self.columns - 1).checked_mul(self.stride.unsigned_abs())?;
        rows.checked_mul(stride.unsigned_abs())?.checked_add(columns)?.checked_add(self.word.into())
    }

    /// Whether the generic kernels have memory for the tiles.
    pub(super) fn fit_generic(&self) -> bool {
        let bytes = (self.tile_rows | 1) * self.tile_columns * self.word;
        bytes <= Tiles::GENERIC_BYTES && self.tile_rows <= Tiles::GENERIC_ROWS
    }

    /// Words of a column that a tile of a kernel holds: more if words are unaligned to the packed words, because each row
    /// needs a word beyond its end.
    pub(crate) fn rows_of_tile(&self, shifted: bool) -> u32 {
        let tall = self.word == 8 && self.tile_rows == self.tile_columns && self.rows >= 2 * u64::from(self.tile_rows);
        if shifted && tall { 2 * self.tile_rows } else { self.tile_rows }
    }

    /// Words from column to column of a tile in shared memory: an odd number of banks, so that neighbours of a row are in different ones.
    pub(crate) fn pitch(&self, shifted: bool) -> u32 {
        let bank = (BANK / self.word).max(1);
        ((self.rows_of_tile(shifted) + u32::from(shifted)).div_ceil(bank) | 1) * bank
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
        let fits = lines && self.rows >= self.many * u64::from(tile_rows);
        if direction == Direction::Pack && fits { rows } else { 1 }
    }

    /// Columns of a line of memory, or of the part of one at which tiles can begin.
    pub(crate) fn line_columns(&self) -> u64 {
        common(self.tile_columns, self.word)
    }

    /// Whether the columns of a tile are those of whole warps, so that a warp has words of one row at a time.
    fn has_whole_warps(&self) -> bool {
        u64::from(self.tile_columns).is_multiple_of(WARP)
    }

    /// Rows of a tile whose places in memory a block notes in shared memory, because each takes divisions and serves many words; 0 where a place is
    /// found as fast, or where the memory is slower than the arithmetic.
    fn row_places(&self, layout: &Layout, kernel: TilesKernel, direction: Direction, tuning: &TilesTuning) -> u32 {
        let divides = match layout.node(self.column.node) {
            Node::Dense { .. } => false,
            Node::Stream { child, .. } => layout.measure(child.node).size > u64::from(self.word),
            Node::Indexed { .. } | Node::Runs { .. } | Node::Record { .. } => true,
        };
        let rows = self.rows_of_tile(kernel.shifted);
        let shared = self.tile_columns >= tuning.noted_columns
            && (self.word < BANK || self.word == BANK && !self.has_whole_warps());
        let before = u32::from(kernel.shifted && direction == Direction::Pack);
        if divides && shared { rows + before } else { 0 }
    }

    /// The tiles that a call touches: of all columns when it touches several planes.
    pub(crate) fn touched(&self, direction: Direction, shifted: bool, call: &Call) -> TileGrid {
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

/// Steps that a block takes for all tiles with `side` of `count` places of an axis and `others` of the other: a step has whole lines of the axis
/// where a block has as many threads.
fn steps(count: u64, side: u64, others: u64, threads: u64) -> u64 {
    let tile = match threads / side {
        0 => (side * others).div_ceil(threads),
        at_once => others.div_ceil(at_once),
    };
    count.div_ceil(side) * tile
}

/// Rows of a tile with all of few columns: those of whole warps with the fewest steps for each word, of as many words as a block has loads under
/// way for, `words`.
fn tall(columns: u64, words: u64, threads: u64) -> u64 {
    let warps = |rows: &u64| rows.is_multiple_of(WARP);
    let share = |rows: u64| {
        let both = steps(rows, rows, columns, threads) + steps(columns, columns, rows, threads);
        (both as u128 * (1 << 32) / u128::from(rows * columns), u64::MAX - rows)
    };
    let fits = |rows: &u64| steps(columns, columns, *rows, threads) * threads <= words;
    (WARP..=2 * words / columns).filter(warps).filter(fits).min_by_key(|&rows| share(rows)).unwrap_or(WARP)
}

/// Places of an axis of `count` that a tile has, about `side` of them: those with the fewest steps of all tiles, because a tile that is nearly
/// empty takes as long as a full one, and a thread keeps its place of an axis whose lines are whole in each step.
fn cut(count: u64, side: u64, others: u64, threads: u64) -> u64 {
    let steps = |side: u64| steps(count, side, others, threads);
    let fewest = (side / 2..=side + side / 2)
        .filter(|&places| places <= count)
        .min_by_key(|&places| (steps(places), side.abs_diff(places)));
    match fewest {
        Some(places) if steps(places) * FEWER < steps(side) * (FEWER - 1) => places,
        _ => side.min(count),
    }
}

/// Finds the columns of a transposing layout: the stream, or the count, whose copies are nearest in memory.
fn find(analysis: &Analysis) -> Option<Tiles> {
    let Analysis { layout, granularity, continues, tuning: Tuning { tiles: tuning, .. }, .. } = analysis;
    let word = u32::try_from(analysis.row?).ok()?;
    if !word.is_power_of_two() || word > granularity.word() {
        return None;
    }
    let root = layout.root();
    // Columns that share sectors of memory.
    let near_columns = |stride: u64, columns| stride <= SECTOR && columns >= tuning.min_columns;
    let mut best: Option<(Option<NodeId>, i64, u64, Edge)> = None;
    let mut consider = |stream, stride: i64, columns, column| {
        let nearer = best.as_ref().is_none_or(|&(_, found, ..)| stride.unsigned_abs() <= found.unsigned_abs());
        if nearer && stride != 0 && near_columns(stride.unsigned_abs(), columns) {
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
        let columns = if *continues && at == root { (1 << 62) / words(*child).max(1) } else { *count };
        consider(Some(at.node), *stride, columns, *child);
        at = *child;
    }
    let (stream, stride, columns, column) = best?;
    let rows = words(column);
    let far = innermost_stride(layout, column)?;
    if rows < tuning.min_rows || far < stride.unsigned_abs().saturating_mul(2) {
        return None;
    }
    let side = tuning.side(word);
    let threads = u64::from(tuning.threads);
    let (tile_rows, tile_columns) = if columns < side {
        let most = side * side;
        let tall = if word == 1 { (most / columns).next_multiple_of(WARP) } else { tall(columns, most, threads) };
        (tall.min(rows.next_multiple_of(WARP)), columns)
    } else {
        let tile_rows = if rows < tuning.many * side { cut(rows, side, side, threads) } else { side };
        (tile_rows, cut(columns, (side * side / tile_rows).min(threads / 2), tile_rows, threads))
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
        many: tuning.many,
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

/// The tiles of a layout whose words are aligned in memory as a call is, and a kernel for the call's packed bytes.
fn fitting<'a>(query: &Query<'a>) -> Option<(&'a Tiles, TilesKernel)> {
    let tiles = query.found::<Tiles>().filter(|tiles| tiles.word <= query.word)?;
    let shifted = tiles.word > query.packed;
    (!shifted || tiles.word <= SCALAR).then_some((tiles, TilesKernel { shifted }))
}

/// The tiles of a call that has enough columns, and their kernel.
pub(super) fn serving<'a>(query: &Query<'a>) -> Option<(&'a Tiles, TilesKernel)> {
    let tuning = &query.tuning().tiles;
    let enough = |tiles: &Tiles| {
        let column = tiles.rows * u64::from(tiles.word);
        query.call.bytes >= column.saturating_mul(tuning.min_columns).max(tuning.min_bytes)
    };
    fitting(query).filter(|(tiles, _)| enough(tiles))
}

/// Whether the planes of a layout span so little memory that the words of a block find each sector of them in the first-level cache.
pub(super) fn has_small_planes(query: &Query<'_>) -> bool {
    let tuning = &query.tuning().tiles;
    let is_small = |tiles: &Tiles| {
        let wide = tiles.word > BANK;
        let most = if !query.unpacks() {
            tuning.small_pack
        } else if wide {
            tuning.small_wide_unpack
        } else {
            tuning.small_unpack
        };
        tiles.span(&query.analysis.layout).is_some_and(|span| span <= most)
    };
    query.found::<Tiles>().is_some_and(is_small)
}

/// Whether tiles serve a call whose columns begin at sectors of the packed bytes and fill the rows of a warp with words that fill a bank.
pub(super) fn has_whole_sectors(query: &Query<'_>) -> bool {
    let whole = |tiles: &Tiles| {
        let column = tiles.rows.saturating_mul(tiles.word.into());
        tiles.word >= BANK && u64::from(tiles.tile_columns) >= WARP && column.is_multiple_of(SECTOR)
    };
    serving(query).is_some_and(|(tiles, _)| whole(tiles))
}

/// The generic kernel of families whose calls tiles could serve too: that of tiles, or of words or bytes.
pub(super) fn generic(query: &Query<'_>) -> Generic {
    admits(query).map_or_else(|| Generic::words_or_bytes(query), |kernel| kernel.generic(query))
}

/// Serves calls of many columns, but packs of planes that are work for few threads of a block.
pub(super) fn admits(query: &Query<'_>) -> Option<TilesKernel> {
    let few = |tiles: &Tiles| {
        let words = tiles.rows.saturating_mul(tiles.columns);
        !query.unpacks() && tiles.stream.is_some() && tiles.word >= BANK && words < query.tuning().tiles.min_words
    };
    serving(query).filter(|(tiles, _)| !has_small_planes(query) && !few(tiles)).map(|(_, kernel)| kernel)
}

impl KernelFamily for TilesKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<TilesKernel> {
        fitting(query).map(|(_, kernel)| kernel).into_iter().collect()
    }

    fn indices(&self, analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(analysis.granularity.word())
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.tiles.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let tiles = instance.analysis.found::<Tiles>()?;
        let word = u64::from(tiles.word);
        let column_tiles = tiles.columns.div_ceil(tiles.tile_columns.into());
        // The columns of a call may go on through its elements; those of a plane do not.
        let open = instance.analysis.layout.size() < tiles.rows.saturating_mul(tiles.columns).saturating_mul(word);
        let (columns, share) = if open { (tiles.tile_columns.into(), 1) } else { (tiles.columns, column_tiles) };
        let unit = tiles.rows * columns * word;
        Some(Grid {
            share,
            word,
            line: tiles.line_rows(instance.direction, self.shifted),
            rows: tiles.rows,
            ..Grid::new(Units::Touched, unit, tiles.rows_of_tile(self.shifted).into())
        })
    }

    /// The tiles of a part of a plane are fewer than its columns have.
    fn blocks(&self, instance: &Instance<'_>, call: &Call) -> Option<u32> {
        let touched = instance.analysis.found::<Tiles>()?.touched(instance.direction, self.shifted, call);
        launched(touched.row_tiles.checked_mul(touched.column_tiles)?.checked_mul(touched.planes)?)
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        let tiles = instance.analysis.found::<Tiles>()?;
        let Analysis { layout, tuning, .. } = instance.analysis;
        let places = tiles.row_places(layout, *self, instance.direction, &tuning.tiles) * PLACE;
        Some(tiles.shared_bytes(self.shifted).next_multiple_of(PLACE) + places)
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        let in_part = |tiles: &Tiles| {
            let beside = tiles.columns.saturating_mul(tiles.stride.unsigned_abs());
            instance.analysis.stored_in_part(beside, tiles.word) || tiles.has_gaps_in_sectors()
        };
        instance.may_prefetch() && instance.analysis.found::<Tiles>().is_some_and(in_part)
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let tiles = instance.analysis.found::<Tiles>()?;
        let Analysis { layout, tuning: Tuning { tiles: tuning, .. }, .. } = instance.analysis;
        let Tiles { word, stream, column, rows, columns, stride, tile_columns, .. } = *tiles;
        let tile_rows = tiles.rows_of_tile(self.shifted);
        // Lines of the tile that a step has whole; 0 where a line has more words than the block has threads.
        let (rows_at_once, columns_at_once) = (instance.threads / tile_columns, instance.threads / tile_rows);
        let steps = |lines: u32, at_once: u32, line: u32| match at_once {
            0 => (lines * line).div_ceil(instance.threads),
            _ => lines.div_ceil(at_once),
        };
        // Words that are unaligned need their neighbours too.
        let load_steps = if instance.packs() {
            steps(tile_rows + 1, rows_at_once, tile_columns)
        } else {
            ((tile_rows + 1) * tile_columns).div_ceil(instance.threads)
        };
        let values = context! {
            rows, columns, neighbour_stride => stride, tile_rows, tile_columns, load_steps, rows_at_once, columns_at_once,
            pitch => tiles.pitch(self.shifted),
            shifted => self.shifted,
            memory_steps => steps(tile_rows, rows_at_once, tile_columns),
            packed_steps => steps(tile_columns, columns_at_once, tile_rows),
            loads => load_steps.min(tuning.shifted_loads),
            row_places => tiles.row_places(layout, *self, instance.direction, tuning),
            tile_bytes => tiles.shared_bytes(self.shifted).next_multiple_of(PLACE),
            line_rows => tiles.line_rows(instance.direction, self.shifted),
            line_columns => tiles.line_columns(),
        };
        let planes = AddressFunction::Planes { word, stream, column };
        let resident = if instance.packs() { &tuning.packing_blocks } else { &tuning.unpacking_blocks };
        let resident_blocks = resident[word.ilog2() as usize];
        Some(KernelText { values, resident_blocks, ..KernelText::new("tiles", word, vec![planes]) })
    }

    fn generic(&self, query: &Query<'_>) -> Generic {
        match query.found::<Tiles>() {
            Some(tiles) if !self.shifted && tiles.fit_generic() => Generic::Tiles,
            Some(tiles) if tiles.word >= 4 && self.shifted => Generic::Shifted(tiles.word),
            Some(tiles) if tiles.word >= 4 => Generic::Words(tiles.word),
            _ => Generic::Bytes,
        }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.shifted {
            "tiles through shared memory, unaligned to the packed words"
        } else {
            "tiles through shared memory"
        })
    }
}
