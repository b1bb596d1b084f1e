//! What a plan is made for.

use std::fmt;

/// The instruction sets that leaves are compiled for, in rising order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Whatever every CPU of the architecture has.
    #[default]
    Portable,
    /// AVX2: 32-byte vectors.
    Avx2,
    /// AVX-512 with BW, DQ, VL and VBMI, which is Ice Lake and Zen 4 and later: 64-byte vectors, masked loads and
    /// stores, and a shuffle of any 64 bytes. The first AVX-512 CPUs lack VBMI and lower their clock for such vectors;
    /// they count as AVX2.
    Avx512,
}

impl Level {
    /// All levels, in rising order.
    pub const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        })
    }
}

/// A CPU as the planner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Vector instructions.
    pub level: Level,
    /// Packs of more bytes go past the cache.
    pub streaming_bytes: u64,
}

impl Default for Target {
    /// A CPU that every machine of the architecture can stand in for, with a cache of 32 MiB.
    fn default() -> Target {
        Target { level: Level::Portable, streaming_bytes: 32 << 20 }
    }
}
