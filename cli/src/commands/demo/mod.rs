//! `dtc demo`: one type from its description to a kernel whose every byte is checked, on the GPU if there is one.
//!
//! The verdict comes first, in three lines; --verbose shows what it rests on.

mod comparison;
mod cpu;
mod findings;
mod gpu;
mod peers;
mod transpose;
mod verdict;

use dtc_compiler::Pipeline;
use dtc_measure::description::{self, Named};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_runtime::{Engine, Gpu};
use findings::Report;
use std::io::{self, Write};
use std::path::PathBuf;
use verdict::{COLUMNS, labelled};

/// Compiles a type, packs and unpacks data with it, checks every byte and measures
///
/// The first three lines say what the type is, and how fast dtc packs and unpacks it, as multiples of the speed of others: 2.00x is
/// twice as fast. On a CPU these are the loop that is written by hand, in C, MPICH and Open MPI where their compilers are
/// found, and memcpy of as many bytes, which is the limit. On a GPU they are cuMemcpy2D, a call for each column of the built-in type,
/// and a copy.
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description; without one, the transpose of a 2-D FFT, of DDTBench
    #[arg(value_name = "TYPE.json")]
    file: Option<PathBuf>,
    /// Where the data is
    #[arg(long, value_enum, default_value_t = DemoBackend::Auto)]
    backend: DemoBackend,
    /// Shows layouts, passes, plan and times, too
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DemoBackend {
    /// In the memory of a GPU if there is one, else of the host
    Auto,
    /// In the memory of the host
    Cpu,
    /// In the memory of the first GPU
    Cuda,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    // Without a thread nothing is compiled behind our back, so that times are those of what they say.
    let engine = Engine::builder().background_thread(false).build();
    // Asked first: who wants a GPU that is missing is told before anything else is done.
    let gpu = open_gpu(arguments.backend, &engine, out)?;
    let named = match &arguments.file {
        Some(path) => description::read(path)?,
        None => transpose::named(gpu.is_some())?,
    };
    let built_in = arguments.file.is_none();
    let pipeline = Pipeline::new(named.description.datatype.clone());
    let mut report = Report {
        about: built_in.then_some(transpose::ABOUT),
        passes: verdict::rewritten(&pipeline),
        ..Report::default()
    };
    tell(&named, &pipeline, &mut report.details)?;
    match gpu {
        Some(gpu) => gpu::run(&named, &pipeline, built_in, &engine, &gpu, &mut report)?,
        None => cpu::run(&named, &pipeline, &mut report)?,
    }
    Ok(report.print(&named, &pipeline, arguments.verbose, out)?)
}

/// The first GPU, if it is wanted and there.
fn open_gpu(backend: DemoBackend, engine: &Engine, out: &mut dyn Write) -> Result<Option<Gpu>, Failure> {
    if backend == DemoBackend::Cpu {
        return Ok(None);
    }
    match engine.gpu(0) {
        Ok(gpu) => Ok(Some(gpu)),
        Err(error) if backend == DemoBackend::Cuda => Err(error.into()),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => {
            labelled("gpu", &format!("none is used: {error}"), out)?;
            Ok(None)
        }
    }
}

/// The way from the description to the canonical layout.
fn tell(named: &Named, pipeline: &Pipeline, out: &mut dyn Write) -> io::Result<()> {
    let description = &named.description;
    let wrapped = |text: &str, out: &mut dyn Write| -> io::Result<()> {
        report::wrapped(text, COLUMNS - 4).iter().try_for_each(|line| writeln!(out, "    {line}"))
    };
    for remark in [&description.story, &description.source].into_iter().flatten() {
        wrapped(remark, out)?;
    }
    let facts = description.datatype.facts();
    writeln!(out, "datatype: {} packed bytes over an extent of {}", facts.size, facts.extent())?;
    write!(out, "{}", report::shortened(&description.datatype.to_string(), 6, COLUMNS))?;
    writeln!(out, "layout before the passes")?;
    write!(out, "{}", report::shortened(&pipeline.lowered().to_string(), 14, COLUMNS))?;
    writeln!(out, "passes that fired")?;
    wrapped(&pipeline.report().to_string(), out)?;
    writeln!(out, "layout after the passes")?;
    write!(out, "{}", report::shortened(&pipeline.layout().to_string(), 14, COLUMNS))
}
