//! The figures of a run on the CPU as JSON.

use crate::arguments::Benchmark;
use crate::random::Random;
use dtc_measure::bench::{Results, figures};
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
