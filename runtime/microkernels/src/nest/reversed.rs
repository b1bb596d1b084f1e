//! Rows that are in memory in reverse, each right before the one packed before it: vectors reversed in registers.

use core::arch::x86_64::{
    _mm256_loadu_si256, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_setr_epi8, _mm256_setr_epi32,
    _mm256_shuffle_epi8, _mm256_storeu_si256,
};

use crate::block::Block;
use dtc_compiler::plan::strategy::Nest;

/// Bytes of a vector.
const VECTOR: usize = 32;

/// Moves planes of reversed rows of 1, 2, 4 or 8 bytes.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn), on a CPU with AVX2; the rows of a plane fill a vector, and each is right before
/// the one packed before it.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn planes<B: Block, const PACK: bool>(memory: *mut u8, mut packed: *mut u8, nest: &Nest) {
    let Nest { planes, plane_stride, rows, .. } = *nest;
    let last = rows * B::EXACT - VECTOR;
    if last == 0 {
        for plane in 0..planes {
            let memory = memory.wrapping_offset((plane as isize).wrapping_mul(plane_stride));
            let memory = memory.wrapping_sub(VECTOR - B::EXACT);
            // SAFETY: the plane is a vector long on both sides: its rows fill `VECTOR` bytes, of which the first packed is the
            // last in memory (contract of `planes`).
            unsafe {
                if PACK {
                    reverse::<B>(packed, memory);
                } else {
                    reverse::<B>(memory, packed);
                }
                packed = packed.add(VECTOR);
            }
        }
        return;
    }
    for plane in 0..planes {
        // Where the rows of the first packed vector begin: the last of them.
        let memory = memory.wrapping_offset((plane as isize).wrapping_mul(plane_stride));
        let first = memory.wrapping_sub(VECTOR - B::EXACT);
        let mut at = 0;
        // SAFETY: the plane has `last + VECTOR` bytes on both sides (contract of `planes`), and `at` is at most `last`. The last
        // vector may overlap the one before.
        unsafe {
            loop {
                let (memory, packed) = (first.sub(at), packed.add(at));
                if PACK {
                    reverse::<B>(packed, memory);
                } else {
                    reverse::<B>(memory, packed);
                }
                if at == last {
                    break;
                }
                at = (at + VECTOR).min(last);
            }
            packed = packed.add(last + VECTOR);
        }
    }
}

/// Copies a vector with its rows in reverse.
///
/// # Safety
///
/// Both sides are valid for a vector, and the CPU has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn reverse<B: Block>(destination: *mut u8, source: *const u8) {
    // SAFETY: the source is readable for a vector, and the CPU has AVX2 (contract of `reverse`).
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
    // SAFETY: the destination is writable for a vector, and the CPU has AVX2 (contract of `reverse`).
    unsafe { _mm256_storeu_si256(destination.cast(), rows) };
}
