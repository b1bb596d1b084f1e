//! What a strategy is made for: a processor, and what its instructions are good for.

use std::fmt;

/// The instruction sets and microarchitectures that microkernels are compiled for. [`Level::instructions`] rises from one to the next.
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
    /// The instructions of [`Level::Avx512`] as AMD's Zen 4 runs them best: no masked stores, gathers or prefetches of
    /// destinations.
    Zen4,
    /// The same for AMD's Zen 5, whose masked stores are fast.
    Zen5,
}

impl Level {
    /// All levels, in rising order of their instructions.
    pub const ALL: [Level; 5] = [Level::Portable, Level::Avx2, Level::Avx512, Level::Zen4, Level::Zen5];

    /// The instruction set of the level: itself, or [`Level::Avx512`] for a microarchitecture.
    ///
    /// ```
    /// use dtc_compiler::plan::Level;
    /// assert_eq!(Level::Zen4.instructions(), Level::Avx512);
    /// assert!(Level::Avx2.instructions() < Level::Zen5.instructions());
    /// ```
    pub fn instructions(self) -> Level {
        self.min(Level::Avx512)
    }

    /// Whether unpacks prefetch the lines that they will write. On Zen that costs up to a third.
    #[inline(always)]
    pub const fn prefetches(self) -> bool {
        matches!(self, Level::Portable | Level::Avx2 | Level::Avx512)
    }

    /// Whether gathers are faster than single loads. On Zen 5 a gather of eight words takes twice the time of eight loads.
    #[inline(always)]
    pub const fn gathers(self) -> bool {
        matches!(self, Level::Avx512)
    }

    /// Whether masked stores of bytes are as fast as others. On Zen 4 they are microcoded.
    #[inline(always)]
    pub const fn stores_masks(self) -> bool {
        matches!(self, Level::Avx512 | Level::Zen5)
    }

    /// Whether stores of whole vectors that overlap are faster than stores of rows alone: 0.75 of the time on Zen 5, 1.5 on Sapphire Rapids.
    #[inline(always)]
    pub const fn overhangs(self) -> bool {
        matches!(self, Level::Zen5)
    }

    /// The level of a name, which is what it displays as, in any case.
    ///
    /// ```
    /// use dtc_compiler::plan::Level;
    /// assert_eq!(Level::named("zen4"), Some(Level::Zen4));
    /// assert_eq!(Level::named("ZEN4"), Some(Level::Zen4));
    /// assert_eq!(Level::named("Zen 4"), None);
    /// ```
    pub fn named(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }

    fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Zen4 => "zen4",
            Level::Zen5 => "zen5",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A CPU as a strategy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Vector instructions.
    pub level: Level,
    /// Half of the last-level cache, in bytes: from a call of more packed bytes on, a pack goes by non-temporal stores where
    /// a microkernel can. Memory takes as many bytes again, so the two do not fit together.
    pub non_temporal_bytes: u64,
}

impl Default for Target {
    /// A CPU that every machine of the architecture can stand in for, with a cache of 32 MiB.
    fn default() -> Target {
        Target { level: Level::Portable, non_temporal_bytes: 32 << 20 }
    }
}
