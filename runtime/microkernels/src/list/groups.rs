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
            Places::Strided { count, stride } => strided::<PACK>(memory, packed, count, stride, group),
            Places::Narrow(offsets) => placed::<_, PACK>(memory, packed, Listed(offsets), offsets.len(), group),
            Places::Wide(offsets) => placed::<_, PACK>(memory, packed, Listed(offsets), offsets.len(), group),
        }
    }
}

/// Bytes of memory and packed bytes that are moved before the next word: half of a small first-level cache.
const STRIP: usize = 16 << 10;

/// Moves `count` groups at a stride, each word of all groups that fit a strip before the next word.
///
/// # Safety
///
/// The contract of [`groups`](crate::groups), for `count` places.
#[inline(always)]
unsafe fn strided<const PACK: bool>(memory: *mut u8, packed: *mut u8, count: usize, stride: isize, group: &WordGroup) {
    let bytes = group.bytes() as usize;
    let span = stride.unsigned_abs().saturating_add(bytes);
    // Few groups need no division.
    let most = if span.saturating_mul(count) <= STRIP { count } else { (STRIP / span).max(1) };
    let mut first = 0;
    while first < count {
        let number = most.min(count - first);
        let memory = memory.wrapping_offset(stride.wrapping_mul(first as isize));
        // SAFETY: the groups from `first` on are `number` of the `count` groups, whose packed bytes follow each other. The counts of a
        // group are those of its words, which lie inside its pieces: these are mapped at the place of each group and at its packed
        // bytes (contract of `groups`).
        unsafe {
            let packed = packed.add(first * bytes);
            let [sixteens, eights, fours, twos, ones] = group.counts();
            let words = group.words().as_ptr();
            let words = columns::<16, PACK>(memory, packed, number, stride, bytes, words, sixteens);
            let words = columns::<8, PACK>(memory, packed, number, stride, bytes, words, eights);
            let words = columns::<4, PACK>(memory, packed, number, stride, bytes, words, fours);
            let words = columns::<2, PACK>(memory, packed, number, stride, bytes, words, twos);
            columns::<1, PACK>(memory, packed, number, stride, bytes, words, ones);
        }
        first += number;
    }
}

/// Moves words of `W` bytes, each of all groups, and returns the word behind them.
///
/// # Safety
///
/// The list has `count` words, each of which is valid on both sides in every one of `groups` groups, and they do not overlap.
#[inline(always)]
unsafe fn columns<const W: usize, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    groups: usize,
    stride: isize,
    bytes: usize,
    mut words: *const Word,
    count: u8,
) -> *const Word {
    for _ in 0..count {
        // SAFETY: the list has the word (contract of `columns`).
        let Word { memory: offset, packed: position } = unsafe { *words };
        words = words.wrapping_add(1);
        let (mut memory, mut packed) =
            (memory.wrapping_offset(offset as isize), packed.wrapping_add(position as usize));
        for _ in 0..groups {
            // SAFETY: the word is valid in each of the groups (contract of `columns`). Both addresses may step outside after the last.
            unsafe { transfer::<_, PACK>(Exact::<W>::new(W), memory, packed) };
            memory = memory.wrapping_offset(stride);
            packed = packed.wrapping_add(bytes);
        }
    }
    words
}

/// Moves `count` listed groups.
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
