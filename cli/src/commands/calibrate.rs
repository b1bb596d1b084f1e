//! `dtc calibrate`: measures what transfers between host and device cost here.

use crate::failure::Failure;
use dtc_runtime::Engine;
use dtc_runtime::store::{Config, Store};
use std::io::Write;

/// Measures transfers between the memory of the host and of a GPU, and stores what ways are chosen by
///
/// The figures lie in the store of compiled code, see dtc cache, and serve from the next start of a program on. Measure while
/// nothing else runs. Without them, those of one machine serve for all.
#[derive(clap::Args)]
pub struct Arguments {
    /// The GPU [default: each]
    #[arg(long, value_name = "N")]
    gpu: Option<u32>,
    /// Only prints the figures
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let engine = Engine::new();
    let gpus = match arguments.gpu {
        Some(ordinal) => vec![engine.gpu(ordinal)?],
        None => {
            let count = dtc_runtime::cuda::Device::count()?;
            (0..count).map(|ordinal| engine.gpu(ordinal)).collect::<Result<_, _>>()?
        }
    };
    let store = Store::open(Config::from_environment());
    for gpu in gpus {
        let info = gpu.device().info();
        let model = gpu.calibrate()?;
        writeln!(out, "GPU {}: {}", info.ordinal, info.name)?;
        for line in model.to_string().lines() {
            writeln!(out, "    {line}")?;
        }
        if arguments.dry_run {
            continue;
        }
        if model.store(&store, info) {
            writeln!(out, "stored")?;
        } else {
            let findings = store.directories().iter().filter_map(|directory| directory.finding.as_ref());
            let reasons: Vec<String> = findings.map(ToString::to_string).collect();
            let found =
                if reasons.is_empty() { "none (DTC_CACHE_DIR is off, or full)".to_owned() } else { reasons.join("; ") };
            return Err(Failure::data("store", "a directory that can be written", found));
        }
    }
    Ok(())
}
