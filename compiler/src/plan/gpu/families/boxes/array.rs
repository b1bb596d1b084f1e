//! Arrays whose axes are packed in another order than they have in memory.

use crate::layout::{Layout, Node};
use crate::plan::gpu::Analysis;

/// An axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Places on the axis.
    pub(super) count: u64,
    /// Bytes of memory from one place to the next.
    pub(super) stride: i64,
    /// Packed bytes from one place to the next.
    pub(super) packed: u64,
    /// Places of a box.
    pub(super) extent: u64,
}

impl Axis {
    /// Boxes that share the axis.
    pub(super) fn boxes(&self) -> u64 {
        self.count.div_ceil(self.extent)
    }
}

/// Axes at most: a kernel has code for each of them.
const MOST_AXES: usize = 8;

/// Words from one place to the next of the nearest axis, at most: words of 16 bytes that are farther from each other share no granule of 64 bytes. Farther
/// narrow ones were not measured.
const MOST_STEPS: i64 = 4;

/// An array whose axes are permuted, and what a box has of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    /// Bytes of a word: one element.
    pub(super) word: u32,
    /// The axes, the innermost of the packed order first.
    pub(super) axes: Vec<Axis>,
    /// The offset of the first word in memory.
    pub(super) origin: i64,
    /// The axes in the order of memory, by their numbers: the nearest first.
    pub(super) nearest: Vec<usize>,
}

impl Array {
    /// The array that a layout is, in boxes of one word, if packed neighbours are no neighbours in memory, and those of memory are near each other.
    pub(super) fn find(analysis: &Analysis) -> Option<Array> {
        let word = u32::try_from(analysis.row?).ok()?;
        if !word.is_power_of_two() || word > analysis.granularity.word() {
            return None;
        }
        let (axes, origin) = axes(&analysis.layout)?;
        let mut nearest: Vec<usize> = (0..axes.len()).collect();
        nearest.sort_by_key(|&at| axes[at].stride);
        let (near, bytes) = (nearest[0], i64::from(word));
        let steps = axes[near].stride / bytes;
        (near != 0 && steps <= MOST_STEPS && axes[near].stride == steps * bytes).then_some(Array {
            word,
            axes,
            origin,
            nearest,
        })
    }
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
