//! Rows that lie in memory in reverse, each right before the one packed before it: vectors turned round in registers.

use core::arch::x86_64::{
    _mm256_loadu_si256, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_setr_epi8, _mm256_setr_epi32,
    _mm256_shuffle_epi8, _mm256_storeu_si256,
};

use super::block::Block;

/// Bytes of a vector.
const VECTOR: usize = 32;

/// Moves the planes and says `true` if their rows are reversed and fill a vector.
///
/// # Safety
///
/// The contract of [`PlanesFn`](super::PlanesFn), on a CPU with AVX2.
#[inline(always)]
pub(super) unsafe fn try_planes<B: Block, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    stride: isize,
) -> bool {
    let serves = matches!(B::EXACT, 1 | 2 | 4 | 8) && stride == -(B::EXACT as isize) && rows * B::EXACT >= VECTOR;
    // SAFETY: the caller's guarantee.
    serves && unsafe { self::planes::<B, PACK>(memory, packed, planes, plane_stride, rows) }
}

/// Moves planes of reversed rows of 1, 2, 4 or 8 bytes.
///
/// # Safety
///
/// As for [`try_planes`].
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn planes<B: Block, const PACK: bool>(
    memory: *mut u8,
    mut packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
) -> bool {
    let last = rows * B::EXACT - VECTOR;
    if last == 0 {
        for plane in 0..planes {
            let memory = memory.wrapping_offset((plane as isize).wrapping_mul(plane_stride));
            let memory = memory.wrapping_sub(VECTOR - B::EXACT);
            // SAFETY: the caller guarantees a vector on both sides.
            unsafe {
                if PACK {
                    turn::<B>(packed, memory);
                } else {
                    turn::<B>(memory, packed);
                }
                packed = packed.add(VECTOR);
            }
        }
        return true;
    }
    for plane in 0..planes {
        // Where the rows of the first packed vector begin: the last of them.
        let memory = memory.wrapping_offset((plane as isize).wrapping_mul(plane_stride));
        let first = memory.wrapping_sub(VECTOR - B::EXACT);
        let mut at = 0;
        // SAFETY: the caller guarantees `last + VECTOR` bytes on both sides. The last vector may overlap the one before.
        unsafe {
            loop {
                let (memory, packed) = (first.sub(at), packed.add(at));
                if PACK {
                    turn::<B>(packed, memory);
                } else {
                    turn::<B>(memory, packed);
                }
                if at == last {
                    break;
                }
                at = (at + VECTOR).min(last);
            }
            packed = packed.add(last + VECTOR);
        }
    }
    true
}

/// Copies a vector with its rows in reverse.
///
/// # Safety
///
/// Both sides are valid for a vector, and the CPU has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn turn<B: Block>(destination: *mut u8, source: *const u8) {
    // SAFETY: the caller's guarantee.
    let rows = unsafe { _mm256_loadu_si256(source.cast()) };
    let rows = match B::EXACT {
        8 => _mm256_permute4x64_epi64::<0b00_01_10_11>(rows),
        4 => _mm256_permutevar8x32_epi32(rows, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0)),
        // Bytes move within halves only; then the halves change places.
        bytes => {
            let places = if bytes == 2 {
                _mm256_setr_epi8(
                    14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1, 14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2,
                    3, 0, 1,
                )
            } else {
                _mm256_setr_epi8(
                    15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3,
                    2, 1, 0,
                )
            };
            _mm256_permute4x64_epi64::<0b01_00_11_10>(_mm256_shuffle_epi8(rows, places))
        }
    };
    // SAFETY: the caller's guarantee.
    unsafe { _mm256_storeu_si256(destination.cast(), rows) };
}
