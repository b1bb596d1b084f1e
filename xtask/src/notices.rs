//! The licences of what the installed libraries contain.

use crate::install::{Outcome, read, root, write};
use std::process::Command;

/// Crates that libdtc contains; those of libyaksa are among them.
const MANIFEST: &str = "interfaces/c/Cargo.toml";

/// Writes `THIRD-PARTY-NOTICES`, or with `check` compares it with what would be written.
///
/// Needs cargo-about, and no network once the crates are there.
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
