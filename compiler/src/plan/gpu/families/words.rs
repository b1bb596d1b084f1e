//! Words at their alignment on both sides: most strides, subarrays and lists.
//!
//! Words as wide as the runs are best where lines are full. On sparse strides every word costs a line of its own, and narrow words in large blocks keep more
//! lines in flight.

use super::groups::Groups;
use super::ordered::Disorder;
use super::pieces::{Pieces, in_shorts, in_words};
use super::{Generic, Instance, KernelFamily, Query};
use crate::plan::Direction;
use crate::plan::gpu::tuning::row::Density;
use crate::plan::gpu::{
    AddressFunction, Analysis, Call, Grid, KernelText, LINE, LaunchShape, LibraryPart, Row, RunStatistics, SECTOR,
    SLOT, Tuning, Units, WIDEST, WordsTuning,
};
use minijinja::context;
use std::fmt;

/// A kernel that moves words at their alignment on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordsKernel {
    /// Bytes of a word: 1, 2, 4, 8 or 16.
    pub word: u32,
    /// Threads and words for each.
    pub shape: LaunchShape,
    /// Whether the call may begin or end inside a word, or inside a line of the packed bytes.
    pub cut: bool,
}

impl WordsKernel {
    fn of(word: u32, shape: LaunchShape, call: &Call) -> WordsKernel {
        let cut = !(call.first | call.bytes).is_multiple_of(word.into()) || !call.packed.is_multiple_of(LINE);
        WordsKernel { word, shape, cut }
    }

    /// The same for few multiprocessors, whose blocks move more at a time.
    pub(crate) fn capped(self, tuning: &Tuning) -> WordsKernel {
        let tuning = &tuning.words;
        let unroll = (tuning.capped_bytes / self.word).clamp(1, tuning.capped_unroll);
        WordsKernel { shape: LaunchShape { threads: tuning.capped_threads, unroll }, ..self }
    }

    /// Whether this kernel may serve the calls of another one, because it asks for no more alignment.
    pub(crate) fn covers(&self, other: &WordsKernel) -> bool {
        self.word <= other.word && (self.cut || !other.cut)
    }
}

/// The launch shape of generic kernels that move words.
const GENERIC_SHAPE: LaunchShape = LaunchShape { threads: 256, unroll: 1 };

/// The kernel for words of a size, whatever of lines and words a call cuts.
pub(super) const fn cut(word: u32) -> WordsKernel {
    WordsKernel { word, shape: GENERIC_SHAPE, cut: true }
}

/// Whether words of listed runs, several a thread, are under way while others wait for the list.
fn waits_for_list(direction: Direction, word: u32, runs: &RunStatistics, tuning: &WordsTuning) -> bool {
    let lengths = match direction {
        Direction::Pack => &tuning.listed_pack,
        Direction::Unpack if runs.distance.saturating_mul(2) < runs.mean.saturating_mul(3) => {
            &tuning.listed_dense_unpack
        }
        Direction::Unpack => &tuning.listed_unpack,
    };
    runs.listed && word == 16 && lengths.contains(&runs.mean)
}

/// The row of the table for runs in a direction.
fn row(direction: Direction, runs: &RunStatistics, tuning: &WordsTuning) -> &'static Row {
    let holds = |row: &&Row| row.direction == direction && row.density == runs.density && row.least <= runs.mean;
    tuning.rows.iter().rev().find(holds).unwrap_or(&tuning.rows[0])
}

/// The word that moves the runs of a layout best, no wider than `widest`.
pub(crate) fn best_word(analysis: &Analysis, direction: Direction, widest: u32) -> u32 {
    let (runs, tuning) = (&analysis.runs, &analysis.tuning.words);
    if waits_for_list(direction, widest, runs, tuning) { widest } else { row(direction, runs, tuning).word.min(widest) }
}

/// The launch shape for words of a size, where nothing is requested: packs, copies and accumulations, too.
pub(crate) fn best_shape(analysis: &Analysis, direction: Direction, word: u32) -> LaunchShape {
    let (runs, tuning) = (&analysis.runs, &analysis.tuning.words);
    if waits_for_list(direction, word, runs, tuning) || (word == WIDEST && in_words(analysis, direction, word)) {
        return tuning.listed_shape;
    }
    let (threads, unroll) = row(direction, runs, tuning).shapes[word.trailing_zeros().min(4) as usize];
    LaunchShape { threads, unroll }
}

/// Whether an unpack brings the sectors that it stores in part to the L2 cache before.
fn requests(analysis: &Analysis, direction: Direction) -> bool {
    let Analysis { layout, row, runs, whole_sectors, tuning, .. } = analysis;
    // Elements with short lists are in small calls, too.
    let many = row.is_some() || layout.size() >= tuning.words.prefetched_element;
    // Where sectors have a part of one run alone, inside, the request costs as much as the store.
    let shared = runs.step.saturating_sub(runs.mean) < SECTOR && !runs.step.is_multiple_of(SECTOR);
    let gains = runs.mean > SECTOR || shared;
    direction == Direction::Unpack && many && !whole_sectors && gains
}

/// Whether an array has every byte from its lowest to its highest. Lists of all blocks were as fast with requests.
fn fills_memory(analysis: &Analysis) -> bool {
    if analysis.has_lists() {
        return false;
    }
    let measure = analysis.layout.measure(analysis.layout.root().node);
    measure.size >= measure.high.abs_diff(measure.low)
}

/// The launch shape for words of a size. Unpacks that request sectors have one of their own.
fn shape(analysis: &Analysis, direction: Direction, word: u32) -> LaunchShape {
    let (runs, tuning) = (&analysis.runs, &analysis.tuning.words);
    if word == WIDEST || (runs.mean <= SECTOR && word == 8) || !requests(analysis, direction) {
        return best_shape(analysis, direction, word);
    }
    match runs.density {
        Density::Sparse => tuning.requesting_sparse_shape,
        _ if runs.permuted => tuning.requesting_permuted_shape,
        _ => tuning.requesting_shape,
    }
}

/// The word that serves a call best, if packed bytes are at any alignment.
pub(super) fn preferred(query: &Query<'_>) -> u32 {
    best_word(query.analysis, query.direction, query.word)
}

/// The same for words that are aligned on both sides.
pub(super) fn fitting(query: &Query<'_>) -> u32 {
    preferred(query).min(query.packed)
}

/// Words of a call that are all under way at once, each by a thread of its own, if they are no more than `most`. Such a call takes the latency of the memory,
/// and what is done in between adds to it.
fn under_way_at_once(word: u32, most: u64, query: &Query<'_>) -> Option<WordsKernel> {
    let (bytes, tuning) = (query.call.bytes, &query.tuning().words);
    let fits = bytes < tuning.resident_bytes && bytes / u64::from(word) <= most;
    fits.then(|| WordsKernel::of(word, tuning.resident_shape, &query.call))
}

/// Serves calls whose words are all under way at once, before any structure is made use of.
pub(super) fn resident(query: &Query<'_>) -> Option<WordsKernel> {
    let tuning = &query.tuning().words;
    let ordered = query.unpacks() && query.analysis.has::<Disorder>();
    let most = if ordered { tuning.resident_disordered_words } else { tuning.resident_words };
    under_way_at_once(query.aligned_word(), most, query)
}

/// Serves calls of aligned words, and of bytes and shorts where runs are that short.
pub(super) fn aligned(query: &Query<'_>) -> Option<WordsKernel> {
    let (word, fitting, runs) = (query.word, fitting(query), &query.analysis.runs);
    // Putting a wide word together from bytes costs more than moving words of a few bytes, where runs are as short.
    let short = runs.mean < SLOT
        || (query.analysis.has::<Pieces>() && in_shorts(query, runs.mean))
        || (word == 2 && query.found::<Groups>().is_some_and(Groups::is_listed))
        || (query.unpacks()
            && runs.mean < query.tuning().words.short_unpack[usize::from(word == 2)]
            && u64::from(query.analysis.granularity.starts) < SLOT);
    (fitting >= 4 || (fitting == word && short))
        .then(|| WordsKernel::of(fitting, shape(query.analysis, query.direction, fitting), &query.call))
}

/// Serves calls whose narrow words are all under way at once, where the other way is to put words together from bytes.
pub(super) fn resident_narrow(query: &Query<'_>) -> Option<WordsKernel> {
    let most = query.tuning().words.resident_narrow_words;
    if query.word < 4 { under_way_at_once(query.aligned_word(), most, query) } else { None }
}

impl KernelFamily for WordsKernel {
    fn candidates(query: &Query<'_>) -> Vec<WordsKernel> {
        let most = query.tuning().words.resident_narrow_words;
        let kernels = |word| {
            let kernel = WordsKernel::of(word, shape(query.analysis, query.direction, word), &query.call);
            [Some(kernel), under_way_at_once(word, most, query).filter(|resident| *resident != kernel)]
        };
        let words = [1, 2, 4, 8, 16].into_iter().filter(|&word| word <= query.aligned_word());
        words.flat_map(kernels).flatten().collect()
    }

    fn indices(&self, _analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end() / u64::from(self.word)
    }

    fn threads(&self, _tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        self.shape.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let word = u64::from(self.word);
        // The warps of a pack begin at lines.
        let line = if self.cut && instance.packs() { LINE / word } else { 1 };
        let each = u64::from(instance.threads) * u64::from(self.shape.unroll);
        Some(Grid { word, line, ..Grid::new(Units::Filled, word, each) })
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        // Calls whose words are all under way at once would wait for both.
        let resident = self.shape == instance.analysis.tuning.words.resident_shape;
        // Rows of whole wide words end in the middle of sectors at most, and others store the rest soon. Measured in
        // `bench/results/2026-11-29-gpu-words-of-boxes.md`.
        let filled = self.word == WIDEST && fills_memory(instance.analysis);
        instance.may_prefetch() && !resident && !filled && requests(instance.analysis, instance.direction)
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let elements = AddressFunction::Elements { unit: self.word.into(), run: false };
        // Blocks in any order are at lines that others have blocks of, too.
        let streamed = instance.packs() && instance.analysis.has::<Disorder>();
        let values = context! { unroll => self.shape.unroll, cut => self.cut, streamed };
        let library = if self.prefetches(instance) { vec![LibraryPart::PrefetchEnds] } else { Vec::new() };
        Some(KernelText { values, library, ..KernelText::new("words", self.word, vec![elements]) })
    }

    fn generic(&self, query: &Query<'_>) -> Generic {
        if self.word >= 4 && !Generic::looks_up_bytes(query) { Generic::Words(self.word) } else { Generic::Bytes }
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WordsKernel { word, shape, cut } = self;
        let cut = if *cut { ", for cut calls" } else { "" };
        write!(f, "words of {word} bytes, {} a thread, {} threads a block{cut}", shape.unroll, shape.threads)
    }
}
