//! Measures drawn types, or writes them down.

use super::notation::abridged;
use crate::arguments::Benchmark;
use crate::drawn;
use dtc_measure::bench::case::{Case, nothing_named};
use dtc_measure::bench::comparison::{Settings, Sparing};
use dtc_measure::bench::measure::measure;
use dtc_measure::bench::peers::Peers;
use dtc_measure::bench::{Results, loops, prepare, tell};
use dtc_measure::failure::{Failure, reason};
use dtc_measure::output::Scratch;
use std::io::Write;
use std::path::Path;

/// Interleaved rounds of drawn types: of as many, one is likely undisturbed.
pub const ROUNDS: usize = 9;

/// Nanoseconds that the rounds of one direction of a type should take at most.
const LONGEST: f64 = 2.5e8;

/// The ratio below which a figure is measured again before it counts.
const DOUBTFUL: f64 = 0.95;

/// What was found of all types of a seed.
pub struct Random {
    /// The seed.
    pub seed: u64,
    /// How many types were asked for.
    pub number: u16,
    /// Interleaved rounds.
    pub rounds: usize,
    /// Elements of a transfer and the type in short, in the order of the results.
    pub texts: Vec<(u64, String)>,
    /// The figures.
    pub results: Results,
    /// Types that could not be measured, and why.
    pub failed: Vec<String>,
}

/// Draws the types of a run; prints the seed.
fn cases<'a>(
    arguments: &'a Benchmark,
    number: u16,
    out: &mut dyn Write,
) -> Result<(u64, impl Iterator<Item = Result<Case, Failure>> + use<'a>), Failure> {
    let seed = arguments.seed.unwrap_or_else(drawn::fresh_seed);
    writeln!(out, "{number} types of seed {seed}")?;
    Ok((seed, drawn::random(seed, number, arguments.shared.only.as_deref().unwrap_or_default())))
}

/// Writes the types to a folder, as JSON that `dtc bench` reads.
pub fn write(arguments: &Benchmark, number: u16, folder: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let (seed, cases) = cases(arguments, number, out)?;
    let unwritable = |error| Failure::data(folder.display(), "a folder for types", reason(&error));
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let mut written = 0;
    for case in cases {
        let case = case?;
        let text = case.text();
        let story = format!("{} of seed {seed}", case.name);
        let rest = text.strip_prefix('{').unwrap_or(&text);
        let document = format!("{{\"story\": \"{story}\", \"count\": {}, {rest}\n", case.count);
        std::fs::write(folder.join(format!("{}.json", case.name)), document).map_err(unwritable)?;
        written += 1;
    }
    if written == 0 {
        return Err(nothing_named(arguments.shared.only.as_deref().unwrap_or_default()));
    }
    Ok(writeln!(out, "{written} types in {}", folder.display())?)
}

/// Measures the types.
pub fn run(arguments: &Benchmark, number: u16, out: &mut dyn Write) -> Result<Random, Failure> {
    let shared = &arguments.shared;
    if let Some(directory) = &shared.peers {
        prepare::prepare_mpis(directory, &prepare::find_script(shared.peers_script.as_deref(), directory)?)?;
    }
    let settings = Settings {
        rounds: shared.rounds.map_or(ROUNDS, usize::from),
        starts: arguments.starts.into(),
        least: f64::from(shared.min_time) * 1e6,
        sparing: Some(Sparing { longest: LONGEST, doubtful: DOUBTFUL }),
    };
    let mut peers = Peers::new(shared.peers.as_deref());
    let (seed, mut cases) = cases(arguments, number, out)?;
    let (mut measured, mut texts, mut notes, mut failed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    loop {
        // Batch by batch, because the lists of all types would fill the memory.
        let batch: Vec<Case> = cases.by_ref().take(loops::TOGETHER).collect::<Result<_, _>>()?;
        if batch.is_empty() {
            break;
        }
        tell(&format!("{}: compiling loops", batch[0].name));
        let folder = Scratch::temporary("bench")
            .map_err(|error| Failure::data("a temporary folder", "room for loops", reason(&error)))?;
        let (compiled, remarks) = loops::compile(folder.path(), &batch);
        notes.extend(remarks);
        for (case, compiled) in batch.iter().zip(&compiled) {
            tell(&case.name);
            match measure(case, compiled, &mut peers, &settings) {
                Ok(found) => measured.push(found),
                // The figures of all others are worth having.
                Err(Failure::Data(text)) => {
                    failed.push(text);
                    continue;
                }
                Err(other) => return Err(other),
            }
            texts.push((case.count, abridged(&case.datatype)));
        }
    }
    tell("");
    if measured.is_empty() && failed.is_empty() {
        return Err(nothing_named(shared.only.as_deref().unwrap_or_default()));
    }
    let versions = peers.versions().map(|(kind, version)| (kind, version.to_owned())).collect();
    Ok(Random {
        seed,
        number,
        rounds: settings.rounds,
        texts,
        results: Results { cases: measured, notes, versions },
        failed,
    })
}
