//! Running the command.

mod runs;

pub use runs::*;
use std::path::Path;
use std::process::Command;

/// Runs `dtc` in a folder.
#[allow(dead_code, reason = "each test file uses a part")]
pub fn dtc(folder: &Path, arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_dtc")).args(arguments).current_dir(folder))
}
