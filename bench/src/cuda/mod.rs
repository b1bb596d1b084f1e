//! Every call on one GPU: whole transfers beside the generic kernels and the driver's copy, fragments, batches, operations,
//! latencies, and transfers between kinds of memory.

mod batches;
mod bundles;
mod cases;
mod families;
mod figures;
mod first;
mod fragments;
mod latency;
#[path = "../../../matching/bench/mod.rs"]
mod matching;
mod new_lists;
mod operations;
mod peer_copies;
mod random;
mod tables;
mod transfers;

use crate::arguments::{Benchmark, Part};
use crate::drawn;
use crate::figures::Figures;
use dtc_compiler::plan::Direction;
use dtc_measure::bench::cuda::comparison::{Arena, Line};
use dtc_measure::bench::cuda::{errors, open, table, verify};
use dtc_measure::bench::{case, tell};
use dtc_measure::failure::Failure;
use dtc_measure::output::Output;
use figures::figure;
use std::io::Write;

/// Measures the parts that the command line names.
pub fn run(arguments: &Benchmark, out: &mut dyn Write) -> Result<(), Failure> {
    let shared = &arguments.shared;
    let chosen = shared.only.is_some() || !shared.files.is_empty();
    if arguments.random.is_some() && arguments.part.iter().any(|part| *part != Part::Families) {
        return Err(Failure::description("--part", "families, or nothing, with --random", "another part"));
    }
    let wants = |part| match arguments.part.as_slice() {
        _ if arguments.random.is_some() => false,
        [] => {
            part == Part::Kernels
                || (!matches!(
                    part,
                    Part::Classes | Part::Families | Part::Bundles | Part::First | Part::Tables | Part::Matching
                ) && !chosen)
        }
        parts => parts.contains(&part),
    };
    if wants(Part::First) {
        let mut figures = Figures(arguments.json.as_deref().map(Output::create).transpose()?);
        let measured = first::run(arguments, &mut |figure| figures.write(figure), out);
        return measured.and(figures.finish());
    }
    let mut references = Vec::new();
    if wants(Part::Kernels) {
        references = cases::collect(&shared.files, arguments.gpu_cases.as_deref())?;
        let text = shared.only.as_deref().unwrap_or_default();
        references.retain(|reference| reference.name().contains(text));
        if references.is_empty() {
            return Err(case::nothing_named(text));
        }
    }
    let rounds = shared.rounds();
    let mut sizes: Vec<(u64, u64)> = references.iter().filter_map(cases::Reference::sizes).collect();
    sizes.extend(wants(Part::Fragments).then_some(fragments::SIZES));
    let largest = |side: fn(&(u64, u64)) -> u64| sizes.iter().map(side).max().unwrap_or(0);
    // Without a GPU that is the message, whatever the memory.
    dtc_runtime::Engine::new().gpu(0)?;
    let mut arena = open(largest(|sizes| sizes.0), largest(|sizes| sizes.1), rounds, out)?;
    if let Some(bytes) = arguments.l2_fetch {
        arena.gpu.device().set_l2_fetch_granularity(bytes.into())?;
    }
    let mut figures = Figures(arguments.json.as_deref().map(Output::create).transpose()?);
    let measured = match arguments.random {
        Some(number) => random::measure(&mut arena, arguments, number, &mut figures, out),
        None => measure(&mut arena, &references, arguments, &wants, &mut figures, out),
    };
    // What was measured before a failure is kept.
    let kept = figures.finish();
    measured.and(kept)
}

/// Measures the parts that are wanted.
fn measure(
    arena: &mut Arena,
    references: &[cases::Reference],
    arguments: &Benchmark,
    wants: &dyn Fn(Part) -> bool,
    figures: &mut Figures<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let rounds = arguments.shared.rounds();
    let mut lines: Vec<Line> = Vec::new();
    for (index, reference) in references.iter().enumerate() {
        tell(&format!("{} ({} of {})", reference.name(), index + 1, references.len()));
        let found = arena.run(&reference.read()?, rounds)?;
        found.iter().try_for_each(|line| figures.write(figure(line)))?;
        lines.extend(found);
    }
    tell("");
    if !references.is_empty() {
        table::print(&lines, out)?;
    }
    if wants(Part::Classes) {
        let seed = arguments.seed.unwrap_or_else(drawn::fresh_seed);
        let mut found = Vec::new();
        for case in random_layouts(arguments, seed, out)? {
            let case = case?;
            tell(&case.name);
            for line in arena.run(&case, rounds)? {
                let mut figure = figure(&line);
                figure["seed"] = seed.into();
                figures.write(figure)?;
                found.push(line);
            }
        }
        tell("");
        table::print(&found, out)?;
        lines.extend(found);
    }
    if wants(Part::Families) {
        let found = compare(arena, arguments, figures, out)?;
        lines.extend(found.into_iter().flat_map(|found| found.0));
    }
    if wants(Part::Fragments) {
        tell("fragments");
        let found = fragments::measure(arena, rounds)?;
        tell("");
        found.iter().try_for_each(|line| figures.write(figure(line)))?;
        fragments::print(&found, out)?;
        lines.extend(found);
    }
    errors(&lines, out)?;
    measure_calls(arena, arguments, wants, figures, out)?;
    verify(arena, &lines)
}

/// Measures the parts that are no cases.
fn measure_calls(
    arena: &mut Arena,
    arguments: &Benchmark,
    wants: &dyn Fn(Part) -> bool,
    figures: &mut Figures<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let rounds = arguments.shared.rounds();
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
    if wants(Part::NewLists) {
        tell("new lists");
        let found = new_lists::measure(rounds)?;
        tell("");
        found.iter().try_for_each(|figure| figures.write(figure.to_json()))?;
        latency::print("lists that are new at every call: medians", &found, out)?;
    }
    if wants(Part::Tables) {
        let only = arguments.shared.only.as_deref().unwrap_or_default();
        let found = tables::measure(arena, rounds, only, tell, |figure| figures.write(figure.to_json()))?;
        tell("");
        tables::print(&found, out)?;
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
    if wants(Part::Bundles) {
        let missing = || Failure::description("--part bundles", "--bundle, the folder that dtc build made", "none");
        let bundle = arguments.bundle.as_deref().ok_or_else(missing)?;
        let record = |figure: &bundles::Figure| figures.write(figure.to_json());
        bundles::measure(arena, bundle, &arguments.shared.files, rounds, out, record)?;
    }
    if wants(Part::Matching) {
        let only = arguments.shared.only.as_deref().unwrap_or_default();
        matching::run(arena, (rounds, only), tell, |figure| figures.write(figure), out)?;
    }
    Ok(())
}

/// The layouts of each class that the command line wants, drawn one by one: their lists are long. Prints the seed.
fn random_layouts<'a>(
    arguments: &'a Benchmark,
    seed: u64,
    out: &mut dyn Write,
) -> Result<impl Iterator<Item = Result<case::Case, Failure>> + use<'a>, Failure> {
    writeln!(out, "random layouts of seed {seed}")?;
    let only = arguments.shared.only.as_deref().unwrap_or_default();
    let packed = u64::from(arguments.packed_mib) << 20;
    Ok(drawn::of_classes(seed, packed, arguments.layouts, only))
}

/// Measures every kernel that may serve the types of the command line, or random layouts.
fn compare(
    arena: &mut Arena,
    arguments: &Benchmark,
    figures: &mut Figures<'_>,
    out: &mut dyn Write,
) -> Result<Vec<families::Found>, Failure> {
    let shared = &arguments.shared;
    let seed = shared.files.is_empty().then(|| arguments.seed.unwrap_or_else(drawn::fresh_seed));
    let cases: Box<dyn Iterator<Item = Result<case::Case, Failure>>> = match seed {
        Some(seed) => Box::new(random_layouts(arguments, seed, out)?),
        None => Box::new(case::collect(&shared.files, None, shared.only.as_deref())?.into_iter().map(Ok)),
    };
    let mut found = Vec::new();
    for case in cases {
        let case = case?;
        for direction in [Direction::Pack, Direction::Unpack] {
            tell(&format!("{}, {direction}", case.name));
            let one = families::Found::measure(arena, &case, direction, shared.rounds())?;
            for line in &one.0 {
                let mut figure = figure(line);
                if let Some(seed) = seed {
                    figure["seed"] = seed.into();
                }
                figures.write(figure)?;
            }
            found.push(one);
        }
    }
    tell("");
    families::print(&found, out)?;
    Ok(found)
}
