//! The MPIs that a type is measured beside.

use super::case::Case;
use super::peer::Peer;
use std::path::Path;

/// The MPIs that are still in the race, each in a process of its own.
pub struct Peers {
    /// Who answers.
    pub running: Vec<Peer>,
    /// Why others left the race.
    pub notes: Vec<String>,
}

impl Peers {
    pub fn start(case: &Case, directory: Option<&Path>) -> Peers {
        let mut peers = Peers { running: Vec::new(), notes: Vec::new() };
        let Some(directory) = directory else { return peers };
        for kind in ["mpich", "openmpi"] {
            match Peer::start(directory, &case.name, kind) {
                Ok(Some(peer)) => peers.running.push(peer),
                Ok(None) => {}
                Err(note) => peers.notes.push(note),
            }
        }
        peers
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
