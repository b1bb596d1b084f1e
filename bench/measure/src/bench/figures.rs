//! The figures of a run on the CPU as JSON.

use super::comparison::Comparison;
use super::measure::Measured;
use super::table::{LOST, Summary, summaries};
use super::{Arguments, Results};
use crate::machine::processor;
use crate::timing::spread;
use serde_json::{Map, Value, json};
use std::process::{Command, Stdio};

/// All figures, with what they depend on. `date` is that of today unless another is given.
pub fn all(arguments: &Arguments, starts: u16, date: Option<&str>, results: &Results) -> Value {
    let command: Vec<String> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    json!({
        "dtc": env!("CARGO_PKG_VERSION"),
        "optimised": !cfg!(debug_assertions),
        "date": date.map_or_else(today, str::to_owned),
        "processor": processor(),
        "vectors": dtc_runtime::Engine::new().target().level.to_string(),
        "command": command,
        "rounds": arguments.rounds(),
        "starts": starts,
        "min_time_ms": arguments.min_time,
        "peer_versions": versions(results),
        "units": "nanoseconds per call; ratios are peer over dtc, so above 1 dtc is faster",
        "notes": results.notes,
        "summary": summary(&results.cases),
        "cases": results.cases.iter().map(case).collect::<Vec<_>>(),
    })
}

fn summary(cases: &[Measured]) -> Value {
    let row = |summary: Summary| {
        let below: Vec<&str> = summary.lost.iter().map(|(name, _)| *name).collect();
        json!({
            "direction": summary.direction,
            "ratio": summary.ratio,
            "minimum": summary.minimum,
            "minimum_case": summary.minimum_case,
            "geometric_mean": summary.mean,
            "cases": summary.cases,
            (format!("below_{LOST}")): below,
        })
    };
    summaries(cases).map(row).collect()
}

fn case(measured: &Measured) -> Value {
    json!({
        "name": measured.name,
        "packed_bytes": measured.packed_bytes,
        "lines": measured.lines,
        "tier": measured.tier,
        "pack": comparison(&measured.pack),
        "unpack": comparison(&measured.unpack),
        "commit": comparison(&measured.commit),
        "bare_commit": comparison(&measured.bare_commit),
        "kernel_ready_ns": measured.kernel_ready,
        "notes": measured.notes,
        "mismatches": measured.mismatches,
    })
}

fn comparison(comparison: &Comparison) -> Value {
    let medians: Map<String, Value> =
        comparison.times.iter().map(|times| (times.name.to_owned(), times.median().into())).collect();
    let rounds: Map<String, Value> =
        comparison.times.iter().map(|times| (times.name.to_owned(), times.samples.clone().into())).collect();
    json!({
        "medians": medians,
        "peer_over_dtc": comparison.peer_ratio(),
        "least_peer_over_dtc": comparison.undisturbed().map(|found| found.ratio()),
        "measured_again": comparison.again.is_some(),
        "mpi_over_dtc": comparison.mpi_ratio(),
        "memcpy_over_dtc": comparison.memcpy_ratio(),
        "limit_over_dtc": comparison.limit_ratio(),
        "loop_over_dtc": comparison.loop_ratio(),
        "spread": comparison.of("dtc").map(|times| spread(&times.samples)),
        "rounds": rounds,
    })
}

/// What the libraries of the MPIs that were measured call themselves, and the compiler of the loops.
fn versions(results: &Results) -> Value {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "gcc".into());
    let answer = Command::new(&compiler).arg("--version").stdin(Stdio::null()).output().ok();
    let text = answer.map(|answer| String::from_utf8_lossy(&answer.stdout).into_owned()).unwrap_or_default();
    let compiler = text.lines().next().map(|line| ("compiler".to_owned(), line.trim().into()));
    let mpis = results.versions.iter().map(|(kind, version)| ((*kind).to_owned(), version.as_str().into()));
    Value::Object(mpis.chain(compiler).collect())
}

/// The date in UTC, year-month-day.
fn today() -> String {
    jiff::Timestamp::now().strftime("%F").to_string()
}
