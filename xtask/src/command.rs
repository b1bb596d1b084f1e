//! Installs the command dtc, with its man pages, shell completions, and the schema of type descriptions.

use crate::steps::{Outcome, below_destdir, build, read, root, run, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs the command below `prefix`, or below `DESTDIR` and `prefix`. Without `program`, cargo builds it first.
pub fn install(prefix: &Path, program: Option<PathBuf>) -> Outcome {
    let program = program.map_or_else(|| build("dtc-cli", "dtc"), Ok)?;
    let prefix = below_destdir(std::env::var_os("DESTDIR"), prefix)?;
    let folder = |path: &str| -> Outcome<PathBuf> {
        let folder = prefix.join(path);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    };
    // The program may be running, so it is replaced by a rename.
    let binaries = folder("bin")?;
    let (copy, installed) = (binaries.join(format!(".dtc.{}", std::process::id())), binaries.join("dtc"));
    fs::copy(&program, &copy).map_err(|error| format!("{}: {error}", program.display()))?;
    fs::rename(&copy, &installed).map_err(|error| format!("{}: {error}", installed.display()))?;
    run(Command::new(&installed).args(["man", "--folder"]).arg(folder("share/man/man1")?))?;
    for (shell, place, name) in [
        ("bash", "share/bash-completion/completions", "dtc"),
        ("fish", "share/fish/vendor_completions.d", "dtc.fish"),
        ("zsh", "share/zsh/site-functions", "_dtc"),
    ] {
        let output = Command::new(&installed).args(["completions", shell]).output();
        let output = output.map_err(|error| format!("{}: {error}", installed.display()))?;
        if !output.status.success() {
            return Err(format!("{}: expected completions for {shell}, found {}", installed.display(), output.status));
        }
        write(&folder(place)?.join(name), &String::from_utf8_lossy(&output.stdout))?;
    }
    let schema = "type-description.schema.json";
    write(&folder("share/dtc")?.join(schema), &read(&root().join("docs").join(schema))?)
}
