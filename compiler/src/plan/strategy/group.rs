//! Small bodies of loops, as the words that move them.
//!
//! The generic tier moves a list of structs struct by struct: one place is looked up, and the words of the body are at constant
//! distances from it. Words of one width follow each other, so that no branch depends on the lengths of the pieces.

use crate::plan::{Plan, Step, StepId};
use smallvec::SmallVec;

/// Most words of a group. More take longer than the loops around their microkernels.
const MOST_WORDS: usize = 64;

/// Longest piece of a group, in bytes. Microkernels have wider words for longer ones.
const LONGEST_PIECE: u64 = 128;

/// Most levels of loops inside a group.
const MOST_LEVELS: u32 = 8;

/// Widths of words, in bytes, the widest first.
pub const WIDTHS: [usize; 5] = [16, 8, 4, 2, 1];

/// One load and one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Offset in memory from the place of the group, in bytes.
    pub memory: i32,
    /// Packed position inside the group, in bytes.
    pub packed: u32,
}

/// A body of a loop that is moved word by word.
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::{Plan, strategy::WordGroup};
/// let text = "layout lb 0 extent 24 {\n  %0 = runs [(0 4) (8 12)] x byte\n  root %0\n}";
/// let plan = Plan::new(&Layout::parse(text)?);
/// let group = WordGroup::of(&plan, plan.root().step).unwrap();
/// assert_eq!((group.bytes(), group.counts()), (16, [0, 1, 2, 0, 0])); // 8 bytes once, 4 twice
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordGroup {
    bytes: u64,
    words: Box<[Word]>,
    counts: [u8; WIDTHS.len()],
}

/// Whether a step is a group.
pub(super) fn is_group(steps: &[Step], step: StepId) -> bool {
    Pieces::default().add_step(steps, step, 0, MOST_LEVELS).is_some()
}

impl WordGroup {
    /// The words of a step with all that is in it, if they are few and its pieces are short.
    pub fn of(plan: &Plan, step: StepId) -> Option<WordGroup> {
        let mut pieces = Pieces::default();
        pieces.add_step(plan.steps(), step, 0, MOST_LEVELS)?;
        let bytes = plan.size_of(step);
        let end = u32::try_from(bytes).ok()?;
        let (mut words, mut counts) = (Vec::with_capacity(MOST_WORDS), [0; WIDTHS.len()]);
        for (width, count) in WIDTHS.into_iter().zip(&mut counts) {
            let mut position = 0;
            for &(offset, bytes) in &pieces.list {
                for word in words_of(bytes).filter(|word| word.width as usize == width) {
                    let (memory, packed) = (offset.checked_add(word.offset as i64)?, position + word.offset);
                    words.push(Word { memory: i32::try_from(memory).ok()?, packed: packed as u32 });
                    *count += 1;
                }
                position += bytes;
            }
        }
        debug_assert!(words.iter().all(|word| word.packed < end) && words.len() <= MOST_WORDS);
        Some(WordGroup { bytes, words: words.into(), counts })
    }

    /// Packed bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The words, those of one width after the other, in the order of [`WIDTHS`].
    #[inline]
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// How many words each of the [`WIDTHS`] has.
    #[inline]
    pub fn counts(&self) -> [u8; WIDTHS.len()] {
        self.counts
    }
}

/// Offsets and lengths of pieces, in packed order, and how many words they have.
#[derive(Default)]
struct Pieces {
    list: SmallVec<[(i64, u64); MOST_WORDS]>,
    words: usize,
}

impl Pieces {
    /// Adds a piece; `None` if it is too long, or if there are too many words then.
    fn add(&mut self, offset: i64, bytes: u64) -> Option<()> {
        if bytes > LONGEST_PIECE {
            return None;
        }
        self.list.push((offset, bytes));
        self.words += words_of(bytes).count();
        (self.words <= MOST_WORDS).then_some(())
    }

    /// Adds the pieces of a step at an offset, with up to `levels` loops around them; `None` if they are too many or too long.
    fn add_step(&mut self, steps: &[Step], id: StepId, offset: i64, levels: u32) -> Option<()> {
        let below = levels.checked_sub(1)?;
        let at = |offset: i64, index: u64, stride: i64| offset.checked_add((index as i64).checked_mul(stride)?);
        match &steps[id.index()] {
            Step::Nothing | Step::Tile { .. } => None,
            Step::Copy { bytes } => self.add(offset, *bytes),
            Step::Rows { rows, stride, bytes } => {
                (0..*rows).try_for_each(|row| self.add(at(offset, row, *stride)?, *bytes))
            }
            Step::Planes { planes, plane_stride, rows, stride, bytes } => (0..*planes).try_for_each(|plane| {
                let plane = at(offset, plane, *plane_stride)?;
                (0..*rows).try_for_each(|row| self.add(at(plane, row, *stride)?, *bytes))
            }),
            Step::List { offsets, bytes } => {
                (0..offsets.len()).try_for_each(|block| self.add(offset.checked_add(offsets.get(block))?, *bytes))
            }
            Step::Runs(table) => {
                table.runs.iter().try_for_each(|run| self.add(offset.checked_add(run.offset)?, run.count))
            }
            Step::Repeat { count, stride, body } => {
                (0..*count).try_for_each(|copy| self.add_step(steps, *body, at(offset, copy, *stride)?, below))
            }
            Step::Scatter { offsets, body } => (0..offsets.len())
                .try_for_each(|copy| self.add_step(steps, *body, offset.checked_add(offsets.get(copy))?, below)),
            Step::Sequence { parts } => parts
                .iter()
                .try_for_each(|part| self.add_step(steps, part.step, offset.checked_add(part.offset)?, below)),
        }
    }
}

/// One load and one store of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceWord {
    /// From the start of the piece, in bytes.
    pub(crate) offset: u64,
    /// What is loaded and stored, in bytes.
    pub(crate) width: u64,
}

/// The fewest words of up to 16 bytes that cover a piece and nothing else. The last word may overlap the one before: within one
/// piece both carry the same bytes.
pub(crate) fn words_of(bytes: u64) -> impl Iterator<Item = PieceWord> {
    let widest = [16, 8, 4, 2, 1].into_iter().find(|&width| width <= bytes).unwrap_or(1);
    let rest = bytes % widest;
    // A tail that is a word itself needs no overlap.
    let tail = (rest > 0).then(|| rest.next_power_of_two());
    let whole = (0..bytes / widest).map(move |index| PieceWord { offset: index * widest, width: widest });
    whole.chain(tail.map(|width| PieceWord { offset: bytes - width, width }))
}
