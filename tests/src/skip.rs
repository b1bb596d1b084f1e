//! Tests that cannot run on a machine are named and counted.

use std::io::Write;

/// Says that a test is skipped, in a line that reaches the output of a test that passes; `./test` counts such lines.
pub fn skip(test: &str, reason: &str) {
    // Not through `eprintln!`, which the test harness keeps to itself.
    let line = format!("\nskipped: {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
