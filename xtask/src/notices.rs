//! Collects the licences of the crates in the installed libraries and in the wheel of Python.

use crate::steps::{Outcome, read, root, write};
use std::process::Command;

/// What is distributed: the manifest of a crate that contains all the others, where its notices are, and what the notices call it.
const DISTRIBUTED: [(&str, &str, &str); 2] = [
    ("cli/Cargo.toml", "THIRD-PARTY-NOTICES", "The command dtc, and in part libdtc, libdtc_mpi and libyaksa, contain"),
    ("interfaces/python/Cargo.toml", "interfaces/python/THIRD-PARTY-NOTICES", "The package libdtc of Python contains"),
];

/// What the template has in place of the names.
const CONTAINING: &str = "CONTAINING";

/// Writes the notices; with `check`, compares them with what would be written.
///
/// Needs cargo-about, and the network unless cargo has already fetched the crates.
pub fn notices(check: bool) -> Outcome {
    DISTRIBUTED.iter().try_for_each(|(manifest, place, containing)| {
        let text = generated(manifest)?.replacen(CONTAINING, containing, 1);
        let place = root().join(place);
        if !check {
            return write(&place, &text);
        }
        match read(&place)? == text {
            true => Ok(()),
            false => {
                let place = place.display();
                Err(format!("{place}: expected what `cargo xtask notices` writes, found something else"))
            }
        }
    })
}

fn generated(manifest: &str) -> Result<String, String> {
    let generated = Command::new("cargo")
        .args(["about", "-L", "error", "generate", "--offline", "--locked", "-m", manifest])
        .args(["-c", "xtask/notices/about.toml", "xtask/notices/notices.hbs"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !generated.status.success() {
        let said = String::from_utf8_lossy(&generated.stderr);
        return Err(format!(
            "cargo about: expected the licences of {manifest} (cargo install cargo-about), found: {said}"
        ));
    }
    String::from_utf8(generated.stdout).map_err(|error| format!("cargo about: {error}"))
}
