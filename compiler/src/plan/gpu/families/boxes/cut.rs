//! How arrays with permuted axes are cut into boxes that have long runs on both sides.

use super::array::{Array, Axis};
use crate::plan::Direction;
use crate::plan::gpu::{BANK, BoxesTuning, Grid, LINE, SECTOR, Units};

impl Array {
    /// The array in boxes of `most` bytes at most for one direction, if they have as many words as threads need.
    pub(super) fn cut(&self, tuning: &BoxesTuning, direction: Direction, most: u64) -> Option<Array> {
        let mut boxes = self.clone();
        cut(&mut boxes, direction, tuning.run_bytes, most);
        (volume(&boxes.axes) >= tuning.min_volume).then_some(boxes)
    }

    /// The nearest axis of memory.
    pub(super) fn near(&self) -> usize {
        self.nearest[0]
    }

    /// Bytes of a record, if one side has records without gaps and the other an array for each of their fields: those along the
    /// nearest axis of either side.
    pub(super) fn record(&self) -> Option<u64> {
        let near = &self.axes[self.near()];
        (!self.has_steps()).then(|| near.count.min(self.axes[0].count) * u64::from(self.word))
    }

    /// Whether the nearest places of memory have gaps between them.
    pub(super) fn has_steps(&self) -> bool {
        self.axes[self.near()].stride != i64::from(self.word)
    }

    /// Bytes of memory that follow each other up to a gap. Nothing where no axis has gaps inside of the element, and where all runs are whole sectors.
    pub(super) fn run_to_gap(&self) -> Option<u64> {
        let (mut run, mut begins) = (u64::from(self.word), self.origin as u64);
        let mut gap = None;
        for axis in self.nearest.iter().map(|&at| &self.axes[at]) {
            if gap.is_none() && axis.stride as u64 > run {
                gap = Some(run);
            }
            match gap {
                Some(_) => begins |= axis.stride as u64,
                None => run = run.saturating_mul(axis.count),
            }
        }
        gap.filter(|bytes| !(bytes | begins).is_multiple_of(SECTOR))
    }

    /// Bytes from the first word of a box to the last, on the side where they are more.
    pub(super) fn span(&self) -> u64 {
        self.axes.iter().fold(0, |span, axis| {
            span.saturating_add((axis.extent - 1).saturating_mul(axis.stride.unsigned_abs().max(axis.packed)))
        })
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
    let few = |extent: u64| (axis.count.div_ceil(extent) * extent - axis.count) * MOVED_TWICE <= axis.count;
    // Words that may be moved at once are neighbours in all boxes where they are in the array.
    let at_once = BANK.max(word) / word;
    let left = at_once.trailing_zeros().saturating_sub((inside / u64::from(word)).trailing_zeros());
    let together = (1 << axis.count.trailing_zeros().min(left)).min(axis.extent);
    let even = axis.count.div_ceil(axis.boxes());
    let near = axis.extent.div_ceil(2)..=even.next_multiple_of(together);
    let whole = |extent: &u64| extent.is_multiple_of(together) && few(*extent) && extent * others <= most;
    let even = near.rev().find(whole).unwrap_or(even);
    let lines = (LINE >> inside.trailing_zeros().min(LINE.trailing_zeros())).max(1);
    let lined = (axis.extent.div_ceil(2)..=axis.extent).rev().filter(|extent| extent.is_multiple_of(lines));
    let mut at_lines = lined.filter(|&extent| few(extent));
    // Boxes of one size without words that are moved twice are not made much smaller.
    let large = |&extent: &u64| !axis.count.is_multiple_of(even) || extent + extent / 8 >= even;
    axis.extent = at_lines.find(large).unwrap_or(even);
}

/// Places of an axis for each one that boxes which begin at lines may move twice, at least. An estimate: a run of 512 bytes that
/// begins inside a sector touches one in 16 more.
const MOVED_TWICE: u64 = 16;

/// Words of a box.
fn volume(axes: &[Axis]) -> u64 {
    axes.iter().map(|axis| axis.extent).product()
}

/// Length of the runs that are stored, in lengths of those that are loaded: a store of a part of a sector takes longer than a load. Measured in
/// `bench/results/2026-11-29-gpu-boxes.md`.
const STORED: u64 = 2;

/// Chooses the places of a box: the side with the shorter runs grows first.
///
/// Runs grow up to `run_bytes` bytes, and the box up to `most_bytes`.
fn cut(array: &mut Array, direction: Direction, run_bytes: u64, most_bytes: u64) {
    let Array { word, ref nearest, ref mut axes, .. } = *array;
    let order: Vec<usize> = (0..axes.len()).collect();
    let most = most_bytes / u64::from(word);
    let shares = if direction == Direction::Pack { [STORED, 1] } else { [1, STORED] };
    loop {
        let runs = [run(axes, nearest, word) * shares[0], run(axes, &order, word) * shares[1]];
        let sides = if runs[0] <= runs[1] { [nearest, &order] } else { [&order, nearest] };
        let enough = runs[0].min(runs[1]) >= run_bytes * STORED && volume(axes) >= most / 2;
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
    use super::super::Boxes;
    use super::*;
    use crate::layout::Layout;
    use crate::plan::gpu::GpuPlan;

    fn boxes(places: u64, direction: Direction) -> Option<Array> {
        let text = format!(
            "layout lb 0 extent {} {{\n  %0 = dense 4 x byte\n  %1 = stream {places} x 1920 of %0\n  %2 = stream 20 x 4 of %1\n  \
             %3 = stream 24 x 80 of %2\n  root %3\n}}",
            places * 1920
        );
        Some(GpuPlan::new(&Layout::parse(&text).unwrap()).found::<Boxes>()?.of(direction)?.cut.clone())
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
        let runs = |direction| plan.found::<Boxes>().unwrap().of(direction).unwrap().cut.runs();
        let (packs, unpacks) = (runs(Direction::Pack), runs(Direction::Unpack));
        assert!(packs.1 > packs.0 && unpacks.0 > unpacks.1, "{packs:?} and {unpacks:?} bytes");
    }

    #[test]
    fn blocks_go_through_few_boxes_of_loaded_runs_first() {
        // 122 x 2,102 x 65 floats, all axes reversed: packs load the rows of 65 in two boxes.
        let text = "layout lb 0 extent 66675440 {\n  %0 = dense 4 x byte\n  %1 = stream 122 x 546520 of %0\n  \
             %2 = stream 2102 x 260 of %1\n  %3 = stream 65 x 4 of %2\n  root %3\n}";
        let plan = GpuPlan::new(&Layout::parse(text).unwrap());
        let cut = &plan.found::<Boxes>().unwrap().of(Direction::Pack).unwrap().cut;
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
