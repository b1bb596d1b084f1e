//! Two or three arrays as one array of pairs or triples, and back, by shuffles of whole lines.
//!
//! A line of each array makes as many lines of pairs or triples. Each of these takes its bytes from the lines of all arrays, one
//! masked shuffle for each, and the way back is the same with other tables.

use core::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_mask_permutexvar_epi8, _mm512_maskz_loadu_epi8, _mm512_maskz_permutexvar_epi8,
    _mm512_setzero_si512, _mm512_storeu_si512,
};

use crate::block::LINE;

/// Where the bytes of each line of a destination come from.
struct Shuffles<const N: usize> {
    /// The place in its line of each byte.
    places: [[u8; LINE]; N],
    /// The bytes that come from each line of the source.
    masks: [[u64; N]; N],
}

impl<const N: usize> Shuffles<N> {
    /// Shuffles for elements of `bytes` bytes: to `N` arrays where `apart`, otherwise from them.
    const fn new(bytes: usize, apart: bool) -> Shuffles<N> {
        let mut shuffles = Shuffles { places: [[0; LINE]; N], masks: [[0; N]; N] };
        let mut line = 0;
        while line < N {
            let mut byte = 0;
            while byte < LINE {
                let (from, place) = if apart {
                    let at = (byte / bytes * N + line) * bytes + byte % bytes;
                    (at / LINE, at % LINE)
                } else {
                    let at = line * LINE + byte;
                    let element = at / bytes;
                    (element % N, element / N * bytes + at % bytes)
                };
                shuffles.places[line][byte] = place as u8;
                shuffles.masks[line][from] |= 1 << byte;
                byte += 1;
            }
            line += 1;
        }
        shuffles
    }
}

/// Arrays of one length, and the array that holds the elements of all in turn.
#[derive(Clone, Copy)]
pub(crate) struct Arrays {
    /// The first element of the first array.
    pub(crate) arrays: *mut u8,
    /// Distance from array to array, in bytes.
    pub(crate) stride: isize,
    /// Elements of an array.
    pub(crate) length: usize,
    /// The array of pairs or triples.
    pub(crate) joined: *mut u8,
}

/// Moves two or three arrays of elements of 1, 2, 4 or 8 bytes, `count` of them: apart where `APART`, otherwise together.
///
/// # Safety
///
/// All elements are valid on both sides, which do not overlap, and the CPU has AVX-512 with VBMI.
#[inline(always)]
pub(crate) unsafe fn elements<const APART: bool>(count: usize, bytes: usize, arrays: &Arrays) {
    // SAFETY: as this function's; the constants are those of the arguments.
    unsafe {
        match (count, bytes) {
            (2, 1) => lines::<2, 1, APART>(arrays),
            (2, 2) => lines::<2, 2, APART>(arrays),
            (2, 4) => lines::<2, 4, APART>(arrays),
            (2, _) => lines::<2, 8, APART>(arrays),
            (_, 1) => lines::<3, 1, APART>(arrays),
            (_, 2) => lines::<3, 2, APART>(arrays),
            (_, 4) => lines::<3, 4, APART>(arrays),
            (..) => lines::<3, 8, APART>(arrays),
        }
    }
}

/// Moves `N` arrays of elements of `BYTES` bytes, a line of each at a time.
///
/// # Safety
///
/// As for [`elements`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn lines<const N: usize, const BYTES: usize, const APART: bool>(arrays: &Arrays) {
    let Arrays { arrays, stride, length, joined } = *arrays;
    let shuffles = const { &Shuffles::<N>::new(BYTES, APART) };
    let mut places = [_mm512_setzero_si512(); N];
    for (vector, places) in places.iter_mut().zip(&shuffles.places) {
        // SAFETY: the table has a line.
        *vector = unsafe { _mm512_loadu_si512(places.as_ptr().cast()) };
    }
    let array = |index: usize, at: usize| arrays.wrapping_offset(stride.wrapping_mul(index as isize)).wrapping_add(at);
    let total = length * BYTES;
    let mut at = 0;
    while at + LINE <= total {
        let mut source = [_mm512_setzero_si512(); N];
        for (index, line) in source.iter_mut().enumerate() {
            let from = if APART { joined.wrapping_add(at * N + index * LINE) } else { array(index, at) };
            // SAFETY: each array has a line from `at` on, and the pairs or triples of those elements are `N` lines.
            *line = unsafe { _mm512_loadu_si512(from.cast()) };
        }
        for (line, (places, masks)) in places.iter().zip(&shuffles.masks).enumerate() {
            let to = if APART { array(line, at) } else { joined.wrapping_add(at * N + line * LINE) };
            // SAFETY: as for the loads.
            unsafe { _mm512_storeu_si512(to.cast(), shuffled(places, masks, &source)) };
        }
        at += LINE;
    }
    if at < total {
        // SAFETY: fewer bytes than a line are left of each array.
        unsafe { rest::<N, APART>(shuffles, &places, array, at, joined.wrapping_add(at * N), total - at) };
    }
}

/// Moves what is left of each array: `left` bytes from `at` on, fewer than a line.
///
/// # Safety
///
/// As for [`elements`], for those elements.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn rest<const N: usize, const APART: bool>(
    shuffles: &Shuffles<N>,
    places: &[__m512i; N],
    array: impl Fn(usize, usize) -> *mut u8,
    at: usize,
    joined: *mut u8,
    left: usize,
) {
    // Bytes of a line of the side that is joined.
    let joined_bytes = |line: usize| (left * N).saturating_sub(line * LINE).min(LINE);
    let mut source = [_mm512_setzero_si512(); N];
    for (index, line) in source.iter_mut().enumerate() {
        let (from, bytes) =
            if APART { (joined.wrapping_add(index * LINE), joined_bytes(index)) } else { (array(index, at), left) };
        // SAFETY: as many bytes are valid, and the load touches no other.
        *line = unsafe { _mm512_maskz_loadu_epi8(first(bytes), from.cast()) };
    }
    for (line, (places, masks)) in places.iter().zip(&shuffles.masks).enumerate() {
        let (to, bytes) =
            if APART { (array(line, at), left) } else { (joined.wrapping_add(line * LINE), joined_bytes(line)) };
        let mut buffer = [0u8; LINE];
        // SAFETY: the buffer is a line. As many bytes are valid at the destination, which is no part of the buffer. A store by a mask
        // would be microcoded on Zen 4.
        unsafe {
            _mm512_storeu_si512(buffer.as_mut_ptr().cast(), shuffled(places, masks, &source));
            core::ptr::copy_nonoverlapping(buffer.as_ptr(), to, bytes);
        }
    }
}

/// A line of the destination.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn shuffled<const N: usize>(places: &__m512i, masks: &[u64; N], source: &[__m512i; N]) -> __m512i {
    let mut line = _mm512_maskz_permutexvar_epi8(masks[0], *places, source[0]);
    for from in 1..N {
        line = _mm512_mask_permutexvar_epi8(line, masks[from], *places, source[from]);
    }
    line
}

/// The mask of the first bytes of a line.
#[inline(always)]
fn first(bytes: usize) -> u64 {
    if bytes >= LINE { u64::MAX } else { (1 << bytes) - 1 }
}
