//! How arrays with permuted axes are cut into boxes that have long runs on both sides.

use crate::layout::{Layout, Node};
use crate::plan::Direction;
use crate::plan::gpu::{Analysis, BANK, BoxesTuning, Grid, LINE, SECTOR, Structure, Units, WIDEST, alignment};

/// An axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Places on the axis.
    pub count: u64,
    /// Bytes of memory from one place to the next.
    pub stride: i64,
    /// Packed bytes from one place to the next.
    pub packed: u64,
    /// Places of a box.
    pub extent: u64,
}

impl Axis {
    /// Boxes that share the axis.
    pub(super) fn boxes(&self) -> u64 {
        self.count.div_ceil(self.extent)
    }
}

/// An array with permuted axes, cut into boxes for each direction, where it has boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    packs: Option<BoxCut>,
    unpacks: Option<BoxCut>,
}

impl Structure for Boxes {}

impl Boxes {
    /// The boxes of a direction.
    pub(super) fn of(&self, direction: Direction) -> Option<&BoxCut> {
        match direction {
            Direction::Pack => self.packs.as_ref(),
            Direction::Unpack => self.unpacks.as_ref(),
        }
    }

    /// Cuts an array with permuted axes.
    pub(super) fn find(analysis: &Analysis) -> Option<Boxes> {
        let array = Array::find(analysis)?;
        let cut = |direction| BoxCut::new(&array, analysis, direction);
        Some(Boxes { packs: cut(Direction::Pack), unpacks: cut(Direction::Unpack) })
    }
}

/// How an array is cut into boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxCut {
    /// Bytes of a word: one element of the array.
    pub word: u32,
    /// The axes, the innermost of the packed order first.
    pub axes: Vec<Axis>,
    /// The offset of the first word in memory.
    pub(super) origin: i64,
    /// The axes in the order of memory, by their numbers: the nearest first.
    pub(super) nearest: Vec<usize>,
    /// Words that are neighbours in memory wherever they are moved together: a power of two.
    pub(super) memory: u32,
    /// The same among the packed bytes.
    pub(super) packed: u32,
    /// Divides where words that are moved together begin in memory, but for the address of element 0.
    pub(super) starts: u32,
}

/// Axes at most: a kernel has code for each of them.
const MOST_AXES: usize = 8;

impl BoxCut {
    /// The axis whose places are neighbours in memory.
    pub(super) fn near(&self) -> usize {
        self.nearest[0]
    }

    /// Bytes of a record, if one side has records and the other an array for each of their fields: those along the nearest axis of either side.
    pub(super) fn record(&self) -> u64 {
        self.axes[self.near()].count.min(self.axes[0].count) * u64::from(self.word)
    }

    /// Bytes from the first word of a box to the last, on the side where they are more.
    pub(super) fn span(&self) -> u64 {
        self.axes.iter().fold(0, |span, axis| {
            span.saturating_add((axis.extent - 1).saturating_mul(axis.stride.unsigned_abs().max(axis.packed)))
        })
    }

    /// Words of shared memory from one place to the next of each axis: packed order, with a gap behind what is inside of the nearest axis of memory, whose
    /// places are an odd number of banks apart, so that neighbours are in different banks.
    pub(super) fn strides(&self) -> Vec<u64> {
        let bank = u64::from(BANK.max(self.word) / self.word);
        let mut next: u64 = 1;
        let strides = self.axes.iter().enumerate().map(|(at, axis)| {
            if at == self.near() {
                next = bank * (next.div_ceil(bank) | 1);
            }
            let stride = next;
            next *= axis.extent;
            stride
        });
        strides.collect()
    }

    /// Words of shared memory.
    pub(super) fn words(&self) -> u64 {
        let last = |(axis, stride): (&Axis, u64)| (axis.extent - 1) * stride;
        let last: u64 = self.axes.iter().zip(self.strides()).map(last).sum();
        (last + 1).next_multiple_of(u64::from(WIDEST / self.word))
    }

    /// A block for each box of elements of `size` packed bytes.
    pub(super) fn grid(&self, size: u64) -> Grid {
        Grid { share: self.boxes(), ..Grid::new(Units::Touched, size, 1) }
    }

    /// Boxes of an element.
    fn boxes(&self) -> u64 {
        self.axes.iter().map(Axis::boxes).product()
    }

    /// Whether packed runs have less than `short` bytes and begin inside sectors.
    pub(super) fn stores_parts(&self, short: u64) -> bool {
        let (_, run) = self.runs();
        let outside = self.axes.iter().filter(|axis| axis.packed >= run);
        let begins = outside.fold(run, |bits, axis| bits | axis.packed);
        run < short && !begins.is_multiple_of(SECTOR)
    }

    /// The axes in the order in which blocks go through the boxes of an element, by their numbers.
    ///
    /// Blocks that follow each other store neighbours. Where at most `few` boxes share the runs that are loaded, they go through these first: boxes load parts
    /// of the same lines.
    pub(super) fn block_order(&self, direction: Direction, few: u64) -> Vec<usize> {
        let packed: Vec<usize> = (0..self.axes.len()).collect();
        let (stored, loaded) = match direction {
            Direction::Pack => (&packed, &self.nearest),
            Direction::Unpack => (&self.nearest, &packed),
        };
        let divided = loaded.iter().copied().find(|&at| self.axes[at].boxes() > 1);
        let first = divided.filter(|&at| self.axes[at].boxes() <= few);
        first.into_iter().chain(stored.iter().copied().filter(|&at| Some(at) != first)).collect()
    }

    /// Bytes of a box that follow each other in memory, and among the packed bytes.
    pub(super) fn runs(&self) -> (u64, u64) {
        (
            run(&self.axes, &self.nearest, self.word),
            run(&self.axes, &(0..self.axes.len()).collect::<Vec<_>>(), self.word),
        )
    }
}

/// Bytes that follow each other, of axes from the nearest on: of all places of each, and of the box's of the next.
fn run(axes: &[Axis], order: &[usize], word: u32) -> u64 {
    let mut bytes = u64::from(word);
    for &at in order {
        bytes *= axes[at].extent;
        if axes[at].extent < axes[at].count {
            break;
        }
    }
    bytes
}

/// The axes of an array in packed order, and the offset of its first word, if a layout is one.
fn axes(layout: &Layout) -> Option<(Vec<Axis>, i64)> {
    let (mut axes, mut at, mut origin) = (Vec::new(), layout.root(), layout.root().offset);
    while let Node::Stream { count, stride, child } = layout.node(at.node) {
        let packed = layout.measure(child.node).size;
        axes.push(Axis { count: *count, stride: *stride, packed, extent: 1 });
        origin = origin.checked_add(child.offset)?;
        at = *child;
    }
    let whole = matches!(layout.node(at.node), Node::Dense { .. }) && (2..=MOST_AXES).contains(&axes.len());
    axes.reverse();
    // Kernels count places in 32 bits.
    let counted = |axis: &Axis| axis.stride > 0 && axis.count <= u64::from(u32::MAX);
    (whole && axes.iter().all(counted)).then_some((axes, origin))
}

/// Doubles the extent of a box along the nearest axis of a side that it does not span. The box has `most` words at most. Returns whether it changed.
fn enlarge(axes: &mut [Axis], order: &[usize], most: u64) -> bool {
    let volume = volume(axes);
    let Some(&at) = order.iter().find(|&&at| axes[at].extent < axes[at].count) else { return false };
    let axis = &mut axes[at];
    let others = volume / axis.extent;
    let extent = (axis.extent * 2).min(axis.count).min(most / others);
    let changed = extent > axis.extent;
    axis.extent = axis.extent.max(extent);
    changed
}

/// Rounds the extent of a box along an axis.
///
/// A box takes all places if there are fewer than four times as many and they have room. Otherwise boxes begin at lines, if few places are moved twice by that, or
/// have one size.
fn round(axes: &mut [Axis], at: usize, inside: u64, word: u32, most: u64) {
    let others = volume(axes) / axes[at].extent;
    let axis = &mut axes[at];
    if axis.count < 4 * axis.extent && axis.count * others <= most {
        axis.extent = axis.count;
        return;
    }
    let all = |extent: u64| axis.count.div_ceil(extent) * extent;
    // Words that may be moved at once are neighbours in all boxes where they are in the array.
    let at_once = BANK.max(word) / word;
    let together = (1 << axis.count.trailing_zeros().min(at_once.trailing_zeros())).min(axis.extent);
    let even = axis.count.div_ceil(axis.boxes()).next_multiple_of(together);
    let lines = (LINE >> inside.trailing_zeros().min(LINE.trailing_zeros())).max(1);
    let lined = (axis.extent.div_ceil(2)..=axis.extent).rev().filter(|extent| extent.is_multiple_of(lines));
    let mut at_lines = lined.filter(|&extent| (all(extent) - axis.count) * MOVED_TWICE <= axis.count);
    // Boxes of one size without words that are moved twice are not made much smaller.
    let large = |&extent: &u64| all(even) > axis.count || extent + extent / 8 >= even;
    axis.extent = at_lines.find(large).unwrap_or(even);
}

/// Places of an axis for each one that boxes which begin at lines may move twice, at least. An estimate: a run of 512 bytes that
/// begins inside a sector touches one in 16 more.
const MOVED_TWICE: u64 = 16;

/// Words of a box.
fn volume(axes: &[Axis]) -> u64 {
    axes.iter().map(|axis| axis.extent).product()
}

/// An array whose axes are permuted.
struct Array {
    word: u32,
    axes: Vec<Axis>,
    origin: i64,
    nearest: Vec<usize>,
}

impl Array {
    /// The array that a layout is, if packed neighbours are no neighbours in memory, and those of memory are neighbours.
    fn find(analysis: &Analysis) -> Option<Array> {
        let word = u32::try_from(analysis.row?).ok()?;
        if !word.is_power_of_two() || word > analysis.granularity.word() {
            return None;
        }
        let (axes, origin) = axes(&analysis.layout)?;
        let mut nearest: Vec<usize> = (0..axes.len()).collect();
        nearest.sort_by_key(|&at| axes[at].stride);
        let near = nearest[0];
        (near != 0 && axes[near].stride == i64::from(word)).then_some(Array { word, axes, origin, nearest })
    }
}

impl BoxCut {
    /// Cuts an array for one direction, if boxes have as many words as threads need and room in shared memory.
    fn new(array: &Array, analysis: &Analysis, direction: Direction) -> Option<BoxCut> {
        let tuning = &analysis.tuning.boxes;
        let Array { word, origin, ref nearest, ref axes } = *array;
        let mut axes = axes.clone();
        cut(&mut axes, nearest, word, direction, tuning);
        let near = nearest[0];
        let divides = |number: u64| 1 << number.trailing_zeros().min(4);
        // Words that are neighbours in every box.
        let memory = divides(axes[near].count | axes[near].extent);
        let packed = divides(axes[0].count | axes[0].extent);
        let places = axes.iter().enumerate().filter(|&(at, _)| at != near);
        let extent = analysis.layout.extent() as u64;
        let starts = places.fold(extent | origin as u64, |bits, (_, axis)| bits | axis.stride as u64);
        let cut = BoxCut { word, axes, origin, nearest: nearest.clone(), memory, packed, starts: alignment(starts) };
        let fits = cut.words() * u64::from(word) <= tuning.most_bytes;
        (volume(&cut.axes) >= tuning.min_volume && fits).then_some(cut)
    }
}

/// Length of the runs that are stored, in lengths of those that are loaded: a store of a part of a sector takes longer than a load. Measured in
/// `bench/results/2026-11-29-gpu-boxes.md`.
const STORED: u64 = 2;

/// Chooses the places of a box: the side with the shorter runs grows first.
fn cut(axes: &mut [Axis], nearest: &[usize], word: u32, direction: Direction, tuning: &BoxesTuning) {
    let order: Vec<usize> = (0..axes.len()).collect();
    let most = tuning.box_bytes(word) / u64::from(word);
    let shares = if direction == Direction::Pack { [STORED, 1] } else { [1, STORED] };
    loop {
        let runs = [run(axes, nearest, word) * shares[0], run(axes, &order, word) * shares[1]];
        let sides = if runs[0] <= runs[1] { [nearest, &order] } else { [&order, nearest] };
        let enough = runs[0].min(runs[1]) >= tuning.run_bytes * STORED && volume(axes) >= most / 2;
        if enough || (!enlarge(axes, sides[0], most) && !enlarge(axes, sides[1], most)) {
            break;
        }
    }
    for side in [nearest, &order] {
        let mut inside = u64::from(word);
        for &at in side {
            if axes[at].extent == 1 {
                break;
            }
            round(axes, at, inside, word, most);
            inside *= axes[at].extent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::gpu::GpuPlan;

    fn boxes(places: u64, direction: Direction) -> Option<BoxCut> {
        let text = format!(
            "layout lb 0 extent {} {{\n  %0 = dense 4 x byte\n  %1 = stream {places} x 1920 of %0\n  %2 = stream 20 x 4 of %1\n  \
             %3 = stream 24 x 80 of %2\n  root %3\n}}",
            places * 1920
        );
        GpuPlan::new(&Layout::parse(&text).unwrap()).found::<Boxes>()?.of(direction).cloned()
    }

    #[test]
    fn both_sides_have_long_runs() {
        let [packs, unpacks] =
            [Direction::Pack, Direction::Unpack].map(|direction| boxes(50, direction).unwrap().runs());
        for (memory, packed) in [packs, unpacks] {
            assert!(memory >= 480 && packed >= 512, "{packs:?} and {unpacks:?} bytes");
        }
    }

    #[test]
    fn runs_that_are_stored_are_longer() {
        // 3,000 x 5,000 floats.
        let text = "layout lb 0 extent 60000000 {\n  %0 = dense 4 x byte\n  %1 = stream 3000 x 20000 of %0\n  %2 = stream 5000 x 4 of %1\n  root %2\n}";
        let plan = GpuPlan::new(&Layout::parse(text).unwrap());
        let runs = |direction| plan.found::<Boxes>().unwrap().of(direction).unwrap().runs();
        let (packs, unpacks) = (runs(Direction::Pack), runs(Direction::Unpack));
        assert!(packs.1 > packs.0 && unpacks.0 > unpacks.1, "{packs:?} and {unpacks:?} bytes");
    }

    #[test]
    fn blocks_go_through_few_boxes_of_loaded_runs_first() {
        // 122 x 2,102 x 65 floats, all axes reversed: packs load the rows of 65 in two boxes.
        let text = "layout lb 0 extent 66675440 {\n  %0 = dense 4 x byte\n  %1 = stream 122 x 546520 of %0\n  \
             %2 = stream 2102 x 260 of %1\n  %3 = stream 65 x 4 of %2\n  root %3\n}";
        let plan = GpuPlan::new(&Layout::parse(text).unwrap());
        let cut = plan.found::<Boxes>().unwrap().of(Direction::Pack).unwrap();
        assert_eq!(cut.axes[2].boxes(), 2);
        assert_eq!(cut.block_order(Direction::Pack, 2), [2, 0, 1]);
        assert_eq!(cut.block_order(Direction::Pack, 1), [0, 1, 2]);
    }

    #[test]
    fn places_are_counted_in_32_bits() {
        assert!(boxes(u64::from(u32::MAX), Direction::Pack).is_some());
        assert!(boxes(1 << 32, Direction::Pack).is_none());
    }
}
