//! The figures of each type, printed as soon as it is measured. An interrupted command has printed those of the types before.

use super::comparison::Comparison;
use super::measure::{LINE, Measured};
use super::table::{DIRECTIONS, Ratio, Style};
use crate::failure::Failure;
use crate::report;
use crate::timing::spread;
use std::io::{self, Write};

const RATIOS: [(&str, Ratio); 3] =
    [("limit", Comparison::limit_ratio), ("memcpy", Comparison::memcpy_ratio), ("loop", Comparison::loop_ratio)];

/// Prints what goes before all types.
pub fn begin(style: Style, out: &mut dyn Write) -> io::Result<()> {
    if cfg!(debug_assertions) {
        writeln!(out, "a debug build: the times below say little")?;
    }
    if style == Style::Markdown {
        let directions =
            DIRECTIONS.map(|(direction, _)| format!(" {direction} | + | GB/s | x limit | x memcpy | x loop |"));
        writeln!(out, "| type | packed | lines | tier |{}", directions.concat())?;
        writeln!(out, "|---|---:|---:|---|{}", "---:|".repeat(12))?;
    }
    out.flush()
}

/// Prints the figures of a type.
///
/// # Errors
///
/// The output cannot be written.
pub fn row(result: &Measured, style: Style, out: &mut dyn Write) -> Result<(), Failure> {
    let lines = result.lines.map_or_else(|| "-".to_owned(), report::grouped);
    let packed = report::bytes(result.packed_bytes);
    match style {
        Style::Lines => {
            let touched = result.lines.map_or_else(String::new, |_| format!(" in {lines} lines of {LINE} bytes"));
            writeln!(out, "{}: {packed} packed{touched}, {}", result.name, result.tier)?;
            for (direction, pick) in DIRECTIONS {
                let [time, spread, rate] = speed(pick(result), result.packed_bytes);
                let ratios = RATIOS.map(|(name, ratio)| format!("{} {name:<6}", ratio_of(pick(result), ratio)));
                let line = format!("    {direction:<7}{time:>11} +{spread:>5}{rate:>8} GB/s  {}", ratios.join("  "));
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Style::Markdown => {
            write!(out, "| {} | {packed} | {lines} | {} |", result.name, result.tier)?;
            for (_, pick) in DIRECTIONS {
                let ratios = RATIOS.map(|(_, ratio)| ratio_of(pick(result), ratio).trim().to_owned());
                for cell in speed(pick(result), result.packed_bytes).into_iter().chain(ratios) {
                    write!(out, " {cell} |")?;
                }
            }
            writeln!(out)?;
        }
    }
    Ok(out.flush()?)
}

/// Time of a transfer, by how much the median is above the fastest round, and packed bytes in this time.
fn speed(comparison: &Comparison, bytes: u64) -> [String; 3] {
    let Some(times) = comparison.of("dtc") else { return ["-", "-", "-"].map(str::to_owned) };
    let rate = bytes as f64 / times.median().max(0.01);
    [report::time(times.median()), format!("{:.0} %", spread(&times.samples) * 100.0), format!("{rate:.2}")]
}

fn ratio_of(comparison: &Comparison, ratio: fn(&Comparison) -> Option<f64>) -> String {
    ratio(comparison).map_or_else(|| "   -".to_owned(), |ratio| format!("{ratio:>4.2}"))
}
