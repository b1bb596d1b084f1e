//! `dtc doctor --mpi`: which MPI a program has, and what libdtc_mpi serves there.
//!
//! The library itself finds that out, in the program: the command is linked with no MPI, and which one a program loads is only known there.

use crate::failure::Failure;
use crate::report::row;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the lines of the library begin with.
const MARK: &str = "libdtc_mpi: ";

/// Runs a program with the library and prints what the library reports, each line once: processes of a job say the same of their MPI.
pub fn run(program: &[OsString], interposer: Option<&Path>, out: &mut dyn Write) -> Result<(), Failure> {
    let library = interposer.map_or_else(installed, |path| Ok(path.to_owned()))?;
    let library =
        library.canonicalize().map_err(|error| Failure::Missing(format!("{}: {error}", library.display())))?;
    let (command, arguments) =
        program.split_first().ok_or_else(|| Failure::description("--mpi", "a program", "nothing"))?;
    let mut preload = library.clone().into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(OsStr::new(":"));
        preload.push(others);
    }
    let mut run = Command::new(command);
    run.args(arguments).env("LD_PRELOAD", preload).env("DTC_MPI_REPORT", "1").stdin(Stdio::null());
    let name = Path::new(command).display();
    let output = run.output().map_err(|error| Failure::Missing(format!("{name}: {error}")))?;
    row(out, "interposer", &library.display().to_string())?;
    let said = [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    let mut known = HashSet::new();
    for line in said.lines().filter_map(|line| line.strip_prefix(MARK)).filter(|line| known.insert(*line)) {
        let (what, value) = line.split_once(": ").unwrap_or((line, ""));
        row(out, what, value)?;
    }
    if known.is_empty() {
        row(out, "MPI", "no call came to the library: the program has no MPI, or is linked with it statically")?;
    }
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::data(name, "a program that ends well", output.status))
}

/// The library beside this command, as `cargo xtask install` puts both.
fn installed() -> Result<PathBuf, Failure> {
    let command = std::env::current_exe()?;
    let prefix = command.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let library = prefix.join("lib/libdtc_mpi.so");
    if library.is_file() {
        return Ok(library);
    }
    let name = library.display();
    Err(Failure::Missing(format!("{name}: expected the interposer, found none; name it with --interposer FILE")))
}
