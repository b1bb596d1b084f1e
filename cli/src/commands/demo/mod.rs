//! `dtc demo`: one type from its description to a kernel whose every byte is checked, on the GPU if there is one.
//!
//! The verdict comes first, in three lines; --verbose shows what it rests on.

mod cpu;
mod gpu;
mod matrix;
mod verdict;

use crate::description::{self, Named};
use crate::failure::Failure;
use crate::report;
use dtc_compiler::datatype::json;
use dtc_compiler::layout::Layout;
use dtc_compiler::passes::Canonical;
use dtc_compiler::{canonicalise, lower};
use dtc_runtime::{Engine, Gpu, PackError};
use std::io::{self, Write};
use std::path::PathBuf;
use verdict::{COLUMNS, Race, labelled};

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

/// What unpacks are poured onto.
const POISON: u8 = 0xa5;

/// What the demo found out.
#[derive(Default)]
struct Report {
    /// What the passes made of the type, and which code serves it.
    passes: String,
    /// Elements that were moved.
    count: u64,
    /// Why they are fewer than the description says.
    remark: Option<String>,
    /// Packed, restored and untouched bytes that were compared with the reference walker's.
    checked: [u64; 3],
    /// Where the data lies, if not in the memory of the host.
    device: Option<String>,
    /// Packing and unpacking; none of a type without bytes.
    races: Vec<Race>,
    /// What --verbose shows.
    details: Vec<u8>,
}

impl Report {
    /// How much data there is, and a remark where that is less than was asked for.
    fn data(&mut self, count: u64, total: u64, buffer: usize, remark: Option<String>) -> io::Result<()> {
        (self.count, self.remark) = (count, remark);
        let (total, buffer) = (report::bytes(total), report::bytes(buffer as u64));
        writeln!(self.details, "data: {} elements, {total} in a buffer of {buffer}", report::grouped(count))
    }

    /// What the judge found of a tier.
    fn checked(&mut self, name: &str, packed: u64, restored: u64, untouched: u64) -> io::Result<()> {
        for (sum, bytes) in self.checked.iter_mut().zip([packed, restored, untouched]) {
            *sum += bytes;
        }
        let [packed, restored, untouched] = [packed, restored, untouched].map(report::grouped);
        let text = format!("{packed} packed bytes right, {restored} restored, {untouched} beside them untouched");
        for (index, line) in report::wrapped(&text, COLUMNS - 16).iter().enumerate() {
            writeln!(self.details, "    {:<12}{line}", if index == 0 { name } else { "" })?;
        }
        Ok(())
    }

    fn print(&self, named: &Named, canonical: &Layout, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
        labelled("type", &verdict::describe(named, canonical, self.count), out)?;
        labelled("passes", &self.passes, out)?;
        let on = self.device.as_ref().map_or_else(String::new, |device| format!(" on {device}"));
        match self.races.as_slice() {
            [] => labelled("speed", "nothing is moved", out)?,
            races => labelled("speed", &format!("{}{on}", verdict::speed(races)), out)?,
        }
        let [packed, restored, untouched] = self.checked.map(report::grouped);
        let checked = format!(
            "every byte equals the reference walker's: {packed} packed, {restored} restored, {untouched} around \
             them untouched"
        );
        labelled("check", &checked, out)?;
        if let Some(remark) = &self.remark {
            labelled("data", remark, out)?;
        }
        if !self.races.is_empty() {
            labelled("noise", &verdict::noise(&self.races), out)?;
        }
        if verbose {
            writeln!(out)?;
            return out.write_all(&self.details);
        }
        match self.races.as_slice() {
            [] => labelled("", "--verbose shows more", out),
            _ => labelled("", "2.00x: twice as fast; loop: written by hand; --verbose shows more", out),
        }
    }
}

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
    let lowered = lower(&named.description.datatype);
    let canonical = canonicalise(&lowered);
    let mut report = Report { passes: verdict::rewritten(&lowered, &canonical), ..Report::default() };
    tell(&named, &lowered, &canonical, &mut report.details)?;
    match gpu {
        Some(gpu) => gpu::run(&named, &lowered, built_in, &engine, &gpu, &mut report)?,
        None => cpu::run(&named, &lowered, built_in, &mut report)?,
    }
    Ok(report.print(&named, &canonical.layout, arguments.verbose, out)?)
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

fn call_failed(error: PackError) -> Failure {
    Failure::Data(format!("demo: {error}"))
}

/// The way from the description to the canonical layout.
fn tell(named: &Named, lowered: &Layout, canonical: &Canonical, out: &mut dyn Write) -> io::Result<()> {
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
    write!(out, "{}", report::shortened(&lowered.to_string(), 14, COLUMNS))?;
    writeln!(out, "passes that fired")?;
    wrapped(&canonical.report.to_string(), out)?;
    writeln!(out, "layout after the passes")?;
    write!(out, "{}", report::shortened(&canonical.layout.to_string(), 14, COLUMNS))
}
