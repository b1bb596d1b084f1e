//! `dtc calibrate`: measures what transfers between host and device cost here, or which calls dtc does faster than an MPI.

use super::calibrate_mpi::{self, Request};
use dtc_measure::failure::Failure;
use dtc_runtime::Engine;
use dtc_runtime::store::{Config, Store};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

/// Measures transfers between the memory of the host and of a GPU, and stores what ways are chosen by
///
/// The figures are in the store of compiled code, see dtc cache, and serve from the next start of a program on. Measure while
/// nothing else runs. Without them, those of one machine serve for all.
#[derive(clap::Args)]
pub struct Arguments {
    /// The GPU [default: each]
    #[arg(long, value_name = "N")]
    gpu: Option<u32>,
    /// Only prints the figures
    #[arg(long)]
    dry_run: bool,
    /// Measures an MPI instead: which calls with derived datatypes dtc does faster than it, for libdtc_mpi. Behind it stands how two
    /// processes are launched [default: mpirun -n 2]
    #[arg(long, value_name = "LAUNCHER", num_args = 0.., allow_hyphen_values = true, conflicts_with_all = ["gpu", "dry_run"])]
    mpi: Option<Vec<OsString>>,
    /// Where the table of an MPI goes. Before `--mpi`, which takes all that follows, as are the next five
    #[arg(short, long, value_name = "FILE", requires = "mpi", default_value = "dtc-mpi-table.txt")]
    output: PathBuf,
    /// Packed bytes of the largest calls that are measured. Less than 16 MiB leaves larger ones to the MPI
    #[arg(long, value_name = "BYTES", requires = "mpi", default_value_t = 16 << 20, value_parser = clap::value_parser!(u64).range(256..=16 << 20))]
    largest: u64,
    /// How often all of it is measured; the lowest gain of each call counts
    #[arg(long, value_name = "N", requires = "mpi", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Measures messages of elements on GPUs instead, one for each process, under a CUDA-aware MPI, and prints their gains. libdtc_mpi does all of
    /// these calls, so no table is written
    #[arg(long, requires = "mpi")]
    gpus: bool,
    /// The compiler of the MPI [default: mpicc beside the launcher]
    #[arg(long, value_name = "FILE", requires = "mpi")]
    mpicc: Option<PathBuf>,
    /// libdtc_mpi.so; that of the installation unless given
    #[arg(long, value_name = "FILE", requires = "mpi")]
    interposer: Option<PathBuf>,
}

/// How two processes are launched on this machine.
const LAUNCHER: [&str; 3] = ["mpirun", "-n", "2"];

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(launcher) = &arguments.mpi {
        let usual = LAUNCHER.map(OsString::from);
        let launcher = if launcher.is_empty() { &usual[..] } else { launcher };
        let (compiler, library) = (arguments.mpicc.as_deref(), arguments.interposer.as_deref());
        let Arguments { output: table, largest, runs, gpus, .. } = arguments;
        let (largest, runs, gpus) = (*largest, *runs, *gpus);
        return calibrate_mpi::run(&Request { launcher, compiler, library, table, largest, runs, gpus }, out);
    }
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
