//! What a bundle is built for.

use dtc_compiler::codegen::cranelift::CpuTarget;
use dtc_runtime::Engine;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Cpu(CpuTarget),
    /// A GPU, by ten times its compute capability.
    Gpu(u32),
}

/// The name of this machine's processor among targets.
pub const NATIVE: &str = "native";

/// The best target that runs on this machine.
pub fn native() -> CpuTarget {
    CpuTarget::running_on(Engine::new().target().level).first().copied().unwrap_or(CpuTarget::X86_64)
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let gpu = text.strip_prefix("sm_").and_then(|number| number.parse().ok().map(Target::Gpu));
        // A number is written in one way.
        let gpu = gpu.filter(|gpu| gpu.to_string() == text);
        let native = || (text == NATIVE).then(native);
        CpuTarget::named(text).or_else(native).map(Target::Cpu).or(gpu).ok_or_else(|| {
            let cpus = CpuTarget::ALL.map(|cpu| cpu.to_string()).join(", ");
            format!("expected {cpus}, {NATIVE}, or sm_ and ten times a compute capability, found {text}")
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cpu(cpu) => cpu.fmt(f),
            Target::Gpu(number) => write!(f, "sm_{number}"),
        }
    }
}

/// Each target once, CPUs and GPUs apart.
pub fn divide(targets: &[Target]) -> (BTreeSet<CpuTarget>, Vec<u32>) {
    let mut gpus = BTreeSet::new();
    let mut cpus = BTreeSet::new();
    for target in targets {
        match target {
            Target::Cpu(cpu) => cpus.insert(*cpu),
            Target::Gpu(number) => gpus.insert(*number),
        };
    }
    (cpus, gpus.into_iter().collect())
}
