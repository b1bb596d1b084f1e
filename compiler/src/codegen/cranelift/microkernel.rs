//! What kernels call.

use serde::{Deserialize, Serialize};

/// An ahead-of-time routine of the runtime that a kernel calls, in the kernel's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Microkernel {
    /// `fn(destination, source, bytes)`.
    Copy,
    /// `fn(memory, packed, rows, bytes, stride)`, for rows of this length.
    Rows(u64),
    /// `fn(memory, packed, planes, plane_stride, rows, stride, bytes)`, for rows of this length.
    Planes(u64),
    /// `fn(memory, packed, planes, plane_stride, rows, stride, bytes, pitch)`, in tiles, with `pitch` packed bytes from
    /// plane to plane.
    Tile(u64),
    /// `fn(memory, packed, offsets, count, bytes)` with 32-bit offsets, for blocks of this length.
    List32(u64),
    /// The same with 64-bit offsets.
    List64(u64),
    /// `fn(memory, packed, runs, count)`.
    Runs,
}
