//! `dtc bench`: side by side with memcpy, hand-written loops and MPIs, in one run on this machine.

mod case;
mod commit;
mod cuda;
mod hand_loop;
mod measure;
mod peer;
mod prepare;
mod shared;
mod table;

use crate::commands::doctor::processor;
use crate::failure::{Failure, reason};
use crate::input::STANDARD;
use crate::output::{self, Output};
use case::Case;
use measure::{Measured, Settings, measure};
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Measures packs and unpacks side by side with memcpy, hand-written loops and, with --peers, MPIs
///
/// The loops are written for the types and compiled by gcc, or what CC names; without a C compiler they are left out.
///
/// With --backend cuda: kernels made for types, generic kernels, and a copy of as many bytes, on the first GPU.
#[derive(clap::Args)]
pub struct Arguments {
    /// Type descriptions [default: every file of ir-examples in a checkout]
    #[arg(value_name = "TYPE.json")]
    files: Vec<PathBuf>,
    /// A list of benchmark cases: {"cases": [...]}
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Only types whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Builds peers in this directory and measures them too
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// The script that builds peers [default: bench/peers of the checkout]
    #[arg(long, value_name = "PATH")]
    peers_script: Option<PathBuf>,
    /// Where the data lies
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    backend: Backend,
    /// The index of cases for --backend cuda [default: bench/gpu/cases.json of the checkout]
    #[arg(long, value_name = "FILE")]
    gpu_cases: Option<PathBuf>,
    /// What to measure with --backend cuda [default: all; with types or --only, kernels]
    #[arg(long, value_enum, value_name = "PART")]
    part: Vec<cuda::Part>,
    /// Bytes that the L2 cache of the GPU fetches at a time while --backend cuda measures
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(32..=128))]
    l2_fetch: Option<u16>,
    /// Interleaved rounds [default: 5, with --backend cuda 9]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// How often buffers are allocated and MPIs started anew, each time for as many rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    starts: u16,
    /// The least milliseconds of a sample
    #[arg(long, value_name = "MS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1000))]
    min_time: u16,
    /// Prints tables in Markdown
    #[arg(long)]
    markdown: bool,
    /// Writes all figures to a file, or with - to standard output instead of the table; with --backend cuda one object to a
    /// line, as the programs in bench/gpu do
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The date that the figures bear [default: today]
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    /// In the memory of the host
    Cpu,
    /// In the memory of a GPU
    Cuda,
}

/// Rounds unless said otherwise.
const ROUNDS: u16 = 5;

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(path) = &arguments.json {
        let mut inputs: Vec<(&str, &Path)> = arguments.files.iter().map(|file| ("TYPE.json", file.as_path())).collect();
        inputs.extend(arguments.cases.iter().map(|file| ("--cases", file.as_path())));
        inputs.extend(arguments.gpu_cases.iter().map(|file| ("--gpu-cases", file.as_path())));
        output::distinct("--json", path, &inputs)?;
    }
    let mut nowhere = io::sink();
    let only_figures = arguments.json.as_deref() == Some(Path::new(STANDARD));
    let out = if only_figures { &mut nowhere } else { out };
    if arguments.backend == Backend::Cuda {
        return cuda::run(arguments, out);
    }
    let mut cases = case::collect(&arguments.files, arguments.cases.as_deref())?;
    if let Some(text) = &arguments.only {
        cases.retain(|case| case.name.contains(text.as_str()));
        if cases.is_empty() {
            return Err(Failure::description("--only", "a part of a type's name", format_args!("\"{text}\"")));
        }
    }
    let mut notes = Vec::new();
    if let Some(directory) = &arguments.peers {
        let script = prepare::find_script(arguments.peers_script.as_deref())?;
        notes = prepare::prepare(directory, &cases, &script)?;
    }
    // Without --peers, the loops live as long as the command.
    let mut loops = None;
    if arguments.peers.is_none() {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| Failure::data("a temporary folder", "room for loops", reason(&error)))?;
        notes = prepare::prepare_loops(folder.path(), &cases);
        loops = Some(folder);
    }
    let settings = Settings {
        rounds: arguments.rounds.unwrap_or(ROUNDS).into(),
        starts: arguments.starts.into(),
        least: f64::from(arguments.min_time) * 1e6,
        peers: arguments.peers.as_deref().or(loops.as_ref().map(tempfile::TempDir::path)),
    };
    // Before hours of measuring, not behind them.
    let figures = arguments.json.as_deref().map(Output::create).transpose()?;
    let mut results = Vec::new();
    let terminal = io::stderr().is_terminal();
    for (index, case) in cases.iter().enumerate() {
        if terminal {
            let _ = write!(io::stderr(), "\r\x1b[Kmeasuring {} ({} of {})", case.name, index + 1, cases.len());
        }
        results.push(measure(case, &settings)?);
    }
    if terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    if let Some(mut figures) = figures {
        let text = format!("{:#}\n", to_json(arguments, &results, &notes));
        figures.write(text.as_bytes())?;
        figures.finish()?;
    }
    let style = if arguments.markdown { table::Style::Markdown } else { table::Style::Lines };
    table::print(&results, arguments.peers.is_some(), style, out)?;
    for note in notes.iter().chain(results.iter().flat_map(|result| &result.notes)) {
        writeln!(out, "note: {note}")?;
    }
    let mismatches: Vec<&String> = results.iter().flat_map(|result| &result.mismatches).collect();
    match mismatches.split_first() {
        None => Ok(()),
        Some((first, rest)) => {
            for mismatch in rest {
                writeln!(out, "mismatch: {mismatch}")?;
            }
            Err(Failure::Data((*first).clone()))
        }
    }
}

fn to_json(arguments: &Arguments, results: &[Measured], notes: &[String]) -> serde_json::Value {
    let command: Vec<String> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let versions = arguments.peers.is_some().then(prepare::versions);
    json!({
        "dtc": env!("CARGO_PKG_VERSION"),
        "optimised": !cfg!(debug_assertions),
        "date": arguments.date.clone().unwrap_or_else(today),
        "processor": processor(),
        "vectors": dtc_runtime::Engine::new().target().level.to_string(),
        "command": command,
        "rounds": arguments.rounds.unwrap_or(ROUNDS),
        "starts": arguments.starts,
        "min_time_ms": arguments.min_time,
        "peer_versions": versions,
        "units": "nanoseconds per call; ratios are peer over dtc, so above 1 dtc is faster",
        "notes": notes,
        "summary": table::summary_json(results),
        "cases": results.iter().map(Measured::to_json).collect::<Vec<_>>(),
    })
}

/// The date in UTC, year-month-day.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    // Days in eras of 400 years that begin on 1 March of a year divisible by 400.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}
