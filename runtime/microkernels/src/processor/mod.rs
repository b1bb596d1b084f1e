//! The level and the caches of this process's CPU.

mod table;

use dtc_compiler::plan::strategy::Level;
use dtc_host::environment;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The environment variable that names a level to use instead of the best one, so that levels can be compared on one CPU. An
/// unknown name is ignored, and so is a level whose instructions the CPU lacks.
const FORCED: &CStr = c"DTC_CPU";

/// The best level for this CPU and its operating system, or the one that `DTC_CPU` names.
#[must_use]
pub fn detect_level() -> Level {
    let best = table::level(detect_instructions());
    let forced = environment::variable(FORCED).and_then(|name| Level::named(name.to_str()?));
    forced.filter(|level| level.instructions() <= best.instructions()).unwrap_or(best)
}

/// What is wrong with `DTC_CPU`: expected and found, if it is set to a name that no level has. A level whose instructions the CPU lacks is
/// no mistake: the variable may be set for a cluster of different machines.
///
/// ```
/// // In a process whose environment does not set it.
/// assert_eq!(dtc_microkernels::unknown_level(), None);
/// ```
#[must_use]
pub fn unknown_level() -> Option<String> {
    let name = environment::variable(FORCED)?;
    let known = name.to_str().and_then(Level::named).is_some();
    let levels = || Level::ALL.map(|level| level.to_string()).join(", ");
    (!known).then(|| format!("DTC_CPU: expected one of {}, found {name:?}: using {}", levels(), detect_level()))
}

/// The highest instruction set that this CPU and its operating system support.
fn detect_instructions() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512vbmi")
            && std::is_x86_feature_detected!("bmi2")
        {
            return Level::Avx512;
        }
        if std::is_x86_feature_detected!("avx2") {
            return Level::Avx2;
        }
    }
    Level::Portable
}

/// Packed bytes of a call from which a pack bypasses the caches: half of the last-level cache. Its memory takes at least as many
/// bytes again, so the two do not fit together.
///
/// Reads the size of the cache once; where the system does not tell it, 32 MiB are assumed.
#[must_use]
pub fn non_temporal_threshold() -> usize {
    // Zero before the first call. Threads that find it so ask the system side by side, and none waits for another.
    static THRESHOLD: AtomicUsize = AtomicUsize::new(0);
    match THRESHOLD.load(Ordering::Relaxed) {
        0 => {
            let threshold = last_level_cache().unwrap_or(32 << 20) / 2;
            THRESHOLD.store(threshold, Ordering::Relaxed);
            threshold
        }
        known => known,
    }
}

/// The size of the last-level cache in bytes.
fn last_level_cache() -> Option<usize> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for name in [libc::_SC_LEVEL3_CACHE_SIZE, libc::_SC_LEVEL2_CACHE_SIZE] {
        // SAFETY: sysconf takes any name and has no other precondition.
        let bytes = unsafe { libc::sysconf(name) };
        if bytes > 0 {
            return usize::try_from(bytes).ok();
        }
    }
    None
}
