//! Matching on a GPU: what a call of a matcher takes, and what a match by the service does.

mod calls;
mod service;

use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::failure::Failure;
use serde_json::Value;
use std::io::Write;

/// Measures both, tells what is being measured, writes the figures and prints them. Of cases, those whose names contain `only` are meant.
///
/// # Errors
///
/// CUDA, or an output.
pub fn run(
    arena: &Arena,
    (rounds, only): (usize, &str),
    tell: impl Fn(&str),
    mut write: impl FnMut(Value) -> Result<(), Failure>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let found = calls::measure(arena, rounds, only, &tell)?;
    tell("");
    found.iter().try_for_each(|figure| write(figure.to_json()))?;
    calls::print(&found, out)?;
    if !"service".contains(only) {
        return Ok(());
    }
    tell("the service");
    let found = service::measure(arena, rounds)?;
    tell("");
    found.iter().try_for_each(|figure| write(figure.to_json()))?;
    service::print(&found, out)
}
