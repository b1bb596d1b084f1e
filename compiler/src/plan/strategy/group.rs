//! Small bodies of loops, as the words that move them.
//!
//! The generic tier moves a list of structs struct by struct: one place is looked up, and the words of the body are at constant
//! distances from it. Words of one width follow each other, so that no branch depends on the lengths of the pieces.

use super::pieces::{MOST_WORDS, ShortPieces, WIDTHS, group_words_of};
use crate::plan::{Plan, StepId};

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
/// assert_eq!((group.bytes(), group.counts()), (16, [0, 0, 0, 1, 2, 0, 0])); // 8 bytes once, 4 twice
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordGroup {
    bytes: u64,
    span: u64,
    words: Box<[Word]>,
    counts: [u8; WIDTHS.len()],
}

impl WordGroup {
    /// The words of a step with all that is in it, if they are few and its pieces are short.
    pub fn of(plan: &Plan, step: StepId) -> Option<WordGroup> {
        WordGroup::new(ShortPieces::of(plan.steps(), step)?, plan.size_of(step))
    }

    /// The words of pieces with this number of packed bytes.
    pub(super) fn new(pieces: ShortPieces, bytes: u64) -> Option<WordGroup> {
        let end = u32::try_from(bytes).ok()?;
        let (mut words, mut counts) = (Vec::with_capacity(MOST_WORDS), [0; WIDTHS.len()]);
        for (width, count) in WIDTHS.into_iter().zip(&mut counts) {
            let mut position = 0;
            for &(offset, bytes) in &pieces.list {
                for word in group_words_of(bytes).filter(|word| word.width as usize == width) {
                    let (memory, packed) = (offset.checked_add(word.offset as i64)?, position + word.offset);
                    words.push(Word { memory: i32::try_from(memory).ok()?, packed: packed as u32 });
                    *count += 1;
                }
                position += bytes;
            }
        }
        let ends = pieces.list.iter().map(|&(offset, bytes)| offset.saturating_add(bytes as i64));
        let (begin, end_of_memory) = (pieces.list.iter().map(|&(offset, _)| offset).min()?, ends.max()?);
        let span = end_of_memory.abs_diff(begin);
        debug_assert!(words.iter().all(|word| word.packed < end) && words.len() <= MOST_WORDS);
        Some(WordGroup { bytes, span, words: words.into(), counts })
    }

    /// Packed bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of memory from the first to the last that is moved.
    #[inline]
    pub fn span(&self) -> u64 {
        self.span
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
