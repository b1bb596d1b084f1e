//! `--random --backend cuda`: drawn types in the memory of a GPU. Large ones count by their share of the roofline where a kernel can reach
//! it, and else by their share of the fastest candidate; small ones by the time beyond a copy.

use super::families;
use super::figures::figure;
use crate::arguments::{Benchmark, Part};
use crate::drawn;
use crate::figures::Figures;
use crate::random::{Distribution, PERCENTILES, abridged};
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Direction;
use dtc_compiler::{canonicalise, lower};
use dtc_measure::bench::case::{Case, nothing_named};
use dtc_measure::bench::cuda::comparison::{Arena, Line};
use dtc_measure::bench::cuda::gpu_peer::GpuPeer;
use dtc_measure::bench::cuda::verify;
use dtc_measure::bench::table::table;
use dtc_measure::bench::tell;
use dtc_measure::failure::Failure;
use dtc_measure::report;
use std::io::Write;

/// Packed bytes of a transfer below which its time beyond a copy counts: launches and latencies take most of it.
const SMALL: u64 = 1 << 20;

/// Bytes of the shortest run of a type from which on a kernel can reach the roofline: two sectors of DRAM, or one where neighbours in
/// memory are moved one after the other.
const LONG: u64 = 64;
const LONG_ASCENDING: u64 = 32;

/// Types that are listed of each distribution.
const WORST: usize = 10;

/// Characters of a type in short.
const WIDTH: usize = 160;

/// What a type is measured by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// The share of the roofline.
    Roofline,
    /// The share of the fastest candidate.
    Candidate,
    /// The time beyond a copy of as many bytes, in microseconds.
    Copy,
}

/// One direction of a type.
struct Found {
    direction: Direction,
    measure: Measure,
    /// In the unit of the measure; `None` where the candidates were not measured, or a kernel failed.
    figure: Option<f64>,
    line: Line,
    text: String,
    count: u64,
}

/// The shortest run of an element, and whether its runs ascend in memory.
fn runs(layout: &Layout) -> (u64, bool) {
    let (mut shortest, mut ascending) = (u64::MAX, true);
    let mut run: Option<(i64, u64)> = None;
    for piece in layout.walk() {
        run = match run {
            Some((start, bytes)) if start + bytes as i64 == piece.offset => Some((start, bytes + piece.bytes())),
            before => {
                if let Some((start, bytes)) = before {
                    shortest = shortest.min(bytes);
                    ascending &= start < piece.offset;
                }
                Some((piece.offset, piece.bytes()))
            }
        };
    }
    (run.map_or(shortest, |(_, bytes)| shortest.min(bytes)), ascending)
}

fn measure_of(case: &Case) -> Measure {
    let layout = canonicalise(&lower(&case.datatype)).layout;
    if layout.size() * case.count < SMALL {
        return Measure::Copy;
    }
    let (shortest, ascending) = runs(&layout);
    if shortest >= LONG || ascending && shortest >= LONG_ASCENDING { Measure::Roofline } else { Measure::Candidate }
}

/// Microseconds with the cache emptied.
fn cold(line: &Line) -> Option<f64> {
    Some(line.times.as_ref().ok()?.cold.max(1e-3))
}

/// Measures the types of a seed and prints what was found; the lines of the chosen kernels.
pub fn measure(
    arena: &mut Arena,
    arguments: &Benchmark,
    number: u16,
    figures: &mut Figures<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let seed = arguments.seed.unwrap_or_else(drawn::fresh_seed);
    writeln!(out, "{number} types of seed {seed}")?;
    let (rounds, only) = (arguments.shared.rounds(), arguments.shared.only.as_deref().unwrap_or_default());
    let candidates = arguments.part.contains(&Part::Families);
    let mut found = Vec::new();
    for case in drawn::random(seed, number, only) {
        let case = case?;
        tell(&case.name);
        let (measure, text) = (measure_of(&case), abridged(&case.datatype));
        let whole = if candidates { Vec::new() } else { arena.run(&case, rounds)? };
        let mut whole = whole.into_iter();
        for direction in [Direction::Pack, Direction::Unpack] {
            let (lines, share) = if candidates {
                let compared = families::Found::measure(arena, &case, direction, rounds)?;
                let share = compared.share();
                (compared.0, share)
            } else {
                (whole.by_ref().take(3).collect(), None)
            };
            for line in &lines {
                let mut figure = figure(line);
                (figure["seed"], figure["type"]) = (seed.into(), text.as_str().into());
                figures.write(figure)?;
            }
            let copy = lines.iter().find(|line| line.peer == GpuPeer::Memcpy).and_then(cold);
            let Some(line) = lines.into_iter().next() else { continue };
            let figure = match measure {
                Measure::Roofline => line.least_us.zip(cold(&line)).map(|(least, cold)| least / cold),
                Measure::Candidate => share,
                Measure::Copy => cold(&line).zip(copy).map(|(cold, copy)| cold - copy),
            };
            found.push(Found { direction, measure, figure, line, text: text.clone(), count: case.count });
        }
    }
    tell("");
    if found.is_empty() {
        return Err(nothing_named(only));
    }
    print(&found, out)?;
    writeln!(out, "\na type whole: dtc-bench --random {number} --seed {seed} --only NAME --types DIRECTORY")?;
    let lines: Vec<Line> = found.into_iter().map(|found| found.line).collect();
    verify(arena, &lines).map_err(|failure| match failure {
        Failure::Data(text) => Failure::Data(format!("{text} (seed {seed})")),
        other => other,
    })
}

const MEASURES: [(Measure, &str); 3] = [
    (Measure::Roofline, "1 MiB and more, runs of 64 bytes, or of 32 ascending: share of the roofline"),
    (Measure::Candidate, "1 MiB and more, the other types: share of the fastest candidate"),
    (Measure::Copy, "below 1 MiB: microseconds beyond a copy"),
];

fn print(found: &[Found], out: &mut dyn Write) -> Result<(), Failure> {
    for (measure, what) in MEASURES {
        writeln!(out, "\n{what}; caches emptied")?;
        let of = |direction| found.iter().filter(move |found| found.measure == measure && found.direction == direction);
        let shares = measure != Measure::Copy;
        // Of shares the low ones are bad, of times the high ones.
        let percents = if shares { PERCENTILES } else { PERCENTILES.map(|percent| 100.0 - percent) };
        let header: Vec<String> = percents.iter().map(|percent| format!("{percent} %")).collect();
        let extreme = if shares { "minimum" } else { "maximum" };
        let mut header: Vec<&str> = header.iter().map(String::as_str).collect();
        header.insert(0, extreme);
        let mut table = table(&[&["call", "types", "measured"], &header[..]].concat());
        for direction in [Direction::Pack, Direction::Unpack] {
            let figures = Distribution::new(of(direction).filter_map(|found| found.figure));
            let extreme = if shares { figures.minimum() } else { figures.maximum() };
            let all = std::iter::once(extreme).chain(percents.map(|percent| figures.percentile(percent)));
            let all = all.map(|figure| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.2}")));
            let row = [direction.to_string(), of(direction).count().to_string(), figures.len().to_string()];
            table.add_row(row.into_iter().chain(all));
        }
        writeln!(out, "{table}")?;
        for direction in [Direction::Pack, Direction::Unpack] {
            let mut ranked: Vec<(f64, &Found)> =
                of(direction).filter_map(|found| Some((found.figure?, found))).collect();
            ranked.sort_by(|one, other| if shares { one.0.total_cmp(&other.0) } else { other.0.total_cmp(&one.0) });
            for (figure, found) in ranked.into_iter().take(WORST) {
                let rate = cold(&found.line).map_or(0.0, |time| found.line.packed_bytes as f64 / time / 1e3);
                writeln!(
                    out,
                    "{direction:<7} {figure:>6.2} {rate:>7.1} GB/s {:>9} x {} {} [{}] {}",
                    report::grouped(found.count),
                    report::bytes(found.line.packed_bytes),
                    found.line.case,
                    found.line.variant,
                    report::cut(&found.text, WIDTH)
                )?;
            }
        }
    }
    for found in found {
        if let Err(error) = &found.line.times {
            writeln!(out, "{} {}: {error}", found.direction, found.line.case)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::text::parse;

    #[test]
    fn types_are_measured_by_their_runs_and_sizes() {
        for (notation, count, expected) in [
            ("vector 1000 64 100 byte", 1 << 3, Measure::Copy),
            ("vector 1000 64 100 byte", 1 << 14, Measure::Roofline),
            ("vector 1000 32 100 byte", 1 << 15, Measure::Roofline),
            ("vector 1000 16 100 byte", 1 << 16, Measure::Candidate),
            ("hindexed_block 32 [400, 0, 200] byte", 1 << 16, Measure::Candidate),
            ("hindexed_block 64 [400, 0, 200] byte", 1 << 16, Measure::Roofline),
            // Blocks that touch are one run.
            ("hindexed_block 16 [0, 16, 32, 48, 100, 116, 132, 148] byte", 1 << 16, Measure::Roofline),
        ] {
            let datatype = parse(notation).unwrap();
            let case = Case { name: String::new(), datatype, count, pack_origin: 0, unpack_origin: 0, buffer: None };
            assert!(measure_of(&case) == expected, "{notation}");
        }
    }
}
