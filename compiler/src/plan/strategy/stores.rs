//! Which stores are non-temporal: they bypass the caches.

use super::Level;

/// Lengths of rows, in bytes, that a pack writes by non-temporal stores beyond the caches: rows of 128 bytes of every 512 were level
/// to 1.4 times as fast, of 1,024 of 4,096 1.2 to 1.8 times; of 32 and 8 bytes up to 20 % slower (64 MiB, Sapphire Rapids). The
/// longest fill half of the buffer that the stores go through.
const NON_TEMPORAL_ROWS: std::ops::RangeInclusive<u64> = 128..=2048;

/// Most packed bytes of a nest that a pack writes through the caches all the same: parts of a large type go to small buffers, which are
/// read again soon.
pub const LEAST_NON_TEMPORAL: usize = 8 << 10;

/// Whether a pack of `packed_bytes` goes by non-temporal stores where a microkernel can: where it is of more bytes than `threshold`, a
/// [`Target::non_temporal_bytes`](super::Target::non_temporal_bytes).
#[inline(always)]
#[must_use]
pub fn is_beyond_caches(packed_bytes: u64, threshold: u64) -> bool {
    packed_bytes > threshold
}

/// Whether a pack of rows of `bytes` bytes that goes by non-temporal stores has a microkernel for them.
#[must_use]
pub fn is_non_temporal(level: Level, bytes: u64) -> bool {
    level >= Level::Avx512 && NON_TEMPORAL_ROWS.contains(&bytes)
}

/// Whether long contiguous copies between pageable memory and pinned buffers go by non-temporal stores. Measured on Sapphire Rapids
/// with an H200, 1 MiB at a time of 32 MiB: 15.8 GB/s against 12.4 of the C library, and 14.7 against 11.4 GB/s through pinned
/// buffers that a device fills. Stores of 16 bytes reached 5.3 GB/s against 11.3, into buffers that a device reads.
#[must_use]
pub fn copies_non_temporally(level: Level) -> bool {
    level >= Level::Avx512
}
