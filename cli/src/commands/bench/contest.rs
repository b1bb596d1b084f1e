//! The times of contestants that move the same bytes, and how they are taken.

use crate::timing::median;
use std::path::Path;

/// How to measure.
pub struct Settings<'a> {
    /// Interleaved rounds of each start.
    pub rounds: usize,
    /// How often buffers are allocated and MPIs started anew, so that no figure hangs on where they happened to lie.
    pub starts: usize,
    /// The least nanoseconds of a sample.
    pub least: f64,
    /// Where peers, or the loops alone, are built.
    pub peers: Option<&'a Path>,
}

/// The times of one contestant, one of each round, in nanoseconds per call.
pub struct Times {
    /// `dtc`, `memcpy`, `loop`, `loop_o2`, or a kind of peer.
    pub name: &'static str,
    /// In the order of the rounds.
    pub samples: Vec<f64>,
}

impl Times {
    /// The median.
    pub fn median(&self) -> f64 {
        median(&self.samples)
    }

    /// The median of how many times as long as another this one took, round by round.
    fn over(&self, other: &Times) -> f64 {
        let ratios: Vec<f64> =
            self.samples.iter().zip(&other.samples).map(|(mine, other)| mine / other.max(0.01)).collect();
        median(&ratios)
    }
}

/// One direction of one type, or its commit.
pub struct Contest(pub Vec<Times>);

impl Contest {
    /// A contestant's times.
    pub fn of(&self, name: &str) -> Option<&Times> {
        self.0.iter().find(|times| times.name == name)
    }

    fn fastest(&self, names: &[&str]) -> Option<&Times> {
        let present = names.iter().filter_map(|name| self.of(name));
        present.min_by(|one, other| one.median().total_cmp(&other.median()))
    }

    /// The hand-written loop: the faster of its two compilations.
    pub fn hand_loop(&self) -> Option<&Times> {
        self.fastest(&["loop", "loop_o2"])
    }

    /// The faster MPI over dtc.
    pub fn mpi_ratio(&self) -> Option<f64> {
        Some(self.fastest(&["mpich", "openmpi"])?.over(self.of("dtc")?))
    }

    /// The fastest of MPIs and loops over dtc.
    pub fn peer_ratio(&self) -> Option<f64> {
        Some(self.fastest(&["mpich", "openmpi", "loop", "loop_o2"])?.over(self.of("dtc")?))
    }

    /// The hand-written loop over dtc.
    pub fn loop_ratio(&self) -> Option<f64> {
        Some(self.hand_loop()?.over(self.of("dtc")?))
    }

    /// memcpy of the same bytes over dtc.
    pub fn memcpy_ratio(&self) -> Option<f64> {
        Some(self.of("memcpy")?.over(self.of("dtc")?))
    }

    /// Adds the rounds of another start.
    pub fn join(&mut self, other: Contest) {
        for mut times in other.0 {
            match self.0.iter_mut().find(|known| known.name == times.name) {
                Some(known) => known.samples.append(&mut times.samples),
                None => self.0.push(times),
            }
        }
    }
}
