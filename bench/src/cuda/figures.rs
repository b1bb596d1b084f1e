//! The figures of a run on a GPU.

use dtc_measure::bench::cuda::comparison::Line;
use serde_json::{Value, json};

/// The figures of a line, in the form of the programs in `bench/gpu`.
pub fn figure(line: &Line) -> Value {
    let rounded = |time: f64| (time * 1e3).round() / 1e3;
    let mut figure = json!({
        "peer": line.peer.name(),
        "case": line.case,
        "direction": line.direction.to_string(),
        "packed_bytes": line.packed_bytes,
        "cold_us": line.times.as_ref().ok().map(|times| rounded(times.cold)),
        "warm_us": line.times.as_ref().ok().map(|times| rounded(times.warm)),
        "variant": line.variant,
        "least_us": line.least_us.map(rounded),
    });
    match &line.times {
        Ok(times) => figure["rounds"] = times.rounds.into(),
        Err(error) => figure["error"] = error.as_str().into(),
    }
    figure
}
