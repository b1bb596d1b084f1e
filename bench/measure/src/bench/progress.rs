//! What is being measured, told on a terminal.

use std::io::{self, IsTerminal, Write};

/// Shows on a terminal what is being measured, in place of what was shown before; "" clears the line.
pub fn tell(what: &str) {
    let mut err = io::stderr();
    if err.is_terminal() {
        // Progress that cannot be shown is not missed.
        let _ = write!(err, "\r\x1b[K{}{what}", if what.is_empty() { "" } else { "measuring " });
    }
}
