//! Which tests run: reports those that cannot on a machine, and knows whether all of them shall.

use std::io::Write;

/// Reports a skipped test in a line that the harness does not capture; `./test` counts such lines.
pub fn skip(test: &str, reason: &str) {
    // The harness captures `eprintln!`.
    let line = format!("\nskipped: {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether a stage of `./test full` runs: also what is heavy and rarely fails. `DTC_TESTS=full` says so.
pub fn is_full() -> bool {
    std::env::var("DTC_TESTS").is_ok_and(|extent| extent == "full")
}
