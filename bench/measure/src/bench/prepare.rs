//! Building the peers: their sources, then the checkout's script.

use super::calls;
use super::case::Case;
use super::checkout::checkout_file;
use super::loops::{self, Compiled, LOOPS};
use super::peers::KINDS;
use crate::failure::{Failure, reason};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The script that builds peers, and what it compiles: their names, their contents, and whether they are programs.
const SOURCES: [(&str, &str, bool); 3] = [
    ("peers", include_str!("../../peers"), true),
    ("peer.c", include_str!("../../peer.c"), false),
    ("calls.c", include_str!("../../calls.c"), false),
];

/// The script that builds peers: the one given, that of the checkout, or the one in this program, which is written to `directory`.
pub fn find_script(given: Option<&Path>, directory: &Path) -> Result<PathBuf, Failure> {
    if given.is_none() && checkout_file("bench/peers").is_none() {
        return written(&directory.join("source")).map_err(|error| unwritable(directory, &error));
    }
    let script = given.map(Path::to_owned).or_else(|| checkout_file("bench/peers"));
    let script = script.filter(|path| path.is_file()).ok_or_else(|| {
        let remedy = "say --peers-script PATH, or nothing for the one of this program";
        Failure::missing("bench/peers", "the script that builds peers", "none", remedy)
    })?;
    // A bare name would be looked for on the search path.
    Ok(std::path::absolute(&script).unwrap_or(script))
}

/// Writes the script and its sources to a folder; where the script is.
pub fn written(folder: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    for (name, text, is_program) in SOURCES {
        update(folder, name, text)?;
        #[cfg(unix)]
        if is_program {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755))?;
        }
        #[cfg(not(unix))]
        let _ = is_program;
    }
    std::path::absolute(folder.join(SOURCES[0].0))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Outside a checkout: a shell takes the script, which finds what it compiles beside it.
    #[test]
    fn the_script_of_the_program_is_written_with_its_sources() {
        let folder = tempfile::tempdir().unwrap();
        let script = written(&folder.path().join("source")).unwrap();
        for (name, text, _) in SOURCES {
            assert_eq!(std::fs::read_to_string(folder.path().join("source").join(name)).unwrap(), text);
        }
        // Without a folder to build in, it says how it is called.
        let output = Command::new(script).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("DIRECTORY"));
    }
}
