//! Leaves for one nest of rows, chosen by all of its numbers.
//!
//! The other leaves are chosen by the length of a row alone, so that one serves the parts of a plan and of its fragments, and look
//! at strides and counts in each call. A type that is one nest is often so short that this would take as long as its bytes.

#[cfg(target_arch = "x86_64")]
use super::block::Exact;
use super::{Level, PlanesFn};

/// Planes of rows: the arguments of a [`PlanesFn`] that are known at commit.
#[derive(Clone, Copy, Debug)]
pub struct Nest {
    /// How many planes there are; one for a nest of rows alone.
    pub planes: usize,
    /// From plane to plane, in bytes.
    pub plane_stride: isize,
    /// Rows of a plane.
    pub rows: usize,
    /// From row to row, in bytes.
    pub stride: isize,
    /// Bytes of a row.
    pub bytes: usize,
}

/// The leaf that moves just this nest faster than those that any nest of such rows can be moved by, if there is one. It must be
/// called with these numbers, but for the number of planes.
#[must_use]
pub fn select_nest<const PACK: bool>(level: Level, nest: &Nest) -> Option<PlanesFn> {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Avx512 {
        let apart = nest.stride.unsigned_abs() > super::window::FARTHEST;
        return match (nest.bytes, PACK) {
            (8, _) if super::reversed::are_fours(nest) => Some(avx512::fours::<PACK>),
            (8, true) if apart && nest.rows.is_multiple_of(16) => Some(avx512::sixteens),
            (8, true) if apart => Some(avx512::pairs::<Exact<8>>),
            (16, true) if apart => Some(avx512::pairs::<Exact<16>>),
            (8, false) if apart => Some(avx512::words),
            _ => None,
        };
    }
    let _ = (level, nest);
    None
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::super::block::{Block, Exact};
    use super::super::{pairs, reversed, rows};

    /// Planes of four reversed words.
    ///
    /// # Safety
    ///
    /// As for [`PlanesFn`](super::PlanesFn), with a nest that [`reversed::are_fours`] finds to be such.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe extern "C" fn fours<const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        _rows: usize,
        _stride: isize,
        _bytes: usize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { reversed::fours::<PACK>(memory, packed, planes, plane_stride) }
    }

    /// Packs planes of a multiple of sixteen words.
    ///
    /// # Safety
    ///
    /// As for [`PlanesFn`](super::PlanesFn).
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe extern "C" fn sixteens(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
        _bytes: usize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { pairs::sixteens(memory, packed, planes, plane_stride, rows, stride) }
    }

    /// Packs planes of rows of 8 or 16 bytes.
    ///
    /// # Safety
    ///
    /// As for [`PlanesFn`](super::PlanesFn).
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe extern "C" fn pairs<B: Block>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
        bytes: usize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { pairs::planes(memory, packed, planes, plane_stride, rows, B::new(bytes), stride) }
    }

    /// Unpacks planes of words.
    ///
    /// # Safety
    ///
    /// As for [`PlanesFn`](super::PlanesFn).
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe extern "C" fn words(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
        _bytes: usize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { rows::planes::<Exact<8>, false>(memory, packed, planes, plane_stride, rows, Exact, stride) }
    }
}
