//! The microarchitectures that have microkernels of their own, and where they were measured.
//!
//! Processors of one instruction set differ in which of its instructions are fast. [`TABLE`] says whose microkernels a processor
//! gets; one that it does not list gets those of its instruction set. `DTC_CPU` overrides the table.

use dtc_compiler::plan::strategy::Level;

/// A line of the table: processors of one vendor and of a range of families.
struct ProcessorRow {
    vendor: &'static str,
    /// The family of CPUID, with the extended family added.
    families: std::ops::RangeInclusive<u32>,
    level: Level,
}

/// The processors with AVX-512 whose microkernels are not those of [`Level::Avx512`], which were measured on Sapphire Rapids
/// (`bench/results/2026-11-22-cpu.md`).
const TABLE: [ProcessorRow; 2] = [
    // Zen 4. Zen 3 is of this family, too, and has no AVX-512. Not measured with these microkernels: gathers are microcoded, and
    // so are masked stores of bytes, by published tables of instructions. With the microkernels of `Avx512`, unpacks that
    // prefetch were at
    // 0.78 to 0.88 of a hand-written loop, lists by gathers and rows by masks at 0.85 to 0.95.
    ProcessorRow { vendor: "AuthenticAMD", families: 0x19..=0x19, level: Level::Zen4 },
    // Zen 5, and what follows until it is measured: `bench/results/2026-11-22-cpu-zen5.md`.
    ProcessorRow { vendor: "AuthenticAMD", families: 0x1a..=u32::MAX, level: Level::Zen5 },
];

/// The level of this processor, which has the given instructions.
pub(super) fn level(instructions: Level) -> Level {
    match identify() {
        Some((vendor, family)) => look_up(&vendor, family, instructions),
        None => instructions,
    }
}

fn look_up(vendor: &[u8], family: u32, instructions: Level) -> Level {
    let line = TABLE.iter().find(|line| line.vendor.as_bytes() == vendor && line.families.contains(&family));
    line.map(|line| line.level).filter(|level| level.instructions() <= instructions).unwrap_or(instructions)
}

/// Vendor and family, as CPUID tells them.
#[cfg(target_arch = "x86_64")]
fn identify() -> Option<([u8; 12], u32)> {
    use core::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    if vendor.eax < 1 {
        return None;
    }
    let mut name = [0; 12];
    for (place, register) in name.chunks_exact_mut(4).zip([vendor.ebx, vendor.edx, vendor.ecx]) {
        place.copy_from_slice(&register.to_le_bytes());
    }
    let signature = __cpuid(1).eax;
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    Some((name, if base == 0xf { base + extended } else { base }))
}

#[cfg(not(target_arch = "x86_64"))]
fn identify() -> Option<([u8; 12], u32)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_get_the_microkernels_of_their_microarchitecture() {
        let amd = |family, instructions| look_up(b"AuthenticAMD", family, instructions);
        assert_eq!(amd(0x19, Level::Avx512), Level::Zen4);
        assert_eq!(amd(0x1a, Level::Avx512), Level::Zen5);
        // Zen 3, and an operating system that does not save the registers of AVX-512.
        assert_eq!(amd(0x19, Level::Avx2), Level::Avx2);
        assert_eq!(amd(0x1a, Level::Avx2), Level::Avx2);
        assert_eq!(amd(0x17, Level::Avx2), Level::Avx2);
        assert_eq!(look_up(b"GenuineIntel", 6, Level::Avx512), Level::Avx512);
        assert_eq!(look_up(b"GenuineIntel", 0x19, Level::Avx512), Level::Avx512);
    }

    #[test]
    fn this_processor_can_run_its_level() {
        for instructions in [Level::Portable, Level::Avx2, Level::Avx512] {
            assert!(level(instructions).instructions() <= instructions);
        }
    }
}
