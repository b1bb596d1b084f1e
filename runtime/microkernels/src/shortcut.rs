//! Better ways of a level for some strides of a shape, tried before its general loop.
//!
//! A leaf is selected by block size alone, so what depends on the strides is decided here, at the call, by a few comparisons.

use super::block::Block;

/// The shortcuts of a level. Each function moves everything and says `true`, or moves nothing and says `false`.
///
/// The safety contract of each function is that of the leaf it shortens, on a CPU of the level.
#[expect(unused_variables, reason = "the default of every function is to decline")]
pub(super) trait Shortcut {
    /// Rows at one stride.
    #[inline(always)]
    unsafe fn rows<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        rows: usize,
        block: B,
        stride: isize,
    ) -> bool {
        false
    }

    /// Planes of rows.
    #[inline(always)]
    unsafe fn planes<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        block: B,
        stride: isize,
    ) -> bool {
        false
    }

    /// Tiles.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "two levels and the pitch")]
    unsafe fn tile<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        outer: usize,
        outer_stride: isize,
        inner: usize,
        inner_stride: isize,
        block: B,
        pitch: usize,
    ) -> bool {
        false
    }

    /// Listed blocks: how many of the first it has moved.
    #[inline(always)]
    unsafe fn list<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        offsets: *const i32,
        count: usize,
    ) -> usize {
        0
    }
}

/// No shortcuts.
pub(super) struct None;

impl Shortcut for None {}

/// Reversed rows.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Shortcut for Avx2 {
    #[inline(always)]
    unsafe fn rows<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        rows: usize,
        _: B,
        stride: isize,
    ) -> bool {
        // SAFETY: the caller's guarantee.
        unsafe { super::reversed::try_planes::<B, PACK>(memory, packed, 1, 0, rows, stride) }
    }

    #[inline(always)]
    unsafe fn planes<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        _: B,
        stride: isize,
    ) -> bool {
        // SAFETY: the caller's guarantee.
        unsafe { super::reversed::try_planes::<B, PACK>(memory, packed, planes, plane_stride, rows, stride) }
    }
}

/// Reversed rows, shuffles of short rows, gathers and transposed tiles.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Shortcut for Avx512 {
    #[inline(always)]
    unsafe fn rows<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        rows: usize,
        block: B,
        stride: isize,
    ) -> bool {
        // SAFETY: the caller's guarantee.
        unsafe { Self::planes::<B, PACK>(memory, packed, 1, 0, rows, block, stride) }
    }

    #[inline(always)]
    unsafe fn planes<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        block: B,
        stride: isize,
    ) -> bool {
        use super::{gather, pairs, reversed, window};
        let bytes = block.bytes();
        // SAFETY: the caller's guarantee.
        unsafe {
            B::EXACT <= window::WIDEST
                && window::try_planes::<PACK>(memory, packed, planes, plane_stride, rows, bytes, stride)
                || reversed::try_planes::<B, PACK>(memory, packed, planes, plane_stride, rows, stride)
                || PACK && pairs::try_planes::<B>(memory, packed, planes, plane_stride, rows, block, stride)
                || PACK && gather::try_planes::<B>(memory, packed, planes, plane_stride, rows, block, stride)
        }
    }

    #[inline(always)]
    unsafe fn list<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        offsets: *const i32,
        count: usize,
    ) -> usize {
        // SAFETY: the caller's guarantee.
        if PACK { unsafe { super::gather::list::<B>(memory, packed, offsets, count) } } else { 0 }
    }

    #[inline(always)]
    unsafe fn tile<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        outer: usize,
        outer_stride: isize,
        inner: usize,
        inner_stride: isize,
        block: B,
        pitch: usize,
    ) -> bool {
        use super::transpose::tile;
        const MANY: usize = 1 << 14;
        if outer_stride != B::EXACT as isize {
            return false;
        }
        // SAFETY: the caller's guarantee, and the elements of a row are neighbours.
        unsafe {
            match B::EXACT {
                4 => tile::<B, 16, PACK>(memory, packed, outer, inner, inner_stride, block, pitch),
                8 => tile::<B, 8, PACK>(memory, packed, outer, inner, inner_stride, block, pitch),
                // A pack of many such elements is faster without transposing.
                16 if !PACK || outer.saturating_mul(inner) <= MANY => {
                    tile::<B, 4, PACK>(memory, packed, outer, inner, inner_stride, block, pitch)
                }
                _ => return false,
            }
        }
        true
    }
}

/// The shortcuts of [`Avx512`] without gathers, and with masked stores where `MASKS`.
#[cfg(target_arch = "x86_64")]
pub(super) struct Zen<const MASKS: bool>;

#[cfg(target_arch = "x86_64")]
impl<const MASKS: bool> Shortcut for Zen<MASKS> {
    #[inline(always)]
    unsafe fn rows<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        rows: usize,
        block: B,
        stride: isize,
    ) -> bool {
        // SAFETY: the caller's guarantee.
        unsafe { Self::planes::<B, PACK>(memory, packed, 1, 0, rows, block, stride) }
    }

    #[inline(always)]
    unsafe fn planes<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        block: B,
        stride: isize,
    ) -> bool {
        use super::{pairs, reversed, window};
        let bytes = block.bytes();
        // SAFETY: the caller's guarantee.
        unsafe {
            B::EXACT <= window::WIDEST
                && (PACK || MASKS)
                && window::try_planes::<PACK>(memory, packed, planes, plane_stride, rows, bytes, stride)
                || reversed::try_planes::<B, PACK>(memory, packed, planes, plane_stride, rows, stride)
                || PACK && pairs::try_planes::<B>(memory, packed, planes, plane_stride, rows, block, stride)
        }
    }

    #[inline(always)]
    unsafe fn tile<B: Block, const PACK: bool>(
        memory: *mut u8,
        packed: *mut u8,
        outer: usize,
        outer_stride: isize,
        inner: usize,
        inner_stride: isize,
        block: B,
        pitch: usize,
    ) -> bool {
        // SAFETY: the caller's guarantee.
        unsafe { Avx512::tile::<B, PACK>(memory, packed, outer, outer_stride, inner, inner_stride, block, pitch) }
    }
}
