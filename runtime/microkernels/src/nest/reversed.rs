//! Rows that are in memory in reverse, each right before the one packed before it: vectors reversed in registers.

use core::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_setr_epi8,
    _mm256_setr_epi32, _mm256_shuffle_epi8, _mm256_storeu_si256, _mm512_castsi256_si512, _mm512_castsi512_si256,
    _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_permutex_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

use crate::block::{Block, Exact, computed, opaque};
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

/// Moves planes of four reversed words, two planes in a vector.
///
/// # Safety
///
/// The contract of [`PlanesFn`](crate::PlanesFn) for a nest of fours, on a CPU of [`Level::Avx512`](crate::Level::Avx512).
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) unsafe fn fours<const PACK: bool>(memory: *mut u8, mut packed: *mut u8, nest: &Nest) {
    let (mut planes, plane_stride) = (nest.planes, nest.plane_stride);
    let mut memory = memory.wrapping_sub(VECTOR - 8);
    if PACK {
        let [third, fifth, seventh] = [3, 5, 7].map(|planes| opaque(plane_stride * planes));
        while planes >= 8 {
            let offsets = [0, plane_stride, 2 * plane_stride, third, 4 * plane_stride, fifth, 2 * third, seventh];
            let places: [*mut u8; 8] = offsets.map(|offset| memory.wrapping_offset(offset));
            // SAFETY: at least eight planes are left, each of 32 bytes that are mapped on both sides (contract of `PlanesFn`).
            // All are loaded before the first is stored: see `crate::block::lines`.
            unsafe {
                let (first, second) = (joined(places[0], places[1]), joined(places[2], places[3]));
                let (third, last) = (joined(places[4], places[5]), joined(places[6], places[7]));
                _mm512_storeu_si512(packed.cast(), first);
                _mm512_storeu_si512(packed.add(2 * VECTOR).cast(), second);
                _mm512_storeu_si512(packed.add(4 * VECTOR).cast(), third);
                _mm512_storeu_si512(packed.add(6 * VECTOR).cast(), last);
                packed = packed.add(8 * VECTOR);
            }
            memory = memory.wrapping_offset(plane_stride.wrapping_mul(8));
            planes -= 8;
        }
    } else {
        while planes >= 16 {
            // SAFETY: at least 16 planes are left, each of 32 bytes that are mapped on both sides (contract of `PlanesFn`).
            // `memory` may step outside after the last plane.
            unsafe {
                memory = reverse_planes::<8>(memory, packed, plane_stride);
                packed = packed.add(16 * VECTOR);
            }
            planes -= 16;
        }
        while planes >= 2 {
            // SAFETY: at least two planes are left, each of 32 bytes that are mapped on both sides (contract of `PlanesFn`).
            unsafe {
                memory = reverse_planes::<1>(memory, packed, plane_stride);
                packed = packed.add(2 * VECTOR);
            }
            planes -= 2;
        }
    }
    while planes > 0 {
        let (destination, source) = if PACK { (packed, memory) } else { (memory, packed) };
        // SAFETY: at least one plane is left, of 32 bytes that are mapped on both sides (contract of `PlanesFn`).
        unsafe {
            reverse::<Exact<8>>(destination, source);
            packed = packed.add(VECTOR);
        }
        memory = memory.wrapping_offset(plane_stride);
        planes -= 1;
    }
}

/// Unpacks `2 * N` planes of four words, and returns the address of the next plane. All are loaded before the first is stored.
///
/// Each plane's address is computed from the one before. Multiples of the stride from one address took 4 % more time (measured with
/// 200 planes).
///
/// # Safety
///
/// The packed bytes are readable and the planes writable, and the CPU has AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn reverse_planes<const N: usize>(mut memory: *mut u8, packed: *const u8, plane_stride: isize) -> *mut u8 {
    let mut planes = [_mm512_setzero_si512(); N];
    for (place, pair) in planes.iter_mut().enumerate() {
        // SAFETY: `place` is less than `N`, so the two planes are among the `2 * N` readable ones (contract of `reverse_planes`).
        *pair = unsafe { whole(packed.add(place * 2 * VECTOR)) };
    }
    for pair in planes {
        let second = computed(memory.wrapping_offset(plane_stride));
        // SAFETY: two of the `2 * N` planes begin at `memory` and at `second`, and they are writable (contract of
        // `reverse_planes`).
        unsafe { part(memory, second, pair) };
        memory = computed(second.wrapping_offset(plane_stride));
    }
    memory
}

/// Two planes of four words, each in reverse.
///
/// # Safety
///
/// Both are readable, and the CPU has AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn joined(first: *const u8, second: *const u8) -> __m512i {
    // SAFETY: both planes are readable for 32 bytes, and the CPU has AVX-512 (contract of `joined`).
    let (first, second) = unsafe { (_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(second.cast())) };
    _mm512_permutex_epi64::<0b00_01_10_11>(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second))
}

/// Eight packed words as two planes of four, each in reverse.
///
/// # Safety
///
/// They are readable, and the CPU has AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn whole(packed: *const u8) -> __m512i {
    // SAFETY: eight words are readable at `packed`, and the CPU has AVX-512 (contract of `whole`).
    let mut both = _mm512_permutex_epi64::<0b00_01_10_11>(unsafe { _mm512_loadu_si512(packed.cast()) });
    // SAFETY: no instruction. The compiler would reverse each plane by itself, which takes twice as many.
    unsafe {
        core::arch::asm!("/* {} */", inout(zmm_reg) both, options(pure, nomem, nostack, preserves_flags));
    }
    both
}

/// Stores two planes.
///
/// # Safety
///
/// Both are writable, and the CPU has AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn part(first: *mut u8, second: *mut u8, both: __m512i) {
    // SAFETY: both planes are writable for 32 bytes, and the CPU has AVX-512 (contract of `part`).
    unsafe {
        _mm256_storeu_si256(first.cast(), _mm512_castsi512_si256(both));
        _mm256_storeu_si256(second.cast(), _mm512_extracti64x4_epi64::<1>(both));
    }
}
