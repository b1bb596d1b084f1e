//! How the threads of a block go through the places of a box.

use super::cut::BoxCut;

/// The steps of a block through a box, in the order of a side.
///
/// A step has whole rows: all places of the nearest axes of the side. A thread keeps its place in a row, and what depends on the step alone is known when the kernel
/// is compiled. More than half of the threads have a place.
pub(super) struct BoxSteps {
    /// The axes along which a box has several places, the nearest first.
    pub(super) axes: Vec<usize>,
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
    /// Steps along the axes of `order`, the nearest first. A thread moves `words` words at once.
    pub(super) fn new(cut: &BoxCut, order: &[usize], words: u32, threads: u32) -> BoxSteps {
        let (words, threads) = (u64::from(words), u64::from(threads));
        let axes: Vec<usize> = order.iter().copied().filter(|&at| cut.axes[at].extent > 1).collect();
        let places = |number: usize| cut.axes[axes[number]].extent / if number == 0 { words } else { 1 };
        let (mut row_axes, mut row) = (0, 1);
        while row_axes < axes.len() && row * places(row_axes) <= threads {
            row *= places(row_axes);
            row_axes += 1;
        }
        let next = if row_axes < axes.len() { places(row_axes) } else { 1 };
        let next_steps = next.div_ceil(threads / row);
        let count = next_steps * (row_axes + 1..axes.len()).map(places).product::<u64>();
        BoxSteps { row_axes, rows_at_once: next.div_ceil(next_steps), next_steps, count, axes }
    }
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
        let cut = plan.found::<Boxes>().unwrap().of(Direction::Pack).unwrap();
        let steps = BoxSteps::new(cut, &cut.nearest, 1, threads);
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
