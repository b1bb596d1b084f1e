//! Arrays whose axes are permuted, in boxes that have long runs both in memory and among the packed bytes.
//!
//! A box has all or some places of the axes that are innermost in packed order, and of those that are nearest in memory. It passes through shared memory,
//! so that both sides see whole lines also where single axes are short. (The method of cuTT: Hynninen and Lyakh, 2017, arXiv 1705.01598.)

use super::{Generic, Instance, KernelFamily, Query, Tiles, tiles};
use crate::layout::{Layout, Node};
use crate::plan::Direction;
use crate::plan::gpu::{
    Analysis, BoxesTuning, Call, Grid, KernelText, LINE, Structure, Tuning, Units, WIDEST, alignment, signed, word_type,
};
use minijinja::{Value, context};
use std::fmt;

/// A kernel that moves boxes of arrays with permuted axes through shared memory. Whole elements only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoxesKernel {
    /// Words that a thread moves to or from memory at once, which are neighbours there.
    pub memory: u32,
    /// Words that a thread moves to or from the packed bytes at once.
    pub packed: u32,
}

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

/// How an array with permuted axes is cut into boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    /// Bytes of a word: one element of the array.
    pub word: u32,
    /// The axes, the innermost of the packed order first.
    pub axes: Vec<Axis>,
    /// The offset of the first word in memory.
    pub(super) origin: i64,
    /// The axes in the order of memory, by their numbers: the nearest first.
    pub(super) nearest: Vec<usize>,
    /// Words that are neighbours in memory wherever they are moved together: a power of two.
    memory: u32,
    /// The same among the packed bytes.
    packed: u32,
    /// Divides where words that are moved together begin in memory, but for the address of element 0.
    starts: u32,
}

impl Structure for Boxes {}

/// Maximum of axes, all of which a kernel has code for.
const MOST_AXES: usize = 8;

impl Boxes {
    /// The axis whose places are neighbours in memory.
    pub(super) fn near(&self) -> usize {
        self.nearest[0]
    }

    /// Bytes of memory that follow each other along the axis whose places are neighbours.
    pub(super) fn near_run(&self) -> u64 {
        self.axes[self.near()].count * u64::from(self.word)
    }

    /// Words of shared memory from one place to the next of each axis: packed order, with a gap behind what is inside of the nearest axis of memory, whose
    /// places are an odd number of `unit` words apart, so that neighbours are in different banks.
    pub(super) fn strides(&self, unit: u64) -> Vec<u64> {
        let mut next: u64 = 1;
        let strides = self.axes.iter().enumerate().map(|(at, axis)| {
            if at == self.near() {
                next = unit * (next.div_ceil(unit) | 1);
            }
            let stride = next;
            next *= axis.extent;
            stride
        });
        strides.collect()
    }

    /// Words of shared memory.
    pub(super) fn words(&self, unit: u64) -> u64 {
        let last = |(axis, stride): (&Axis, u64)| (axis.extent - 1) * stride;
        let last: u64 = self.axes.iter().zip(self.strides(unit)).map(last).sum();
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

/// Rounds the extent of a box along an axis: to all places if there are fewer than four times as many, else so that boxes have one size, or begin at lines
/// if the first does.
fn round(axes: &mut [Axis], at: usize, inside: u64, most: u64) {
    let others = volume(axes) / axes[at].extent;
    let axis = &mut axes[at];
    if axis.count < 4 * axis.extent && axis.count * others <= most {
        axis.extent = axis.count;
    }
    let even = axis.count.div_ceil(axis.boxes());
    let lines = (LINE >> inside.trailing_zeros().min(LINE.trailing_zeros())).max(1);
    axis.extent =
        if axis.count.is_multiple_of(even) || axis.extent < lines { even } else { axis.extent / lines * lines };
}

/// Words of a box.
fn volume(axes: &[Axis]) -> u64 {
    axes.iter().map(|axis| axis.extent).product()
}

/// Cuts an array into boxes.
fn find(analysis: &Analysis) -> Option<Boxes> {
    let (layout, tuning) = (&analysis.layout, &analysis.tuning.boxes);
    let word = u32::try_from(analysis.row?).ok()?;
    if !word.is_power_of_two() || word > analysis.granularity.word() {
        return None;
    }
    let (mut axes, origin) = axes(layout)?;
    let mut nearest: Vec<usize> = (0..axes.len()).collect();
    nearest.sort_by_key(|&at| axes[at].stride);
    let near = nearest[0];
    // Packed neighbours are no neighbours in memory, and those of memory are neighbours.
    if near == 0 || axes[near].stride != i64::from(word) {
        return None;
    }
    let order: Vec<usize> = (0..axes.len()).collect();
    cut(&mut axes, &nearest, &order, word, tuning);
    let divides = |number: u64| 1 << number.trailing_zeros().min(4);
    // Words that are neighbours in every box.
    let memory = divides(axes[near].count | axes[near].extent);
    let packed = divides(axes[0].count | axes[0].extent);
    let places = axes.iter().enumerate().filter(|&(at, _)| at != near);
    let starts = places.fold(layout.extent() as u64 | origin as u64, |bits, (_, axis)| bits | axis.stride as u64);
    let boxes = Boxes { word, axes, origin, nearest, memory, packed, starts: alignment(starts) };
    (volume(&boxes.axes) >= tuning.min_volume && boxes.words(4) * u64::from(word) <= tuning.most_bytes).then_some(boxes)
}

/// Chooses the places of a box: the side with the shorter runs grows first.
fn cut(axes: &mut [Axis], nearest: &[usize], order: &[usize], word: u32, tuning: &BoxesTuning) {
    let most = tuning.box_bytes / u64::from(word);
    loop {
        let runs = [run(axes, nearest, word), run(axes, order, word)];
        let sides = if runs[0] <= runs[1] { [nearest, order] } else { [order, nearest] };
        let long = runs[0].min(runs[1]) >= tuning.run_bytes;
        if long || (!enlarge(axes, sides[0], most) && !enlarge(axes, sides[1], most)) {
            break;
        }
    }
    for side in [nearest, order] {
        let mut inside = u64::from(word);
        for &at in side {
            if axes[at].extent == 1 {
                break;
            }
            round(axes, at, inside, most);
            inside *= axes[at].extent;
        }
    }
}

/// The boxes of a layout whose words are aligned on both sides of a call of whole elements, and their kernel.
fn fitting<'a>(query: &Query<'a>) -> Option<(&'a Boxes, BoxesKernel)> {
    let boxes = query.found::<Boxes>().filter(|boxes| boxes.word <= query.aligned_word())?;
    let most = 4 / boxes.word.min(4);
    let at_once = |words: u32, bytes: u32| words.min(most).min(bytes / boxes.word).max(1);
    let memory = at_once(boxes.memory, boxes.starts.min(query.memory));
    let packed = at_once(boxes.packed, query.packed);
    query.has_whole_elements().then_some((boxes, BoxesKernel { memory, packed }))
}

/// A kernel for a call whose boxes have long runs on both sides.
pub(super) fn serving<'a>(query: &Query<'a>) -> Option<(&'a Boxes, BoxesKernel)> {
    let tuning = &query.tuning().boxes;
    let long = |boxes: &Boxes| {
        let (memory, packed) = boxes.runs();
        memory.min(packed) >= tuning.min_run
    };
    fitting(query).filter(|(boxes, _)| long(boxes) && query.call.bytes >= tuning.min_bytes)
}

/// Serves calls with words of 2 bytes, if threads move two words at once on both sides.
pub(super) fn at_once(query: &Query<'_>) -> Option<BoxesKernel> {
    let (boxes, kernel) = serving(query)?;
    (boxes.word == 2 && kernel.moves_at_once(boxes)).then_some(kernel)
}

/// Serves calls whose boxes have more axes than tiles, unless tiles are full, or whose narrow words move several at once. Tiles of two axes begin at lines of the packed bytes, and boxes do not.
pub(super) fn admits(query: &Query<'_>) -> Option<BoxesKernel> {
    let (boxes, kernel) = serving(query).filter(|_| !tiles::has_small_planes(query))?;
    let (tuning, narrow, near) = (&query.tuning().boxes, boxes.word < 4, boxes.near_run());
    let single = kernel.memory == 1 && near >= tuning.long_single && query.analysis.has::<Tiles>();
    let stored = if narrow {
        kernel.packed > 1 && !single
    } else {
        boxes.runs().1 >= tuning.min_pack_run || tiles::has_small_tiles(query)
    };
    if narrow && kernel.moves_at_once(boxes) {
        return Some(kernel);
    }
    let left = if query.unpacks() { tiles::has_full_tiles(query) } else { !stored };
    if left {
        return None;
    }
    let axes = boxes.axes.iter().filter(|axis| axis.extent > 1).count();
    let whole = boxes.axes[0].extent == boxes.axes[0].count;
    // Tiles store such rows one by one, and boxes store what follows of them in memory as well.
    let short = query.unpacks() && boxes.word > 1 && near < tuning.short_near && !near.is_multiple_of(LINE);
    (axes > 2 || short || (narrow && whole) || !query.analysis.has::<Tiles>()).then_some(kernel)
}

impl KernelFamily for BoxesKernel {
    fn find(analysis: &mut Analysis) {
        analysis.add(find(analysis));
    }

    fn candidates(query: &Query<'_>) -> Vec<BoxesKernel> {
        let Some((_, kernel)) = fitting(query) else { return Vec::new() };
        let single = BoxesKernel { memory: 1, packed: 1 };
        if kernel == single { vec![kernel] } else { vec![kernel, single] }
    }

    fn indices(&self, analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(analysis.granularity.word())
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.boxes.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(instance.analysis.found::<Boxes>()?.grid(instance.analysis.layout.size()))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        let boxes = instance.analysis.found::<Boxes>()?;
        Some(boxes.words(self.bank(boxes)) as u32 * boxes.word)
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let boxes = instance.analysis.found::<Boxes>()?;
        Some(KernelText { values: self.values(boxes, instance), ..KernelText::new("boxes", boxes.word, Vec::new()) })
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
    fn moves_at_once(&self, boxes: &Boxes) -> bool {
        self.memory > 1 && self.packed * boxes.word == 4
    }

    /// Words that a bank of shared memory, or a thread, has of the packed bytes.
    fn bank(&self, boxes: &Boxes) -> u64 {
        u64::from((4 / boxes.word.min(4)).max(self.packed))
    }

    fn values(&self, boxes: &Boxes, instance: &Instance<'_>) -> Value {
        let (layout, tuning) = (&instance.analysis.layout, &instance.analysis.tuning.boxes);
        let strides = boxes.strides(self.bank(boxes));
        let axis = |at: usize| {
            let Axis { count, stride, packed, extent } = boxes.axes[at];
            let ragged = !count.is_multiple_of(extent);
            context! { at, count, extent, ragged, stride => signed(stride), packed, shared => strides[at], boxes => boxes.axes[at].boxes() }
        };
        let packed_order: Vec<usize> = (0..boxes.axes.len()).collect();
        // Blocks that follow each other store neighbours.
        let blocks = if instance.packs() { &packed_order } else { &boxes.nearest };
        let steps = |at_once: u32| (volume(&boxes.axes) / u64::from(at_once)).div_ceil(instance.threads.into());
        // Rounds of as many loads: a last one of few takes as long as the others.
        let most_loads = u64::from((tuning.thread_bytes / boxes.word).clamp(1, tuning.most_loads));
        let load_steps = steps(if instance.packs() { self.memory } else { self.packed });
        let side = |order: &[usize], at_once: u32| {
            let volume = volume(&boxes.axes) / u64::from(at_once);
            let inside = order.iter().copied().filter(|&at| boxes.axes[at].extent > 1);
            context! {
                at_once, volume,
                parts => (0..at_once).collect::<Vec<_>>(),
                type => word_type(boxes.word * at_once),
                steps => steps(at_once),
                axes => inside.map(axis).collect::<Vec<_>>(),
            }
        };
        let reach = |distance: u64| distance < 1 << 31;
        let span = boxes.axes.iter().fold(0u64, |span, axis| {
            span.saturating_add((axis.extent - 1).saturating_mul(axis.stride.unsigned_abs().max(axis.packed)))
        });
        context! {
            axes => blocks.iter().map(|&at| axis(at)).collect::<Vec<_>>(),
            memory_side => side(&boxes.nearest, self.memory),
            packed_side => side(&packed_order, self.packed),
            near_shared => strides[boxes.near()],
            origin => signed(boxes.origin),
            extent => signed(layout.extent()),
            size => layout.size(),
            words => boxes.words(self.bank(boxes)),
            loads => load_steps.div_ceil(load_steps.div_ceil(most_loads)),
            offset_type => if reach(span) { "int" } else { "i64" },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::gpu::GpuPlan;

    fn boxes(places: u64) -> Option<Boxes> {
        let text = format!(
            "layout lb 0 extent {} {{\n  %0 = dense 4 x byte\n  %1 = stream {places} x 1920 of %0\n  %2 = stream 20 x 4 of %1\n  \
             %3 = stream 24 x 80 of %2\n  root %3\n}}",
            places * 1920
        );
        GpuPlan::new(&Layout::parse(&text).unwrap()).found::<Boxes>().cloned()
    }

    #[test]
    fn both_sides_have_long_runs() {
        let (memory, packed) = boxes(50).unwrap().runs();
        assert!(memory >= 512 && packed >= 512, "{memory} and {packed} bytes");
    }

    #[test]
    fn places_are_counted_in_32_bits() {
        assert!(boxes(u64::from(u32::MAX)).is_some());
        assert!(boxes(1 << 32).is_none());
    }
}
