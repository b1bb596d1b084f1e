//! Groups of words at listed or strided places.

use super::Offset;
use crate::Places;
use crate::block::{Block, Exact, transfer};
use dtc_compiler::plan::strategy::{Word, WordGroup};

/// The places of groups.
trait Placed: Copy {
    /// The place of a group, in bytes.
    ///
    /// # Safety
    ///
    /// `index` is less than the number of groups.
    unsafe fn at(self, index: usize) -> isize;
}

#[derive(Clone, Copy)]
struct Strided(isize);

impl Placed for Strided {
    #[inline(always)]
    unsafe fn at(self, index: usize) -> isize {
        self.0.wrapping_mul(index as isize)
    }
}

#[derive(Clone, Copy)]
struct Listed<'a, O>(&'a [O]);

impl<O: Offset> Placed for Listed<'_, O> {
    #[inline(always)]
    unsafe fn at(self, index: usize) -> isize {
        // SAFETY: there are as many offsets as groups.
        unsafe { *self.0.get_unchecked(index) }.bytes()
    }
}

/// The body of [`groups`](crate::groups).
///
/// # Safety
///
/// The contract of it.
#[inline(always)]
pub(crate) unsafe fn groups<const PACK: bool>(memory: *mut u8, packed: *mut u8, places: Places<'_>, group: &WordGroup) {
    // SAFETY: the same groups, whose number is that of the places.
    unsafe {
        match places {
            Places::Strided { count, stride } => placed::<_, PACK>(memory, packed, Strided(stride), count, group),
            Places::Narrow(offsets) => placed::<_, PACK>(memory, packed, Listed(offsets), offsets.len(), group),
            Places::Wide(offsets) => placed::<_, PACK>(memory, packed, Listed(offsets), offsets.len(), group),
        }
    }
}

/// Moves `count` groups.
///
/// # Safety
///
/// The contract of [`groups`](crate::groups), for `count` places.
#[inline(always)]
unsafe fn placed<P: Placed, const PACK: bool>(
    memory: *mut u8,
    mut packed: *mut u8,
    places: P,
    count: usize,
    group: &WordGroup,
) {
    let (bytes, [sixteens, eights, fours, twos, ones]) = (group.bytes() as usize, group.counts());
    for index in 0..count {
        // SAFETY: `index` is less than `count`. The counts of a group are those of its words, which lie inside its pieces: these
        // are mapped at the place of the group and at its packed bytes (contract of `groups`).
        unsafe {
            let at = memory.wrapping_offset(places.at(index));
            let words = group.words().as_ptr();
            let words = move_words::<16, PACK>(at, packed, words, sixteens);
            let words = move_words::<8, PACK>(at, packed, words, eights);
            let words = move_words::<4, PACK>(at, packed, words, fours);
            let words = move_words::<2, PACK>(at, packed, words, twos);
            move_words::<1, PACK>(at, packed, words, ones);
            packed = packed.add(bytes);
        }
    }
}

/// Moves words of `W` bytes, and returns the word behind them.
///
/// # Safety
///
/// The list has `count` words, which are valid on both sides and do not overlap.
#[inline(always)]
unsafe fn move_words<const W: usize, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    mut words: *const Word,
    count: u8,
) -> *const Word {
    for _ in 0..count {
        // SAFETY: the list has the word (contract of `move_words`).
        unsafe {
            let Word { memory: offset, packed: position } = *words;
            transfer::<_, PACK>(
                Exact::<W>::new(W),
                memory.wrapping_offset(offset as isize),
                packed.wrapping_add(position as usize),
            );
            words = words.add(1);
        }
    }
    words
}
