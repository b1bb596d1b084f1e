//! Leaves for one nest of rows, chosen by all of its numbers.
//!
//! The other leaves are chosen by the length of a row alone, so that one serves the parts of a plan and of its fragments, and look
//! at strides and counts in each call. A type that is one nest is often so short that this would take as long as its bytes.

use super::Level;

/// Moves a nest: a [`PlanesFn`](super::PlanesFn) for rows of one length.
///
/// # Safety
///
/// See the [safety contract](super#safety-contract-of-every-leaf).
pub type NestFn = unsafe extern "C" fn(
    memory: *mut u8,
    packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    stride: isize,
);

/// Planes of rows: the numbers of a [`NestFn`].
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "there are no such leaves"))]
pub struct Nest {
    /// Bytes of a row.
    pub bytes: usize,
    /// Rows of a plane.
    pub rows: usize,
    /// From row to row, in bytes.
    pub stride: isize,
    /// How many planes there are; one for a nest of rows alone.
    pub planes: usize,
    /// From plane to plane, in bytes.
    pub plane_stride: isize,
}

/// The leaf that moves just this nest faster than those that any nest of such rows can be moved by, if there is one. It must be
/// called with these numbers, or for fewer planes.
#[must_use]
pub fn select_nest<const PACK: bool>(level: Level, nest: &Nest) -> Option<NestFn> {
    #[cfg(target_arch = "x86_64")]
    return x86_64::select::<PACK>(level, nest);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (level, nest);
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::super::block::Exact;
    use super::super::select::prefetches;
    use super::super::{pairs, reversed, rows, window};
    use super::{Level, Nest, NestFn};

    /// The best leaf for a nest.
    pub(super) fn select<const PACK: bool>(level: Level, nest: &Nest) -> Option<NestFn> {
        let stride = nest.stride.unsigned_abs();
        if level < Level::Avx512 || !matches!(nest.bytes, 8 | 16) {
            return None;
        }
        if reversed::are_fours(nest) {
            return Some(fours::<PACK>);
        }
        if stride <= window::FARTHEST {
            return None;
        }
        let unknown = rows::are_unknown(nest.planes.saturating_mul(nest.rows), stride);
        let fetched = prefetches(level)
            && rows::ahead::<Exact<8>, PACK>(nest.planes, nest.plane_stride, nest.rows, nest.stride) != 0;
        match (nest.bytes, PACK) {
            (8, true) if unknown => Some(words::<true>),
            (8, _) if nest.rows.is_multiple_of(16) && !fetched => Some(sixteens::<PACK>),
            (8, true) => Some(pairs_of_8),
            (8, false) => Some(words::<false>),
            (16, true) => Some(pairs_of_16),
            _ => None,
        }
    }

    /// Planes of four reversed words.
    ///
    /// # Safety
    ///
    /// As for [`NestFn`], with the numbers that [`select`] chose it for.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn fours<const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        _: usize,
        _: isize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { reversed::fours::<PACK>(memory, packed, planes, plane_stride) }
    }

    /// Planes of a multiple of sixteen words, in the encoding without AVX: see [`pairs`].
    ///
    /// # Safety
    ///
    /// As for [`NestFn`], with the numbers that [`select`] chose it for.
    unsafe extern "C" fn sixteens<const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { pairs::sixteens::<PACK>(memory, packed, planes, plane_stride, rows, stride) }
    }

    /// A pack of rows of 8 bytes, in the encoding without AVX: see [`pairs`].
    ///
    /// # Safety
    ///
    /// As for [`NestFn`], with the numbers that [`select`] chose it for.
    unsafe extern "C" fn pairs_of_8(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { pairs::planes(memory, packed, planes, plane_stride, rows, Exact::<8>, stride) }
    }

    /// A pack of rows of 16 bytes.
    ///
    /// # Safety
    ///
    /// As for [`NestFn`], with the numbers that [`select`] chose it for.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn pairs_of_16(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { pairs::planes(memory, packed, planes, plane_stride, rows, Exact::<16>, stride) }
    }

    /// Words, one by one.
    ///
    /// # Safety
    ///
    /// As for [`NestFn`], with the numbers that [`select`] chose it for.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn words<const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { rows::planes::<Exact<8>, PACK>(memory, packed, planes, plane_stride, rows, Exact, stride) }
    }
}
