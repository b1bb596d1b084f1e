//! `--permutes`: arrays whose axes are packed in another order, dtc beside strided-perm and memcpy on one CPU.

mod buffers;
mod permute;
mod report;
mod strided_perm;

use crate::arguments::Benchmark;
use crate::drawn;
use crate::figures::Figures;
use crate::random::ROUNDS;
use buffers::PermuteBuffers;
use dtc_compiler::plan::Direction;
use dtc_measure::bench::case::nothing_named;
use dtc_measure::bench::tell;
use dtc_measure::failure::Failure;
use dtc_measure::output::Output;
use permute::Permute;
use report::PermuteFigure;
use std::io::Write;

/// Measures the permutes of a seed.
pub fn run(arguments: &Benchmark, number: u16, out: &mut dyn Write) -> Result<(), Failure> {
    let seed = arguments.seed.unwrap_or_else(drawn::fresh_seed);
    writeln!(out, "{number} permutes of seed {seed}")?;
    let mut lines = Figures(arguments.json.as_deref().map(Output::create).transpose()?);
    let figures = measure(arguments, (seed, number), &mut lines);
    tell("");
    // What was measured before a failure is kept.
    let kept = lines.finish();
    let figures = figures?;
    kept?;
    report::print(&figures, out)
}

fn measure(
    arguments: &Benchmark,
    (seed, number): (u64, u16),
    lines: &mut Figures<'_>,
) -> Result<Vec<PermuteFigure>, Failure> {
    let shared = &arguments.shared;
    let (rounds, least) = (shared.rounds.map_or(ROUNDS, usize::from), f64::from(shared.min_time) * 1e6);
    let only = shared.only.as_deref().unwrap_or_default();
    let mut figures = Vec::new();
    let drawn = (0..u64::from(number)).map(|index| Permute::draw(seed, index));
    for permute in drawn.filter(|permute| permute.name.contains(only)) {
        tell(&format!("{} of {number}: {permute}", permute.name));
        let named = |text: String| Failure::Data(format!("{}, {permute}: {text} (seed {seed})", permute.name));
        let refused = |error| Failure::Description(format!("{permute}: {error}"));
        let datatype = permute.datatype().map_err(refused)?;
        let mut buffers = PermuteBuffers::new(&permute, &datatype);
        buffers.check().map_err(named)?;
        for direction in [Direction::Pack, Direction::Unpack] {
            let figure =
                PermuteFigure::new(&permute, direction, buffers.medians(direction, rounds, least).map_err(named)?);
            figure.lines(&datatype, seed).try_for_each(|line| lines.write(line))?;
            figures.push(figure);
        }
    }
    if figures.is_empty() { Err(nothing_named(only)) } else { Ok(figures) }
}
