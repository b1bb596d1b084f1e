//! The developers' benchmark: what `dtc bench` measures, with figures as JSON, lists of cases, several sets of buffers, and every
//! call on a GPU.
#![deny(unsafe_code)]

mod cases;
mod cuda;
mod figures;

use clap::Parser;
use dtc_cli::commands::bench::{self, Backend, Results, case};
use dtc_cli::failure::Failure;
use dtc_cli::input::STANDARD;
use dtc_cli::output::{self, Output};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures as dtc bench does, for developers of dtc
#[derive(Parser)]
#[command(name = "dtc-bench", version)]
struct Benchmark {
    #[command(flatten)]
    shared: bench::Arguments,
    /// A list of benchmark cases: {"cases": [...]}
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// The index of cases for --backend cuda [default: bench/gpu/cases.json of the checkout]
    #[arg(long, value_name = "FILE")]
    gpu_cases: Option<PathBuf>,
    /// What to measure with --backend cuda [default: all; with types or --only, kernels]
    #[arg(long, value_enum, value_name = "PART")]
    part: Vec<cuda::Part>,
    /// Bytes that the L2 cache of the GPU fetches at a time while --backend cuda measures
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(32..=128))]
    l2_fetch: Option<u16>,
    /// How often buffers are allocated and MPIs started anew, each time for as many rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    starts: u16,
    /// Writes all figures to a file, or with - to standard output instead of the table; with --backend cuda one object to a
    /// line, as the programs in bench/gpu do
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The date that the figures bear [default: today]
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
}

fn main() -> ExitCode {
    dtc_cli::execute(run)
}

fn run(arguments: &Benchmark, out: &mut dyn Write) -> Result<(), Failure> {
    let shared = &arguments.shared;
    if let Some(path) = &arguments.json {
        let mut inputs: Vec<(&str, &Path)> = shared.files.iter().map(|file| ("TYPE.json", file.as_path())).collect();
        inputs.extend(arguments.cases.iter().map(|file| ("--cases", file.as_path())));
        inputs.extend(arguments.gpu_cases.iter().map(|file| ("--gpu-cases", file.as_path())));
        output::distinct("--json", path, &inputs)?;
    }
    let mut nowhere = io::sink();
    let only_figures = arguments.json.as_deref() == Some(Path::new(STANDARD));
    let out = if only_figures { &mut nowhere } else { out };
    if shared.backend == Backend::Cuda {
        return cuda::run(arguments, out);
    }
    let listed = arguments.cases.as_deref().map(cases::list).transpose()?;
    let cases = case::collect(&shared.files, listed, shared.only.as_deref())?;
    // Before hours of measuring, not behind them.
    let figures = arguments.json.as_deref().map(Output::create).transpose()?;
    let results = Results::measure(shared, &cases, arguments.starts)?;
    if let Some(mut figures) = figures {
        figures.write(format!("{:#}\n", figures::all(arguments, &results)).as_bytes())?;
        figures.finish()?;
    }
    results.print(shared, out)
}
