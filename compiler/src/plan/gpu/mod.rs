//! How a GPU moves the bytes of a layout.
//!
//! Every packed word belongs to a thread, which computes where the word lies in memory. So any layout is moved by one
//! launch, threads are balanced by bytes and not by blocks, and neighbouring threads touch neighbouring packed bytes.
//! What a plan decides is the [`Family`] of kernel and its launch shape, for a [`Direction`] and for the alignment and
//! range of a [`Call`].

mod accumulate;
mod call;
mod candidates;
mod choice;
mod columns;
mod copies;
mod cost;
mod fields;
mod granularity;
mod grid;
mod groups;
mod masks;
mod ordered;
mod pieces;
mod print;
mod records;
mod roofline;
mod shapes;
mod sizes;
mod sm_90;
mod tiles;
mod type_to_type;
mod variant;
mod whole;

pub use accumulate::computes;
pub use call::Call;
pub use columns::{Column, Columns};
pub use copies::{Copies, MOST_COPIES};
pub use cost::{Cut, Shape};
pub(crate) use cost::{LISTS_AHEAD, LONG_LIST, SHORT_RUNS_SPAN};
pub(crate) use fields::FieldWord;
pub use fields::{Field, Fields};
pub use granularity::Granularity;
pub(crate) use granularity::alignment;
pub use grid::Grid;
pub use groups::Groups;
pub use masks::Masks;
pub(crate) use ordered::ordered;
pub use pieces::Pieces;
pub(crate) use pieces::each_run;
pub use records::Records;
pub use roofline::{DeviceCopy, Footprint, Roofline, Traffic};
pub(crate) use sizes::LINE;
pub use tiles::Tiles;
pub use type_to_type::{CopyCall, CopyFamily, CopyVariant};
pub use variant::{Accumulation, Family, Variant};
pub use whole::WholeKernel;

use super::Direction;
use crate::layout::{Layout, Node};
use crate::passes;
use grid::Count;
use sizes::{JOINED, SLOT, WARP};

/// Layouts of more nodes than this stay on the generic kernels.
pub const SPECIALISED_NODES: usize = 256;

/// Layouts nested deeper than this stay on the generic kernels.
pub const SPECIALISED_DEPTH: u32 = 16;

/// Rows whose columns 32 bits count with room to spare.
const LONGEST_ROW: u64 = 1 << 30;

/// How the bytes of a layout are moved on a GPU.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::Direction;
/// use dtc_compiler::plan::gpu::{Call, Family, GpuPlan};
/// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
/// let plan = GpuPlan::new(&Layout::parse(text)?);
/// let variant = plan.variant(Direction::Pack, &Call::whole(32768));
/// assert!(matches!(variant.family, Family::Words { word: 8, .. }));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GpuPlan {
    layout: Layout,
    granularity: Granularity,
    whole_sectors: bool,
    continues: bool,
    row: Option<u64>,
    tiles: Option<Tiles>,
    fields: Option<Fields>,
    columns: Option<Columns>,
    disordered: bool,
    pieces: Option<Pieces>,
    records: Option<Records>,
    masks: Option<Masks>,
    groups: Option<Groups>,
    specialised: bool,
}

impl GpuPlan {
    /// Plans a canonical layout. Any layout is accepted; one that is not canonical is planned as it is.
    pub fn new(layout: &Layout) -> GpuPlan {
        GpuPlan::regular(passes::regularise(layout))
    }

    /// Plans a layout as it was described, for generic kernels alone: in time that the list entries take to be read once, where
    /// [`GpuPlan::new`] looks for what compiled kernels make use of.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::GpuPlan;
    /// let layout = Layout::parse("layout lb 0 extent 64 {\n  %0 = dense 1 x f64\n  %1 = indexed [8 0 40] of %0\n  root %1\n}")?;
    /// assert!(!GpuPlan::as_described(&layout).allows());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn as_described(layout: &Layout) -> GpuPlan {
        let layout = passes::simplify(layout);
        GpuPlan {
            granularity: Granularity::of(&layout),
            whole_sectors: false,
            continues: continues(&layout),
            row: granularity::row(&layout),
            tiles: None,
            fields: None,
            columns: None,
            disordered: false,
            pieces: None,
            records: None,
            masks: None,
            groups: groups::find(&layout, continues(&layout)),
            specialised: false,
            layout,
        }
    }

    /// Plans a layout that is in the form that kernels follow.
    pub(crate) fn regular(layout: Layout) -> GpuPlan {
        let granularity = Granularity::of(&layout);
        let whole_sectors = granularity::whole_sectors(&layout);
        let continues = continues(&layout);
        let row = granularity::row(&layout);
        let tiles = tiles::find(&layout, granularity, continues);
        let fields = fields::find(&layout, continues);
        let columns = columns::find(&layout);
        let disordered = ordered::disordered(&layout);
        let pieces = pieces::find(&layout);
        let records = records::find(&layout, continues);
        let masks = masks::find(&layout, pieces.as_ref());
        let groups = groups::find(&layout, continues);
        let specialised = layout.nodes().len() <= SPECIALISED_NODES
            && depth(&layout) <= SPECIALISED_DEPTH
            && parts(&layout) <= passes::MOST_PARTS;
        GpuPlan {
            layout,
            granularity,
            whole_sectors,
            continues,
            row,
            tiles,
            fields,
            columns,
            disordered,
            pieces,
            records,
            masks,
            groups,
            specialised,
        }
    }

    /// The layout in the form that kernels follow: the same bytes in the same order.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What addresses and lengths are multiples of.
    pub fn granularity(&self) -> Granularity {
        self.granularity
    }

    /// Whether the outermost node goes on through the elements of a count without a seam.
    pub fn continues(&self) -> bool {
        self.continues
    }

    /// The length of every run in bytes, where they are all of one.
    pub fn row(&self) -> Option<u64> {
        self.row
    }

    /// Bytes of a row, if all runs have one length between `SLOT` and `LONGEST_ROW`, and how many aligned words of memory a row may touch. Nothing for a
    /// call with less than a row, since a grid has the words of whole ones.
    fn slots(&self, memory: u64, bytes: u64) -> Option<(u64, u64)> {
        let row = self.row.filter(|row| (SLOT..LONGEST_ROW).contains(row) && *row <= bytes)?;
        let before = SLOT - u64::from(self.granularity.starts.min(alignment(memory))).min(SLOT);
        Some((row, (before + row).div_ceil(SLOT)))
    }

    /// The tiles of a transposing layout.
    pub fn tiles(&self) -> Option<&Tiles> {
        self.tiles.as_ref()
    }

    /// The records of a layout whose fields lie in arrays of their own.
    pub fn fields(&self) -> Option<&Fields> {
        self.fields.as_ref()
    }

    /// The columns of a layout whose elements are arrays of records, packed field by field.
    pub fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }

    /// Whether the packed order is so far from that of memory that unpacks follow the latter.
    pub fn disordered(&self) -> bool {
        self.disordered
    }

    /// The listed runs of a layout.
    pub fn pieces(&self) -> Option<&Pieces> {
        self.pieces.as_ref()
    }

    /// The records of a layout that have small gaps and follow each other.
    pub fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }

    /// The listed runs of a layout that are short, close to each other, and packed in the order of memory.
    pub fn masks(&self) -> Option<&Masks> {
        self.masks.as_ref()
    }

    /// The small groups of runs that a layout consists of.
    pub fn groups(&self) -> Option<&Groups> {
        self.groups.as_ref()
    }

    /// Whether any count of elements is one contiguous piece, which the driver copies best.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::GpuPlan;
    /// let layout = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert!(GpuPlan::new(&layout).is_contiguous());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn is_contiguous(&self) -> bool {
        self.continues && matches!(self.layout.node(self.layout.root().node), Node::Dense { .. })
    }

    /// Whether kernels may be compiled for the layout: it is not too large.
    pub fn allows(&self) -> bool {
        self.allows_in_batch() && !self.is_contiguous()
    }

    /// Whether a kernel for a batch may hold the layout: it is not too large, and may be contiguous.
    pub fn allows_in_batch(&self) -> bool {
        self.specialised && self.layout.size() > 0
    }

    /// How many blocks a kernel is launched with for a call, or `None` when no grid is that large.
    pub fn blocks(&self, variant: &Variant, call: &Call) -> Option<u32> {
        self.blocks_with(variant, call, variant.threads())
    }

    /// Blocks of `threads` threads that the work of a call has.
    pub(crate) fn blocks_with(&self, variant: &Variant, call: &Call, threads: u32) -> Option<u32> {
        match variant.family {
            Family::Tiles { shifted } => self.tiles.as_ref()?.blocks(variant.direction, shifted, call),
            _ => self.grid(variant, threads)?.blocks_of(call),
        }
    }

    /// How a kernel with `threads` threads a block spreads its work over blocks; nothing if the layout has not what the kernel moves.
    fn grid(&self, variant: &Variant, threads: u32) -> Option<Grid> {
        let threads = u64::from(threads);
        let unroll = u64::from(variant.unroll());
        let packs = variant.direction == Direction::Pack;
        Some(match variant.family {
            Family::Words { word, cut, .. } => {
                let word = u64::from(word);
                let line = if cut && packs { LINE / word } else { 1 };
                Grid { word, line, ..Grid::new(Count::Filled, word, threads * unroll) }
            }
            Family::Ordered { word } => Grid::new(Count::Filled, word.into(), threads * unroll),
            // A warp stores one word less than it loads.
            Family::Shifted { word } if packs => {
                Grid::new(Count::Filled, word.into(), threads / WARP * (WARP - 1) * unroll)
            }
            Family::Shifted { word } => Grid::new(Count::Touched, word.into(), threads * unroll),
            Family::Gather => Grid::new(Count::Addressed, SLOT, threads),
            Family::Joined => Grid::new(Count::Addressed, JOINED, threads * unroll),
            Family::Scatter | Family::Lines => Grid::new(Count::Needed, 2 * SLOT, threads),
            Family::Rows { slots } => Grid { share: slots, ..Grid::new(Count::Touched, self.row?, threads) },
            Family::Tiles { shifted } => {
                self.tiles.as_ref()?.whole_grid(variant.direction, shifted, self.layout.size())
            }
            Family::Fields { .. } => {
                let fields = self.fields.as_ref()?;
                Grid::new(Count::Inside, fields.size, fields.tile_records())
            }
            Family::Columns { .. } => {
                let columns = self.columns.as_ref()?;
                Grid { share: columns.tiles(variant.direction), ..Grid::new(Count::Touched, columns.size, 1) }
            }
            Family::Records => {
                let records = self.records.as_ref()?;
                Grid::new(Count::Touched, records.size, records.tile_records())
            }
            Family::Groups { .. } => {
                let groups = self.groups.as_ref()?;
                Grid::new(Count::Inside, groups.size, groups.tile_groups(variant.direction))
            }
            Family::Masks => {
                let masks = self.masks?;
                Grid { share: masks.groups(), ..Grid::new(Count::Touched, masks.size, threads / WARP) }
            }
            Family::Pieces => {
                let pieces = self.pieces?;
                let Cut { lanes, unroll, .. } = pieces.cut(variant.direction);
                let each = if lanes == 1 { threads * u64::from(unroll) } else { threads / u64::from(lanes) };
                Grid { share: pieces.count(variant.direction), ..Grid::new(Count::Touched, pieces.size, each) }
            }
            Family::Accumulate(chosen) => Grid::new(Count::Filled, chosen.unit().into(), threads * unroll),
        })
    }

    /// The widest word that is aligned on both sides of a call.
    pub(crate) fn aligned_word(&self, call: &Call) -> u32 {
        self.granularity.word().min(alignment(call.memory | call.packed.wrapping_sub(call.first)))
    }
}

/// Whether the outermost node goes on through the elements of a count without a seam.
fn continues(layout: &Layout) -> bool {
    match layout.node(layout.root().node) {
        Node::Stream { count, stride, .. } => i128::from(*count) * i128::from(*stride) == i128::from(layout.extent()),
        Node::Dense { count, kind } => count * kind.size() == layout.extent() as u64 && layout.extent() > 0,
        _ => false,
    }
}

/// Parts of all records of a layout: a kernel has code for each.
fn parts(layout: &Layout) -> usize {
    layout.nodes().map(|(_, node)| if let Node::Record { parts } = node { parts.len() } else { 0 }).sum()
}

fn depth(layout: &Layout) -> u32 {
    let mut depths: Vec<u32> = Vec::with_capacity(layout.nodes().len());
    for (_, node) in layout.nodes() {
        let below = node.edges().iter().map(|edge| depths[edge.node.index()]).max();
        depths.push(below.map_or(0, |below| below + 1));
    }
    depths.get(layout.root().node.index()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_many_parts_have_no_kernel() {
        let planned = |parts: usize| {
            let listed: Vec<String> =
                (0..parts).map(|part| format!("{}: %{}", part * 4096 + part * part % 1000, 2 + part % 2)).collect();
            let text = format!(
                "layout lb 0 extent {} {{\n  %0 = dense 36 x byte\n  %1 = dense 44 x byte\n  %2 = stream 20 x 40 of %0\n  \
                 %3 = stream 30 x 50 of %1\n  %4 = record [{}]\n  root %4\n}}",
                parts * 4096,
                listed.join(", ")
            );
            GpuPlan::new(&Layout::parse(&text).unwrap())
        };
        assert!(planned(passes::MOST_PARTS).allows());
        assert!(!planned(passes::MOST_PARTS + 1).allows());
    }
}
