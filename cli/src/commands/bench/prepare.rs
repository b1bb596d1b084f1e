//! Building the peers: their sources, then the checkout's script.

use super::case::Case;
use super::checkout::checkout_file;
use crate::commands::doctor::find;
use crate::failure::{Failure, reason};
use dtc_compiler::codegen::mpi_c;
use std::ffi::OsStr;
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

/// Most nodes of a type with a hand-written loop: the printer recurses, and larger loops are not written by hand.
const MOST_NODES: usize = 256;

/// The hand-written loop of a case, or why there is none.
fn source_of_loop(case: &Case) -> Result<String, String> {
    let nodes = case.datatype.nodes().len();
    if nodes > MOST_NODES {
        return Err(format!("expected a type of at most {MOST_NODES} nodes, found {nodes}"));
    }
    let document = serde_json::from_str(&case.text()).map_err(|error| error.to_string())?;
    dtc_hand_loop::hand_loop(&document)
}

/// Flags of the two compilations of a loop, as in `bench/peers`.
const LOOPS: [(&str, &[&str]); 2] = [("loop", &["-O3"]), ("loop_o2", &["-O3", "-O2"])];

/// Writes and compiles the loops alone. Returns remarks on those that cannot be.
pub fn prepare_loops(directory: &Path, cases: &[Case]) -> Vec<String> {
    let compiler = std::env::var_os("CC").or_else(|| {
        let known = ["gcc", "cc", "clang"].into_iter().find(|name| find(name).is_some());
        known.map(Into::into)
    });
    let Some(compiler) = compiler else {
        return vec!["no hand loops: no C compiler is there (Debian: apt-get install gcc libc6-dev)".to_owned()];
    };
    let mut notes = Vec::new();
    for case in cases {
        if let Err(note) = compile_loops(directory, case, &compiler) {
            notes.push(format!("{}: no hand loop: {note}", case.name));
        }
    }
    notes
}

fn compile_loops(directory: &Path, case: &Case, compiler: &OsStr) -> Result<(), String> {
    let source = directory.join(format!("{}.loop.c", case.name));
    std::fs::write(&source, source_of_loop(case)?).map_err(|error| reason(&error))?;
    for (kind, flags) in LOOPS {
        let library = directory.join(format!("{}.{kind}.so", case.name));
        let mut command = Command::new(compiler);
        command.args(flags).args(["-march=native", "-std=gnu11", "-shared", "-fPIC", "-o"]).arg(library).arg(&source);
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {}", compiler.display(), reason(&error)))?;
        if !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}", compiler.display(), messages.lines().next().unwrap_or("no message")));
        }
    }
    Ok(())
}

/// Writes the sources of all cases and builds what is not built yet. Returns remarks on peers that cannot be.
pub fn prepare(directory: &Path, cases: &[Case], script: &Path) -> Result<Vec<String>, Failure> {
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
        match source_of_loop(case) {
            Ok(source) => {
                stale |= update(directory, &format!("{name}.loop.c"), &source).map_err(unwritable)?;
                stale |= LOOPS.iter().any(|(kind, _)| !directory.join(format!("{name}.{kind}.so")).exists());
            }
            Err(error) => notes.push(format!("{name}: no loop: {error}")),
        }
    }
    if stale {
        build(directory, script)?;
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
