//! Figures as JSON: those of a run on the CPU, and files with one of them in a line.

use crate::arguments::Benchmark;
use crate::random::Random;
use dtc_measure::bench::{Results, figures};
use dtc_measure::failure::Failure;
use dtc_measure::output::Output;
use serde_json::Value;

/// All figures, with what they depend on.
pub fn all(arguments: &Benchmark, results: &Results) -> Value {
    figures::all(&arguments.shared, arguments.starts, arguments.date.as_deref(), results)
}

/// The same of types that were drawn.
pub fn random(arguments: &Benchmark, random: &Random) -> Value {
    let mut figures = all(arguments, &random.results);
    figures["seed"] = random.seed.into();
    figures["rounds"] = random.rounds.into();
    for ((count, text), case) in random.texts.iter().zip(figures["cases"].as_array_mut().into_iter().flatten()) {
        case["count"] = (*count).into();
        case["type"] = text.as_str().into();
    }
    figures
}

/// A file of figures, one in a line.
pub struct Figures<'a>(pub Option<Output<'a>>);

impl Figures<'_> {
    /// Writes a line, if there is a file.
    pub fn write(&mut self, line: Value) -> Result<(), Failure> {
        let Some(output) = &mut self.0 else { return Ok(()) };
        output.write(format!("{line}\n").as_bytes())
    }

    /// Puts the file in place.
    pub fn finish(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), |output| output.finish().map(drop))
    }
}
