//! Installs the command dtc, with its man pages, shell completions, the schema of type descriptions, and the examples.

use crate::places::{Places, install_stripped};
use crate::steps::{Outcome, build, copy_files, read, root, run, write};
use std::path::PathBuf;
use std::process::Command;

/// Installs the command. Without `program`, cargo builds it first.
pub fn install(places: &Places, program: Option<PathBuf>) -> Outcome {
    let program = program.map_or_else(|| build("dtc-cli", "dtc"), Ok)?;
    let name = places.program.as_str();
    let installed = places.folder("bin")?.join(name);
    install_stripped(&program, &installed, "--strip-all")?;
    // Under its installed name, which its texts follow.
    run(Command::new(&installed).args(["man", "--folder"]).arg(places.folder("share/man/man1")?))?;
    for (shell, place, file) in [
        ("bash", "share/bash-completion/completions", name.to_owned()),
        ("fish", "share/fish/vendor_completions.d", format!("{name}.fish")),
        ("zsh", "share/zsh/site-functions", format!("_{name}")),
    ] {
        let output = Command::new(&installed).args(["completions", shell]).output();
        let output = output.map_err(|error| format!("{}: {error}", installed.display()))?;
        if !output.status.success() {
            return Err(format!("{}: expected completions for {shell}, found {}", installed.display(), output.status));
        }
        write(&places.folder(place)?.join(file), &String::from_utf8_lossy(&output.stdout))?;
    }
    let schema = "type-description.schema.json";
    write(&places.folder("share/dtc")?.join(schema), &read(&root().join("docs").join(schema))?)?;
    copy_files(&root().join("ir-examples"), &places.folder("share/dtc/ir-examples")?, &["json"])
}
