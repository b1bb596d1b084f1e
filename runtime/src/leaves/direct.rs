//! Leaves for one nest of rows, chosen by all of its numbers.
//!
//! The other leaves are chosen by the length of a row alone, so that one serves the parts of a plan and of its fragments, and look
//! at strides and counts in each call. A type that is one nest is often so short that this would take as long as its bytes.

use super::{Level, PlanesFn, Single, SingleFn};

/// Planes of rows: the arguments of a [`PlanesFn`] that are known at commit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
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
/// called with these numbers, but for the number of planes.
#[must_use]
pub fn select_nest<const PACK: bool>(level: Level, nest: &Nest) -> Option<PlanesFn> {
    #[cfg(target_arch = "x86_64")]
    return x86_64::select::<PACK, x86_64::Leaf>(level, nest);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (level, nest);
        None
    }
}

/// The same for the nest of an object.
pub(super) fn select_single_nest<T: Single, const PACK: bool>(level: Level, nest: &Nest) -> Option<SingleFn<T>> {
    #[cfg(target_arch = "x86_64")]
    return x86_64::select::<PACK, x86_64::Held<T>>(level, nest);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (level, nest);
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::super::block::{Block, Exact};
    use super::super::{pairs, reversed, rows, window};
    use super::{Level, Nest, PlanesFn, Single, SingleFn};
    use std::marker::PhantomData;

    /// A way of moving some nests.
    pub(super) trait Way {
        /// Moves a nest.
        ///
        /// # Safety
        ///
        /// As for [`PlanesFn`], with a nest that [`select`] chose the way for.
        unsafe fn planes(memory: *mut u8, packed: *mut u8, nest: &Nest);
    }

    /// What a way is compiled into.
    pub(super) trait Form {
        type Function;

        /// With AVX-512.
        fn avx512<W: Way>() -> Self::Function;

        /// In the encoding without AVX: see [`pairs`].
        fn without_avx<W: Way>() -> Self::Function;
    }

    /// The best way for a nest, in some form.
    pub(super) fn select<const PACK: bool, F: Form>(level: Level, nest: &Nest) -> Option<F::Function> {
        let stride = nest.stride.unsigned_abs();
        if level != Level::Avx512 || !matches!(nest.bytes, 8 | 16) {
            return None;
        }
        if reversed::are_fours(nest) {
            return Some(F::avx512::<Fours<PACK>>());
        }
        if stride <= window::FARTHEST {
            return None;
        }
        let unknown = rows::are_unknown(nest.planes.saturating_mul(nest.rows), stride);
        match (nest.bytes, PACK) {
            (8, true) if unknown => Some(F::avx512::<Words<true>>()),
            (8, true) if nest.rows.is_multiple_of(16) => Some(F::without_avx::<Sixteens>()),
            (8, true) => Some(F::without_avx::<Pairs<Exact<8>>>()),
            (8, false) => Some(F::avx512::<Words<false>>()),
            (16, true) => Some(F::avx512::<Pairs<Exact<16>>>()),
            _ => None,
        }
    }

    /// Planes of four reversed words.
    struct Fours<const PACK: bool>;

    impl<const PACK: bool> Way for Fours<PACK> {
        #[inline(always)]
        unsafe fn planes(memory: *mut u8, packed: *mut u8, nest: &Nest) {
            // SAFETY: the caller's guarantee.
            unsafe { reversed::fours::<PACK>(memory, packed, nest.planes, nest.plane_stride) }
        }
    }

    /// A pack of planes of a multiple of sixteen words.
    struct Sixteens;

    impl Way for Sixteens {
        #[inline(always)]
        unsafe fn planes(memory: *mut u8, packed: *mut u8, nest: &Nest) {
            let &Nest { planes, plane_stride, rows, stride, .. } = nest;
            // SAFETY: the caller's guarantee.
            unsafe { pairs::sixteens(memory, packed, planes, plane_stride, rows, stride) }
        }
    }

    /// A pack of rows of 8 or 16 bytes.
    struct Pairs<B>(PhantomData<B>);

    impl<B: Block> Way for Pairs<B> {
        #[inline(always)]
        unsafe fn planes(memory: *mut u8, packed: *mut u8, nest: &Nest) {
            let &Nest { planes, plane_stride, rows, stride, bytes } = nest;
            // SAFETY: the caller's guarantee.
            unsafe { pairs::planes(memory, packed, planes, plane_stride, rows, B::new(bytes), stride) }
        }
    }

    /// Words, one by one.
    struct Words<const PACK: bool>;

    impl<const PACK: bool> Way for Words<PACK> {
        #[inline(always)]
        unsafe fn planes(memory: *mut u8, packed: *mut u8, nest: &Nest) {
            let &Nest { planes, plane_stride, rows, stride, .. } = nest;
            // SAFETY: the caller's guarantee.
            unsafe { rows::planes::<Exact<8>, PACK>(memory, packed, planes, plane_stride, rows, Exact, stride) }
        }
    }

    /// A leaf.
    pub(super) struct Leaf;

    impl Form for Leaf {
        type Function = PlanesFn;

        fn avx512<W: Way>() -> PlanesFn {
            avx512_leaf::<W>
        }

        fn without_avx<W: Way>() -> PlanesFn {
            leaf::<W>
        }
    }

    /// # Safety
    ///
    /// As for [`Way::planes`].
    #[inline(always)]
    unsafe extern "C" fn leaf<W: Way>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
        bytes: usize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { W::planes(memory, packed, &Nest { bytes, rows, stride, planes, plane_stride }) }
    }

    /// # Safety
    ///
    /// As for [`Way::planes`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn avx512_leaf<W: Way>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
        bytes: usize,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe { leaf::<W>(memory, packed, planes, plane_stride, rows, stride, bytes) }
    }

    /// A function for an object that holds the nest.
    pub(super) struct Held<T>(PhantomData<T>);

    impl<T: Single> Form for Held<T> {
        type Function = SingleFn<T>;

        fn avx512<W: Way>() -> SingleFn<T> {
            avx512_held::<T, W>
        }

        fn without_avx<W: Way>() -> SingleFn<T> {
            held::<T, W>
        }
    }

    /// # Safety
    ///
    /// As for [`SingleFn`].
    #[inline(always)]
    unsafe fn held<T: Single, W: Way>(holder: &T, memory: *mut u8, packed: *mut u8) {
        // SAFETY: the caller's guarantee.
        unsafe { W::planes(memory.wrapping_offset(holder.offset()), packed, holder.nest()) }
    }

    /// # Safety
    ///
    /// As for [`SingleFn`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe fn avx512_held<T: Single, W: Way>(holder: &T, memory: *mut u8, packed: *mut u8) {
        // SAFETY: the caller's guarantee.
        unsafe { held::<T, W>(holder, memory, packed) }
    }
}
