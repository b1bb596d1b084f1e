//! The MPIs that types are measured beside.

use super::peer::Peer;
use std::path::{Path, PathBuf};

/// The kinds of peers: the names of their programs.
pub const KINDS: [&str; 2] = ["mpich", "openmpi"];

/// The MPIs that are still in the race, each in a process of its own, which lives from type to type.
pub struct Peers {
    /// Where their programs are.
    pub directory: Option<PathBuf>,
    /// Who answers.
    pub running: Vec<Peer>,
    /// Why others left the race.
    pub notes: Vec<String>,
}

impl Peers {
    /// The MPIs whose programs are in a directory; none without one.
    pub fn new(directory: Option<&Path>) -> Peers {
        Peers { directory: directory.map(Path::to_owned), running: Vec::new(), notes: Vec::new() }
    }

    /// Ends all processes, so that the next type finds new ones.
    pub fn end(&mut self) {
        self.running.clear();
    }

    /// Starts who is not there, or has left the race for another type.
    pub fn start(&mut self) {
        let Some(directory) = &self.directory else { return };
        for kind in KINDS {
            if self.running.iter().any(|peer| peer.kind == kind) {
                continue;
            }
            match Peer::start(directory, kind) {
                Ok(peer) => self.running.extend(peer),
                Err(note) => self.notes.push(note),
            }
        }
    }

    /// What the libraries of those who answer call themselves.
    pub fn versions(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.running.iter().map(|peer| (peer.kind, peer.version.as_str()))
    }

    /// Asks everyone; who fails leaves the race, with a note.
    pub fn each<T>(&mut self, ask: impl FnMut(&mut Peer) -> Result<T, String>) -> Vec<(&'static str, T)> {
        self.those(|_| true, ask)
    }

    /// Asks some of them in the same way.
    pub fn those<T>(
        &mut self,
        meant: impl Fn(&Peer) -> bool,
        mut ask: impl FnMut(&mut Peer) -> Result<T, String>,
    ) -> Vec<(&'static str, T)> {
        let mut answers = Vec::new();
        let notes = &mut self.notes;
        self.running.retain_mut(|peer| {
            if !meant(peer) {
                return true;
            }
            match ask(peer) {
                Ok(answer) => {
                    answers.push((peer.kind, answer));
                    true
                }
                Err(note) => {
                    notes.push(note);
                    false
                }
            }
        });
        answers
    }
}
