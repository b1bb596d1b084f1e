//! Microkernels specialised for the counts and strides of one nest.
//!
//! The other microkernels are selected by the length of a row alone, since one serves all parts of a plan and of its fragments, and
//! they dispatch on strides and counts in each call. For a type that is one short nest, the dispatch takes as long as the move.

use dtc_compiler::plan::strategy::{Level, Nest};

/// Moves a nest: a [`PlanesFn`](crate::PlanesFn) for rows of one length.
///
/// # Safety
///
/// See the [safety contract](crate#safety-contract-of-every-microkernel).
pub type NestFn = unsafe extern "C" fn(
    memory: *mut u8,
    packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    stride: isize,
);

/// A microkernel specialised for this nest's counts and strides, or `None` if the one for any nest of such rows is as fast. It
/// must be called with these numbers, or for fewer planes.
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
    use super::super::{few, pairs, rows, words};
    use super::{Level, Nest, NestFn};
    use crate::block::Exact;
    use crate::direction::direction;
    use dtc_compiler::plan::strategy::{NestMethod, RowLoop, whole_nest};

    /// The microkernel of the method that the strategy chooses.
    pub(super) fn select<const PACK: bool>(level: Level, nest: &Nest) -> Option<NestFn> {
        Some(match whole_nest(level, direction::<PACK>(), nest)? {
            NestMethod::SixtyFours => sixty_fours::<PACK>,
            NestMethod::Sixteens => sixteens::<PACK>,
            NestMethod::Pairs if nest.bytes == 8 => pairs_of_8,
            NestMethod::Pairs => pairs_of_16,
            NestMethod::Planes(_) => few_words::<PACK>,
            NestMethod::Rows(_) => single_words::<PACK>,
            _ => return None,
        })
    }

    /// Defines microkernels, each with the numbers of the nest as one value.
    macro_rules! microkernels {
        ($($(#[$attribute:meta])* fn $name:ident $(<const $pack:ident: bool>)?($memory:ident, $packed:ident, $nest:ident, $bytes:literal) $body:expr;)*) => {$(
            $(#[$attribute])*
            ///
            /// # Safety
            ///
            /// As for [`NestFn`], with the numbers that [`select`] chose it for.
            unsafe extern "C" fn $name $(<const $pack: bool>)?(
                $memory: *mut u8,
                $packed: *mut u8,
                planes: usize,
                plane_stride: isize,
                rows: usize,
                stride: isize,
            ) {
                let $nest = &Nest { bytes: $bytes, rows, stride, planes, plane_stride };
                // SAFETY: `select` chose the function for a nest with these counts and strides, on a CPU with its features. Every
                // byte of the nest is mapped on both sides (safety contract of the crate).
                unsafe { $body }
            }
        )*};
    }

    microkernels! {
        /// Planes of a multiple of sixteen words, in the SSE encoding: see [`pairs`].
        fn sixteens<const PACK: bool>(memory, packed, nest, 8) words::sixteens::<PACK>(memory, packed, nest);

        /// Planes of a multiple of sixty-four words.
        fn sixty_fours<const PACK: bool>(memory, packed, nest, 8) words::sixty_fours::<PACK>(memory, packed, nest);

        /// A pack of rows of 8 bytes, in the SSE encoding: see [`pairs`].
        fn pairs_of_8(memory, packed, nest, 8) pairs::planes(memory, packed, Exact::<8>, nest);

        /// A pack of rows of 16 bytes.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
        fn pairs_of_16(memory, packed, nest, 16) pairs::planes(memory, packed, Exact::<16>, nest);

        /// Planes of few words.
        fn few_words<const PACK: bool>(memory, packed, nest, 8)
            few::planes::<Exact<8>, PACK>(memory, packed, Exact, nest);

        /// Words, one by one.
        fn single_words<const PACK: bool>(memory, packed, nest, 8)
            rows::planes::<Exact<8>, PACK>(memory, packed, Exact, nest, RowLoop::PLAIN);
    }
}
