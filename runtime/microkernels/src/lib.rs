//! Ahead-of-time SIMD routines that move bytes between a strided side and a dense side.
//!
//! Compiled kernels inline pieces that are a few words long and call a microkernel for everything else; the generic tier consists
//! of microkernels alone. A microkernel moves bytes between `memory`, where the datatype scatters them, and `packed`, where they
//! are side by side. Each shape exists in both directions: a *pack* reads `memory` and writes `packed`, an *unpack* does the
//! reverse.
//!
//! | type | shape |
//! |---|---|
//! | [`RowsFn`] | equal rows at one stride |
//! | [`PlanesFn`] | rows at one stride, repeated at another |
//! | [`NestFn`] | the nest of `PlanesFn`, with counts and strides that a microkernel is specialised for |
//! | [`List32Fn`], [`List64Fn`] | equal blocks at listed offsets |
//! | [`RunsFn`] | blocks of differing length at listed offsets |
//! | [`GroupsFn`] | groups of words at listed or strided places |
//! | [`TileFn`] | the nest of `PlanesFn`, walked in cache tiles: a matrix sent by columns |
//! | [`CopyFn`], [`copy`] | one contiguous block |
//!
//! [`accumulate`] has the routines that reduce a contiguous block into another, [`external32`] those that convert values.
//!
//! A microkernel is selected once, at commit, by a `select_*` function from the CPU's [`Level`], the block size, and what the
//! [strategy](dtc_compiler::plan::strategy) says of stores and prefetches; for a nest of rows that is known as a whole,
//! [`select_nest`] may have a specialised one. The `bytes` argument of a call must be the one that the microkernel was selected
//! for: the common sizes are compiled in and their code never looks at the argument.
//!
//! Each folder holds the microkernels of a shape (`nest`, `list`, `tile`, `contiguous`), and `block` the classes of blocks that
//! they are generic over. `select.rs` is the catalogue, `processor` finds the level of the CPU.
//!
//! # Safety contract of every microkernel
//!
//! The caller guarantees that
//!
//! - the CPU has the level that the microkernel was selected for, and `bytes` is the size that it was selected for;
//! - every addressed byte of `memory` and all of `[packed, packed + total)` is mapped, readable on the source side and writable on
//!   the destination side, `total` being the sum of all block sizes; tables hold `count` entries and are aligned for their type;
//! - source and destination do not overlap, and no one else writes either during the call;
//! - in an unpack no byte of `memory` is addressed twice (if one is, which value it ends with is unspecified).
//!
//! In return a microkernel
//!
//! - writes no byte of `memory` outside the addressed blocks, not even its old value, and none of `packed` outside
//!   `[packed, packed + total)`; inside that range a pack may write a byte more than once;
//! - reads of `packed` only `[packed, packed + total)`;
//! - reads of `memory` only bytes of the blocks, and bytes between two blocks of the same call that are less than 4 KiB apart.
//!   Wider gaps may be unmapped.
//!
//! No microkernel panics or allocates.
#![warn(missing_debug_implementations)]

pub mod accumulate;
mod block;
mod contiguous;
mod direction;
pub mod external32;
mod list;
mod nest;
mod processor;
mod select;
mod tile;

pub use contiguous::{CopyFn, select_bulk_copy, select_copy};
pub use dtc_compiler::layout::Run;
pub use dtc_compiler::plan::strategy::{Level, WordGroup};
pub use list::groups::Places;
pub use nest::whole::{NestFn, select_nest};
pub use processor::{detect_level, non_temporal_threshold, unknown_level};
pub use select::*;

/// Moves `rows` rows of `bytes` bytes: row `i` is at `memory + i * stride` and at `packed + i * bytes`.
///
/// The stride is in bytes. It may be negative, and in a pack zero or smaller than `bytes`.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel).
pub type RowsFn = unsafe extern "C" fn(memory: *mut u8, packed: *mut u8, rows: usize, bytes: usize, stride: isize);

/// Moves `planes` times `rows` rows of `bytes` bytes: row `i` of plane `p` is at `memory + p * plane_stride + i * stride` and at
/// `packed + (p * rows + i) * bytes`. Strides are in bytes.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel).
pub type PlanesFn = unsafe extern "C" fn(
    memory: *mut u8,
    packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    stride: isize,
    bytes: usize,
);

/// Moves `count` blocks of `bytes` bytes: block `i` is at `memory + offsets[i]` and at `packed + i * bytes`.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel).
pub type List32Fn =
    unsafe extern "C" fn(memory: *mut u8, packed: *mut u8, offsets: *const i32, count: usize, bytes: usize);

/// [`List32Fn`] with offsets of 64 bits.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel).
pub type List64Fn =
    unsafe extern "C" fn(memory: *mut u8, packed: *mut u8, offsets: *const i64, count: usize, bytes: usize);

/// Moves `count` runs of differing length, counted in bytes, one after the other in `packed`.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel).
pub type RunsFn = unsafe extern "C" fn(memory: *mut u8, packed: *mut u8, runs: *const Run, count: usize);

/// Moves groups of words: group `i` is at the place `i` in `memory`, and at `packed + i * group.bytes()`.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel); the pieces of each group are its blocks.
pub type GroupsFn = unsafe fn(memory: *mut u8, packed: *mut u8, places: Places<'_>, group: &WordGroup);

/// Moves `outer * inner` elements of `bytes` bytes: element `i` of column `o` is at
/// `memory + o * outer_stride + i * inner_stride` and at `packed + o * pitch + i * bytes`. Strides are in bytes, and so is the
/// pitch, which is at least that of a column.
///
/// The elements are visited in tiles that suit a small outer and a large inner stride. Between columns `packed` is not touched.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel).
pub type TileFn = unsafe extern "C" fn(
    memory: *mut u8,
    packed: *mut u8,
    outer: usize,
    outer_stride: isize,
    inner: usize,
    inner_stride: isize,
    bytes: usize,
    pitch: usize,
);

/// Copies `bytes` contiguous bytes: for every level, size and footprint.
///
/// The C library's `memcpy` chooses by CPU, size and cache; where the length is known at commit, a rows microkernel may be faster.
///
/// # Safety
///
/// See the [safety contract](self#safety-contract-of-every-microkernel).
pub unsafe extern "C" fn copy(destination: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the first two clauses of the safety contract make both ranges valid for `bytes` bytes, and the third keeps them
    // apart.
    unsafe { core::ptr::copy_nonoverlapping(source, destination, bytes) }
}
