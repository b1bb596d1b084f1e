//! Groups of words at listed or strided places.

use super::Offset;
use crate::block::{Block, Exact, transfer};
use dtc_compiler::plan::strategy::{WIDTHS, Word, WordGroup};

/// The places of groups in memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub enum Places<'a> {
    /// Groups at one distance.
    Strided {
        /// How many.
        count: usize,
        /// Their distance, in bytes.
        stride: isize,
    },
    /// Groups at listed offsets.
    Narrow(&'a [i32]),
    /// The same with offsets of 64 bits.
    Wide(&'a [i64]),
}

/// Moves groups of words: group `i` is at the place `i` in `memory`, and at `packed + i * group.bytes()`.
///
/// # Safety
///
/// See the [safety contract](crate#safety-contract-of-every-microkernel); the pieces of each group are its blocks.
#[inline(always)]
pub(crate) unsafe fn groups<const PACK: bool>(memory: *mut u8, packed: *mut u8, places: Places<'_>, group: &WordGroup) {
    let bytes = (group.span() as usize).saturating_add(group.bytes() as usize);
    let listed = (STRIP / bytes).clamp(1, LISTED_STRIP);
    // SAFETY: the same groups, whose number is that of the places.
    unsafe {
        match places {
            Places::Strided { count, stride } => {
                let distance = stride.unsigned_abs().saturating_add(group.bytes() as usize);
                // Few groups need no division.
                let strip =
                    if distance.saturating_mul(count) <= STRIP { count } else { (STRIP / distance).max(listed) };
                placed::<_, PACK>(memory, packed, Strided(stride), count, strip, group);
            }
            Places::Narrow(offsets) => {
                placed::<_, PACK>(memory, packed, Listed(offsets), offsets.len(), listed, group);
            }
            Places::Wide(offsets) => {
                placed::<_, PACK>(memory, packed, Listed(offsets), offsets.len(), listed, group);
            }
        }
    }
}

/// Bytes of memory and packed bytes that are moved before the next word: half of a small first-level cache.
const STRIP: usize = 16 << 10;

/// Most listed groups that are moved before the next word. Each is in one or two lines at least: 8 KiB, beside its packed bytes.
const LISTED_STRIP: usize = 64;

/// Fewest groups that are moved word by word. Of fewer, each is moved whole: a loop over as few costs more than its moves.
const FEWEST: usize = 16;

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

/// Moves `count` groups, each word of all groups of a strip before the next word, or group by group if these are few.
///
/// # Safety
///
/// The contract of [`groups`], for `count` places.
#[inline(always)]
unsafe fn placed<P: Placed, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    places: P,
    count: usize,
    strip: usize,
    group: &WordGroup,
) {
    let bytes = group.bytes() as usize;
    if strip.min(count) < FEWEST {
        for index in 0..count {
            // SAFETY: the group is among the `count` groups (contract of `groups`).
            unsafe { one::<PACK>(memory.wrapping_offset(places.at(index)), packed.wrapping_add(index * bytes), group) };
        }
        return;
    }
    const { assert!(matches!(WIDTHS, [64, 32, 16, 8, 4, 2, 1])) }
    let mut first = 0;
    while first < count {
        let strip = Strip { memory, packed, places, first, end: count.min(first + strip), bytes };
        let mut words = group.words().as_ptr();
        macro_rules! of_widths {
            ($($class:literal: $width:literal),*) => {$(
                // SAFETY: the groups of the strip are among the `count` groups. The counts of a group are those of its words, which are
                // inside its pieces: these are mapped at the place of each group and at its packed bytes (contract of `groups`).
                words = unsafe { strip.words::<$width, PACK>(words, group.counts()[$class]) };
            )*};
        }
        of_widths!(0: 64, 1: 32, 2: 16, 3: 8, 4: 4, 5: 2, 6: 1);
        let _ = words;
        first = strip.end;
    }
}

/// Moves one group.
///
/// # Safety
///
/// The contract of [`groups`], for one group at `memory` and `packed`.
#[inline(always)]
unsafe fn one<const PACK: bool>(memory: *mut u8, packed: *mut u8, group: &WordGroup) {
    let mut words = group.words().as_ptr();
    macro_rules! of_widths {
        ($($class:literal: $width:literal),*) => {$(
            for _ in 0..group.counts()[$class] {
                // SAFETY: the counts of a group are those of its words, which are inside its pieces (contract of this function).
                unsafe {
                    let Word { memory: offset, packed: position } = *words;
                    let memory = memory.wrapping_offset(offset as isize);
                    transfer::<_, PACK>(Exact::<$width>::new($width), memory, packed.wrapping_add(position as usize));
                }
                words = words.wrapping_add(1);
            }
        )*};
    }
    of_widths!(0: 64, 1: 32, 2: 16, 3: 8, 4: 4, 5: 2, 6: 1);
    let _ = words;
}

/// Some groups of all.
#[derive(Clone, Copy)]
struct Strip<P> {
    memory: *mut u8,
    packed: *mut u8,
    places: P,
    first: usize,
    end: usize,
    /// Packed bytes of a group.
    bytes: usize,
}

impl<P: Placed> Strip<P> {
    /// Moves words of `W` bytes, each of all groups, and returns the word behind them.
    ///
    /// # Safety
    ///
    /// The list has `count` words, each of which is valid on both sides in every group of the strip, and they do not overlap.
    #[inline(always)]
    unsafe fn words<const W: usize, const PACK: bool>(self, mut words: *const Word, count: u8) -> *const Word {
        let Strip { memory, packed, places, first, end, bytes } = self;
        for _ in 0..count {
            // SAFETY: the list has the word (contract of `words`).
            let Word { memory: offset, packed: position } = unsafe { *words };
            words = words.wrapping_add(1);
            let memory = memory.wrapping_offset(offset as isize);
            let mut packed = packed.wrapping_add(position as usize + first * bytes);
            for index in first..end {
                // SAFETY: the strip has the group, and the word is valid in it (contract of `words`).
                unsafe { transfer::<_, PACK>(Exact::<W>::new(W), memory.wrapping_offset(places.at(index)), packed) };
                packed = packed.wrapping_add(bytes);
            }
        }
        words
    }
}
