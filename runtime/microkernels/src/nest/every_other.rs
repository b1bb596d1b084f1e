//! Packs of every other word, like the squares of one colour in a row of a chessboard.
//!
//! The shuffle is constant: for short planes, computing one would cost as much as the move.

use core::arch::x86_64::{
    __m512i, _mm512_load_si512, _mm512_loadu_si512, _mm512_permutex2var_epi8, _mm512_permutex2var_epi16,
    _mm512_permutex2var_epi32, _mm512_permutex2var_epi64, _mm512_storeu_si512,
};

use super::rows::prefetch;
use super::shuffled::{Bytes, PlacedNest};
use crate::block::in_order;
use dtc_compiler::plan::strategy::Nest;

/// Bytes of a vector.
const VECTOR: usize = 64;

/// Distance of prefetches on the memory side, in bytes. Measured with words of 8 bytes: a tenth faster in the second-level cache.
const AHEAD: usize = 2048;

/// Fewest bytes of rows that are prefetched: with the gaps between and the packed bytes they fill a first-level cache of 32 KiB.
const PREFETCHED: usize = 10 << 10;

/// Which words of two vectors are packed, where words have `BYTES` bytes.
struct Picks<const BYTES: usize>;

impl<const BYTES: usize> Picks<BYTES> {
    /// Words of a vector.
    const WORDS: usize = VECTOR / BYTES;

    /// The words of two vectors that follow each other.
    const NEXT: Bytes = Self::index(0);

    /// The last words: the second vector ends with them, and so shares a word with the first.
    const LAST: Bytes = Self::index(1);

    /// The index of each word, in the lowest byte of a word. The second vector begins with the last `shared` words of the first.
    const fn index(shared: usize) -> Bytes {
        let (mut index, mut word) = ([0; VECTOR], 0);
        while word < Self::WORDS {
            let place = 2 * word;
            // At most 127, for words of one byte.
            index[word * BYTES] = (if place < Self::WORDS { place } else { place + shared }) as u8;
            word += 1;
        }
        Bytes(index)
    }
}

/// The words of two vectors at an index.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
fn pick<const BYTES: usize>(low: __m512i, index: __m512i, high: __m512i) -> __m512i {
    match BYTES {
        1 => _mm512_permutex2var_epi8(low, index, high),
        2 => _mm512_permutex2var_epi16(low, index, high),
        4 => _mm512_permutex2var_epi32(low, index, high),
        _ => _mm512_permutex2var_epi64(low, index, high),
    }
}

/// Packs every other word of 1, 2, 4 or 8 bytes.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn), and the features of [`Level::Avx512`](crate::Level::Avx512); at least 64 bytes of
/// rows of 1, 2, 4 or 8 bytes, twice that apart.
#[inline(always)]
pub(super) unsafe fn planes(memory: *mut u8, packed: *mut u8, nest: &Nest) {
    // SAFETY: the contract of `planes`, with the length of rows as a constant.
    unsafe {
        match nest.bytes {
            1 => words::<1>(memory, packed, nest),
            2 => words::<2>(memory, packed, nest),
            4 => words::<4>(memory, packed, nest),
            _ => words::<8>(memory, packed, nest),
        }
    }
}

/// Packs every other word of `BYTES` bytes.
///
/// # Safety
///
/// As for [`planes`]; rows have `BYTES` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline(never)]
unsafe fn words<const BYTES: usize>(memory: *mut u8, packed: *mut u8, nest: &Nest) {
    let words = Picks::<BYTES>::WORDS;
    let (next, end) = (&const { Picks::<BYTES>::NEXT }, &const { Picks::<BYTES>::LAST });
    // SAFETY: both are aligned vectors.
    let (next, end) = unsafe { (_mm512_load_si512(next.0.as_ptr().cast()), _mm512_load_si512(end.0.as_ptr().cast())) };
    let (before, last) = ((nest.rows - 1) / words, nest.rows - words);
    let prefetches = nest.planes.saturating_mul(nest.rows * BYTES) >= PREFETCHED;
    for (memory, packed) in (PlacedNest { memory, packed, nest: *nest }).each() {
        // SAFETY: two vectors hold a vector of rows and the gap behind the last, which belongs to the call while a row follows it;
        // there are at least `words` rows, so that the last of them, which may overlap those before, have no gap behind them.
        unsafe {
            for vector in 0..before {
                let memory = memory.add(vector * 2 * VECTOR);
                if prefetches {
                    prefetch(memory.wrapping_add(AHEAD));
                    prefetch(memory.wrapping_add(AHEAD + VECTOR));
                    prefetch(packed.wrapping_add(vector * VECTOR + AHEAD / 2));
                }
                let (low, high) = (_mm512_loadu_si512(memory.cast()), _mm512_loadu_si512(memory.add(VECTOR).cast()));
                _mm512_storeu_si512(packed.add(vector * VECTOR).cast(), pick::<BYTES>(low, next, high));
                in_order();
            }
            let memory = memory.add(last * 2 * BYTES);
            let (low, high) =
                (_mm512_loadu_si512(memory.cast()), _mm512_loadu_si512(memory.add(VECTOR - BYTES).cast()));
            _mm512_storeu_si512(packed.add(last * BYTES).cast(), pick::<BYTES>(low, end, high));
        }
    }
}
