//! The times of contestants that move the same bytes, and how they are taken.

use crate::timing::median;

/// How to measure.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Interleaved rounds of each start.
    pub rounds: usize,
    /// How often buffers are allocated and MPIs started anew, so that no figure hangs on where they happened to lie.
    pub starts: usize,
    /// The least nanoseconds of a sample.
    pub least: f64,
    /// What a measurement of hundreds of types leaves out; none where every figure is wanted.
    pub sparing: Option<Sparing>,
}

/// How a measurement of hundreds of types spends its time. It leaves out kernels, and commits of types that are known.
#[derive(Clone, Copy)]
pub struct Sparing {
    /// Nanoseconds that the rounds of one direction, or of the commits, should take at most. There are three at least.
    pub longest: f64,
    /// The ratio of the fastest peer to dtc below which both are measured again, alone and in more rounds.
    pub doubtful: f64,
}

/// Rounds of what is measured again, as a multiple of those before.
pub(super) const AGAIN: usize = 4;

/// Least rounds where all that are wanted would take too long.
const FEWEST_ROUNDS: usize = 3;

impl Settings {
    /// How many rounds of some nanoseconds there are.
    pub(super) fn rounds_of(&self, round: f64) -> usize {
        let affordable = self.sparing.map_or(self.rounds, |sparing| (sparing.longest / round.max(1.0)) as usize);
        self.rounds.min(affordable.max(FEWEST_ROUNDS))
    }
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
    pub fn over(&self, other: &Times) -> f64 {
        let ratios: Vec<f64> =
            self.samples.iter().zip(&other.samples).map(|(mine, other)| mine / other.max(0.01)).collect();
        median(&ratios)
    }
}

/// One direction of one type, or its commit.
#[derive(Default)]
pub struct Contest {
    /// Of all contestants.
    pub times: Vec<Times>,
    /// Of dtc and its fastest peer, where those were measured again because dtc seemed slower.
    pub again: Option<Vec<Times>>,
}

/// What dtc is measured against: not memcpy, which moves other bytes.
const PEERS: [&str; 4] = ["mpich", "openmpi", "loop", "loop_o2"];

impl Contest {
    pub(super) fn of_names(names: impl IntoIterator<Item = &'static str>) -> Contest {
        let times = names.into_iter().map(|name| Times { name, samples: Vec::new() }).collect();
        Contest { times, again: None }
    }

    /// Adds what was found of a contestant in a round.
    pub(super) fn record(&mut self, name: &str, time: Option<f64>) {
        let mine = self.times.iter_mut().filter(|times| times.name == name);
        mine.for_each(|times| times.samples.extend(time));
    }

    /// Forgets who has left the race.
    pub(super) fn retain_complete(&mut self) {
        let complete = self.times.iter().map(|times| times.samples.len()).max().unwrap_or(0);
        self.times.retain(|times| times.samples.len() == complete);
    }

    /// The fastest peer, if its ratio to dtc is below a limit.
    pub(super) fn doubtful(&self, limit: f64) -> Option<&'static str> {
        let fastest = self.fastest(&PEERS)?;
        (fastest.over(self.of("dtc")?) < limit).then_some(fastest.name)
    }

    /// A contestant's times.
    pub fn of(&self, name: &str) -> Option<&Times> {
        self.times.iter().find(|times| times.name == name)
    }

    /// dtc and its fastest peer: as they were measured again, if they were.
    pub fn closest(&self) -> Option<(&Times, &Times)> {
        match self.again.as_deref() {
            Some([dtc, peer]) if dtc.name == "dtc" => Some((dtc, peer)),
            _ => Some((self.of("dtc")?, self.fastest(&PEERS)?)),
        }
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
        let (dtc, peer) = self.closest()?;
        Some(peer.over(dtc))
    }

    /// Nanoseconds that dtc takes beyond the fastest of MPIs and loops: the median of the rounds.
    pub fn beyond_peer(&self) -> Option<f64> {
        let (dtc, peer) = self.closest()?;
        let beyond: Vec<f64> = dtc.samples.iter().zip(&peer.samples).map(|(dtc, peer)| dtc - peer).collect();
        Some(median(&beyond))
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
        for mut times in other.times {
            match self.times.iter_mut().find(|known| known.name == times.name) {
                Some(known) => known.samples.append(&mut times.samples),
                None => self.times.push(times),
            }
        }
        self.again = other.again.or(self.again.take());
    }
}
