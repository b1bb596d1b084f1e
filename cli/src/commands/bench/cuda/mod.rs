//! `dtc bench --backend cuda`: kernels made for types, the generic kernels, and the driver's copy, on one GPU.

mod batches;
mod cases;
mod check;
mod contest;
mod fragments;
mod latency;
mod operations;
mod peer_copies;
mod table;
mod transfers;

use super::Arguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::report;
use contest::{Arena, Line};
use serde_json::Value;
use std::io::{IsTerminal, Write};

/// Rounds unless said otherwise.
const ROUNDS: u16 = 9;

/// What is measured on a GPU.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Whole transfers of the cases
    Kernels,
    /// Pieces of 64 MiB from odd offsets on
    Fragments,
    /// The 26 pieces of a halo in one launch, and items of very different sizes
    Batches,
    /// Unpacks with an operation, and copies from type to type
    Operations,
    /// Launches, small blocking calls, commits
    Latency,
    /// Calls between kinds of memory, and copies to another GPU
    Transfers,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut references = cases::collect(&arguments.files, arguments.gpu_cases.as_deref())?;
    if let Some(text) = &arguments.only {
        references.retain(|reference| reference.name().contains(text.as_str()));
        if references.is_empty() {
            return Err(Failure::description("--only", "a part of a type's name", format_args!("\"{text}\"")));
        }
    }
    let chosen = arguments.only.is_some() || !arguments.files.is_empty();
    let wants = |part| match arguments.part.as_slice() {
        [] => part == Part::Kernels || !chosen,
        parts => parts.contains(&part),
    };
    if !wants(Part::Kernels) {
        references.clear();
    }
    let rounds = arguments.rounds.unwrap_or(ROUNDS).into();
    let mut sizes: Vec<(u64, u64)> = references.iter().filter_map(cases::Reference::sizes).collect();
    sizes.extend(wants(Part::Fragments).then_some(fragments::SIZES));
    let largest = |side: fn(&(u64, u64)) -> u64| sizes.iter().map(side).max().unwrap_or(0);
    let (buffer, packed) = (largest(|sizes| sizes.0), largest(|sizes| sizes.1));
    // Without a GPU that is the message, whatever the memory.
    dtc_runtime::Engine::new().gpu(0)?;
    check::host_has(buffer + packed)?;
    let mut arena = Arena::new(buffer, packed)?;
    if let Some(bytes) = arguments.l2_fetch {
        arena.gpu.device().set_l2_fetch_granularity(bytes.into())?;
    }
    let info = arena.gpu.device().info();
    writeln!(out, "{}, sm_{}, {rounds} rounds; every byte is checked", info.name, info.architecture())?;
    writeln!(out, "generic kernels loaded in {}", report::time(arena.load_seconds * 1e9))?;
    if cfg!(debug_assertions) {
        writeln!(out, "a debug build: times on the device are those of any build, times on the host are not")?;
    }
    let mut figures = Figures::create(arguments)?;
    let measured = measure(&mut arena, &references, rounds, &wants, &mut figures, out);
    // What was measured before a failure is kept.
    let kept = figures.finish();
    measured.and(kept)
}

/// Measures the parts that are wanted.
fn measure(
    arena: &mut Arena,
    references: &[cases::Reference],
    rounds: usize,
    wants: &dyn Fn(Part) -> bool,
    figures: &mut Figures<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, reference) in references.iter().enumerate() {
        tell(&format!("{} ({} of {})", reference.name(), index + 1, references.len()));
        let found = arena.run(&reference.read()?, rounds)?;
        found.iter().try_for_each(|line| figures.write(line.to_json()))?;
        lines.extend(found);
    }
    tell("");
    if !references.is_empty() {
        table::print(&lines, out)?;
    }
    if wants(Part::Fragments) {
        tell("fragments");
        let found = fragments::measure(arena, rounds)?;
        tell("");
        found.iter().try_for_each(|line| figures.write(line.to_json()))?;
        fragments::print(&found, out)?;
        lines.extend(found);
    }
    for line in &lines {
        if let Err(error) = &line.times {
            writeln!(out, "{} {}, {}: {error}", line.direction, line.case, line.contestant.name())?;
        }
    }
    if wants(Part::Operations) {
        tell("operations");
        let found = operations::measure(arena, rounds)?;
        tell("");
        found.iter().try_for_each(|figure| figures.write(figure.to_json()))?;
        operations::print(&found, out)?;
    }
    if wants(Part::Batches) {
        tell("batches");
        let found = batches::measure(arena, rounds)?;
        tell("");
        found.iter().try_for_each(|figure| figures.write(figure.to_json()))?;
        batches::print(&found, out)?;
    }
    if wants(Part::Latency) {
        tell("latency");
        let (calls, commits) = (latency::calls(arena)?, latency::commits(arena, rounds)?);
        tell("");
        calls.iter().chain(&commits).try_for_each(|figure| figures.write(figure.to_json()))?;
        latency::print("calls on the clock of the host: medians, with the cache emptied and not", &calls, out)?;
        latency::print("commits of types that are new, with a GPU in use: medians", &commits, out)?;
    }
    if wants(Part::Transfers) {
        let found = transfers::measure(rounds, |what| tell(&what))?;
        tell("");
        found.iter().try_for_each(|figure| figures.write(figure.to_json()))?;
        transfers::print(&found, out)?;
        let found = peer_copies::measure(rounds, |what| tell(&what))?;
        tell("");
        found.iter().try_for_each(|figure| figures.write(figure.to_json()))?;
        peer_copies::print(&found, out)?;
    }
    if let Some(line) = lines.iter().find(|line| line.wrong) {
        let error = line.times.as_ref().err().map_or("wrong bytes", String::as_str);
        return Err(Failure::Data(format!("{} {}: {error}", line.direction, line.case)));
    }
    match arena.gpu.problem() {
        Some(problem) if lines.iter().any(|line| line.times.is_err()) => Err(problem.into()),
        _ => Ok(()),
    }
}

/// Says on a terminal what is going on; nothing clears the line.
fn tell(what: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        // Progress that cannot be shown is not missed.
        let _ = write!(err, "\r\x1b[K{}{what}", if what.is_empty() { "" } else { "measuring " });
    }
}

/// The file of figures.
struct Figures<'a>(Option<Output<'a>>);

impl Figures<'_> {
    fn create(arguments: &Arguments) -> Result<Figures<'_>, Failure> {
        arguments.json.as_deref().map(Output::create).transpose().map(Figures)
    }

    fn write(&mut self, line: Value) -> Result<(), Failure> {
        let Some(output) = &mut self.0 else { return Ok(()) };
        output.write(format!("{line}\n").as_bytes())
    }

    fn finish(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), |output| output.finish().map(drop))
    }
}
