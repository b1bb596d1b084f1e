//! Choosing a leaf: the size classes of each level, and the functions that they are compiled into.

use super::block::{Block, Exact, Library, Pair, Quad};
#[cfg(target_arch = "x86_64")]
use super::stream;
use super::{Level, List32Fn, List64Fn, PlanesFn, RowsFn, RunsFn, TileFn};

/// A shape of leaf in one direction, to be instantiated for a class of blocks.
trait Shape {
    /// The type of the leaf.
    type Leaf;

    /// The leaf for blocks of class `B`.
    fn leaf<B: Block>() -> Self::Leaf;
}

/// Compiles the leaves of one level: the generic loops, under the features of the level, behind the C calling convention.
macro_rules! leaves {
    ($(#[$feature:meta])? $any_size:ty, $shortcut:ty) => {
        use super::{List32Fn, List64Fn, PlanesFn, RowsFn, Shape, TileFn};
        use super::super::block::Block;
        use super::super::{Run, list, rows, runs, tile, shortcut::Shortcut};

        leaves!(@shape Rows: RowsFn = rows_leaf);
        leaves!(@shape Planes: PlanesFn = planes_leaf);
        leaves!(@shape List32: List32Fn = list32_leaf);
        leaves!(@shape List64: List64Fn = list64_leaf);
        leaves!(@shape FarList32: List32Fn = far_list32_leaf);
        leaves!(@shape FarList64: List64Fn = far_list64_leaf);
        leaves!(@shape Tile: TileFn = tile_leaf);

        $(#[$feature])?
        unsafe extern "C" fn rows_leaf<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, rows: usize, bytes: usize, stride: isize,
        ) {
            let block = B::new(bytes);
            // SAFETY: the caller keeps the contract of the leaf, and the features are those of the level.
            unsafe {
                if !<$shortcut>::rows::<B, PACK>(memory, packed, rows, block, stride) {
                    rows::rows::<B, PACK>(memory, packed, rows, block, stride);
                }
            }
        }

        $(#[$feature])?
        unsafe extern "C" fn planes_leaf<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, planes: usize, plane_stride: isize, rows: usize, stride: isize, bytes: usize,
        ) {
            let block = B::new(bytes);
            // SAFETY: as for rows.
            unsafe {
                if !<$shortcut>::planes::<B, PACK>(memory, packed, planes, plane_stride, rows, block, stride) {
                    rows::planes::<B, PACK>(memory, packed, planes, plane_stride, rows, block, stride);
                }
            }
        }

        $(#[$feature])?
        unsafe extern "C" fn list32_leaf<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, offsets: *const i32, count: usize, bytes: usize,
        ) {
            // SAFETY: as for rows; the shortcut has moved the first blocks.
            unsafe {
                let done = <$shortcut>::list::<B, PACK>(memory, packed, offsets, count);
                let packed = packed.add(done * bytes);
                list::list::<B, i32, PACK, false>(memory, packed, offsets.add(done), count - done, B::new(bytes));
            }
        }

        $(#[$feature])?
        unsafe extern "C" fn list64_leaf<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, offsets: *const i64, count: usize, bytes: usize,
        ) {
            // SAFETY: as for rows.
            unsafe { list::list::<B, i64, PACK, false>(memory, packed, offsets, count, B::new(bytes)) }
        }

        $(#[$feature])?
        unsafe extern "C" fn far_list32_leaf<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, offsets: *const i32, count: usize, bytes: usize,
        ) {
            // SAFETY: as for rows.
            unsafe { list::list::<B, i32, PACK, true>(memory, packed, offsets, count, B::new(bytes)) }
        }

        $(#[$feature])?
        unsafe extern "C" fn far_list64_leaf<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, offsets: *const i64, count: usize, bytes: usize,
        ) {
            // SAFETY: as for rows.
            unsafe { list::list::<B, i64, PACK, true>(memory, packed, offsets, count, B::new(bytes)) }
        }

        $(#[$feature])?
        unsafe extern "C" fn tile_leaf<B: Block, const PACK: bool>(
            memory: *mut u8, packed: *mut u8, outer: usize, outer_stride: isize, inner: usize, inner_stride: isize, bytes: usize,
            pitch: usize,
        ) {
            let block = B::new(bytes);
            // SAFETY: as for rows.
            unsafe {
                if !<$shortcut>::tile::<B, PACK>(memory, packed, outer, outer_stride, inner, inner_stride, block, pitch) {
                    tile::tile::<B, PACK>(memory, packed, outer, outer_stride, inner, inner_stride, block, pitch);
                }
            }
        }

        $(#[$feature])?
        pub unsafe extern "C" fn runs_leaf<const PACK: bool>(
            memory: *mut u8, packed: *mut u8, table: *const Run, count: usize,
        ) {
            // SAFETY: as for rows.
            unsafe { runs::runs::<$any_size, PACK>(memory, packed, table, count) }
        }
    };
    (@shape $shape:ident: $leaf:ident = $function:ident) => {
        pub struct $shape<const PACK: bool>;

        impl<const PACK: bool> Shape for $shape<PACK> {
            type Leaf = $leaf;

            fn leaf<B: Block>() -> $leaf {
                $function::<B, PACK>
            }
        }
    };
}

mod portable {
    leaves!(runs::Stepped<16>, super::super::shortcut::None);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    leaves!(#[target_feature(enable = "avx2")] runs::Stepped<32>, super::super::shortcut::Avx2);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    leaves!(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
        runs::OneMask,
        super::super::shortcut::Avx512
    );
}

#[cfg(target_arch = "x86_64")]
mod zen4 {
    leaves!(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
        runs::Stepped<32>,
        super::super::shortcut::Zen<false>
    );
}

#[cfg(target_arch = "x86_64")]
mod zen5 {
    leaves!(
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
        runs::OneMask,
        super::super::shortcut::Zen<true>
    );
}

/// Whether the leaves of a level prefetch the lines that an unpack will write.
pub(super) fn prefetches(level: Level) -> bool {
    level <= Level::Avx512
}

/// The classes with vectors of up to 16 bytes.
fn portable_class<S: Shape>(bytes: u64) -> S::Leaf {
    match bytes {
        16 => S::leaf::<Exact<16>>(),
        24 => S::leaf::<Exact<24>>(),
        32 => S::leaf::<Exact<32>>(),
        40 => S::leaf::<Exact<40>>(),
        48 => S::leaf::<Exact<48>>(),
        64 => S::leaf::<Exact<64>>(),
        0..16 => short_class::<S>(bytes),
        17..32 => S::leaf::<Pair<16>>(),
        33..64 => S::leaf::<Quad<16>>(),
        _ => S::leaf::<Library>(),
    }
}

/// The classes with vectors of up to 32 bytes.
#[cfg(target_arch = "x86_64")]
fn avx2_class<S: Shape>(bytes: u64) -> S::Leaf {
    match bytes {
        16 => S::leaf::<Exact<16>>(),
        20 => S::leaf::<Exact<20>>(),
        24 => S::leaf::<Exact<24>>(),
        32 => S::leaf::<Exact<32>>(),
        40 => S::leaf::<Exact<40>>(),
        48 => S::leaf::<Exact<48>>(),
        56 => S::leaf::<Exact<56>>(),
        64 => S::leaf::<Exact<64>>(),
        72 => S::leaf::<Exact<72>>(),
        80 => S::leaf::<Exact<80>>(),
        88 => S::leaf::<Exact<88>>(),
        96 => S::leaf::<Exact<96>>(),
        104 => S::leaf::<Exact<104>>(),
        112 => S::leaf::<Exact<112>>(),
        120 => S::leaf::<Exact<120>>(),
        128 => S::leaf::<Exact<128>>(),
        0..16 => short_class::<S>(bytes),
        17..32 => S::leaf::<Pair<16>>(),
        33..64 => S::leaf::<Pair<32>>(),
        65..128 => S::leaf::<Quad<32>>(),
        _ => S::leaf::<Library>(),
    }
}

/// The classes with vectors of up to 64 bytes and with masks.
#[cfg(target_arch = "x86_64")]
fn avx512_class<S: Shape>(bytes: u64) -> S::Leaf {
    use super::masked::{Lines, Masked, Steps};
    match bytes {
        0 => S::leaf::<Exact<0>>(),
        1 => S::leaf::<Exact<1>>(),
        2 => S::leaf::<Exact<2>>(),
        4 => S::leaf::<Exact<4>>(),
        8 => S::leaf::<Exact<8>>(),
        16 => S::leaf::<Exact<16>>(),
        32 => S::leaf::<Exact<32>>(),
        40 => S::leaf::<Exact<40>>(),
        48 => S::leaf::<Exact<48>>(),
        64 => S::leaf::<Exact<64>>(),
        128 => S::leaf::<Exact<128>>(),
        192 => S::leaf::<Exact<192>>(),
        256 => S::leaf::<Exact<256>>(),
        512 => S::leaf::<Exact<512>>(),
        768 => S::leaf::<Exact<768>>(),
        3..16 => S::leaf::<Masked<16>>(),
        17..32 => S::leaf::<Masked<32>>(),
        33..=48 => S::leaf::<Steps<32, 1, 16>>(),
        49..64 => S::leaf::<Steps<32, 1, 32>>(),
        65..=80 => S::leaf::<Steps<64, 1, 16>>(),
        81..=96 => S::leaf::<Steps<64, 1, 32>>(),
        97..128 => S::leaf::<Steps<64, 1, 64>>(),
        129..=192 => S::leaf::<Steps<64, 2, 64>>(),
        193..=256 => S::leaf::<Steps<64, 3, 64>>(),
        257..=16384 => S::leaf::<Lines>(),
        _ => S::leaf::<Library>(),
    }
}

/// The classes with vectors of up to 64 bytes that overlap; shorter ones with masks where `MASKS`.
#[cfg(target_arch = "x86_64")]
fn zen_class<S: Shape, const MASKS: bool>(bytes: u64) -> S::Leaf {
    use super::block::Unfetched;
    use super::masked::Masked;
    use super::overlapped::{Overlapped, OverlappedLines};
    match bytes {
        0 => S::leaf::<Unfetched<Exact<0>>>(),
        1 => S::leaf::<Unfetched<Exact<1>>>(),
        2 => S::leaf::<Unfetched<Exact<2>>>(),
        4 => S::leaf::<Unfetched<Exact<4>>>(),
        8 => S::leaf::<Unfetched<Exact<8>>>(),
        16 => S::leaf::<Unfetched<Exact<16>>>(),
        // Three words: the store of a mask of 32 bytes often lies in two lines.
        24 => S::leaf::<Unfetched<Exact<24>>>(),
        32 => S::leaf::<Unfetched<Exact<32>>>(),
        40 => S::leaf::<Unfetched<Exact<40>>>(),
        48 => S::leaf::<Unfetched<Exact<48>>>(),
        64 => S::leaf::<Unfetched<Exact<64>>>(),
        128 => S::leaf::<Unfetched<Exact<128>>>(),
        192 => S::leaf::<Unfetched<Exact<192>>>(),
        256 => S::leaf::<Unfetched<Exact<256>>>(),
        512 => S::leaf::<Unfetched<Exact<512>>>(),
        768 => S::leaf::<Unfetched<Exact<768>>>(),
        3..16 if MASKS => S::leaf::<Unfetched<Masked<16>>>(),
        17..32 if MASKS => S::leaf::<Unfetched<Masked<32>>>(),
        3 => S::leaf::<Unfetched<Exact<3>>>(),
        12 => S::leaf::<Unfetched<Exact<12>>>(),
        5..8 => S::leaf::<Unfetched<Pair<4>>>(),
        9..16 => S::leaf::<Unfetched<Pair<8>>>(),
        17..32 => S::leaf::<Unfetched<Pair<16>>>(),
        33..=48 => S::leaf::<Unfetched<Overlapped<32, 1, 16>>>(),
        49..64 => S::leaf::<Unfetched<Pair<32>>>(),
        65..=80 => S::leaf::<Unfetched<Overlapped<64, 1, 16>>>(),
        81..=96 => S::leaf::<Unfetched<Overlapped<64, 1, 32>>>(),
        97..128 => S::leaf::<Unfetched<Overlapped<64, 1, 64>>>(),
        129..192 => S::leaf::<Unfetched<Overlapped<64, 2, 64>>>(),
        193..256 => S::leaf::<Unfetched<Overlapped<64, 3, 64>>>(),
        257..=16384 => S::leaf::<Unfetched<OverlappedLines>>(),
        _ => S::leaf::<Unfetched<Library>>(),
    }
}

/// The classes below 16 bytes without masks.
fn short_class<S: Shape>(bytes: u64) -> S::Leaf {
    match bytes {
        0 => S::leaf::<Exact<0>>(),
        1 => S::leaf::<Exact<1>>(),
        2 => S::leaf::<Exact<2>>(),
        3 => S::leaf::<Exact<3>>(),
        4 => S::leaf::<Exact<4>>(),
        8 => S::leaf::<Exact<8>>(),
        12 => S::leaf::<Exact<12>>(),
        5..8 => S::leaf::<Pair<4>>(),
        _ => S::leaf::<Pair<8>>(),
    }
}

/// Defines the two selections of a shape whose leaves depend on the block size.
macro_rules! selection {
    ($shape:ident: $leaf:ident, $what:literal, $pack:ident, $unpack:ident) => {
        #[doc = concat!("The leaf that packs ", $what, " of `bytes` bytes on a CPU of this level.")]
        #[must_use]
        pub fn $pack(level: Level, bytes: u64) -> $leaf {
            selection!(@choose $shape<true>, level, bytes)
        }

        selection!($shape: $leaf, $what, $unpack);
    };
    ($shape:ident: $leaf:ident, $what:literal, $unpack:ident) => {
        #[doc = concat!("The leaf that unpacks ", $what, " of `bytes` bytes on a CPU of this level.")]
        #[must_use]
        pub fn $unpack(level: Level, bytes: u64) -> $leaf {
            selection!(@choose $shape<false>, level, bytes)
        }
    };
    (streaming $shape:ident: $leaf:ident, $what:literal, $pack:ident, $unpack:ident) => {
        #[doc = concat!("The leaf that packs ", $what, " of `bytes` bytes on a CPU of this level.")]
        ///
        /// `streaming` says that the footprint is beyond the cache, see [`streaming_threshold`](super::streaming_threshold):
        /// rows of 128 to 2,048 bytes are then written around it with AVX-512.
        #[must_use]
        pub fn $pack(level: Level, bytes: u64, streaming: bool) -> $leaf {
            #[cfg(target_arch = "x86_64")]
            if streaming && level >= Level::Avx512 && stream::LENGTHS.contains(&bytes) {
                return avx512_class::<streaming::$shape>(bytes);
            }
            let _ = streaming;
            selection!(@choose $shape<true>, level, bytes)
        }

        selection!($shape: $leaf, $what, $unpack);
    };
    (far $shape:ident, $far:ident: $leaf:ident, $pack:ident, $unpack:ident) => {
        #[doc = "The leaf that packs listed blocks of `bytes` bytes on a CPU of this level."]
        #[must_use]
        pub fn $pack(level: Level, bytes: u64) -> $leaf {
            selection!(@choose $shape<true>, level, bytes)
        }

        #[doc = "The leaf that unpacks listed blocks of `bytes` bytes on a CPU of this level."]
        ///
        /// `far` says that the blocks lie beyond the first-level cache: the leaf then fetches ahead.
        #[must_use]
        pub fn $unpack(level: Level, bytes: u64, far: bool) -> $leaf {
            if far && prefetches(level) {
                return selection!(@choose $far<false>, level, bytes);
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
mod streaming {
    use super::super::block::Block;
    use super::super::{rows, stream};
    use super::{PlanesFn, RowsFn, Shape};

    /// Rows packed around the cache.
    pub struct Rows;

    impl Shape for Rows {
        type Leaf = RowsFn;

        fn leaf<B: Block>() -> RowsFn {
            rows_leaf::<B>
        }
    }

    /// Planes of rows packed around the cache.
    pub struct Planes;

    impl Shape for Planes {
        type Leaf = PlanesFn;

        fn leaf<B: Block>() -> PlanesFn {
            planes_leaf::<B>
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn rows_leaf<B: Block>(
        memory: *mut u8,
        packed: *mut u8,
        rows: usize,
        bytes: usize,
        stride: isize,
    ) {
        // SAFETY: the caller keeps the contract of the leaf, and the features are those of the level.
        unsafe {
            if rows * bytes <= stream::SHORT {
                rows::rows::<B, true>(memory, packed, rows, B::new(bytes), stride);
            } else {
                stream::pack::<B>(memory, packed, rows, B::new(bytes), stride);
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe extern "C" fn planes_leaf<B: Block>(
        memory: *mut u8,
        packed: *mut u8,
        planes: usize,
        plane_stride: isize,
        rows: usize,
        stride: isize,
        bytes: usize,
    ) {
        let short = planes * rows * bytes <= stream::SHORT;
        for plane in 0..planes {
            let memory = memory.wrapping_offset((plane as isize).wrapping_mul(plane_stride));
            // SAFETY: as for rows.
            unsafe {
                let packed = packed.add(plane * rows * bytes);
                if short {
                    rows::rows::<B, true>(memory, packed, rows, B::new(bytes), stride);
                } else {
                    stream::pack::<B>(memory, packed, rows, B::new(bytes), stride);
                }
            }
        }
    }
}

selection!(streaming Rows: RowsFn, "rows", select_pack_rows, select_unpack_rows);
selection!(streaming Planes: PlanesFn, "planes of rows", select_pack_planes, select_unpack_planes);
selection!(far List32, FarList32: List32Fn, select_pack_list32, select_unpack_list32);
selection!(far List64, FarList64: List64Fn, select_pack_list64, select_unpack_list64);
selection!(Tile: TileFn, "tiled elements", select_pack_tile, select_unpack_tile);

/// The leaf that packs runs of differing length on a CPU of this level.
#[must_use]
pub fn select_pack_runs(level: Level) -> RunsFn {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Zen5 => zen5::runs_leaf::<true>,
        #[cfg(target_arch = "x86_64")]
        Level::Zen4 => zen4::runs_leaf::<true>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::runs_leaf::<true>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::runs_leaf::<true>,
        _ => portable::runs_leaf::<true>,
    }
}

/// The leaf that unpacks runs of differing length on a CPU of this level.
#[must_use]
pub fn select_unpack_runs(level: Level) -> RunsFn {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Zen5 => zen5::runs_leaf::<false>,
        #[cfg(target_arch = "x86_64")]
        Level::Zen4 => zen4::runs_leaf::<false>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::runs_leaf::<false>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::runs_leaf::<false>,
        _ => portable::runs_leaf::<false>,
    }
}
