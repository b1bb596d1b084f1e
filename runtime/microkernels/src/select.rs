//! The catalogue: for each level, the classes of blocks by length, and the functions that they are compiled into.

use crate::block::{Block, Exact, Library, Pair, Quad};
use crate::{GroupsFn, List32Fn, List64Fn, PlanesFn, RowsFn, RunsFn, TileFn};
use dtc_compiler::plan::strategy::{self, Level};

/// A shape of microkernel in one direction, to be instantiated for a class of blocks.
trait Shape {
    /// The type of the microkernel.
    type Function;

    /// The microkernel for blocks of class `B`.
    fn of<B: Block>() -> Self::Function;
}

/// Compiles the microkernels of one level: the generic loops, under the features of the level, behind the C calling convention.
macro_rules! microkernels {
    ($(#[$feature:meta])? $level:ident, $any_size:ty) => {
        use super::{Level, List32Fn, List64Fn, PlanesFn, RowsFn, Shape, TileFn, strategy};
        use crate::block::Block;
        #[cfg(target_arch = "x86_64")]
        use crate::direction::direction;
        use crate::{Places, Run, WordGroup, list, list::groups, list::runs, nest, tile};
        use strategy::Nest;

        const LEVEL: Level = Level::$level;

        microkernels!(@shape Rows: RowsFn = rows_of);
        microkernels!(@shape Planes: PlanesFn = planes_of);
        microkernels!(@shape List32: List32Fn = list32_of);
        microkernels!(@shape List64: List64Fn = list_of::<i64, false>);
        microkernels!(@shape PrefetchedList32: List32Fn = list_of::<i32, true>);
        microkernels!(@shape PrefetchedList64: List64Fn = list_of::<i64, true>);
        microkernels!(@shape Tile: TileFn = tile_of);

        /// The length of a block: a constant where it is compiled in.
        #[inline(always)]
        fn length<B: Block>(bytes: usize) -> usize {
            if B::EXACT == 0 { bytes } else { B::EXACT }
        }

        $(#[$feature])?
        unsafe extern "C" fn rows_of<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, rows: usize, bytes: usize, stride: isize,
        ) {
            let nest = Nest { bytes: length::<B>(bytes), rows, stride, planes: 1, plane_stride: 0 };
            // SAFETY: the safety contract of the crate covers every row, and the CPU has the features of `LEVEL`. The block is of
            // the length that the class was selected for.
            unsafe { nest::planes::<B, PACK>(LEVEL, memory, packed, B::new(bytes), &nest) }
        }

        $(#[$feature])?
        unsafe extern "C" fn planes_of<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, planes: usize, plane_stride: isize, rows: usize, stride: isize, bytes: usize,
        ) {
            let nest = Nest { bytes: length::<B>(bytes), rows, stride, planes, plane_stride };
            // SAFETY: the safety contract of the crate covers every row, and the CPU has the features of `LEVEL`. The block is of
            // the length that the class was selected for.
            unsafe { nest::planes::<B, PACK>(LEVEL, memory, packed, B::new(bytes), &nest) }
        }

        $(#[$feature])?
        unsafe extern "C" fn list32_of<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, offsets: *const i32, count: usize, bytes: usize,
        ) {
            // SAFETY: the safety contract of the crate covers the `count` offsets, and the block at each. `is_gathered` holds
            // only for levels with gathers, and for at least a vector of blocks.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                if PACK && strategy::is_gathered(LEVEL, length::<B>(bytes), count) {
                    return nest::gather::list::<B>(memory, packed, offsets, count);
                }
                list::list::<B, i32, PACK, false>(memory, packed, offsets, count, B::new(bytes));
            }
        }

        $(#[$feature])?
        unsafe extern "C" fn list_of<O: list::Offset, const PREFETCH: bool, B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, offsets: *const O, count: usize, bytes: usize,
        ) {
            // SAFETY: the safety contract of the crate covers the `count` offsets, and the block at each; the CPU has the
            // features of `LEVEL`.
            unsafe { list::list::<B, O, PACK, PREFETCH>(memory, packed, offsets, count, B::new(bytes)) }
        }

        $(#[$feature])?
        unsafe extern "C" fn tile_of<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, outer: usize, outer_stride: isize, inner: usize, inner_stride: isize, bytes: usize,
            pitch: usize,
        ) {
            let (block, shape) = (B::new(bytes), tile::TileShape { outer, outer_stride, inner, inner_stride, pitch });
            // SAFETY: the safety contract of the crate covers every element. `is_transposed` holds only for levels with AVX2,
            // and for columns that are neighbours.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                if strategy::is_transposed(
                    LEVEL, direction::<PACK>(), outer_stride, outer.saturating_mul(inner), length::<B>(bytes),
                ) {
                    return tile::transpose::elements::<B, PACK>(LEVEL, memory, packed, block, shape);
                }
                tile::tile::<B, PACK>(memory, packed, block, shape);
            }
        }

        $(#[$feature])?
        pub unsafe extern "C" fn runs_of<const PACK: bool>(
            memory: *mut u8, packed: *mut u8, table: *const Run, count: usize,
        ) {
            // SAFETY: the safety contract of the crate covers the `count` runs and the bytes of each; the CPU has the features of
            // `LEVEL`.
            unsafe { runs::runs::<$any_size, PACK>(memory, packed, table, count) }
        }

        $(#[$feature])?
        pub unsafe fn groups_of<const PACK: bool>(
            memory: *mut u8, packed: *mut u8, places: Places<'_>, group: &WordGroup,
        ) {
            // SAFETY: the safety contract of the crate covers the pieces of all groups; the CPU has the features of `LEVEL`.
            unsafe { groups::groups::<PACK>(memory, packed, places, group) }
        }
    };
    (@shape $shape:ident: $type:ident = $function:ident $(::<$offset:ty, $prefetch:literal>)?) => {
        pub struct $shape<const PACK: bool>;

        impl<const PACK: bool> Shape for $shape<PACK> {
            type Function = $type;

            fn of<B: Block>() -> $type {
                $function::<$($offset, $prefetch,)? B, PACK>
            }
        }
    };
}

mod portable {
    microkernels!(Portable, runs::Stepped<16>);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    microkernels!(
        #[target_feature(enable = "avx2")]
        Avx2,
        runs::Stepped<32>
    );
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    microkernels!(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
        Avx512,
        runs::OneMask
    );
}

#[cfg(target_arch = "x86_64")]
mod zen4 {
    microkernels!(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
        Zen4,
        runs::Stepped<32>
    );
}

#[cfg(target_arch = "x86_64")]
mod zen5 {
    microkernels!(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
        Zen5,
        runs::OneMask
    );
}

/// The microkernel of a shape for blocks of `bytes` bytes: compiled in for the lengths that stand first, else of the first class that holds.
macro_rules! class {
    ($shape:ident, $bytes:ident, [$($exact:literal)*], $($rest:tt)*) => {
        match $bytes {
            $($exact => $shape::of::<Exact<$exact>>(),)*
            $($rest)*
        }
    };
}

/// The classes with vectors of up to 16 bytes.
fn portable_class<S: Shape>(bytes: u64) -> S::Function {
    class!(S, bytes, [16 24 32 40 48 64],
        0..16 => short_class::<S>(bytes),
        17..32 => S::of::<Pair<16>>(),
        33..64 => S::of::<Quad<16>>(),
        _ => S::of::<Library>(),
    )
}

/// The classes with vectors of up to 32 bytes.
#[cfg(target_arch = "x86_64")]
fn avx2_class<S: Shape>(bytes: u64) -> S::Function {
    use crate::block::overlapped::Overlapped;
    class!(S, bytes, [16 20 24 32 40 48 56 64 72 80 88 96 104 112 120 128],
        0..16 => short_class::<S>(bytes),
        17..32 => S::of::<Pair<16>>(),
        33..64 => S::of::<Pair<32>>(),
        // 68 to 96 bytes took 0.8 to 0.95 of the time of four vectors, on a Zen 3.
        65..96 => S::of::<Overlapped<32, 2, 32>>(),
        97..128 => S::of::<Quad<32>>(),
        _ => S::of::<Library>(),
    )
}

/// The classes with vectors of up to 64 bytes and with masks.
#[cfg(target_arch = "x86_64")]
fn avx512_class<S: Shape>(bytes: u64) -> S::Function {
    use crate::block::masked::{Lines, Masked, Steps};
    class!(S, bytes, [0 1 2 4 8 16 32 40 48 64 128 192 256 512 768],
        3..16 => S::of::<Masked<16>>(),
        17..32 => S::of::<Masked<32>>(),
        33..=48 => S::of::<Steps<32, 1, 16>>(),
        49..64 => S::of::<Steps<32, 1, 32>>(),
        65..=80 => S::of::<Steps<64, 1, 16>>(),
        81..=96 => S::of::<Steps<64, 1, 32>>(),
        97..128 => S::of::<Steps<64, 1, 64>>(),
        129..=192 => S::of::<Steps<64, 2, 64>>(),
        193..=256 => S::of::<Steps<64, 3, 64>>(),
        257..=16384 => S::of::<Lines>(),
        _ => S::of::<Library>(),
    )
}

/// The classes with vectors of up to 64 bytes that overlap; shorter ones with masks where `MASKS`. Of 24 bytes, the store of a mask of 32 bytes
/// often is in two lines.
#[cfg(target_arch = "x86_64")]
fn zen_class<S: Shape, const MASKS: bool>(bytes: u64) -> S::Function {
    use crate::block::masked::Masked;
    use crate::block::overlapped::{Overlapped, OverlappedLines};
    class!(S, bytes, [0 1 2 4 8 16 24 32 40 48 64 128 192 256 512 768],
        3..16 if MASKS => S::of::<Masked<16>>(),
        17..32 if MASKS => S::of::<Masked<32>>(),
        0..16 => short_class::<S>(bytes),
        17..32 => S::of::<Pair<16>>(),
        33..64 if MASKS => S::of::<Masked<64>>(),
        33..=48 => S::of::<Overlapped<32, 1, 16>>(),
        49..64 => S::of::<Pair<32>>(),
        65..=80 => S::of::<Overlapped<64, 1, 16>>(),
        81..=96 => S::of::<Overlapped<64, 1, 32>>(),
        97..128 => S::of::<Overlapped<64, 1, 64>>(),
        129..192 => S::of::<Overlapped<64, 2, 64>>(),
        193..256 => S::of::<Overlapped<64, 3, 64>>(),
        257..=16384 => S::of::<OverlappedLines>(),
        _ => S::of::<Library>(),
    )
}

/// The classes below 16 bytes without masks.
fn short_class<S: Shape>(bytes: u64) -> S::Function {
    class!(S, bytes, [0 1 2 3 4 8 12], 5..8 => S::of::<Pair<4>>(), _ => S::of::<Pair<8>>(),)
}

/// Defines the two selections of a shape whose microkernels depend on the block size.
macro_rules! selection {
    ($shape:ident: $type:ident, $what:literal, $pack:ident, $unpack:ident) => {
        #[doc = concat!("The microkernel that packs ", $what, " of `bytes` bytes on a CPU of this level.")]
        #[must_use]
        pub fn $pack(level: Level, bytes: u64) -> $type {
            selection!(@choose $shape<true>, level, bytes)
        }

        selection!($shape: $type, $what, $unpack);
    };
    ($shape:ident: $type:ident, $what:literal, $unpack:ident) => {
        #[doc = concat!("The microkernel that unpacks ", $what, " of `bytes` bytes on a CPU of this level.")]
        #[must_use]
        pub fn $unpack(level: Level, bytes: u64) -> $type {
            selection!(@choose $shape<false>, level, bytes)
        }
    };
    (non_temporal $shape:ident: $type:ident, $what:literal, $pack:ident, $unpack:ident) => {
        #[doc = concat!("The microkernel that packs ", $what, " of `bytes` bytes on a CPU of this level.")]
        ///
        /// Where `non_temporal`, the packed bytes bypass the caches; the level and the length must allow that
        /// ([`is_non_temporal`](strategy::is_non_temporal)).
        #[must_use]
        pub fn $pack(level: Level, bytes: u64, non_temporal: bool) -> $type {
            #[cfg(target_arch = "x86_64")]
            if non_temporal && strategy::is_non_temporal(level, bytes) {
                return avx512_class::<non_temporal::$shape>(bytes);
            }
            let _ = non_temporal;
            selection!(@choose $shape<true>, level, bytes)
        }

        selection!($shape: $type, $what, $unpack);
    };
    (prefetched $shape:ident, $prefetched:ident: $type:ident, $pack:ident, $unpack:ident) => {
        #[doc = "The microkernel that packs listed blocks of `bytes` bytes on a CPU of this level."]
        #[must_use]
        pub fn $pack(level: Level, bytes: u64) -> $type {
            selection!(@choose $shape<true>, level, bytes)
        }

        #[doc = "The microkernel that unpacks listed blocks of `bytes` bytes on a CPU of this level."]
        ///
        /// Where `prefetch`, the lines of blocks ahead are prefetched.
        #[must_use]
        pub fn $unpack(level: Level, bytes: u64, prefetch: bool) -> $type {
            if prefetch {
                return selection!(@choose $prefetched<false>, level, bytes);
            }
            selection!(@choose $shape<false>, level, bytes)
        }
    };
    (@choose $shape:ident<$pack:literal>, $level:ident, $bytes:ident) => {
        match $level {
            #[cfg(target_arch = "x86_64")]
            Level::Zen5 => zen_class::<zen5::$shape<$pack>, true>($bytes),
            #[cfg(target_arch = "x86_64")]
            Level::Zen4 => zen_class::<zen4::$shape<$pack>, false>($bytes),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512_class::<avx512::$shape<$pack>>($bytes),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2_class::<avx2::$shape<$pack>>($bytes),
            _ => portable_class::<portable::$shape<$pack>>($bytes),
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod non_temporal {
    use super::{PlanesFn, RowsFn, Shape};
    use crate::block::Block;
    use crate::nest::{non_temporal, rows};
    use dtc_compiler::plan::strategy::{LEAST_NON_TEMPORAL, RowLoop};

    macro_rules! shape {
        ($shape:ident: $type:ident = $function:ident) => {
            pub struct $shape;

            impl Shape for $shape {
                type Function = $type;

                fn of<B: Block>() -> $type {
                    $function::<B>
                }
            }
        };
    }

    shape!(Rows: RowsFn = rows_of);
    shape!(Planes: PlanesFn = planes_of);

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn rows_of<B: Block>(memory: *mut u8, packed: *mut u8, rows: usize, bytes: usize, stride: isize) {
        // SAFETY: the rows are one plane of a nest, so the contract of `RowsFn` is that of `PlanesFn`. The CPU has the same
        // features.
        unsafe { planes_of::<B>(memory, packed, 1, 0, rows, stride, bytes) }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn planes_of<B: Block>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
        bytes: usize,
    ) {
        let block = B::new(bytes);
        let short = planes * rows * bytes <= LEAST_NON_TEMPORAL;
        for plane in 0..planes {
            let memory = memory.wrapping_offset((plane as isize).wrapping_mul(plane_stride));
            // SAFETY: the contract of `PlanesFn` covers every row of the plane, and `packed` from `plane * rows` rows on. The CPU
            // has the features of both functions.
            unsafe {
                let packed = packed.add(plane * rows * bytes);
                if short {
                    rows::rows::<B, true>(memory, packed, rows, block, stride, RowLoop::PLAIN);
                } else {
                    non_temporal::pack::<B>(memory, packed, rows, block, stride);
                }
            }
        }
    }
}

selection!(non_temporal Rows: RowsFn, "rows", select_pack_rows, select_unpack_rows);
selection!(non_temporal Planes: PlanesFn, "planes of rows", select_pack_planes, select_unpack_planes);
selection!(prefetched List32, PrefetchedList32: List32Fn, select_pack_list32, select_unpack_list32);
selection!(prefetched List64, PrefetchedList64: List64Fn, select_pack_list64, select_unpack_list64);
selection!(Tile: TileFn, "tiled elements", select_pack_tile, select_unpack_tile);

/// Defines a selection for one direction where the microkernel is one for all lengths.
macro_rules! level_selection {
    ($function:ident: $type:ident, $name:ident, $pack:literal, $what:literal) => {
        #[doc = concat!("The microkernel that ", $what, " on a CPU of this level.")]
        #[must_use]
        pub fn $name(level: Level) -> $type {
            match level {
                #[cfg(target_arch = "x86_64")]
                Level::Zen5 => zen5::$function::<$pack>,
                #[cfg(target_arch = "x86_64")]
                Level::Zen4 => zen4::$function::<$pack>,
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => avx512::$function::<$pack>,
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::$function::<$pack>,
                _ => portable::$function::<$pack>,
            }
        }
    };
}

level_selection!(runs_of: RunsFn, select_pack_runs, true, "packs runs of differing length");
level_selection!(runs_of: RunsFn, select_unpack_runs, false, "unpacks runs of differing length");
level_selection!(groups_of: GroupsFn, select_pack_groups, true, "packs groups of words");
level_selection!(groups_of: GroupsFn, select_unpack_groups, false, "unpacks groups of words");

#[cfg(test)]
mod tests {
    use super::*;
    use strategy::FEW_BYTES;

    /// Whether a class is one of short blocks.
    struct Short;

    impl Shape for Short {
        type Function = bool;

        fn of<B: Block>() -> bool {
            B::SHORT
        }
    }

    /// `nest::planes` relies on it.
    #[test]
    fn blocks_of_few_bytes_have_classes_of_short_ones() {
        for bytes in 0..=FEW_BYTES as u64 {
            assert!(portable_class::<Short>(bytes), "portable, {bytes} bytes");
            #[cfg(target_arch = "x86_64")]
            for (level, short) in [
                (Level::Avx2, avx2_class::<Short>(bytes)),
                (Level::Avx512, avx512_class::<Short>(bytes)),
                (Level::Zen4, zen_class::<Short, false>(bytes)),
                (Level::Zen5, zen_class::<Short, true>(bytes)),
            ] {
                assert!(short, "{level}, {bytes} bytes");
            }
        }
    }
}
