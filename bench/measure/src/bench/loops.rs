//! The hand-written loops of types: their sources, and shared objects with the loops of many types each.

use super::case::Case;
use crate::failure::reason;
use crate::machine::find;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Most nodes of a type with a hand-written loop: the printer recurses, and larger loops are not written by hand.
const MOST_NODES: usize = 256;

/// Types whose loops are compiled together: starting a compiler and a linker takes as long as the loops of three types.
pub const TOGETHER: usize = 25;

/// Flags of the two compilations of a loop, as in `bench/peers`.
pub const LOOPS: [(&str, &[&str]); 2] = [("loop", &["-O3"]), ("loop_o2", &["-O3", "-O2"])];

/// Where the loops of a type are.
#[derive(Clone)]
pub struct Compiled {
    /// The shared object of each compilation, in the order of [`LOOPS`], if it is there.
    pub libraries: [PathBuf; 2],
    /// What the names of the type's symbols begin with.
    pub prefix: String,
}

impl Compiled {
    /// The loops that a script makes of one type: `TYPE.loop.so` and `TYPE.loop_o2.so`.
    pub fn alone(directory: &Path, name: &str) -> Compiled {
        let libraries = LOOPS.map(|(kind, _)| directory.join(format!("{name}.{kind}.so")));
        Compiled { libraries, prefix: String::new() }
    }
}

/// The description of a case for the printer of loops.
fn document(case: &Case) -> Result<serde_json::Value, String> {
    let nodes = case.datatype.nodes().len();
    if nodes > MOST_NODES {
        return Err(format!("expected a type of at most {MOST_NODES} nodes, found {nodes}"));
    }
    serde_json::from_str(&case.text()).map_err(|error| error.to_string())
}

/// The hand-written loop of a case, or why there is none.
pub fn source(case: &Case) -> Result<String, String> {
    dtc_hand_loop::hand_loop(&document(case)?)
}

/// Writes and compiles the loops of all cases, several in one file. Returns where they are, case by case, and remarks on those that
/// cannot be.
pub fn compile(directory: &Path, cases: &[Case]) -> (Vec<Compiled>, Vec<String>) {
    let batch = |number: usize| directory.join(format!("batch_{number}"));
    let of_case = |index: usize| Compiled {
        libraries: LOOPS.map(|(kind, _)| batch(index / TOGETHER).with_extension(format!("{kind}.so"))),
        prefix: format!("type_{index}_"),
    };
    let compiled: Vec<Compiled> = (0..cases.len()).map(of_case).collect();
    let compiler = std::env::var_os("CC").or_else(|| {
        let known = ["gcc", "cc", "clang"].into_iter().find(|name| find(name).is_some());
        known.map(Into::into)
    });
    let Some(compiler) = compiler else {
        let note = "no hand loops: no C compiler is there (Debian: apt-get install gcc libc6-dev)".to_owned();
        return (compiled, vec![note]);
    };
    let mut notes = Vec::new();
    for (number, (cases, loops)) in cases.chunks(TOGETHER).zip(compiled.chunks(TOGETHER)).enumerate() {
        let source = batch(number).with_extension("c");
        let built = write(&source, cases, loops, &mut notes)
            .and_then(|()| LOOPS.iter().try_for_each(|(kind, flags)| build(&compiler, &source, kind, flags)));
        if let Err(note) = built {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            notes.push(format!("{}: no hand loop: {note}", names.join(", ")));
        }
    }
    (compiled, notes)
}

/// Writes the loops of several cases, and their lists beside.
fn write(source: &Path, cases: &[Case], loops: &[Compiled], notes: &mut Vec<String>) -> Result<(), String> {
    let mut text = String::new();
    for (case, Compiled { prefix, .. }) in cases.iter().zip(loops) {
        match document(case).and_then(|document| dtc_hand_loop::part(&document, prefix)) {
            Ok(part) => {
                text.push_str(&part.text);
                for (name, bytes) in part.files {
                    std::fs::write(source.with_file_name(name), bytes).map_err(|error| reason(&error))?;
                }
            }
            Err(note) => notes.push(format!("{}: no hand loop: {note}", case.name)),
        }
    }
    std::fs::write(source, text).map_err(|error| reason(&error))
}

fn build(compiler: &OsStr, source: &Path, kind: &str, flags: &[&str]) -> Result<(), String> {
    let folder = source.parent().unwrap_or(Path::new("."));
    let name = |path: PathBuf| path.file_name().map(OsString::from).unwrap_or_default();
    let mut command = Command::new(compiler);
    // In the folder of the lists that the source includes. Its own temporary files vanish with the folder, too.
    command.current_dir(folder).env("TMPDIR", std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()));
    command.args(flags).args(["-march=native", "-std=gnu11", "-shared", "-fPIC", "-o"]);
    command.arg(name(source.with_extension(format!("{kind}.so")))).arg(name(source.to_owned()));
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {}", compiler.display(), reason(&error)))?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", compiler.display(), messages.lines().next().unwrap_or("no message")))
}
