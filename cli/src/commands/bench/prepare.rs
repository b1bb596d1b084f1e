//! Building the peers: their sources, then the checkout's script.

use super::Case;
use crate::failure::{Failure, reason};
use dtc_compiler::codegen::mpi_c;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file or folder of the checkout that the working directory or the executable lies in.
pub fn checkout_file(name: &str) -> Option<PathBuf> {
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    starts
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
}

/// The programs that make peers.
pub struct Programs {
    hand_loop: PathBuf,
    script: PathBuf,
}

impl Programs {
    /// Finds them where nothing is given.
    pub fn find(hand_loop: Option<&Path>, script: Option<&Path>) -> Result<Programs, Failure> {
        let beside = std::env::current_exe().ok().map(|program| program.with_file_name("hand-loop"));
        let hand_loop = match hand_loop {
            Some(path) => Some(path.to_owned()),
            None => beside.filter(|path| path.is_file()),
        };
        let hand_loop = hand_loop.filter(|path| path.is_file()).ok_or_else(|| {
            let remedy = "build it with cargo build --release -p dtc-bench, or say --hand-loop PATH";
            Failure::missing("hand-loop", "the program that prints loops, beside dtc", "none", remedy)
        })?;
        let script = script.map(Path::to_owned).or_else(|| checkout_file("bench/peers"));
        let script = script.filter(|path| path.is_file()).ok_or_else(|| {
            let remedy = "run dtc in a checkout of its source, or say --peers-script PATH";
            Failure::missing("bench/peers", "the script that builds peers", "none", remedy)
        })?;
        // A bare name would be looked for on the search path.
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Ok(Programs { hand_loop: absolute(hand_loop), script: absolute(script) })
    }
}

/// Writes the sources of all cases and builds what is not built yet. Returns remarks on peers that cannot be.
pub fn prepare(directory: &Path, cases: &[Case], programs: &Programs) -> Result<Vec<String>, Failure> {
    let unwritable = |error| Failure::description(directory.display(), "a directory to build peers in", reason(&error));
    std::fs::create_dir_all(directory).map_err(unwritable)?;
    let mut notes = Vec::new();
    let mut stale = false;
    for case in cases {
        let name = &case.name;
        let source = mpi_c::emit(&case.datatype);
        if source.contains("#error") {
            notes.push(format!("{name}: no MPI peers, which count in an int"));
        } else {
            stale |= update(directory, &format!("{name}.mpi.c"), &source).map_err(unwritable)?;
            stale |= ["mpich", "openmpi"].iter().any(|kind| !directory.join(format!("{name}.{kind}")).exists());
        }
        let description = directory.join(format!("{name}.json"));
        std::fs::write(&description, &case.text).map_err(unwritable)?;
        let printed = Command::new(&programs.hand_loop).arg(&description).output().map_err(|error| {
            Failure::missing(programs.hand_loop.display(), "a program to run", reason(&error), "say --hand-loop PATH")
        })?;
        if printed.status.success() {
            let source = String::from_utf8_lossy(&printed.stdout);
            stale |= update(directory, &format!("{name}.loop.c"), &source).map_err(unwritable)?;
            stale |= ["loop", "loop_o2"].iter().any(|kind| !directory.join(format!("{name}.{kind}.so")).exists());
        } else {
            notes.push(format!("{name}: no loop: {}", String::from_utf8_lossy(&printed.stderr).trim()));
        }
    }
    if stale {
        build(directory, &programs.script)?;
    }
    Ok(notes)
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

/// What the peers' compilers and libraries call themselves.
pub fn versions() -> Value {
    let queries = [("gcc", "gcc", "--version"), ("mpich", "mpichversion", "-v"), ("openmpi", "ompi_info", "--version")];
    let mut versions = Map::new();
    for (name, program, argument) in queries {
        let answer = Command::new(program).arg(argument).stdin(Stdio::null()).output().ok();
        let text = answer.map(|answer| String::from_utf8_lossy(&answer.stdout).into_owned()).unwrap_or_default();
        versions.insert(name.to_owned(), text.lines().next().map_or(Value::Null, |line| line.trim().into()));
    }
    Value::Object(versions)
}
