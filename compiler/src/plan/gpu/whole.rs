//! Kernels that serve every call for whole elements, with grids that a few numbers tell: for callers without a plan.

use super::GpuPlan;
use super::call::Call;
use super::cost::Cut;
use super::sizes::{JOINED, LINE, NARROW, SLOT, WARP};
use super::variant::{Family, Variant};
use crate::plan::Direction;

/// Packed bytes of elements that are taken to be moved one at a time: arrays of 4,096 records, field by field, took 1.2 and 2.1 times as
/// long by the kernels for 4 MiB of them, on an H200.
const ALONE: u64 = 64 << 10;

/// A kernel for whole elements, and when it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeKernel {
    /// The kernel.
    pub variant: Variant,
    /// Bytes that divide the address of element 0 and that of the packed bytes: a power of two.
    pub alignment: u64,
    /// How many blocks it is launched with.
    pub grid: Grid,
}

/// Blocks of a kernel for whole elements.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::{Direction, gpu::GpuPlan};
/// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
/// let plan = GpuPlan::new(&Layout::parse(text)?);
/// let kernels = plan.whole(Direction::Pack, 8);
/// // Words of eight bytes, from the first line of the packed bytes on.
/// assert!(kernels[0].grid.blocks(0, 32768) <= 4096 / u64::from(kernels[0].variant.threads()) + 1);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Packed bytes of a unit.
    pub unit: u64,
    /// What a unit counts for.
    pub share: u64,
    /// Units more than the bytes have, for ends inside a unit.
    pub more: u64,
    /// Packed bytes of a word, whose number modulo `line` says how far inside a line the packed bytes begin.
    pub word: u64,
    /// Words of a line; 1 where nothing begins at lines.
    pub line: u64,
    /// Rows of tiles, whose columns are the units; 0 for kernels without tiles.
    pub rows: u64,
    /// Units, or rows, of a block.
    pub each: u64,
}

impl Grid {
    /// The blocks for `bytes` packed bytes at `packed`, an address: as many as [`GpuPlan::blocks`] says, or one more.
    pub fn blocks(&self, packed: u64, bytes: u64) -> u64 {
        let units = bytes.div_ceil(self.unit).saturating_mul(self.share);
        let ahead = self.more + packed / self.word % self.line;
        match self.rows {
            0 => (units + ahead).div_ceil(self.each),
            rows => units.saturating_mul((rows + ahead).div_ceil(self.each)),
        }
    }
}

impl GpuPlan {
    /// Kernels for whole elements: a call is served by the first whose alignment both of its addresses have, and the last serves
    /// all. Nothing for layouts that have no kernels. Kernels with narrow indices serve up to [`GpuPlan::whole_bytes`] bytes.
    ///
    /// `alignment`: what addresses are multiples of where they are not those of allocations, a power of two: that of the basic
    /// elements.
    pub fn whole(&self, direction: Direction, alignment: u64) -> Vec<WholeKernel> {
        if !self.allows() {
            return Vec::new();
        }
        let wide = self.layout.size() >= NARROW;
        let mut kernels: Vec<WholeKernel> = Vec::new();
        for alignment in [LINE, alignment, 1] {
            let size = self.layout.size();
            let bytes = if size >= ALONE { size } else { self.usual_bytes() };
            let call = Call { memory: alignment, packed: alignment, ..Call::whole(bytes) };
            let variant = Variant { wide, ..self.variant(direction, &call) };
            let grid = self.grid(&variant);
            match kernels.last_mut() {
                // The wider alignment gained nothing.
                Some(last) if last.variant == variant => last.alignment = alignment,
                _ => kernels.push(WholeKernel { variant, alignment, grid }),
            }
        }
        kernels
    }

    /// Packed bytes at most of a call that [`GpuPlan::whole`] serves, unless an element has more.
    pub fn whole_bytes() -> u64 {
        NARROW - 1
    }

    fn grid(&self, variant: &Variant) -> Grid {
        let threads = u64::from(variant.threads());
        let spread = |unit: u64, each: u64| Grid { unit, share: 1, more: 0, word: 1, line: 1, rows: 0, each };
        let unroll = u64::from(variant.unroll());
        let packs = variant.direction == Direction::Pack;
        match variant.family {
            Family::Words { word, cut, .. } => {
                let word = u64::from(word);
                let line = if cut && packs { LINE / word } else { 1 };
                Grid { word, line, ..spread(word, threads * unroll) }
            }
            Family::Ordered { word } => spread(word.into(), threads * unroll),
            Family::Shifted { word } if packs => spread(word.into(), threads / WARP * (WARP - 1) * unroll),
            Family::Shifted { word } => spread(word.into(), threads * unroll),
            Family::Gather => Grid { more: 1, ..spread(SLOT, threads) },
            Family::Joined => Grid { more: 1, ..spread(JOINED, threads * unroll) },
            Family::Scatter | Family::Lines => spread(2 * SLOT, threads),
            Family::Rows { slots } => Grid { share: slots, ..spread(self.row.unwrap_or(1), threads) },
            Family::Tiles { shifted } => self.tiles.as_ref().map_or(spread(1, 1), |tiles| {
                let word = u64::from(tiles.word);
                let column_tiles = tiles.columns.div_ceil(tiles.tile_columns.into());
                // The columns of a call may go on through its elements; those of a plane do not.
                let open = self.layout.size() < tiles.rows.saturating_mul(tiles.columns).saturating_mul(word);
                let (columns, share) =
                    if open { (tiles.tile_columns.into(), 1) } else { (tiles.columns, column_tiles) };
                Grid {
                    unit: tiles.rows * columns * word,
                    share,
                    more: 0,
                    word,
                    line: tiles.line_rows(variant.direction, shifted),
                    rows: tiles.rows,
                    each: tiles.rows_of_tile(shifted).into(),
                }
            }),
            Family::Fields { .. } => {
                self.fields.as_ref().map_or(spread(1, 1), |fields| spread(fields.size, fields.tile_records()))
            }
            Family::Columns { .. } => self.columns.as_ref().map_or(spread(1, 1), |columns| Grid {
                share: columns.tiles(variant.direction),
                ..spread(columns.size, 1)
            }),
            Family::Records => {
                self.records.as_ref().map_or(spread(1, 1), |records| spread(records.size, records.tile_records()))
            }
            Family::Groups { .. } => self
                .groups
                .as_ref()
                .map_or(spread(1, 1), |groups| spread(groups.size, groups.tile_groups(variant.direction))),
            Family::Masks => self
                .masks
                .map_or(spread(1, 1), |masks| Grid { share: masks.groups(), ..spread(masks.size, threads / WARP) }),
            Family::Pieces => self.pieces.map_or(spread(1, 1), |pieces| {
                let Cut { lanes, unroll, .. } = pieces.cut(variant.direction);
                let each = if lanes == 1 { threads * u64::from(unroll) } else { threads / u64::from(lanes) };
                Grid { share: pieces.count(variant.direction), ..spread(pieces.size, each) }
            }),
            // Not of whole elements alone: `whole` never chooses it.
            Family::Accumulate(chosen) => spread(chosen.unit().into(), threads * unroll),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::text;
    use crate::{Pipeline, plan::gpu::Family};

    /// Types of every family, with the alignment of their elements.
    const TYPES: [(&str, u64); 12] = [
        ("vector 100 3 5 double", 8),
        ("vector 4096 2 4 float", 4),
        ("hvector 101 7 -19 char", 1),
        ("hvector 300 9 24 char", 1),
        ("hvector 45 1 8 (vector 37 1 45 double)", 8),
        ("contiguous 72 (resized 0 8 (vector 64 1 72 double))", 8),
        ("resized 0 8 (vector 500 1 4000 double)", 8),
        ("indexed_block 3 [0, 50, 7, 31, 90, 12, 200, 4, 61, 140] int", 4),
        ("indexed [3@0, 1@9, 70@20, 2@7, 33@200, 5@100, 9@300, 1@15, 4@330, 6@400, 11@410] double", 8),
        ("indexed [13@0, 900@19, 70@2000, 2222@4000] char", 1),
        ("resized 0 120 (struct [3@0 float, 1@16 double, 1@24 int, 2@32 double, 7@50 short, 1@70 char])", 8),
        ("resized 0 4 (hvector 5 1 4000000 float)", 4),
    ];

    #[test]
    fn grids_are_those_of_plans() {
        let mut families = Vec::new();
        let close: Vec<String> = (0..900).map(|at| format!("{}@{}", 2 + at * at % 7, at * 12)).collect();
        let close = format!("indexed [{}] char", close.join(", "));
        for (notation, alignment) in TYPES.into_iter().chain([(close.as_str(), 1)]) {
            let pipeline = Pipeline::new(text::parse(notation).expect(notation));
            let plan = pipeline.gpu_plan();
            for direction in [Direction::Pack, Direction::Unpack] {
                let kernels = plan.whole(direction, alignment);
                assert_eq!(kernels.last().map(|kernel| kernel.alignment), Some(1), "{notation}");
                for WholeKernel { variant, alignment, grid } in kernels {
                    families.push(std::mem::discriminant(&variant.family));
                    for (count, lines) in [(1, 0), (2, 1), (31, 2), (1000, 3), (77777, 5)] {
                        let packed = (lines * LINE) + alignment * (lines * 7 % (LINE / alignment));
                        let bytes = plan.layout().size() * count;
                        let call = Call { memory: alignment, packed, ..Call::whole(bytes) };
                        let exact = u64::from(plan.blocks(&variant, &call).expect("a grid"));
                        let found = grid.blocks(packed, bytes);
                        let exactly = matches!(variant.family, Family::Tiles { .. } | Family::Columns { .. });
                        let more = if exactly { 0 } else { 1 };
                        assert!(
                            (exact..=exact + more).contains(&found),
                            "{count} {notation} {variant:?}: {found}, {exact}"
                        );
                    }
                }
            }
        }
        families.sort_by_key(|family| format!("{family:?}"));
        families.dedup();
        assert!(families.len() >= 9, "{families:?}");
        assert!(families.contains(&std::mem::discriminant(&Family::Masks)));
    }
}
