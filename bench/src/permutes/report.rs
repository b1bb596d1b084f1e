//! Figures of permutes, and what is printed of them.

use super::buffers::PermutePeer;
use super::permute::{CLASSES, Permute};
use crate::random::abridged;
use dtc_compiler::datatype::Datatype;
use dtc_compiler::plan::Direction;
use dtc_measure::bench::table::{LOST, table};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_measure::timing::geometric_mean;
use serde_json::{Value, json};
use std::io::Write;

/// One direction of a permute.
pub struct PermuteFigure {
    /// Its name.
    pub case: String,
    /// The name of its class.
    pub class: &'static str,
    /// Its lengths, element and order.
    pub text: String,
    /// Where the bytes go.
    pub direction: Direction,
    /// Packed bytes.
    pub bytes: u64,
    /// The median nanoseconds of dtc, its peer and memcpy.
    pub medians: [f64; 3],
}

impl PermuteFigure {
    /// The figure of a permute.
    pub fn new(permute: &Permute, direction: Direction, medians: [f64; 3]) -> PermuteFigure {
        let (case, text) = (permute.name.clone(), permute.to_string());
        PermuteFigure { case, class: permute.class.name, text, direction, bytes: permute.bytes(), medians }
    }

    /// The peer's time over that of dtc.
    fn ratio(&self) -> f64 {
        self.medians[1] / self.medians[0].max(0.01)
    }

    /// The speed of dtc as a share of memcpy's.
    fn share(&self) -> f64 {
        self.medians[2] / self.medians[0].max(0.01)
    }

    /// A line of results for each peer, in the form of the other parts' lines.
    pub fn lines(&self, datatype: &Datatype, seed: u64) -> impl Iterator<Item = Value> {
        let text = abridged(datatype);
        PermutePeer::ALL.into_iter().zip(self.medians).map(move |(peer, median)| {
            json!({
                "peer": peer.name(),
                "case": self.case,
                "direction": self.direction.to_string(),
                "packed_bytes": self.bytes,
                "warm_us": median.round() / 1e3,
                "layout": self.text,
                "type": text,
                "seed": seed,
            })
        })
    }
}

/// Prints the table of classes and the losses.
pub fn print(figures: &[PermuteFigure], out: &mut dyn Write) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        writeln!(out, "a debug build: the times below say little")?;
    }
    let peer = PermutePeer::StridedPerm.name();
    writeln!(out, "\n{peer} over dtc, by medians: above 1, dtc is faster; speed of dtc as a share of memcpy's")?;
    let below = format!("below {LOST}");
    let mut rows = table(&["class", "call", "permutes", "geometric mean", "least", &below, "of memcpy"]);
    for class in &CLASSES {
        for direction in [Direction::Pack, Direction::Unpack] {
            let of: Vec<&PermuteFigure> =
                figures.iter().filter(|figure| figure.class == class.name && figure.direction == direction).collect();
            let ratios: Vec<f64> = of.iter().map(|figure| figure.ratio()).collect();
            let Some(least) = ratios.iter().copied().reduce(f64::min) else { continue };
            let shares: Vec<f64> = of.iter().map(|figure| figure.share()).collect();
            rows.add_row([
                format!(
                    "{}, {} to {}",
                    class.name,
                    report::bytes(*class.bytes.start()),
                    report::bytes(*class.bytes.end())
                ),
                direction.to_string(),
                ratios.len().to_string(),
                format!("{:.2}", geometric_mean(&ratios)),
                format!("{least:.2}"),
                ratios.iter().filter(|ratio| **ratio < LOST).count().to_string(),
                format!("{:.2}", geometric_mean(&shares)),
            ]);
        }
    }
    writeln!(out, "{rows}")?;
    let mut lost: Vec<&PermuteFigure> = figures.iter().filter(|figure| figure.ratio() < LOST).collect();
    lost.sort_by(|one, other| one.ratio().total_cmp(&other.ratio()));
    if !lost.is_empty() {
        writeln!(out, "\nbelow {LOST}: ratio, dtc, {peer}, share of memcpy, permute")?;
    }
    for figure in lost {
        writeln!(
            out,
            "{:<6} {:>5.2} {:>9} {:>9} {:>5.2} {}: {}",
            figure.direction,
            figure.ratio(),
            report::time(figure.medians[0]),
            report::time(figure.medians[1]),
            figure.share(),
            figure.case,
            figure.text
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(class: usize, direction: Direction, medians: [f64; 3]) -> PermuteFigure {
        let (case, text) = ("007_case".to_owned(), "2 x 3 elements of 4 bytes, axes 10".to_owned());
        PermuteFigure { case, class: CLASSES[class].name, text, direction, bytes: 24, medians }
    }

    fn cells(text: &str, row: &str) -> Vec<String> {
        let line = text.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("{row} in {text}"));
        line.split_whitespace().filter(|cell| cell.parse::<f64>().is_ok()).map(str::to_owned).collect()
    }

    #[test]
    fn tables_have_means_minima_and_losses() {
        let figures = [
            figure(0, Direction::Pack, [100.0, 200.0, 50.0]),
            figure(0, Direction::Pack, [100.0, 50.0, 50.0]),
            figure(0, Direction::Pack, [100.0, 800.0, 50.0]),
            figure(2, Direction::Unpack, [100.0, 95.0, 25.0]),
        ];
        let mut out = Vec::new();
        print(&figures, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(cells(&text, "L2,"), ["64.0", "512.0", "3", "2.00", "0.50", "1", "0.50"]);
        assert_eq!(cells(&text, "memory,"), ["56.0", "72.0", "1", "0.95", "0.95", "0", "0.25"]);
        assert!(!text.contains("L3"), "{text}");
        let lost: Vec<&str> = text.lines().filter(|line| line.contains("007_case")).collect();
        assert_eq!(lost.len(), 1, "{text}");
        assert_eq!(cells(lost[0], "007_case"), ["0.50", "100.0", "50.0", "0.50", "2", "3", "4", "10"]);
    }
}
