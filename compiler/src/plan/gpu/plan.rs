//! Plans for GPUs.

use super::analysis::{Analysis, Structure};
use super::call::Call;
use super::families::{self, Accumulation, Disorder, Family, GroupsKernel, Instance, KernelFamily, Query, Tiles};
use super::granularity::Granularity;
use super::sizes::NARROW;
use super::tuning::SM_90;
use super::variant::Variant;
use crate::layout::{Layout, Node};
use crate::operation::Reduction;
use crate::passes;
use crate::plan::Direction;
use std::fmt;

/// Layouts of more nodes than this stay on the generic kernels.
pub const SPECIALISED_NODES: usize = 256;

/// Layouts nested deeper than this stay on the generic kernels.
pub const SPECIALISED_DEPTH: u32 = 16;

/// How the bytes of a layout are moved on a GPU.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::Direction;
/// use dtc_compiler::plan::gpu::{Call, Family, GpuPlan, WordsKernel};
/// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
/// let plan = GpuPlan::new(&Layout::parse(text)?);
/// let variant = plan.variant(Direction::Pack, &Call::whole(32768));
/// assert!(matches!(variant.family, Family::Words(WordsKernel { word: 8, .. })));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GpuPlan {
    analysis: Analysis,
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
        let mut analysis = Analysis::new(passes::simplify(layout), &SM_90);
        analysis.whole_sectors = false;
        GroupsKernel::find(&mut analysis);
        GpuPlan { analysis, specialised: false }
    }

    /// Plans a layout that is in the form that kernels follow.
    pub(crate) fn regular(layout: Layout) -> GpuPlan {
        let specialised = layout.nodes().len() <= SPECIALISED_NODES
            && depth(&layout) <= SPECIALISED_DEPTH
            && parts(&layout) <= passes::MOST_PARTS;
        let mut analysis = Analysis::new(layout, &SM_90);
        families::find(&mut analysis);
        GpuPlan { analysis, specialised }
    }

    /// The layout in the form that kernels follow: the same bytes in the same order.
    pub fn layout(&self) -> &Layout {
        &self.analysis.layout
    }

    /// What addresses and lengths are multiples of.
    pub fn granularity(&self) -> Granularity {
        self.analysis.granularity
    }

    /// Whether the outermost node goes on through the elements of a count without a seam.
    pub fn continues(&self) -> bool {
        self.analysis.continues
    }

    /// The length of every run in bytes, where they are all of one.
    pub fn row(&self) -> Option<u64> {
        self.analysis.row
    }

    /// What a family found in the layout, if it has it: [`Tiles`](super::Tiles), [`Fields`](super::Fields), [`Columns`](super::Columns),
    /// [`Groups`](super::Groups), [`Records`](super::Records), [`Pieces`](super::Pieces), [`Masks`](super::Masks) or [`Disorder`].
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::{GpuPlan, Pieces};
    /// let layout = Layout::parse("layout lb 0 extent 64 {\n  %0 = runs [(0 3) (10 5) (30 1)] x byte\n  root %0\n}")?;
    /// assert_eq!(GpuPlan::new(&layout).found::<Pieces>().unwrap().mean, 3);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn found<Found: Structure>(&self) -> Option<&Found> {
        self.analysis.found()
    }

    /// Whether the packed order is so far from that of memory that unpacks follow the latter.
    pub fn disordered(&self) -> bool {
        self.analysis.has::<Disorder>()
    }

    /// What the plan knows of the layout.
    pub(crate) fn analysis(&self) -> &Analysis {
        &self.analysis
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
        self.continues() && matches!(self.layout().node(self.layout().root().node), Node::Dense { .. })
    }

    /// Whether kernels may be compiled for the layout: it is not too large.
    pub fn allows(&self) -> bool {
        self.allows_in_batch() && !self.is_contiguous()
    }

    /// Whether a kernel for a batch may hold the layout: it is not too large, and may be contiguous.
    pub fn allows_in_batch(&self) -> bool {
        self.specialised && self.layout().size() > 0
    }

    /// The kernel that serves a call.
    pub fn variant(&self, direction: Direction, call: &Call) -> Variant {
        let query = Query::new(&self.analysis, direction, call);
        self.indexed(families::serving(&query), &query)
    }

    /// Every kernel that may serve a call, also those that the plan does not choose: what searches and tests try. Nothing where none may be compiled.
    /// Words have the shapes that the cost model gives them.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::{Direction, gpu::{Call, Family, GatherKernel, GpuPlan}};
    /// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
    /// let plan = GpuPlan::new(&Layout::parse(text)?);
    /// let call = Call::whole(32768);
    /// let candidates = plan.candidates(Direction::Pack, &call);
    /// assert!(candidates.contains(&plan.variant(Direction::Pack, &call)));
    /// assert!(candidates.iter().any(|candidate| candidate.family == Family::Gather(GatherKernel)));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn candidates(&self, direction: Direction, call: &Call) -> Vec<Variant> {
        if !self.allows() {
            return Vec::new();
        }
        let query = Query::new(&self.analysis, direction, call);
        families::candidates(&query).into_iter().map(|family| self.indexed(family, &query)).collect()
    }

    /// The kernel of a family, with indices that count what a call has.
    fn indexed(&self, family: Family, query: &Query<'_>) -> Variant {
        let indices = family.kernel().indices(&self.analysis, query.direction, &query.call);
        Variant { direction: query.direction, family, wide: indices >= NARROW, capped: false }
    }

    /// The kernel that serves whole elements between allocations.
    pub fn usual(&self, direction: Direction) -> Variant {
        Variant { wide: false, ..self.variant(direction, &Call::whole(self.usual_bytes())) }
    }

    /// Packed bytes of a usual call: of as many elements as make a few megabytes, where what a count interleaves is visible and
    /// indices are narrow.
    pub(super) fn usual_bytes(&self) -> u64 {
        let size = self.layout().size().max(1);
        size.saturating_mul((4 << 20) / size).max(size)
    }

    /// The kernel that serves a call which combines whole packed elements with those of memory; nothing if the plan has none
    /// for the layout or the reduction.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_compiler::plan::gpu::{Call, Family, GpuPlan};
    /// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
    /// let plan = GpuPlan::new(&Layout::parse(text)?);
    /// let sum = Reduction::new(Operation::Sum, Element::F32)?;
    /// let variant = plan.accumulation(sum, &Call::whole(32768)).unwrap();
    /// assert!(matches!(variant.family, Family::Accumulate(chosen) if chosen.word == 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn accumulation(&self, reduction: Reduction, call: &Call) -> Option<Variant> {
        let query = Query::new(&self.analysis, Direction::Unpack, call);
        let chosen = Accumulation::serving(&query, reduction).filter(|_| self.allows_in_batch())?;
        Some(self.indexed(Family::Accumulate(chosen), &query))
    }

    /// The family of the generic kernel that serves a call.
    pub(crate) fn generic(&self, direction: Direction, call: &Call) -> Family {
        let query = Query::new(&self.analysis, direction, call);
        families::serving(&query).kernel().generic(&query).family(direction)
    }

    /// How many blocks a kernel is launched with for a call, or `None` when no grid is that large.
    pub fn blocks(&self, variant: &Variant, call: &Call) -> Option<u32> {
        self.blocks_with(variant, call, variant.threads())
    }

    /// Blocks of `threads` threads that the work of a call has.
    pub(crate) fn blocks_with(&self, variant: &Variant, call: &Call, threads: u32) -> Option<u32> {
        variant.family.kernel().blocks(&self.instance(variant, threads), call)
    }

    /// What a kernel with `threads` threads a block is instantiated for.
    pub(crate) fn instance(&self, variant: &Variant, threads: u32) -> Instance<'_> {
        Instance { analysis: &self.analysis, direction: variant.direction, capped: variant.capped, threads }
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

impl fmt::Display for GpuPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_contiguous() {
            return f.write_str("contiguous: a copy by the driver\n");
        }
        if !self.allows() {
            return f.write_str("generic: nothing to move, or more nodes or parts than a kernel is compiled for\n");
        }
        for direction in [Direction::Pack, Direction::Unpack] {
            let variant = self.usual(direction);
            writeln!(f, "{variant}")?;
            if let (Family::Tiles(_), Some(tiles)) = (variant.family, self.found()) {
                let Tiles { word, tile_rows, tile_columns, stride, .. } = tiles;
                writeln!(f, "  {tile_rows} x {tile_columns} words of {word} bytes, columns {stride} bytes apart")?;
            }
        }
        Ok(())
    }
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
