//! The developers' benchmark: what `dtc bench` measures, with figures as JSON, lists of cases, several sets of buffers, and every
//! call on a GPU.
#![deny(unsafe_code)]

mod arguments;
mod cases;
mod commits;
mod cuda;
mod drawn;
mod figures;
mod permutes;
mod random;

use arguments::Benchmark;
use dtc_measure::bench::{Backend, Results, case};
use dtc_measure::failure::Failure;
use dtc_measure::output::{self, Output};
use dtc_measure::paths::STANDARD;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    dtc_measure::execute(run)
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
    if let (Some(number), Some(folder)) = (arguments.random, &arguments.types) {
        return random::write(arguments, number, folder, out);
    }
    if let Some(number) = arguments.permutes {
        return permutes::run(arguments, number, out);
    }
    if shared.backend == Backend::Cuda {
        return cuda::run(arguments, out);
    }
    if let Some(number) = arguments.random {
        let figures = arguments.json.as_deref().map(Output::create).transpose()?;
        let random = random::run(arguments, number, out)?;
        if let Some(mut file) = figures {
            file.write(format!("{:#}\n", figures::random(arguments, &random)).as_bytes())?;
            file.finish()?;
        }
        return random::print(&random, out);
    }
    let listed = arguments.cases.as_deref().map(cases::list).transpose()?;
    let cases = case::collect(&shared.files, listed, shared.only.as_deref())?;
    if let Some(bundle) = &arguments.bundle {
        return commits::measure(bundle, &cases, shared.rounds(), out);
    }
    // Before hours of measuring, not behind them.
    let figures = arguments.json.as_deref().map(Output::create).transpose()?;
    let results = Results::measure(shared, &cases, arguments.starts, out)?;
    if let Some(mut figures) = figures {
        figures.write(format!("{:#}\n", figures::all(arguments, &results)).as_bytes())?;
        figures.finish()?;
    }
    results.print(shared, out)
}
