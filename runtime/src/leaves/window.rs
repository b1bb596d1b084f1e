//! Short rows at short strides: several rows of one 64-byte window in one shuffle.
//!
//! A window of `memory` holds `count` whole rows with the gaps between them. A pack loads it and closes the gaps with one byte
//! shuffle; an unpack opens them and stores under a mask, so that the gaps stay untouched.

use core::arch::x86_64::{
    __m512i, _mm512_add_epi8, _mm512_and_si512, _mm512_cmplt_epu8_mask, _mm512_load_si512, _mm512_loadu_si512,
    _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_mullo_epi16, _mm512_or_si512, _mm512_permutexvar_epi8,
    _mm512_set1_epi8, _mm512_set1_epi16, _mm512_slli_epi16, _mm512_srli_epi16, _mm512_storeu_si512,
};

use super::masked::low_bits;

/// Bytes of a window.
const WINDOW: usize = 64;

/// The longest row that a window may hold two of.
pub(super) const WIDEST: usize = 31;

/// One vector of bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bytes([u8; WINDOW]);

/// The quotients and the remainders of 0 to 63 by each divisor below 64; the entry of 0 is unused.
static DIVIDED: [(Bytes, Bytes); WINDOW] = {
    let mut table = [(Bytes([0; WINDOW]), Bytes([0; WINDOW])); WINDOW];
    let mut divisor = 1;
    while divisor < WINDOW {
        let mut value = 0;
        while value < WINDOW {
            table[divisor].0.0[value] = (value / divisor) as u8;
            table[divisor].1.0[value] = (value % divisor) as u8;
            value += 1;
        }
        divisor += 1;
    }
    table
};

/// Whether a window serves rows of this shape better than one move for each row.
#[inline(always)]
pub(super) fn serves(rows: usize, bytes: usize, stride: isize) -> bool {
    let step = stride as usize;
    // Fewer rows than this do not pay for setting up the shuffle.
    rows >= 8 && bytes >= 1 && bytes <= WIDEST && step >= bytes && step <= WINDOW - bytes && (2 * step + bytes <= WINDOW || bytes > 16)
}

/// Moves the rows of a shape that a window [`serves`].
///
/// # Safety
///
/// The contract of [`RowsFn`](super::RowsFn), and the features of [`Level::Avx512`](super::Level::Avx512).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline(never)]
pub(super) unsafe fn rows<const PACK: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    mut rows: usize,
    bytes: usize,
    stride: isize,
) {
    let step = stride as usize;
    let count = (WINDOW - bytes) / step + 1;
    // A pack asks for each packed byte where it lies in the window, an unpack for each byte of the window where it is packed.
    let (divisor, factor) = if PACK { (bytes, step) } else { (step, bytes) };
    // SAFETY: `serves` has bounded both to 1..64, and the entries are aligned vectors.
    let (quotient, remainder) = unsafe {
        let (quotient, remainder) = DIVIDED.get_unchecked(divisor);
        (_mm512_load_si512(quotient.0.as_ptr().cast()), _mm512_load_si512(remainder.0.as_ptr().cast()))
    };
    let index = _mm512_add_epi8(multiply(quotient, factor as i16), remainder);
    // Which bytes of the window belong to rows, if it holds as many rows as the vector of quotients may say.
    let inside = if PACK { u64::MAX } else { _mm512_cmplt_epu8_mask(remainder, _mm512_set1_epi8(bytes as i8)) };
    let full = inside & low_bits((count - 1) * step + bytes);

    let windows = count * step;
    let dense = count * bytes;
    // SAFETY: while more than `spare` rows are left, a whole vector from here ends before the last row does on either side:
    // (rows - 1) * step + bytes >= 64 and rows * bytes >= 64. After that masks leave out what is beyond.
    unsafe {
        let spare = (WINDOW / bytes + 1).max(count);
        while rows > spare {
            if PACK {
                let window = _mm512_loadu_si512(memory.cast());
                _mm512_storeu_si512(packed.cast(), _mm512_permutexvar_epi8(index, window));
            } else {
                let dense = _mm512_loadu_si512(packed.cast());
                _mm512_mask_storeu_epi8(memory.cast(), full, _mm512_permutexvar_epi8(index, dense));
            }
            memory = memory.add(windows);
            packed = packed.add(dense);
            rows -= count;
        }
        while rows > 0 {
            let held = rows.min(count);
            let there = inside & low_bits((held - 1) * step + bytes);
            let here = low_bits(held * bytes);
            if PACK {
                let window = _mm512_maskz_loadu_epi8(there, memory.cast());
                _mm512_mask_storeu_epi8(packed.cast(), here, _mm512_permutexvar_epi8(index, window));
            } else {
                let dense = _mm512_maskz_loadu_epi8(here, packed.cast());
                _mm512_mask_storeu_epi8(memory.cast(), there, _mm512_permutexvar_epi8(index, dense));
            }
            memory = memory.wrapping_add(held * step);
            packed = packed.add(held * bytes);
            rows -= held;
        }
    }
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
