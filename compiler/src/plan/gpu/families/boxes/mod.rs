//! Arrays whose axes are permuted, in boxes that have long runs both in memory and among the packed bytes.
//!
//! A box has all or some places of the axes that are innermost in packed order, and of those that are nearest in memory. It passes through shared memory,
//! so that both sides see whole lines also where single axes are short. (The method of cuTT: Hynninen and Lyakh, 2017, arXiv 1705.01598.)

mod cut;
mod steps;

pub use cut::{Axis, BoxCut, Boxes};

use super::{Generic, Instance, KernelFamily, Query, Tiles, tiles};
use crate::plan::Direction;
use crate::plan::gpu::{Analysis, BANK, Call, Grid, KernelText, Tuning, signed, word_type};
use minijinja::{Value, context};
use std::fmt;
use steps::BoxSteps;

/// A kernel that moves boxes of arrays with permuted axes through shared memory. Whole elements only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoxesKernel {
    /// Words that a thread moves to or from memory at once, which are neighbours there.
    pub memory: u32,
    /// Words that a thread moves to or from the packed bytes at once.
    pub packed: u32,
}

/// The boxes that a kernel moves.
fn cut<'a>(instance: &Instance<'a>) -> Option<&'a BoxCut> {
    instance.analysis.found::<Boxes>()?.of(instance.direction)
}

/// The boxes of a layout whose words are aligned on both sides of a call of whole elements, and their kernel.
fn fitting<'a>(query: &Query<'a>) -> Option<(&'a BoxCut, BoxesKernel)> {
    let cut = query.found::<Boxes>()?.of(query.direction).filter(|cut| cut.word <= query.aligned_word())?;
    let most = BANK / cut.word.min(BANK);
    let at_once = |words: u32, bytes: u32| words.min(most).min(bytes / cut.word).max(1);
    let memory = at_once(cut.memory, cut.starts.min(query.memory));
    let packed = at_once(cut.packed, query.packed);
    query.has_whole_elements().then_some((cut, BoxesKernel { memory, packed }))
}

/// A kernel for a call whose boxes have long runs on both sides.
fn serving<'a>(query: &Query<'a>) -> Option<(&'a BoxCut, BoxesKernel)> {
    let tuning = &query.tuning().boxes;
    let long = |cut: &BoxCut| {
        let (memory, packed) = cut.runs();
        memory.min(packed) >= tuning.min_run
    };
    fitting(query).filter(|(cut, _)| long(cut) && query.call.bytes >= tuning.min_bytes)
}

/// Serves calls whose boxes have long runs on both sides, but packs of planes with so few words that threads find them in the first-level cache, unless they move
/// several words at once, and packs that tiles store by whole sectors. Bytes take as long one by one as through shared memory.
pub(super) fn admits(query: &Query<'_>) -> Option<BoxesKernel> {
    let tuning = &query.tuning().boxes;
    let left = |cut: &BoxCut, kernel: &BoxesKernel| {
        let few = |tiles: &Tiles| tiles.rows.saturating_mul(tiles.columns) < tuning.min_volume;
        let cached = cut.word > 1
            && !kernel.moves_at_once(cut)
            && tiles::has_small_planes(query)
            && query.found().is_some_and(few);
        !query.unpacks() && (cached || (cut.stores_parts(tuning.run_bytes) && tiles::has_whole_sectors(query)))
    };
    serving(query).filter(|(cut, kernel)| !left(cut, kernel)).map(|(_, kernel)| kernel)
}

/// Whether boxes serve an array of records of `least` bytes and more that kernels for records could move too.
pub(super) fn before_records(query: &Query<'_>, least: u64) -> bool {
    let tuning = &query.tuning().boxes;
    serving(query).is_some_and(|(cut, kernel)| {
        let own = if kernel.moves_at_once(cut) { tuning.min_record_at_once } else { tuning.min_record };
        cut.record() >= own.max(least)
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
        Some(cut(instance)?.grid(instance.analysis.layout.size()))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        let cut = cut(instance)?;
        Some(cut.words() as u32 * cut.word)
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let cut = cut(instance)?;
        let resident_blocks = instance.analysis.tuning.boxes.resident_blocks;
        let values = self.values(cut, instance);
        Some(KernelText { values, resident_blocks, ..KernelText::new("boxes", cut.word, Vec::new()) })
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
    fn moves_at_once(&self, cut: &BoxCut) -> bool {
        self.memory > 1 && self.packed * cut.word == BANK
    }

    fn values(&self, cut: &BoxCut, instance: &Instance<'_>) -> Value {
        let (layout, tuning) = (&instance.analysis.layout, &instance.analysis.tuning.boxes);
        let strides = cut.strides();
        let axis = |at: usize| {
            let Axis { count, stride, packed, extent } = cut.axes[at];
            context! { at, count, extent, stride => signed(stride), packed, shared => strides[at], boxes => cut.axes[at].boxes() }
        };
        let packed_order: Vec<usize> = (0..cut.axes.len()).collect();
        let blocks = cut.block_order(instance.direction, tuning.few_boxes);
        let memory = BoxSteps::new(cut, &cut.nearest, self.memory, instance.threads);
        let packed = BoxSteps::new(cut, &packed_order, self.packed, instance.threads);
        // Rounds of as many loads: a last one of few takes as long as the others.
        let most_loads = u64::from((tuning.thread_bytes / cut.word).clamp(1, tuning.most_loads));
        let load_steps = if instance.packs() { memory.count } else { packed.count };
        let side = |steps: &BoxSteps, at_once: u32| {
            // Threads count the places of the nearest axis in the words that they move at once.
            let counted = |(number, &at): (usize, &usize)| {
                let words = if number == 0 { at_once.into() } else { 1 };
                context! { words, places => cut.axes[at].extent / words, ..axis(at) }
            };
            let axes: Vec<Value> = steps.axes.iter().enumerate().map(counted).collect();
            let (inner, others) = axes.split_at(steps.row_axes);
            let (next, outer) = others.split_at(others.len().min(1));
            context! {
                at_once, axes, inner, next, outer,
                rows_at_once => steps.rows_at_once,
                next_steps => steps.next_steps,
                parts => (0..at_once).collect::<Vec<_>>(),
                type => word_type(cut.word * at_once),
                steps => steps.count,
            }
        };
        context! {
            axes => blocks.iter().map(|&at| axis(at)).collect::<Vec<_>>(),
            memory_side => side(&memory, self.memory),
            packed_side => side(&packed, self.packed),
            near_shared => strides[cut.near()],
            origin => signed(cut.origin),
            extent => signed(layout.extent()),
            size => layout.size(),
            words => cut.words(),
            loads => load_steps.div_ceil(load_steps.div_ceil(most_loads)),
            straight_steps => tuning.straight_steps,
            offset_type => if i32::try_from(cut.span()).is_ok() { "int" } else { "i64" },
        }
    }
}
