//! `dtc bench`: its arguments, and the report or the figures that it writes.

use dtc_measure::bench::{Arguments, Backend, LONG_ABOUT, Results, case, cuda, figures};
use dtc_measure::failure::Failure;
use dtc_measure::output::Output;
use dtc_measure::paths::STANDARD;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The arguments of the command, beside those that it shares with the developers' benchmark.
#[derive(clap::Args)]
#[command(about = "Measures packs and unpacks side by side with memcpy, hand-written loops and, with --peers, MPIs")]
#[command(long_about = LONG_ABOUT)]
pub struct BenchCommand {
    #[command(flatten)]
    shared: Arguments,
    /// Writes all figures of the CPU to a file as JSON, or with - to standard output instead of the report
    #[arg(long, value_name = "FILE", conflicts_with = "markdown")]
    json: Option<PathBuf>,
}

/// Runs the command.
pub fn run(command: &BenchCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let BenchCommand { shared: arguments, json } = command;
    if json.is_some() && arguments.backend == Backend::Cuda {
        return Err(Failure::description("--json", "--backend cpu", "cuda"));
    }
    if arguments.backend == Backend::Cuda {
        // The message without a GPU is that, whatever the types are.
        dtc_runtime::Engine::new().gpu(0)?;
    }
    let cases = case::collect(&arguments.files, None, arguments.only.as_deref())?;
    match arguments.backend {
        Backend::Cpu => {
            let only_figures = json.as_deref() == Some(Path::new(STANDARD));
            let mut nowhere = std::io::sink();
            let out = if only_figures { &mut nowhere } else { out };
            // Before the measurement, not behind it.
            let file = json.as_deref().map(Output::create).transpose()?;
            let results = Results::measure(arguments, &cases, 1, out)?;
            if let Some(mut file) = file {
                file.write(format!("{:#}\n", figures::all(arguments, 1, None, &results)).as_bytes())?;
                file.finish()?;
            }
            results.print(arguments, out)
        }
        Backend::Cuda => cuda::run(&cases, arguments.rounds(), out),
    }
}
