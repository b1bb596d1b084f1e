//! Paths as arguments give them, and as messages show them.

use std::path::Path;

/// The name that means standard input, or standard output.
pub const STANDARD: &str = "-";

/// The name of an input in messages.
pub fn shown(path: &Path) -> std::path::Display<'_> {
    if path == Path::new(STANDARD) { Path::new("standard input").display() } else { path.display() }
}
