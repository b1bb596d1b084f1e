//! Building the peers: their sources, then the checkout's script.

use super::calls;
use super::case::Case;
use super::checkout::checkout_file;
use super::loops::{self, Compiled, LOOPS};
use super::peers::KINDS;
use crate::failure::{Failure, reason};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The script that builds peers: the one given, or that of the checkout.
pub fn find_script(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let script = given.map(Path::to_owned).or_else(|| checkout_file("bench/peers"));
    let script = script.filter(|path| path.is_file()).ok_or_else(|| {
        let remedy = "run dtc in a checkout of its source, or say --peers-script PATH";
        Failure::missing("bench/peers", "the script that builds peers", "none", remedy)
    })?;
    // A bare name would be looked for on the search path.
    Ok(std::path::absolute(&script).unwrap_or(script))
}

/// Writes the loops of all cases and builds what is not built yet. Returns where the loops are, case by case, and remarks on those that
/// cannot be.
pub fn prepare(directory: &Path, cases: &[Case], script: &Path) -> Result<(Vec<Compiled>, Vec<String>), Failure> {
    let mut notes = Vec::new();
    let mut stale = is_lacking(directory)?;
    for case in cases {
        let name = &case.name;
        match loops::source(case) {
            Ok(source) => {
                stale |= update(directory, &format!("{name}.loop.c"), &source)
                    .map_err(|error| unwritable(directory, &error))?;
                stale |= LOOPS.iter().any(|(kind, _)| !directory.join(format!("{name}.{kind}.so")).exists());
            }
            Err(error) => notes.push(format!("{name}: no loop: {error}")),
        }
    }
    if stale {
        build(directory, script)?;
    }
    Ok((cases.iter().map(|case| Compiled::alone(directory, &case.name)).collect(), notes))
}

/// Builds the MPIs alone, if they are not built yet.
pub fn prepare_mpis(directory: &Path, script: &Path) -> Result<(), Failure> {
    if is_lacking(directory)? { build(directory, script) } else { Ok(()) }
}

/// Makes the folder; whether it lacks an MPI.
fn is_lacking(directory: &Path) -> Result<bool, Failure> {
    std::fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    Ok(KINDS.iter().any(|kind| !directory.join(kind).exists()))
}

fn unwritable(directory: &Path, error: &std::io::Error) -> Failure {
    Failure::description(directory.display(), "a directory to build peers in", reason(error))
}

/// Writes the file that the MPIs read the type of a case from, or says why there is none.
pub fn write_calls(file: &Path, case: &Case) -> Result<(), String> {
    let text = calls::text(&case.datatype).ok_or("no MPI peers, which count in an int")?;
    std::fs::write(file, text).map_err(|error| format!("{}: {}", file.display(), reason(&error)))
}

/// Writes a source unless it is there already; whether it did.
fn update(directory: &Path, name: &str, source: &str) -> std::io::Result<bool> {
    let path = directory.join(name);
    if std::fs::read(&path).is_ok_and(|present| present == source.as_bytes()) {
        return Ok(false);
    }
    std::fs::write(path, source)?;
    Ok(true)
}

fn build(directory: &Path, script: &Path) -> Result<(), Failure> {
    // What the script says is progress and goes where errors go: standard output is the report's.
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let built = Command::new(script).arg(&directory).stdin(Stdio::null()).output();
    let built = built.map_err(|error| {
        Failure::missing(script.display(), "a script to run", reason(&error), "it needs a shell and a C compiler")
    })?;
    if built.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&built.stderr).trim().to_owned();
    match built.status.code() {
        Some(4) => Err(Failure::Missing(format!("{}: {messages}", script.display()))),
        _ => Err(Failure::data(script.display(), "peers that compile", messages)),
    }
}
