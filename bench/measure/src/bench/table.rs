//! Tables and the summary.

use super::comparison::Comparison;
use super::measure::Measured;
use crate::failure::Failure;
use crate::report;
use crate::timing::{NOISY, geometric_mean, spread};
use comfy_table::{CellAlignment, Table, presets};
use std::io::Write;

/// Cases below this are listed: they are where dtc loses.
pub const LOST: f64 = 0.95;

/// Prints what comes behind the rows of all types.
pub fn print(results: &[Measured], peers: bool, style: Style, out: &mut dyn Write) -> Result<(), Failure> {
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    legend(results, out)?;
    if peers {
        for (direction, comparison) in DIRECTIONS {
            writeln!(out, "\n{direction}: the loop is the faster of -O3 and -O2; ratios: above 1, dtc is faster")?;
            let mut table = styled(&["type", "dtc", "loop", "mpich", "openmpi", "x fastest", "x MPI"], style);
            for result in results {
                let comparison = comparison(result);
                table.add_row([
                    result.name.clone(),
                    time_of(comparison, "dtc"),
                    comparison.hand_loop().map_or_else(|| "-".to_owned(), |times| report::time(times.median())),
                    time_of(comparison, "mpich"),
                    time_of(comparison, "openmpi"),
                    ratio(comparison.peer_ratio()),
                    ratio(comparison.mpi_ratio()),
                ]);
            }
            writeln!(out, "{table}")?;
        }
    }
    writeln!(out, "\ncommit: build, commit and free; the kernel is ready after")?;
    let mut table = styled(&["type", "dtc, new", "dtc, known", "kernel", "mpich", "openmpi"], style);
    for result in results {
        table.add_row([
            result.name.clone(),
            time_of(&result.commit, "dtc"),
            time_of(&result.commit, "dtc_known"),
            if result.tier == "specialised" { report::time(result.kernel_ready) } else { "-".to_owned() },
            time_of(&result.commit, "mpich"),
            time_of(&result.commit, "openmpi"),
        ]);
    }
    writeln!(out, "{table}")?;
    if peers {
        print_summary(results, out)?;
    }
    Ok(())
}

/// The comparison of a direction.
pub(super) type Pick = fn(&Measured) -> &Comparison;
/// Both directions.
pub(super) const DIRECTIONS: [(&str, Pick); 2] = [("pack", |result| &result.pack), ("unpack", |result| &result.unpack)];

/// A ratio of two times of a comparison.
pub(super) type Ratio = fn(&Comparison) -> Option<f64>;
const RATIOS: [(&str, Ratio); 2] =
    [("x fastest peer", Comparison::peer_ratio), ("x better MPI", Comparison::mpi_ratio)];

/// How tables are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For terminals.
    Lines,
    /// For documents.
    Markdown,
}

/// What the figures of the types mean, and whether the machine was quiet.
fn legend(results: &[Measured], out: &mut dyn Write) -> Result<(), Failure> {
    for line in [
        "pack, unpack   time of dtc for one transfer, median of the rounds; packed GB/s",
        "+              by how much the median is above the fastest round",
        "limit, memcpy, loop: their times as multiples of dtc's: above 1, dtc is faster",
        "limit          a copy that reads and writes as many bytes as the lines of memory",
        "               that are touched and the packed bytes: what the layout allows",
        "memcpy         a copy of the packed bytes alone",
        "loop           the hand-written loop, the faster of -O3 and -O2",
    ] {
        writeln!(out, "{line}")?;
    }
    let comparisons = results.iter().flat_map(|result| [&result.pack, &result.unpack]);
    let comparisons: Vec<f64> =
        comparisons.filter_map(|comparison| Some(spread(&comparison.of("dtc")?.samples))).collect();
    let noisy = comparisons.iter().filter(|spread| **spread > NOISY).count();
    if noisy > 0 {
        let (all, limit) = (comparisons.len(), NOISY * 100.0);
        writeln!(
            out,
            "warning: the machine is busy: {noisy} of {all} figures have a spread above {limit:.0} %; measure again"
        )?;
    }
    Ok(())
}

/// An empty table for terminals; all columns but the first are numbers.
pub fn table(header: &[&str]) -> Table {
    styled(header, Style::Lines)
}

fn styled(header: &[&str], style: Style) -> Table {
    let mut table = Table::new();
    match style {
        Style::Lines => table.load_style(presets::UTF8_HORIZONTAL_ONLY),
        Style::Markdown => table.load_style(presets::ASCII_MARKDOWN),
    };
    table.set_header(header.iter().copied());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn time_of(comparison: &Comparison, name: &str) -> String {
    comparison.of(name).map_or_else(|| "-".to_owned(), |times| report::time(times.median()))
}

/// How much faster dtc was than peers, over the cases that have both.
pub struct Summary<'a> {
    /// `pack` or `unpack`.
    pub direction: &'static str,
    /// What is divided by what.
    pub ratio: &'static str,
    /// The least ratio.
    pub minimum: f64,
    /// The case that has it.
    pub minimum_case: &'a str,
    /// The geometric mean.
    pub mean: f64,
    /// Number of cases.
    pub cases: usize,
    /// The cases below [`LOST`], with their ratios.
    pub lost: Vec<(&'a str, f64)>,
}

/// The summary of both directions beside the fastest peer and the better MPI, where there are any.
pub fn summaries(results: &[Measured]) -> impl Iterator<Item = Summary<'_>> {
    let rows = DIRECTIONS.into_iter().flat_map(|direction| RATIOS.map(|ratio| (direction, ratio)));
    rows.filter_map(|((direction, pick), (what, ratio))| {
        let ratios: Vec<(&str, f64)> =
            results.iter().filter_map(|result| Some((result.name.as_str(), ratio(pick(result))?))).collect();
        let (minimum_case, minimum) = ratios.iter().copied().min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(Summary {
            direction,
            ratio: what,
            minimum,
            minimum_case,
            mean: geometric_mean(&ratios.iter().map(|&(_, ratio)| ratio).collect::<Vec<_>>()),
            cases: ratios.len(),
            lost: ratios.into_iter().filter(|&(_, ratio)| ratio < LOST).collect(),
        })
    })
}

fn print_summary(results: &[Measured], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out)?;
    for Summary { direction, ratio, minimum, minimum_case, mean, cases, .. } in summaries(results) {
        writeln!(
            out,
            "{direction:<7} {ratio:<14} minimum {minimum:.2} ({minimum_case}), geometric mean {mean:.2}, {cases} cases"
        )?;
    }
    for Summary { direction, lost, .. } in summaries(results).filter(|summary| summary.ratio == RATIOS[0].0) {
        for (name, ratio) in lost {
            writeln!(out, "below {LOST}: {direction} {name} {ratio:.2}")?;
        }
    }
    Ok(())
}
