//! Sizes that plans for any GPU count with.

/// Words that 32-bit indices count.
pub(crate) const NARROW: u64 = 1 << 31;

/// Packed bytes of a thread in the families without words.
pub(crate) const SLOT: u64 = 8;

/// Packed bytes of a word that is put together from runs.
pub(crate) const JOINED: u64 = 16;

/// Threads of a warp.
pub(crate) const WARP: u64 = 32;

/// Bytes of a sector: DRAM is written in sectors, and read in one where a part of it is written. Measured on an H200: an unpack of 12
/// in 64 bytes reads and writes 32 bytes for each block.
pub(crate) const SECTOR: u64 = 32;

/// Bytes of a line of memory, at which warps begin.
pub(crate) const LINE: u64 = 128;

/// Bytes of the widest scalar, and so of the widest word that a kernel shifts out of two.
pub(crate) const SCALAR: u32 = 8;

/// Bytes of the widest word that a GPU loads.
pub(crate) const WIDEST: u32 = 16;

/// Bytes of a bank of shared memory.
pub(crate) const BANK: u32 = 4;

/// Banks of shared memory.
pub(crate) const BANKS: u64 = 32;
