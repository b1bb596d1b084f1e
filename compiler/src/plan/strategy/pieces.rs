//! The pieces of small bodies of loops, and the words that move them.

use crate::plan::step::{Step, StepId};
use smallvec::SmallVec;

/// Most words of a group. More take longer than the loops around their microkernels.
pub(super) const MOST_WORDS: usize = 64;

/// Most words of an element that a thunk moves by straight code. Loads and stores of so many are 0.9 KiB.
const MOST_STRAIGHT_WORDS: usize = 48;

/// Longest piece of a group, in bytes: eight of the widest words. A microkernel moves longer ones faster by itself.
const LONGEST_PIECE: u64 = 512;

/// Most levels of loops inside a group.
const MOST_LEVELS: u32 = 8;

/// Offsets and lengths of pieces, in packed order, and how many words they have.
pub(super) struct ShortPieces {
    pub(super) list: SmallVec<[(i64, u64); MOST_WORDS]>,
    words: usize,
    /// Length of a piece, in bytes, and words of all, at most.
    most: (u64, usize),
}

impl ShortPieces {
    /// The pieces of a step with all that is in it, if they are few and short.
    pub(super) fn of(steps: &[Step], step: StepId) -> Option<ShortPieces> {
        ShortPieces::of_at_most(steps, step, (LONGEST_PIECE, MOST_WORDS))
    }

    /// The pieces of a step that straight code with words of up to 64 bytes moves.
    pub(super) fn straight(steps: &[Step], step: StepId) -> Option<ShortPieces> {
        ShortPieces::of_at_most(steps, step, (u64::MAX, MOST_STRAIGHT_WORDS))
    }

    /// Words of up to 64 bytes that move the pieces.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    fn of_at_most(steps: &[Step], step: StepId, most: (u64, usize)) -> Option<ShortPieces> {
        let mut pieces = ShortPieces { list: SmallVec::new(), words: 0, most };
        pieces.add_step(steps, step, 0, MOST_LEVELS)?;
        Some(pieces)
    }

    /// Whether words of up to 64 bytes are at most half as many as those of straight code: records of 12, 208 and 28 bytes took 11 ns each
    /// by a kernel, and 6 ns as groups (Zen 4).
    pub(super) fn has_wide_words(&self) -> bool {
        let straight: usize = self.list.iter().map(|&(_, bytes)| words_of(bytes).count()).sum();
        2 * self.words <= straight
    }

    /// Adds a piece; `None` if it is too long, or if there are too many words then.
    fn add(&mut self, offset: i64, bytes: u64) -> Option<()> {
        let (longest, most) = self.most;
        // A word has 64 bytes at most.
        if bytes > longest || bytes / 64 > most as u64 {
            return None;
        }
        self.list.push((offset, bytes));
        self.words += group_words_of(bytes).count();
        (self.words <= most).then_some(())
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

/// Widths of the words of groups, in bytes, the widest first. Where vectors are shorter, a word is several of them.
pub const WIDTHS: [usize; 7] = [64, 32, 16, 8, 4, 2, 1];

/// Widths of the words of straight code: Cranelift has no vectors of more than 16 bytes.
const STRAIGHT_WIDTHS: [usize; 5] = [16, 8, 4, 2, 1];

/// The fewest words of a group that cover a piece and nothing else, as [`words_of`].
pub(super) fn group_words_of(bytes: u64) -> impl Iterator<Item = PieceWord> {
    words(&WIDTHS, bytes)
}

/// The fewest words of up to 16 bytes that cover a piece and nothing else. The last word may overlap the one before: within one
/// piece both carry the same bytes.
pub(crate) fn words_of(bytes: u64) -> impl Iterator<Item = PieceWord> {
    words(&STRAIGHT_WIDTHS, bytes)
}

fn words(widths: &[usize], bytes: u64) -> impl Iterator<Item = PieceWord> + use<> {
    let widest = widths.iter().map(|&width| width as u64).find(|&width| width <= bytes).unwrap_or(1);
    let rest = bytes % widest;
    // A tail that is a word itself needs no overlap.
    let tail = (rest > 0).then(|| rest.next_power_of_two());
    let whole = (0..bytes / widest).map(move |index| PieceWord { offset: index * widest, width: widest });
    whole.chain(tail.map(|width| PieceWord { offset: bytes - width, width }))
}
