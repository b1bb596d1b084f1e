//! What the demo says first: three lines of verdict, then what was checked and how quiet the machine was.

use super::peers::LOOP;
use dtc_compiler::Pipeline;
use dtc_measure::description::Named;
use dtc_measure::report;
use dtc_measure::timing::{NOISY, least, spread};
use std::io::{self, Write};

/// Columns of the demo's report.
pub const COLUMNS: usize = 80;

/// Columns of the words that the lines begin with.
const LABEL: usize = 8;

/// Characters of a type's name that are shown.
const NAME: usize = 24;

/// Writes a line under a label, wrapped behind it.
pub fn labelled(label: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    for (index, line) in report::wrapped(text, COLUMNS - LABEL).iter().enumerate() {
        writeln!(out, "{:<LABEL$}{line}", if index == 0 { label } else { "" })?;
    }
    Ok(())
}

/// What the type is; `about` in place of its name.
pub fn describe(named: &Named, about: Option<&str>, pipeline: &Pipeline, count: u64) -> String {
    let total = pipeline.layout().size().saturating_mul(count);
    if let Some(about) = about {
        let runs = pipeline.runs().saturating_mul(count);
        return format!("{about}: {} in {} runs", report::bytes(total), report::grouped(runs));
    }
    let name = report::cut(&named.name, NAME);
    let (size, extent) = (pipeline.layout().size(), named.description.datatype.facts().true_extent());
    let runs = report::grouped(pipeline.runs());
    let elements = if count == 1 { String::new() } else { format!("{} elements of ", report::grouped(count)) };
    format!("{name}: {elements}{} in {runs} runs over {}", report::bytes(size), report::bytes(extent.unsigned_abs()))
}

/// What the passes made of it.
pub fn rewritten(pipeline: &Pipeline) -> String {
    let rewrites: u64 = pipeline.report().fired().iter().map(|(_, times)| times).sum();
    let (before, after) = (pipeline.lowered().nodes().len(), pipeline.layout().nodes().len());
    let rewrites = report::grouped(rewrites);
    format!("{before} layout nodes became {after} by {rewrites} rewrites")
}

/// One direction of the race: the nanoseconds of each peer, round by round.
pub struct Race {
    /// What was done: `pack` or `unpack`.
    pub direction: &'static str,
    /// Name and samples. The last tier of dtc is the one that is compared.
    pub samples: Vec<(String, Vec<f64>)>,
    /// How many of them are tiers of dtc; they come first.
    pub tiers: usize,
}

impl Race {
    /// The nanoseconds of dtc's best tier, in the fastest round.
    fn own(&self) -> f64 {
        let own = self.tiers.checked_sub(1).and_then(|own| self.samples.get(own));
        own.map_or(0.0, |(_, samples)| least(samples)).max(1e-3)
    }

    /// How fast dtc's best tier is, as a multiple of each peer's speed, by the fastest rounds. Of the loops, the fastest counts.
    fn ratios(&self) -> Vec<(&str, f64)> {
        let mut ratios: Vec<(&str, f64)> = Vec::new();
        for (name, samples) in self.samples.iter().skip(self.tiers) {
            let name = if name.starts_with(LOOP) { LOOP } else { name.as_str() };
            let ratio = least(samples) / self.own();
            match ratios.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = known.min(ratio),
                None => ratios.push((name, ratio)),
            }
        }
        ratios
    }

    /// The rate of a call of `bytes` packed bytes in GB/s, and how fast dtc is as a multiple of each peer.
    pub fn verdict(&self, bytes: u64) -> String {
        let ratios: Vec<String> =
            self.ratios().into_iter().map(|(name, ratio)| format!("{} {name}", multiple(ratio))).collect();
        format!("{} GB/s: {}", rate(bytes as f64 / self.own()), ratios.join(", "))
    }

    /// The largest spread of a peer.
    fn spread(&self) -> f64 {
        self.samples.iter().map(|(_, samples)| spread(samples)).fold(0.0, f64::max)
    }
}

/// A rate in about three digits.
fn rate(rate: f64) -> String {
    match rate {
        small if small < 9.995 => format!("{small:.2}"),
        medium if medium < 99.95 => format!("{medium:.1}"),
        large => report::grouped(large.round() as u64),
    }
}

/// A ratio in about three digits.
fn multiple(ratio: f64) -> String {
    match ratio {
        small if small < 9.995 => format!("{small:.2}x"),
        medium if medium < 99.95 => format!("{medium:.1}x"),
        large => format!("{large:.0}x"),
    }
}

/// How far the figures can be believed.
pub fn noise(races: &[Race]) -> String {
    let spread = races.iter().map(Race::spread).fold(0.0, f64::max);
    let rounds = races.first().and_then(|race| race.samples.first()).map_or(0, |(_, samples)| samples.len());
    let percent = spread * 100.0;
    let mut text = format!("fastest of {rounds} interleaved rounds; the median took {percent:.0} % longer at most");
    if spread > NOISY {
        text.push_str("; warning: the machine is busy, and the figures are rough");
    }
    if cfg!(debug_assertions) {
        text.push_str("; warning: a debug build, whose speed says little");
    }
    text
}

/// The times of everyone.
pub fn table(races: &[Race], bytes: f64, reference: &str, out: &mut dyn Write) -> io::Result<()> {
    for Race { direction, samples, .. } in races {
        let time_of = |name: &str| samples.iter().find(|(other, _)| other == name).map(|(_, samples)| least(samples));
        let yardstick = time_of(reference).unwrap_or(0.0);
        for (name, samples) in samples {
            let time = least(samples).max(1e-3);
            let (rate, share, spread) = (bytes / time, yardstick / time, spread(samples) * 100.0);
            let time = report::time(time);
            writeln!(
                out,
                "    {direction:<7}{name:<12}{time:>11}{rate:>9.2} GB/s{share:>7.2}x {reference}{spread:>5.0} %"
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race(samples: &[(&str, &[f64])]) -> Race {
        let samples = samples.iter().map(|(name, samples)| ((*name).to_owned(), samples.to_vec())).collect();
        Race { direction: "pack", samples, tiers: 2 }
    }

    #[test]
    fn ratios_are_of_the_fastest_rounds() {
        let tiers: [(&str, &[f64]); 2] = [("generic", &[20.0, 90.0]), ("specialised", &[10.0, 11.0])];
        let race = race(&[
            tiers[0],
            tiers[1],
            ("loop -O3", &[30.0, 27.0]),
            ("loop -O2", &[30.0, 25.0]),
            ("memcpy", &[5.0, 5.0]),
        ]);
        assert_eq!(race.verdict(125), "12.5 GB/s: 2.50x loop, 0.50x memcpy");
        let races = [race, Race { direction: "unpack", ..quiet() }];
        assert_eq!([9.5, 9.996, 12345.6].map(rate), ["9.50", "10.0", "12,346"]);
        assert!(noise(&races).contains("warning: the machine is busy"));
        assert_eq!([9.5, 9.996, 123.4].map(multiple), ["9.50x", "10.0x", "123x"]);
    }

    fn quiet() -> Race {
        race(&[("generic", &[20.0, 20.2]), ("specialised", &[10.0, 10.1]), ("memcpy", &[5.0, 5.0])])
    }

    #[test]
    fn quiet_rounds_are_not_warned_of() {
        let text = noise(&[quiet()]);
        assert!(text.contains("2 interleaved rounds; the median took 1 % longer") && !text.contains("busy"), "{text}");
    }
}
