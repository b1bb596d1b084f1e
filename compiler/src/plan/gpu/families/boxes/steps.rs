//! How the threads of a block go through the places of a box.

use super::array::Axis;
use super::shared::SharedBox;

/// An axis as threads go along it: one of the box, or the run of several.
#[derive(Clone, Debug)]
pub(super) struct StepAxis {
    /// The number of the axis, or of the first of several.
    pub(super) at: usize,
    /// Words of the box along it.
    pub(super) extent: u64,
    /// Bytes from one word to the next on the side.
    pub(super) distance: i64,
    /// Words that a thread moves at once.
    pub(super) words: u64,
    /// Extents of the axes, the nearest first, and words of shared memory between their places.
    pub(super) inside: Vec<(u64, u64)>,
}

impl StepAxis {
    /// Places of threads.
    pub(super) fn places(&self) -> u64 {
        self.extent / self.words
    }

    /// Where a word of the axis is in shared memory.
    fn shared(&self, word: u64) -> u64 {
        let (mut place, mut rest) = (0, word);
        for &(extent, stride) in &self.inside {
            place += rest % extent * stride;
            rest /= extent;
        }
        place
    }
}

/// The steps of a block through a box, in the order of a side.
///
/// A step has whole rows: all places of the nearest axes of the side. A thread keeps its place in a row, and what depends on the step alone is known when the kernel
/// is compiled. More than half of the threads have a place.
pub(super) struct BoxSteps {
    /// The axes along which a box has several places, the nearest first.
    pub(super) axes: Vec<StepAxis>,
    /// How many of them a row has.
    pub(super) row_axes: usize,
    /// Rows of a step, which are neighbours on the next axis.
    pub(super) rows_at_once: u64,
    /// Steps for all places of the next axis.
    pub(super) next_steps: u64,
    /// Steps of the box.
    pub(super) count: u64,
}

impl BoxSteps {
    /// Steps in the order of memory. A thread moves `words` words at once.
    pub(super) fn memory(shared: &SharedBox, words: u32, threads: u32) -> BoxSteps {
        let order = &shared.cut.nearest;
        let run = shared.memory_run(words).unwrap_or_else(|| vec![shared.cut.axes[order[0]].extent]);
        BoxSteps::new(along(shared, order, &run, words, |axis| axis.stride), threads)
    }

    /// Steps in packed order. A thread moves `words` words at once.
    pub(super) fn packed(shared: &SharedBox, words: u32, threads: u32) -> BoxSteps {
        let order: Vec<usize> = (0..shared.cut.axes.len()).collect();
        let run: Vec<u64> = shared.cut.axes[..shared.packed_axes()].iter().map(|axis| axis.extent).collect();
        let mut axes = along(shared, &order, &run, words, |axis| axis.packed as i64);
        // Words of the run follow each other in shared memory, too.
        axes[0].inside = vec![(axes[0].extent, 1)];
        BoxSteps::new(axes, threads)
    }

    fn new(axes: Vec<StepAxis>, threads: u32) -> BoxSteps {
        let threads = u64::from(threads);
        let (mut row_axes, mut row) = (0, 1);
        while row_axes < axes.len() && row * axes[row_axes].places() <= threads {
            row *= axes[row_axes].places();
            row_axes += 1;
        }
        let next = axes.get(row_axes).map_or(1, StepAxis::places);
        let next_steps = next.div_ceil(threads / row);
        let outer = axes.iter().skip(row_axes + 1).map(StepAxis::places);
        let count = next_steps * outer.product::<u64>();
        BoxSteps { row_axes, rows_at_once: next.div_ceil(next_steps), next_steps, count, axes }
    }

    /// Where a part of what a thread moves at once in the first step is in shared memory, in words, if the thread has a place.
    pub(super) fn place(&self, thread: u64, part: u64) -> Option<u64> {
        let (mut row, mut place) = (thread, 0);
        for (number, axis) in self.axes.iter().take(self.row_axes).enumerate() {
            let part = if number == 0 { part } else { 0 };
            place += axis.shared(row % axis.places() * axis.words + part);
            row /= axis.places();
        }
        let next = self.axes.get(self.row_axes);
        let part = if self.row_axes == 0 { part } else { 0 };
        place += next.map_or(0, |axis| axis.shared(row * axis.words + part));
        (row < self.rows_at_once).then_some(place)
    }
}

/// The axes of a box in an order: the places of the run as one axis, along which threads move `words` words at once, and what is left.
fn along(
    shared: &SharedBox,
    order: &[usize],
    run: &[u64],
    words: u32,
    distance: impl Fn(&Axis) -> i64,
) -> Vec<StepAxis> {
    let axes = &shared.cut.axes;
    let first = order[0];
    let run_axis = StepAxis {
        at: first,
        extent: run.iter().product(),
        distance: distance(&axes[first]),
        words: words.into(),
        inside: order.iter().zip(run).map(|(&at, &places)| (places, shared.strides[at])).collect(),
    };
    let left = order.iter().enumerate().map(|(number, &at)| {
        let taken = run.get(number).copied().unwrap_or(1);
        let extent = axes[at].extent / taken;
        let inside = vec![(extent, shared.strides[at] * taken)];
        StepAxis { at, extent, distance: distance(&axes[at]) * taken as i64, words: 1, inside }
    });
    std::iter::once(run_axis).chain(left.filter(|axis| axis.extent > 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Boxes;
    use super::*;
    use crate::layout::Layout;
    use crate::plan::Direction;
    use crate::plan::gpu::GpuPlan;

    /// Row axes, rows at once, steps of the next axis, and of the box: 6 x 10 x 20 floats with their axes reversed, in the order of memory.
    fn steps(threads: u32) -> (usize, u64, u64, u64) {
        let text = "layout lb 0 extent 4800 {\n  %0 = dense 4 x byte\n  %1 = stream 6 x 800 of %0\n  %2 = stream 10 x 80 of %1\n  \
             %3 = stream 20 x 4 of %2\n  root %3\n}";
        let plan = GpuPlan::new(&Layout::parse(text).unwrap());
        let boxes = plan.found::<Boxes>().unwrap().of(Direction::Pack).unwrap();
        let steps = BoxSteps::memory(boxes, 1, threads);
        (steps.row_axes, steps.rows_at_once, steps.next_steps, steps.count)
    }

    #[test]
    fn steps_have_whole_rows() {
        assert_eq!(steps(256), (2, 1, 6, 6));
        assert_eq!(steps(512), (2, 2, 3, 3));
        assert_eq!(steps(2048), (3, 1, 1, 1));
    }

    #[test]
    fn a_row_that_is_longer_than_a_block_takes_several_steps() {
        // 16 threads: two steps of ten places for each of 60 rows.
        assert_eq!(steps(16), (0, 10, 2, 120));
    }
}
