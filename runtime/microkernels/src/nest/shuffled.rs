//! Short rows at short strides: several rows of a few neighbouring vectors at once, in byte shuffles.
//!
//! A group of rows spans up to four vectors of `memory`, with the gaps between the rows, and at most one vector of `packed`.
//! A pack loads the span and gathers its rows with one shuffle for each vector; an unpack spreads the packed vector with one
//! shuffle for each vector of the span and stores it under a mask, so that the gaps stay untouched.

use core::arch::x86_64::{
    __m512i, _mm512_add_epi8, _mm512_and_si512, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epu8_mask, _mm512_cmplt_epu8_mask,
    _mm512_load_si512, _mm512_loadu_si512, _mm512_mask_add_epi8, _mm512_mask_permutexvar_epi8, _mm512_mask_storeu_epi8,
    _mm512_mask_sub_epi8, _mm512_maskz_loadu_epi8, _mm512_mullo_epi16, _mm512_or_si512, _mm512_permutex2var_epi32,
    _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_slli_epi16, _mm512_srli_epi16, _mm512_srli_epi32, _mm512_storeu_si512,
};

use crate::block::masked::low_bits;
use dtc_compiler::plan::strategy::{Group, LONGEST_SHUFFLED_STRIDE as FARTHEST, Nest};

/// Bytes of a vector.
const VECTOR: usize = 64;

/// One vector of bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Bytes(pub(super) [u8; VECTOR]);

/// The quotients and the remainders of 0 to 63 by each divisor up to [`FARTHEST`]; the entry of 0 is unused.
static DIVIDED: [(Bytes, Bytes); FARTHEST + 1] = {
    let mut table = [(Bytes([0; VECTOR]), Bytes([0; VECTOR])); FARTHEST + 1];
    let mut divisor = 1;
    while divisor <= FARTHEST {
        let mut value = 0;
        while value < VECTOR {
            table[divisor].0.0[value] = (value / divisor) as u8;
            table[divisor].1.0[value] = (value % divisor) as u8;
            value += 1;
        }
        divisor += 1;
    }
    table
};

/// A nest at its addresses.
#[derive(Clone, Copy)]
pub(super) struct PlacedNest {
    pub(super) memory: *mut u8,
    pub(super) packed: *mut u8,
    pub(super) nest: Nest,
}

impl PlacedNest {
    /// The addresses of each plane: in memory and packed.
    pub(super) fn each(self) -> impl Iterator<Item = (*mut u8, *mut u8)> {
        let PlacedNest { memory, packed, nest } = self;
        (0..nest.planes).map(move |plane| {
            let memory = memory.wrapping_offset((plane as isize).wrapping_mul(nest.plane_stride));
            (memory, packed.wrapping_add(plane * nest.rows * nest.bytes))
        })
    }
}

/// Moves the planes in groups.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn), and the features of [`Level::Avx512`](crate::Level::Avx512). The stride is at
/// least the length of a row and at most [`FARTHEST`]; the rows of a group span its vectors at most and fill at most one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline(never)]
pub(super) unsafe fn planes<const PACK: bool>(memory: *mut u8, packed: *mut u8, nest: &Nest, group: Group) {
    let (placed, count) = (&PlacedNest { memory, packed, nest: *nest }, group.rows as usize);
    // SAFETY: the strategy chose `group` for these rows: `group.rows` of them span `group.vectors` vectors at most and fill at
    // most one (contract of `planes`).
    unsafe {
        match group.vectors {
            1 => move_planes::<1, PACK>(placed, count),
            2 if PACK && (nest.bytes | nest.stride as usize).is_multiple_of(4) => pack_words(placed, count),
            2 => move_planes::<2, PACK>(placed, count),
            3 => move_planes::<3, PACK>(placed, count),
            _ => move_planes::<4, PACK>(placed, count),
        }
    }
}

/// Packs groups of `count` rows, each spanning two vectors, where lengths and strides are whole words of four bytes: such words
/// can be picked from two vectors in one shuffle.
///
/// # Safety
///
/// As for [`move_planes`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn pack_words(placed: &PlacedNest, count: usize) {
    let (bytes, step) = (placed.nest.bytes, placed.nest.stride as usize);
    let [shuffle, _] = gathering::<2>(bytes, step);
    let index = _mm512_srli_epi32::<2>(_mm512_and_si512(shuffle.index, _mm512_set1_epi32(0xff)));
    let dense = count * bytes;
    // The fewest rows that are as long as the vectors.
    let least = ((2 * VECTOR - bytes).div_ceil(step) + 1).max(VECTOR.div_ceil(bytes)).max(count);
    for (mut memory, mut packed) in placed.each() {
        let mut rows = placed.nest.rows;
        // SAFETY: while `least` rows are left, two whole vectors of `memory` and one of `packed` end before the last row does,
        // since `least` rows are at least as long. After that masks leave out what is beyond.
        unsafe {
            let mut group = || {
                let low = _mm512_loadu_si512(memory.cast());
                let high = _mm512_loadu_si512(memory.add(VECTOR).cast());
                _mm512_storeu_si512(packed.cast(), _mm512_permutex2var_epi32(low, index, high));
                memory = memory.add(count * step);
                packed = packed.add(dense);
            };
            while rows >= least + 3 * count {
                (0..4).for_each(|_| group());
                rows -= 4 * count;
            }
            while rows >= least {
                group();
                rows -= count;
            }
            while rows > 0 {
                let held = rows.min(count);
                let end = (held - 1) * step + bytes;
                let low = _mm512_maskz_loadu_epi8(low_bits(end.min(VECTOR)), memory.cast());
                let beyond = low_bits(end.saturating_sub(VECTOR).min(VECTOR));
                let high = _mm512_maskz_loadu_epi8(beyond, memory.wrapping_add(VECTOR).cast());
                let words = _mm512_permutex2var_epi32(low, index, high);
                _mm512_mask_storeu_epi8(packed.cast(), low_bits(held * bytes), words);
                memory = memory.wrapping_add(held * step);
                packed = packed.add(held * bytes);
                rows -= held;
            }
        }
    }
}

/// Moves planes in groups of `count` rows, each group spanning `N` vectors.
///
/// # Safety
///
/// As for [`planes`]; `count` rows span at most `N` vectors and fill at most one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
unsafe fn move_planes<const N: usize, const PACK: bool>(placed: &PlacedNest, count: usize) {
    let (bytes, step) = (placed.nest.bytes, placed.nest.stride as usize);
    let shuffles = if PACK { gathering::<N>(bytes, step) } else { spreading::<N>(bytes, step) };
    let full = masks::<N, PACK>(&shuffles, bytes, step, count);
    let span = count * step;
    let dense = count * bytes;
    let spare = if PACK { (N * VECTOR / step + 2).max(VECTOR / bytes + 2) } else { VECTOR / bytes + 2 }.max(count);
    for (mut memory, mut packed) in placed.each() {
        let mut rows = placed.nest.rows;
        // SAFETY: while more than `spare` rows are left, N whole vectors of `memory` and one of `packed` end before the last row
        // does: (rows - 1) * step + bytes >= rows * bytes, and `spare` rows are at least as long as the vectors. After that masks
        // leave out what is beyond.
        unsafe {
            while rows > spare {
                if PACK {
                    let mut rows = _mm512_permutexvar_epi8(shuffles[0].index, _mm512_loadu_si512(memory.cast()));
                    for (part, shuffle) in shuffles.iter().enumerate().skip(1) {
                        let vector = _mm512_loadu_si512(memory.add(part * VECTOR).cast());
                        rows = _mm512_mask_permutexvar_epi8(rows, shuffle.inside, shuffle.index, vector);
                    }
                    _mm512_storeu_si512(packed.cast(), rows);
                } else {
                    let rows = _mm512_loadu_si512(packed.cast());
                    for part in 0..N {
                        let spread = _mm512_permutexvar_epi8(shuffles[part].index, rows);
                        _mm512_mask_storeu_epi8(memory.add(part * VECTOR).cast(), full[part], spread);
                    }
                }
                memory = memory.add(span);
                packed = packed.add(dense);
                rows -= count;
            }
            while rows > 0 {
                let held = rows.min(count);
                let there = masks::<N, PACK>(&shuffles, bytes, step, held);
                let here = low_bits(held * bytes);
                if PACK {
                    let mut rows = _mm512_setzero_si512();
                    for part in 0..N {
                        let vector = _mm512_maskz_loadu_epi8(there[part], memory.wrapping_add(part * VECTOR).cast());
                        rows = _mm512_mask_permutexvar_epi8(rows, shuffles[part].inside, shuffles[part].index, vector);
                    }
                    _mm512_mask_storeu_epi8(packed.cast(), here, rows);
                } else {
                    let rows = _mm512_maskz_loadu_epi8(here, packed.cast());
                    for part in 0..N {
                        let spread = _mm512_permutexvar_epi8(shuffles[part].index, rows);
                        _mm512_mask_storeu_epi8(memory.wrapping_add(part * VECTOR).cast(), there[part], spread);
                    }
                }
                memory = memory.wrapping_add(held * step);
                packed = packed.add(held * bytes);
                rows -= held;
            }
        }
    }
}

/// The shuffle between one vector of the span and the vector of packed rows.
#[derive(Clone, Copy)]
struct Shuffle {
    /// For each byte of the result, which byte it is.
    index: __m512i,
    /// Which bytes of the result belong to rows in this vector of the span.
    inside: u64,
}

/// The quotients and remainders of 0 to 63 by `divisor`.
#[target_feature(enable = "avx512f")]
#[inline]
fn divided(divisor: usize) -> (__m512i, __m512i) {
    let (quotients, remainders) = &DIVIDED[divisor.min(FARTHEST)];
    // SAFETY: both are aligned vectors.
    unsafe { (_mm512_load_si512(quotients.0.as_ptr().cast()), _mm512_load_si512(remainders.0.as_ptr().cast())) }
}

/// For each packed byte of a group, its place in the span.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn gathering<const N: usize>(bytes: usize, step: usize) -> [Shuffle; N] {
    let (row, rest) = divided(bytes);
    let place = _mm512_add_epi8(multiply(row, step as i16), rest);
    let vector = _mm512_and_si512(place, _mm512_set1_epi8(!(VECTOR as i8 - 1)));
    core::array::from_fn(|part| {
        let inside = _mm512_cmpeq_epi8_mask(vector, _mm512_set1_epi8((part * VECTOR) as i8));
        // The shuffle looks at the place within the vector alone.
        Shuffle { index: place, inside }
    })
}

/// For each byte of the span, its place among the packed bytes of a group.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn spreading<const N: usize>(bytes: usize, step: usize) -> [Shuffle; N] {
    let (row, rest) = divided(step);
    core::array::from_fn(|part| {
        // Row and rest of the byte `part` vectors on, with at most one carry.
        let (skipped, over) = (part * VECTOR / step, part * VECTOR % step);
        let rest = _mm512_add_epi8(rest, _mm512_set1_epi8(over as i8));
        let row = _mm512_add_epi8(row, _mm512_set1_epi8(skipped as i8));
        let carry = _mm512_cmpge_epu8_mask(rest, _mm512_set1_epi8(step as i8));
        let rest = _mm512_mask_sub_epi8(rest, carry, rest, _mm512_set1_epi8(step as i8));
        let row = _mm512_mask_add_epi8(row, carry, row, _mm512_set1_epi8(1));
        let inside = _mm512_cmplt_epu8_mask(rest, _mm512_set1_epi8(bytes as i8));
        Shuffle { index: _mm512_add_epi8(multiply(row, bytes as i16), rest), inside }
    })
}

/// Which bytes of the span to touch for `count` rows: in a pack gaps between rows may be read, in an unpack only rows are written.
#[inline(always)]
fn masks<const N: usize, const PACK: bool>(
    shuffles: &[Shuffle; N],
    bytes: usize,
    step: usize,
    count: usize,
) -> [u64; N] {
    let end = (count - 1) * step + bytes;
    core::array::from_fn(|part| {
        let within = low_bits(end.saturating_sub(part * VECTOR).min(VECTOR));
        if PACK { within } else { within & shuffles[part].inside }
    })
}

/// The low bytes of the products of each byte with `factor`.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn multiply(bytes: __m512i, factor: i16) -> __m512i {
    let factor = _mm512_set1_epi16(factor);
    let even = _mm512_and_si512(_mm512_mullo_epi16(bytes, factor), _mm512_set1_epi16(0xff));
    let odd = _mm512_slli_epi16::<8>(_mm512_mullo_epi16(_mm512_srli_epi16::<8>(bytes), factor));
    _mm512_or_si512(even, odd)
}
