//! The CPUs that code is compiled for ahead of time.

use crate::plan::Level;
use crate::plan::strategy::Vectors;
use std::fmt;
#[cfg(feature = "jit")]
use target_lexicon::Triple;

/// A CPU under the name that C compilers have for it, or that of a [`Level`]. The code is for Linux, with the C convention of the architecture.
///
/// ```
/// use dtc_compiler::codegen::cranelift::CpuTarget;
/// assert_eq!(CpuTarget::named("x86-64-v3"), Some(CpuTarget::X86_64V3));
/// assert_eq!(CpuTarget::X86_64V3.to_string(), "x86-64-v3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuTarget {
    /// Every x86-64.
    X86_64,
    /// With AVX2: Haswell, Zen and later.
    X86_64V3,
    /// With AVX-512: Skylake servers, Zen 4 and later.
    X86_64V4,
    /// The same with VBMI, for AMD's Zen 5 and what it is fast at: masked stores, gathers where lines are far apart.
    Zen5,
    /// Every AArch64.
    Aarch64,
}

impl CpuTarget {
    /// All targets.
    pub const ALL: [CpuTarget; 5] =
        [CpuTarget::X86_64, CpuTarget::X86_64V3, CpuTarget::X86_64V4, CpuTarget::Zen5, CpuTarget::Aarch64];

    /// The target of a name, which is what it displays as.
    pub fn named(name: &str) -> Option<CpuTarget> {
        CpuTarget::ALL.into_iter().find(|target| target.to_string() == name)
    }

    /// The architecture as the GNU tools call it: `x86_64` or `aarch64`.
    ///
    /// ```
    /// use dtc_compiler::codegen::cranelift::CpuTarget;
    /// assert_eq!(CpuTarget::X86_64V4.architecture(), "x86_64");
    /// ```
    pub fn architecture(self) -> &'static str {
        match self {
            CpuTarget::Aarch64 => "aarch64",
            _ => "x86_64",
        }
    }

    /// The targets whose code runs on a CPU of this process's architecture and of this level, best first.
    ///
    /// ```
    /// use dtc_compiler::codegen::cranelift::CpuTarget;
    /// use dtc_compiler::plan::Level;
    /// if cfg!(target_arch = "x86_64") {
    ///     assert_eq!(CpuTarget::running_on(Level::Avx2), [CpuTarget::X86_64V3, CpuTarget::X86_64]);
    /// }
    /// ```
    pub fn running_on(level: Level) -> Vec<CpuTarget> {
        let runs = |target: &CpuTarget| {
            target.architecture() == std::env::consts::ARCH
                && match target {
                    CpuTarget::X86_64 | CpuTarget::Aarch64 => true,
                    CpuTarget::X86_64V3 => level >= Level::Avx2,
                    CpuTarget::X86_64V4 => level.instructions() >= Level::Avx512,
                    CpuTarget::Zen5 => level == Level::Zen5,
                }
        };
        CpuTarget::ALL.into_iter().rev().filter(runs).collect()
    }

    /// The triple of a target.
    pub(super) fn triple_name(self) -> &'static str {
        match self {
            CpuTarget::Aarch64 => "aarch64-unknown-linux-gnu",
            _ => "x86_64-unknown-linux-gnu",
        }
    }

    #[cfg(feature = "jit")]
    pub(super) fn triple(self) -> Result<Triple, String> {
        self.triple_name().parse().map_err(|error: target_lexicon::ParseError| error.to_string())
    }

    /// What vectors are good for.
    pub(super) fn vectors(self) -> Vectors {
        let plain = |bytes| Vectors {
            bytes,
            masked_loads: false,
            masked_stores: false,
            byte_shuffles: false,
            gathers: false,
            overhangs: false,
        };
        match self {
            CpuTarget::X86_64 | CpuTarget::Aarch64 => plain(16),
            CpuTarget::X86_64V3 => plain(32),
            CpuTarget::X86_64V4 => Vectors { masked_loads: true, ..plain(64) },
            CpuTarget::Zen5 => Vectors {
                bytes: 64,
                masked_loads: true,
                masked_stores: true,
                byte_shuffles: true,
                gathers: true,
                overhangs: true,
            },
        }
    }

    /// Whether code may use AVX2. Cranelift has no vectors beyond its own of 16 bytes, so that AVX-512 adds nothing.
    #[cfg(feature = "jit")]
    pub(super) fn has_avx2(self) -> bool {
        matches!(self, CpuTarget::X86_64V3 | CpuTarget::X86_64V4 | CpuTarget::Zen5)
    }
}

impl fmt::Display for CpuTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CpuTarget::X86_64 => "x86-64",
            CpuTarget::X86_64V3 => "x86-64-v3",
            CpuTarget::X86_64V4 => "x86-64-v4",
            CpuTarget::Zen5 => "zen5",
            CpuTarget::Aarch64 => "aarch64",
        })
    }
}
