//! Who dtc is measured beside in the memory of the host: the loop written by hand, in C, and the MPIs of this machine.
//!
//! Both are compiled while the demo starts, for the type that it shows, and left out where their compilers are missing.

use dtc_measure::bench::case::Case;
use dtc_measure::bench::hand_loop::HandLoop;
use dtc_measure::bench::loops;
use dtc_measure::bench::peer::Peer;
use dtc_measure::bench::prepare;
use dtc_measure::machine::find;
use dtc_measure::output::Scratch;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that a compiler, or an MPI, may take for one answer: the demo ends soon in any case.
const PATIENCE: Duration = Duration::from_secs(5);

/// The compilers of MPI programs that are searched for. The last may be one of the others.
const COMPILERS: [&str; 3] = ["mpicc.mpich", "mpicc.openmpi", "mpicc"];

/// The MPIs that are named where they are missing.
const KNOWN: [&str; 2] = ["MPICH", "Open MPI"];

/// What the names of all compilations of the loop begin with. The fastest of them counts.
pub const LOOP: &str = "loop";

/// Their names, in the order of [`loops::LOOPS`].
const LOOP_NAMES: [&str; 2] = ["loop -O3", "loop -O2"];

/// The peers that take part.
pub struct DemoPeers {
    /// The loops, by names that begin with [`LOOP`]: one for each set of flags.
    pub hand_loops: Vec<(&'static str, HandLoop)>,
    /// The MPIs and their names.
    pub mpis: Vec<(String, Peer)>,
    /// Who they are, and who is missing.
    pub who: Vec<String>,
    // Removed with their programs when they have ended.
    _folder: Option<Scratch>,
}

impl DemoPeers {
    /// Compiles and starts the peers for a type.
    pub fn start(case: &Case) -> DemoPeers {
        let Ok(folder) = Scratch::temporary("demo") else {
            return DemoPeers::none();
        };
        let path = folder.path();
        let (hand_loops, started) = std::thread::scope(|scope| {
            let sources =
                prepare::written(path).is_ok() && prepare::write_calls(&path.join("type.calls"), case).is_ok();
            let compilers = if sources { compilers() } else { Vec::new() };
            let start = |(kind, compiler): (&'static str, PathBuf)| scope.spawn(move || mpi(path, kind, &compiler));
            let starting: Vec<_> = compilers.into_iter().map(start).collect();
            let hand_loops = hand_loops(path, case);
            let started: Vec<_> = starting.into_iter().filter_map(|thread| thread.join().ok()?).collect();
            (hand_loops, started)
        });
        let loops =
            if hand_loops.is_empty() { "loop: absent" } else { "loop: C, the faster of -O3 and -O2" }.to_owned();
        let (mut mpis, mut who): (Vec<(String, Peer)>, _) = (Vec::new(), vec![loops]);
        for (name, peer) in started {
            if mpis.iter().all(|(other, _)| *other != name) {
                who.push(format!("{name} {}", version(&peer.version)));
                mpis.push((name, peer));
            }
        }
        let missing = KNOWN.iter().filter(|name| mpis.iter().all(|(other, _)| other != *name));
        who.extend(missing.map(|name| format!("{name}: absent")));
        DemoPeers { hand_loops, mpis, who, _folder: Some(folder) }
    }

    /// No peer: the system has no room for them.
    pub fn none() -> DemoPeers {
        let who = vec!["no room for temporary files, or no time: neither loop nor MPI".to_owned()];
        DemoPeers { hand_loops: Vec::new(), mpis: Vec::new(), who, _folder: None }
    }

    /// Takes someone out of the race, and says why.
    pub fn leave(&mut self, name: &str, why: &str) {
        self.mpis.retain(|(other, _)| other != name);
        self.hand_loops.retain(|(other, _)| *other != name);
        self.who.retain(|who| !who.starts_with(name));
        self.who.push(format!("{name}: {why}"));
    }
}

/// The compilers of MPI programs that are there, each once.
fn compilers() -> Vec<(&'static str, PathBuf)> {
    let mut found: Vec<(&str, PathBuf)> = Vec::new();
    for kind in COMPILERS {
        let Some(path) = find(kind) else { continue };
        // The loader of wrappers knows them by the name that they are called by.
        let real = path.canonicalize().ok();
        if found.iter().all(|(_, other)| other.canonicalize().ok() != real) {
            found.push((kind, path));
        }
    }
    found
}

/// The loops of a type, if there is a C compiler and the type has loops.
fn hand_loops(folder: &Path, case: &Case) -> Vec<(&'static str, HandLoop)> {
    let (compiled, _) = loops::compile(folder, std::slice::from_ref(case));
    let compiled =
        compiled.iter().flat_map(|compiled| compiled.libraries.iter().map(|library| (library, &compiled.prefix)));
    let opened = compiled.zip(LOOP_NAMES).filter_map(|((library, prefix), name)| {
        HandLoop::open(library, prefix, name).ok().flatten().map(|opened| (name, opened))
    });
    opened.collect()
}

/// Compiles and starts an MPI, which has read the type then; its name and its process.
fn mpi(folder: &Path, kind: &'static str, compiler: &Path) -> Option<(String, Peer)> {
    let mut command = Command::new(compiler);
    command.current_dir(folder).env("TMPDIR", folder).args(["-O1", "-std=gnu11", "-DPEER_CALLS", "-o", kind]);
    command.args(["peer.c", "calls.c"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    if !status.success() {
        return None;
    }
    let mut peer = Peer::start_within(folder, kind, PATIENCE).ok()??;
    peer.read(&folder.join("type.calls")).ok()?;
    Some((name(&peer.version), peer))
}

/// What an MPI is called, of what its library says that it is.
fn name(version: &str) -> String {
    let words = version.split([' ', ',']).filter(|word| !word.is_empty());
    let is_name = |word: &&str| !word.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit());
    let words: Vec<&str> =
        words.take_while(is_name).filter(|word| !word.starts_with("Version") && *word != ":").take(2).collect();
    words.join(" ")
}

/// Its number.
fn version(version: &str) -> &str {
    let numbers = version.split([' ', ',']).map(|word| word.trim_start_matches('v'));
    numbers.into_iter().find(|word| word.starts_with(|first: char| first.is_ascii_digit())).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_have_names_and_numbers() {
        for (said, called, number) in [
            ("MPICH Version: 4.0.2", "MPICH", "4.0.2"),
            ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI", "4.1.4"),
            ("Intel(R) MPI Library 2021.9 for Linux* OS", "Intel(R) MPI", "2021.9"),
            ("MVAPICH2 Version : 2.3.7", "MVAPICH2", "2.3.7"),
        ] {
            assert_eq!((name(said).as_str(), version(said)), (called, number));
        }
    }
}
