//! Sizes that plans for any GPU count with.

/// Words that 32-bit indices count.
pub(super) const NARROW: u64 = 1 << 31;

/// Packed bytes of a thread in the families without words.
pub(super) const SLOT: u64 = 8;

/// Packed bytes of a word that is put together from runs.
pub(super) const JOINED: u64 = 16;

/// Threads of a warp.
pub(super) const WARP: u64 = 32;

/// Bytes of a sector: DRAM is written in sectors, and read in one where a part of it is written. Measured on an H200: an unpack of 12
/// in 64 bytes reads and writes 32 bytes for each block.
pub(super) const SECTOR: u64 = 32;

/// Bytes of a line of memory, at which warps begin.
pub(crate) const LINE: u64 = 128;
