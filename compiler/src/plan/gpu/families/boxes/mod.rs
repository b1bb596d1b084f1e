//! Arrays whose axes are permuted, in boxes that have long runs both in memory and among the packed bytes.
//!
//! A box has all or some places of the axes that are innermost in packed order, and of those that are nearest in memory. It passes through shared memory,
//! so that both sides see whole lines also where single axes are short. (The method of cuTT: Hynninen and Lyakh, 2017, arXiv 1705.01598.)

mod array;
mod banks;
mod cut;
mod shared;
mod steps;

use super::{Generic, Instance, KernelFamily, Query, Tiles, tiles};
use crate::plan::Direction;
use crate::plan::gpu::{Analysis, BANK, Call, Grid, KernelText, Structure, Tuning, signed, word_type};
use array::{Array, Axis};
use banks::Turn;
use minijinja::{Value, context};
use shared::SharedBox;
use std::fmt;
use steps::{BoxSteps, StepAxis};

/// An array with permuted axes, cut into boxes for each direction, where it has boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    packs: Option<SharedBox>,
    unpacks: Option<SharedBox>,
}

impl Structure for Boxes {}

impl Boxes {
    /// The boxes of a direction.
    fn of(&self, direction: Direction) -> Option<&SharedBox> {
        match direction {
            Direction::Pack => self.packs.as_ref(),
            Direction::Unpack => self.unpacks.as_ref(),
        }
    }

    /// Cuts an array with permuted axes.
    fn find(analysis: &Analysis) -> Option<Boxes> {
        let array = Array::find(analysis)?;
        let tuning = &analysis.tuning.boxes;
        let cut = |direction, most| Some(banks::placed(&array.cut(tuning, direction, most)?, analysis));
        let boxes = |direction| {
            // Bytes that threads move one by one on a side have smaller boxes, whose steps are fewer.
            let wide = cut(direction, tuning.box_bytes).filter(|shared| array.word > 1 || !shared.moves_one_by_one());
            let shared = wide.or_else(|| cut(direction, tuning.narrow_box_bytes))?;
            (shared.words() * u64::from(array.word) <= tuning.most_bytes).then_some(shared)
        };
        Some(Boxes { packs: boxes(Direction::Pack), unpacks: boxes(Direction::Unpack) })
    }
}

/// A kernel that moves boxes of arrays with permuted axes through shared memory. Whole elements only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoxesKernel {
    /// Words that a thread moves to or from memory at once, which are neighbours there.
    pub memory: u32,
    /// Words that a thread moves to or from the packed bytes at once.
    pub packed: u32,
}

/// The boxes that a kernel moves.
fn boxes<'a>(instance: &Instance<'a>) -> Option<&'a SharedBox> {
    instance.analysis.found::<Boxes>()?.of(instance.direction)
}

/// The boxes of a layout whose words are aligned on both sides of a call of whole elements, and their kernel.
fn fitting<'a>(query: &Query<'a>) -> Option<(&'a Array, BoxesKernel)> {
    let boxes = query.found::<Boxes>()?.of(query.direction)?;
    let memory = boxes.memory_at_once(query.memory);
    let packed = boxes.packed_at_once(query.packed);
    let fits = query.has_whole_elements() && boxes.cut.word <= query.aligned_word();
    fits.then_some((&boxes.cut, BoxesKernel { memory, packed }))
}

/// A kernel for a call whose boxes have long runs on both sides.
fn serving<'a>(query: &Query<'a>) -> Option<(&'a Array, BoxesKernel)> {
    let tuning = &query.tuning().boxes;
    let long = |cut: &Array| {
        let (memory, packed) = cut.runs();
        memory.min(packed) >= tuning.min_run
    };
    fitting(query).filter(|(cut, _)| long(cut) && query.call.bytes >= tuning.min_bytes)
}

/// Boxes with long runs on both sides, but those that other kernels move faster: packs of planes with so few words that threads find them in the first-level cache,
/// where threads would move one word at a time; packs that tiles store by whole sectors; and unpacks by tiles to places with gaps between them, but to
/// small planes of narrow words.
fn fastest<'a>(query: &Query<'a>) -> Option<(&'a Array, BoxesKernel)> {
    let tuning = &query.tuning().boxes;
    let few = query.found().map(|tiles: &Tiles| tiles.rows.saturating_mul(tiles.columns) < tuning.min_volume);
    let left = |cut: &Array, kernel: &BoxesKernel| {
        if query.unpacks() {
            let tiled = few == Some(false) || cut.word >= tuning.tiled_steps;
            return cut.has_steps() && tiled && tiles::admits(query).is_some();
        }
        let cached = cut.word > 1 && !kernel.moves_at_once(cut) && tiles::has_small_planes(query) && few == Some(true);
        cached || (cut.stores_parts(tuning.run_bytes) && tiles::has_whole_sectors(query))
    };
    serving(query).filter(|(cut, kernel)| !left(cut, kernel))
}

/// Serves calls of boxes that no other kernel moves faster.
pub(super) fn admits(query: &Query<'_>) -> Option<BoxesKernel> {
    fastest(query).map(|(_, kernel)| kernel)
}

/// Whether boxes serve an array of records that kernels for records could move too: of `least` bytes and more, unless threads move several words at once.
pub(super) fn before_records(query: &Query<'_>, least: u64) -> bool {
    let tuning = &query.tuning().boxes;
    fastest(query).is_some_and(|(cut, kernel)| {
        let least = match (kernel.moves_at_once(cut), query.direction) {
            (true, _) => tuning.min_record_at_once,
            (false, Direction::Unpack) => tuning.min_record.max(least),
            (false, Direction::Pack) if cut.word > 1 => tuning.min_packed_record.max(least),
            (false, Direction::Pack) => return false,
        };
        cut.record().is_some_and(|bytes| bytes >= least)
    })
}

impl KernelFamily for BoxesKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(Boxes::find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<BoxesKernel> {
        fitting(query).map(|(_, kernel)| kernel).into_iter().collect()
    }

    fn indices(&self, analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(analysis.granularity.word())
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.boxes.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(boxes(instance)?.cut.grid(instance.analysis.layout.size()))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        let boxes = boxes(instance)?;
        Some(boxes.words() as u32 * boxes.cut.word)
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        instance.may_prefetch() && boxes(instance).is_some_and(|boxes| boxes.cut.run_to_gap().is_some())
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let boxes = boxes(instance)?;
        let resident_blocks = instance.analysis.tuning.boxes.resident_blocks;
        let values = self.values(boxes, instance);
        Some(KernelText { values, resident_blocks, ..KernelText::new("boxes", boxes.cut.word, Vec::new()) })
    }

    fn generic(&self, query: &Query<'_>) -> Generic {
        tiles::generic(query)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("boxes of permuted axes through shared memory")?;
        let BoxesKernel { memory, packed } = self;
        if *memory > 1 || *packed > 1 {
            write!(f, ", {memory} words of memory and {packed} packed ones at once")
        } else {
            Ok(())
        }
    }
}

impl BoxesKernel {
    /// Whether threads move several narrow words at once in memory, and as many as a bank has among the packed bytes.
    fn moves_at_once(&self, cut: &Array) -> bool {
        self.memory > 1 && self.packed * cut.word >= BANK
    }

    fn values(&self, boxes: &SharedBox, instance: &Instance<'_>) -> Value {
        let (layout, tuning) = (&instance.analysis.layout, &instance.analysis.tuning.boxes);
        let cut = &boxes.cut;
        let axis = |at: usize| {
            let Axis { count, stride, packed, extent } = cut.axes[at];
            context! { at, count, extent, stride => signed(stride), packed, boxes => cut.axes[at].boxes() }
        };
        let blocks = cut.block_order(instance.direction, tuning.few_boxes);
        let memory = BoxSteps::memory(boxes, self.memory, instance.threads);
        let packed = BoxSteps::packed(boxes, self.packed, instance.threads);
        let turn = Turn::best(&memory, cut.word, self.memory);
        // Rounds of as many loads: a last one of few takes as long as the others.
        let (loaded, at_once) = if instance.packs() { (&memory, self.memory) } else { (&packed, self.packed) };
        let most_loads = u64::from((tuning.thread_bytes / (cut.word * at_once)).clamp(1, tuning.most_loads));
        context! {
            axes => blocks.iter().map(|&at| axis(at)).collect::<Vec<_>>(),
            nearest => cut.nearest.iter().map(|&at| axis(at)).collect::<Vec<_>>(),
            memory_side => side(&memory, cut.word * self.memory),
            packed_side => side(&packed, cut.word * self.packed),
            turn => context! { threads => turn.threads, parts => turn.parts },
            origin => signed(cut.origin),
            extent => signed(layout.extent()),
            size => layout.size(),
            words => boxes.words(),
            loads => loaded.count.div_ceil(loaded.count.div_ceil(most_loads)),
            parted => cut.run_to_gap().is_some_and(|bytes| bytes <= tuning.parted_run),
            straight_steps => tuning.straight_steps,
            offset_type => if i32::try_from(cut.span()).is_ok() { "int" } else { "i64" },
        }
    }
}

/// The steps of a side for the template, whose threads move `bytes` bytes at once.
fn side(steps: &BoxSteps, bytes: u32) -> Value {
    let axis = |axis: &StepAxis| {
        let StepAxis { at, extent, distance, words, ref inside } = *axis;
        let part = |divisor: &mut u64, &(extent, stride): &(u64, u64)| {
            let part = context! { divisor => *divisor, extent, stride };
            *divisor *= extent;
            Some(part)
        };
        let inside: Vec<Value> = inside.iter().scan(1, part).collect();
        context! { at, extent, words, inside, places => axis.places(), distance => signed(distance) }
    };
    let axes: Vec<Value> = steps.axes.iter().map(axis).collect();
    let (inner, others) = axes.split_at(steps.row_axes);
    let (next, outer) = others.split_at(others.len().min(1));
    context! {
        inner, next, outer,
        run => axes[0],
        parts => (0..steps.axes[0].words).collect::<Vec<_>>(),
        rows_at_once => steps.rows_at_once,
        next_steps => steps.next_steps,
        type => word_type(bytes),
        steps => steps.count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::plan::gpu::{Family, GpuPlan};

    #[test]
    fn places_in_shared_memory_do_not_depend_on_where_an_array_begins() {
        // 24 x 36 x 5 bytes, axes 1 2 0: with a gap, four bytes at once have fewer conflicts, and single ones have as many.
        let found = |root: u64| {
            let text = format!(
                "layout lb 0 extent 5000 {{\n  %0 = dense 1 x byte\n  %1 = stream 24 x 180 of %0\n  %2 = stream 5 x 1 of %1\n  \
                 %3 = stream 36 x 5 of %2\n  root {root}: %3\n}}"
            );
            GpuPlan::new(&Layout::parse(&text).unwrap()).found::<Boxes>().unwrap().clone()
        };
        for (root, direction) in [(1, Direction::Pack), (2, Direction::Unpack), (3, Direction::Pack)] {
            let of = |boxes: &Boxes| boxes.of(direction).map(|shared| (shared.strides.clone(), shared.memory));
            assert_eq!(of(&found(root)), of(&found(0)), "{direction:?} at {root}");
        }
    }

    /// What serves calls of one element of an array: its axes in packed order, the innermost first, as places and bytes of memory between them.
    fn served(word: u64, axes: &[(u64, u64)], direction: Direction) -> Family {
        let mut text = format!("layout lb 0 extent 1000000000 {{\n  %0 = dense {word} x byte\n");
        for (at, (count, stride)) in axes.iter().enumerate() {
            text += &format!("  %{} = stream {count} x {stride} of %{at}\n", at + 1);
        }
        let layout = Layout::parse(&format!("{text}  root %{}\n}}", axes.len())).unwrap();
        GpuPlan::new(&layout).variant(direction, &Call::whole(layout.size())).family
    }

    #[test]
    fn rows_of_odd_length_move_several_bytes_at_once() {
        // 23 x 872 x 49 x 68 bytes, axes 0 1 3 2.
        let axes = [(49, 68), (68, 1), (872, 3332), (23, 2_905_504)];
        for direction in [Direction::Pack, Direction::Unpack] {
            assert_eq!(served(1, &axes, direction), BoxesKernel { memory: 4, packed: 16 }.into(), "{direction:?}");
        }
    }

    #[test]
    fn places_with_gaps_between_them_are_unpacked_by_boxes_where_planes_are_small() {
        let small = [(16, 3_000_000), (18, 8), (26, 152), (30, 4000), (15, 150_000)];
        let large = [(3000, 16_000), (1900, 8)];
        let is_boxes = |axes, direction| matches!(served(4, axes, direction), Family::Boxes(_));
        assert!(is_boxes(&small, Direction::Pack) && is_boxes(&large, Direction::Pack));
        assert!(is_boxes(&small, Direction::Unpack) && !is_boxes(&large, Direction::Unpack));
    }
}
