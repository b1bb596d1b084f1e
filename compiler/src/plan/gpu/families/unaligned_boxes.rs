//! Boxes of bytes and of halves whose runs begin at any address, in aligned words of 4 bytes on both sides.
//!
//! Where an axis has an odd number of places, neighbours are aligned like single words, and a thread that moves one word of the array at a time computes a place for
//! each byte. Here it computes one for an aligned word of 4 bytes, and goes on from there.

use super::{Boxes, Generic, Instance, KernelFamily, Query, boxes, tiles};
use crate::plan::Direction;
use crate::plan::gpu::{Analysis, Grid, KernelText, Tuning, WIDEST, signed};
use minijinja::{Value, context};
use std::fmt;

/// A kernel that moves boxes of arrays with permuted axes through shared memory, in aligned words of 4 bytes that may begin and end inside of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnalignedBoxesKernel;

/// Bytes of the aligned words.
const ALIGNED: u64 = 4;

/// Bytes of shared memory that the place of a run takes.
const RUN_BYTES: u64 = 8;

/// A side of the kernel: the memory, or the packed bytes.
struct BoxSide {
    /// Axes whose places in a box follow each other without gaps, by their numbers, the nearest first. Only the last of them may have places outside of the box.
    inner: Vec<usize>,
    /// The other axes, if a box has several places of them.
    outer: Vec<usize>,
}

impl BoxSide {
    /// The side whose axes are `order`, from the nearest on; from one place of an axis to the next there are `stride` bytes.
    fn new(boxes: &Boxes, order: &[usize], stride: impl Fn(usize) -> u64) -> BoxSide {
        let (mut inner, mut bytes) = (Vec::new(), u64::from(boxes.word));
        for &at in order {
            if stride(at) != bytes {
                break;
            }
            inner.push(at);
            bytes *= boxes.axes[at].extent;
            if boxes.axes[at].extent < boxes.axes[at].count {
                break;
            }
        }
        let several = |at: &usize| boxes.axes[*at].extent > 1 && !inner.contains(at);
        let outer = order.iter().copied().filter(several).collect();
        BoxSide { inner, outer }
    }

    /// Words of a run that no end of the array cuts.
    fn longest(&self, boxes: &Boxes) -> u64 {
        extents(boxes, &self.inner)
    }

    /// Runs of a box.
    fn runs(&self, boxes: &Boxes) -> u64 {
        extents(boxes, &self.outer)
    }

    /// Places of the inner axes and the distance of their neighbours in shared memory, where they have one distance over several axes as one.
    fn distances(&self, boxes: &Boxes, strides: &[u64]) -> Vec<(u64, u64)> {
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for &at in &self.inner {
            let extent = boxes.axes[at].extent;
            match merged.last_mut() {
                Some((places, distance)) if *places * *distance == strides[at] => *places *= extent,
                _ => merged.push((extent, strides[at])),
            }
        }
        merged
    }
}

/// Places of a box on all of some axes.
fn extents(boxes: &Boxes, axes: &[usize]) -> u64 {
    axes.iter().map(|&at| boxes.axes[at].extent).product()
}

/// Both sides of the kernel for boxes, if their places are within reach of 32 bits: memory, and packed bytes.
fn sides(boxes: &Boxes) -> Option<[BoxSide; 2]> {
    let span = boxes.axes.iter().try_fold(0u64, |span, axis| {
        span.checked_add((axis.extent - 1).checked_mul(axis.stride.unsigned_abs().max(axis.packed))?)
    })?;
    let order: Vec<usize> = (0..boxes.axes.len()).collect();
    let memory = BoxSide::new(boxes, &boxes.nearest, |at| boxes.axes[at].stride as u64);
    let packed = BoxSide::new(boxes, &order, |at| boxes.axes[at].packed);
    i32::try_from(span).is_ok().then_some([memory, packed])
}

/// Bytes of shared memory of a box, and with the places of its runs behind it.
fn shared_bytes(boxes: &Boxes, sides: &[BoxSide; 2]) -> (u64, u64) {
    let inside = (boxes.words(1) * u64::from(boxes.word)).next_multiple_of(u64::from(WIDEST));
    let runs: u64 = sides.iter().map(|side| side.runs(boxes)).sum();
    (inside, (inside + runs * RUN_BYTES).next_multiple_of(u64::from(WIDEST)))
}

/// The boxes of a layout of bytes or halves, if they and the places of their runs have room.
fn found(analysis: &Analysis) -> Option<(&Boxes, [BoxSide; 2])> {
    let boxes = analysis.found::<Boxes>().filter(|boxes| u64::from(boxes.word) < ALIGNED)?;
    let sides = sides(boxes)?;
    (shared_bytes(boxes, &sides).1 <= analysis.tuning.boxes.most_bytes).then_some((boxes, sides))
}

/// The boxes that serve a call of whole elements.
fn fitting<'a>(query: &Query<'a>) -> Option<&'a Boxes> {
    let (boxes, _) = found(query.analysis)?;
    (boxes.word <= query.aligned_word() && query.has_whole_elements()).then_some(boxes)
}

/// Serves calls whose boxes have three axes or more, where boxes would move single words among the packed bytes, and less than an aligned word of memory, at once.
/// Halves of three axes are unpacked one by one, as the place of each takes little arithmetic, and tiles are faster where they are full.
pub(super) fn admits(query: &Query<'_>) -> Option<UnalignedBoxesKernel> {
    let (boxes, kernel) = boxes::serving(query)?;
    let (tuning, unpacks) = (&query.tuning().boxes, query.unpacks());
    let axes = boxes.axes.iter().filter(|axis| axis.extent > 1).count();
    let least = if unpacks && boxes.word == 2 { 4 } else { 3 };
    // Two bytes at once are fewer than an aligned word, too; packs of them were not measured.
    let packed = if unpacks { u64::from(kernel.packed * boxes.word) < ALIGNED } else { kernel.packed == 1 };
    let single = packed && u64::from(kernel.memory * boxes.word) < ALIGNED;
    let near = boxes.runs().1 < tuning.most_unaligned_run;
    let tiled = if unpacks {
        tiles::has_full_tiles(query)
    } else {
        tiles::serving(query).is_some() && boxes.near_run() >= tuning.long_single
    };
    let serves = axes >= least && single && near && !tiled && !tiles::has_small_planes(query);
    (serves && fitting(query).is_some()).then_some(UnalignedBoxesKernel)
}

impl KernelFamily for UnalignedBoxesKernel {
    fn candidates(query: &Query<'_>) -> Vec<UnalignedBoxesKernel> {
        fitting(query).map(|_| UnalignedBoxesKernel).into_iter().collect()
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.boxes.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(instance.analysis.found::<Boxes>()?.grid(instance.analysis.layout.size()))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        let (boxes, sides) = found(instance.analysis)?;
        u32::try_from(shared_bytes(boxes, &sides).1).ok()
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let (boxes, sides) = found(instance.analysis)?;
        let values = self.values(boxes, sides, instance);
        Some(KernelText { values, ..KernelText::new("unaligned_boxes", boxes.word, Vec::new()) })
    }

    fn generic(&self, query: &Query<'_>) -> Generic {
        tiles::generic(query)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "boxes of permuted axes through shared memory, in aligned words of {ALIGNED} bytes wherever runs begin"
        )
    }
}

impl UnalignedBoxesKernel {
    fn values(&self, boxes: &Boxes, sides: [BoxSide; 2], instance: &Instance<'_>) -> Value {
        let (layout, tuning) = (&instance.analysis.layout, &instance.analysis.tuning.boxes);
        let strides = boxes.strides(1);
        let axis = |at: usize| {
            let axis = &boxes.axes[at];
            let ragged = !axis.count.is_multiple_of(axis.extent);
            context! {
                at, ragged, count => axis.count, extent => axis.extent, stride => signed(axis.stride), packed => axis.packed,
                shared => strides[at], boxes => axis.boxes(),
            }
        };
        let packed_order: Vec<usize> = (0..boxes.axes.len()).collect();
        let blocks = if instance.packs() { &packed_order } else { &boxes.nearest };
        let parts = ALIGNED / u64::from(boxes.word);
        let side = |side: &BoxSide| {
            // A run may begin at the last word of an aligned one.
            let (longest, runs) = (side.longest(boxes), side.runs(boxes));
            let units = (longest + parts - 1).div_ceil(parts);
            let last = side.inner.last().copied();
            context! {
                units, longest, runs, all => units * runs,
                // The axis whose end may cut the run, and words of the run for each of its places.
                cut => last.map(axis), each => last.map(|at| longest / boxes.axes[at].extent),
                steps => (units * runs).div_ceil(instance.threads.into()),
                distances => side.distances(boxes, &strides),
                outer => side.outer.iter().copied().map(axis).collect::<Vec<_>>(),
            }
        };
        let (box_bytes, shared_bytes) = shared_bytes(boxes, &sides);
        context! {
            axes => blocks.iter().map(|&at| axis(at)).collect::<Vec<_>>(),
            memory_side => side(&sides[0]),
            packed_side => side(&sides[1]),
            ahead => parts,
            parts => (0..parts).collect::<Vec<_>>(),
            origin => signed(boxes.origin),
            extent => signed(layout.extent()),
            size => layout.size(),
            box_bytes, shared_bytes,
            loads => (tuning.thread_bytes / ALIGNED as u32).min(tuning.most_loads),
        }
    }
}
