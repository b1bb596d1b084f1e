//! Collects the licences of the crates in the installed libraries.

use crate::steps::{Outcome, read, root, write};
use std::process::Command;

/// Manifest of libdtc, which contains all crates of libyaksa.
const MANIFEST: &str = "interfaces/c/Cargo.toml";

/// Writes `THIRD-PARTY-NOTICES`; with `check`, compares it with what would be written.
///
/// Needs cargo-about, and the network unless cargo has already fetched the crates.
pub fn notices(check: bool) -> Outcome {
    let place = root().join("THIRD-PARTY-NOTICES");
    let generated = Command::new("cargo")
        .args(["about", "-L", "error", "generate", "--offline", "--locked", "-m", MANIFEST])
        .args(["-c", "xtask/notices/about.toml", "xtask/notices/notices.hbs"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !generated.status.success() {
        let said = String::from_utf8_lossy(&generated.stderr);
        return Err(format!(
            "cargo about: expected the licences of {MANIFEST} (cargo install cargo-about), found: {said}"
        ));
    }
    let text = String::from_utf8(generated.stdout).map_err(|error| format!("cargo about: {error}"))?;
    if !check {
        return write(&place, &text);
    }
    if read(&place)? == text {
        return Ok(());
    }
    Err(format!("{}: expected what `cargo xtask notices` writes, found something else", place.display()))
}
