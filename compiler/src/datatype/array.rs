//! Subarray and darray as selections along axes.

use super::{Distribution, Order};

/// What one axis of an array contributes: blocks of elements at equal distances, and perhaps a shorter last block.
///
/// The indices are, in order: for `i` in `0..blocks`, `first + i * stride ..` of length `length`, then
/// `first + blocks * stride ..` of length `tail`.
///
/// ```
/// use dtc_compiler::datatype::{Order, axes_of_subarray};
/// let axes = axes_of_subarray(&[10, 8], &[3, 2], &[1, 4], Order::C);
/// assert_eq!((axes[0].first, axes[0].length, axes[0].step), (1, 3, 8));
/// assert_eq!((axes[1].first, axes[1].length, axes[1].step), (4, 2, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisBlocks {
    /// Index of the first element.
    pub first: i64,
    /// Number of whole blocks.
    pub blocks: i64,
    /// Elements of a whole block.
    pub length: i64,
    /// Elements from the start of a block to the start of the next.
    pub stride: i64,
    /// Elements of the last, shorter block; 0 if there is none.
    pub tail: i64,
    /// Array elements from one index of this axis to the next; saturates, so that the caller sees an overflow.
    pub step: i128,
}

impl AxisBlocks {
    /// How many indices are selected.
    pub fn selected(&self) -> i64 {
        self.blocks * self.length + self.tail
    }

    /// The highest selected index, if any is.
    pub fn last(&self) -> Option<i64> {
        if self.tail > 0 {
            Some(self.first + self.blocks * self.stride + self.tail - 1)
        } else if self.blocks > 0 && self.length > 0 {
            Some(self.first + (self.blocks - 1) * self.stride + self.length - 1)
        } else {
            None
        }
    }
}

/// Sets the steps of the axes and puts the slowest axis first, which is the order of packing.
fn finish(mut axes: Vec<AxisBlocks>, sizes: &[i64], order: Order) -> Vec<AxisBlocks> {
    let mut step = 1i128;
    let fastest_first: Vec<usize> = match order {
        Order::C => (0..sizes.len()).rev().collect(),
        Order::Fortran => (0..sizes.len()).collect(),
    };
    for axis in fastest_first {
        axes[axis].step = step;
        step = step.saturating_mul(sizes[axis].into());
    }
    if order == Order::Fortran {
        axes.reverse();
    }
    axes
}

/// The axes of a subarray, slowest first. The arguments have been checked.
///
/// # Standard section
///
/// MPI 4.1, 5.1.3.
pub fn axes_of_subarray(sizes: &[i64], subsizes: &[i64], starts: &[i64], order: Order) -> Vec<AxisBlocks> {
    let axes = subsizes
        .iter()
        .zip(starts)
        .map(|(&length, &first)| AxisBlocks { first, blocks: 1, length, stride: length, tail: 0, step: 0 })
        .collect();
    finish(axes, sizes, order)
}

/// The axes of a darray, slowest first. The arguments have been checked.
///
/// # Standard section
///
/// MPI 4.1, 5.1.4: the process grid is in C order whatever the order of the array.
pub fn axes_of_darray(
    rank: i64,
    gsizes: &[i64],
    distributions: &[Distribution],
    psizes: &[i64],
    order: Order,
) -> Vec<AxisBlocks> {
    let mut coordinates = vec![0; psizes.len()];
    let mut rest = rank;
    for axis in (0..psizes.len()).rev() {
        coordinates[axis] = rest % psizes[axis];
        rest /= psizes[axis];
    }
    let axes = (0..gsizes.len())
        .map(|axis| {
            let (size, processes) = (gsizes[axis], psizes[axis]);
            let length = block_length(distributions[axis], size, processes);
            deal(size, length, processes, coordinates[axis])
        })
        .collect();
    finish(axes, gsizes, order)
}

/// The block length of a distribution, with MPI's defaults.
pub(crate) fn block_length(distribution: Distribution, size: i64, processes: i64) -> i64 {
    match distribution {
        Distribution::Block(None) => ((size - 1) / processes + 1).max(1),
        Distribution::Block(Some(length)) | Distribution::Cyclic(Some(length)) => length,
        Distribution::Cyclic(None) => 1,
        Distribution::None => size.max(1),
    }
}

/// Deals blocks of `length` indices to processes in turn and takes those of one process.
fn deal(size: i64, length: i64, processes: i64, coordinate: i64) -> AxisBlocks {
    // 128 bits: `length` is the caller's and may be anything.
    let (wide_size, wide_length) = (i128::from(size), i128::from(length));
    let stride = wide_length * i128::from(processes);
    let first = wide_length * i128::from(coordinate);
    if first >= wide_size {
        return AxisBlocks { first: 0, blocks: 0, length: 0, stride: 0, tail: 0, step: 0 };
    }
    let remaining = wide_size - first;
    let whole_rounds = remaining / stride;
    let left = remaining - whole_rounds * stride;
    let (blocks, tail) = if left >= wide_length { (whole_rounds + 1, 0) } else { (whole_rounds, left) };
    // Everything is at most `size` now, except strides that are never taken.
    AxisBlocks {
        first: first as i64,
        blocks: blocks as i64,
        length: if blocks > 0 { length } else { 0 },
        stride: i64::try_from(stride).unwrap_or(0),
        tail: tail as i64,
        step: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(axis: &AxisBlocks) -> Vec<i64> {
        let mut all = Vec::new();
        for block in 0..axis.blocks {
            all.extend((0..axis.length).map(|i| axis.first + block * axis.stride + i));
        }
        all.extend((0..axis.tail).map(|i| axis.first + axis.blocks * axis.stride + i));
        all
    }

    #[test]
    fn every_index_is_dealt_once() {
        for size in 1..40 {
            for processes in 1..6 {
                for length in 1..9 {
                    let mut dealt = vec![0; size as usize];
                    for coordinate in 0..processes {
                        let axis = deal(size, length, processes, coordinate);
                        assert_eq!(axis.selected(), indices(&axis).len() as i64);
                        assert_eq!(axis.last(), indices(&axis).last().copied());
                        for index in indices(&axis) {
                            assert_eq!(index / length % processes, coordinate);
                            dealt[index as usize] += 1;
                        }
                    }
                    assert!(dealt.iter().all(|&times| times == 1));
                }
            }
        }
    }

    #[test]
    fn huge_block_lengths_do_not_overflow() {
        assert_eq!(deal(10, i64::MAX, 4, 0).selected(), 10);
        assert_eq!(deal(10, i64::MAX, 4, 3).selected(), 0);
    }
}
