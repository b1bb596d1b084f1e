//! `dtc bench` (placeholder).
use crate::failure::Failure;
use std::io::Write;
/// Measures
#[derive(clap::Args)]
pub struct Arguments {}
/// Runs the command.
pub fn run(_: &Arguments, _: &mut dyn Write) -> Result<(), Failure> {
    Ok(())
}
