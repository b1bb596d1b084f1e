//! Installs the command dtc, with its man pages, shell completions, the schema of type descriptions, and the examples.

use crate::places::{Places, install_stripped};
use crate::steps::{Outcome, build, copy_files, output, read, root, run, write};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Installs the command. Without `program`, cargo builds it first. `runner` runs programs for another processor, by arguments between
/// spaces.
pub fn install(places: &Places, program: Option<PathBuf>, runner: &str) -> Outcome {
    let program = program.map_or_else(|| build("dtc-cli", "dtc"), Ok)?;
    let name = places.program.as_str();
    let installed = places.folder("bin")?.join(name);
    install_stripped(&program, &installed, "--strip-all")?;
    // Under its installed name, which its texts follow.
    let started = || {
        let mut words = runner.split_whitespace().map(OsStr::new).chain([installed.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or(installed.as_os_str()));
        command.args(words);
        command
    };
    run(started().args(["man", "--folder"]).arg(places.folder("share/man/man1")?))?;
    for (shell, place, file) in [
        ("bash", "share/bash-completion/completions", name.to_owned()),
        ("fish", "share/fish/vendor_completions.d", format!("{name}.fish")),
        ("zsh", "share/zsh/site-functions", format!("_{name}")),
    ] {
        write(&places.folder(place)?.join(file), &output(started().args(["completions", shell]))?)?;
    }
    let schema = "type-description.schema.json";
    write(&places.folder("share/dtc")?.join(schema), &read(&root().join("docs").join(schema))?)?;
    copy_files(&root().join("ir-examples"), &places.folder("share/dtc/ir-examples")?, &["json"])
}
