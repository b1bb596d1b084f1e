//! `dtc demo`: one type from its description to a kernel whose every byte is checked, on the GPU if there is one.
//!
//! The verdict comes first, in three lines; --verbose shows what it rests on.

mod cpu;
mod findings;
mod gpu;
mod matrix;
mod verdict;

use crate::description::{self, Named};
use crate::failure::Failure;
use crate::report;
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::json;
use dtc_runtime::{Engine, Gpu};
use findings::Report;
use std::io::{self, Write};
use std::path::PathBuf;
use verdict::{COLUMNS, labelled};

/// Compiles a type, packs and unpacks data with it, checks every byte and measures
///
/// The first three lines say what the type is, what the passes made of it, and how fast it is: 2.00x memcpy is twice the
/// speed of a copy of as many bytes. The generic code serves every type at once; the hand loop is what a programmer writes
/// for the built-in type.
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description; without one, a piece of a distributed matrix
    #[arg(value_name = "TYPE.json")]
    file: Option<PathBuf>,
    /// Where the data lies
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Shows layouts, passes, plan and times, too
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    /// In the memory of a GPU if there is one, else of the host
    Auto,
    /// In the memory of the host
    Cpu,
    /// In the memory of the first GPU
    Cuda,
}

/// The type of the demo: a process's piece of a matrix that is dealt out in blocks, as ScaLAPACK does.
const MATRIX: &str = include_str!("../../../../ir-examples/darray_block_cyclic.json");

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let named = match &arguments.file {
        Some(path) => description::read(path)?,
        None => {
            let description =
                json::read(MATRIX).map_err(|error| Failure::Description(format!("the built-in type: {error}")))?;
            Named { name: "darray_block_cyclic".to_owned(), description }
        }
    };
    let built_in = arguments.file.is_none();
    // Without a thread nothing is compiled behind our back, so that times are those of what they say.
    let engine = Engine::builder().background_thread(false).build();
    // Asked first: who wants a GPU that is missing is told before anything else is done.
    let gpu = open_gpu(arguments.backend, &engine, out)?;
    let pipeline = Pipeline::new(named.description.datatype.clone());
    let mut report = Report { passes: verdict::rewritten(&pipeline), ..Report::default() };
    tell(&named, &pipeline, &mut report.details)?;
    match gpu {
        Some(gpu) => gpu::run(&named, &pipeline, built_in, &engine, &gpu, &mut report)?,
        None => cpu::run(&named, &pipeline, built_in, &mut report)?,
    }
    Ok(report.print(&named, &pipeline, arguments.verbose, out)?)
}

/// The first GPU, if it is wanted and there.
fn open_gpu(backend: Backend, engine: &Engine, out: &mut dyn Write) -> Result<Option<Gpu>, Failure> {
    if backend == Backend::Cpu {
        return Ok(None);
    }
    match engine.gpu(0) {
        Ok(gpu) => Ok(Some(gpu)),
        Err(error) if backend == Backend::Cuda => Err(error.into()),
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
