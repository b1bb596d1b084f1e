//! The times of peers that move the same bytes, and how they are taken.

use crate::timing::{least, median};

/// How to measure.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Interleaved rounds of each start.
    pub rounds: usize,
    /// How often buffers are allocated and MPIs started anew, so that no figure hangs on where they happened to be.
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

/// The times of one peer, one of each round, in nanoseconds per call.
pub struct Times {
    /// `dtc`, `memcpy`, `limit`, `loop`, `loop_o2`, or a kind of peer.
    pub name: &'static str,
    /// In the order of the rounds.
    pub samples: Vec<f64>,
}

impl Times {
    /// The median.
    pub fn median(&self) -> f64 {
        median(&self.samples)
    }

    /// The shortest.
    fn least(&self) -> f64 {
        least(&self.samples)
    }

    /// The median of how many times as long as another this one took, round by round.
    fn over(&self, other: &Times) -> f64 {
        let ratios: Vec<f64> =
            self.samples.iter().zip(&other.samples).map(|(mine, other)| mine / other.max(0.01)).collect();
        median(&ratios)
    }
}

/// The least nanoseconds of dtc and of its fastest peer.
#[derive(Clone, Copy)]
pub struct Undisturbed {
    /// Of dtc.
    pub dtc: f64,
    /// Of the fastest of MPIs and loops.
    pub fastest: f64,
    /// Which one that is.
    pub name: &'static str,
}

impl Undisturbed {
    /// The fastest peer over dtc.
    pub fn ratio(&self) -> f64 {
        self.fastest / self.dtc.max(0.01)
    }

    /// Nanoseconds of dtc beyond the fastest peer.
    pub fn beyond(&self) -> f64 {
        self.dtc - self.fastest
    }
}

/// One direction of one type, or its commit.
#[derive(Default)]
pub struct Comparison {
    /// Of all peers.
    pub times: Vec<Times>,
    /// Of dtc and its fastest peer, where those were measured again because dtc seemed slower.
    pub again: Option<Vec<Times>>,
}

/// What dtc is measured against: not memcpy, which moves other bytes.
const PEERS: [&str; 4] = ["mpich", "openmpi", "loop", "loop_o2"];

impl Comparison {
    pub(super) fn of_names(names: impl IntoIterator<Item = &'static str>) -> Comparison {
        let times = names.into_iter().map(|name| Times { name, samples: Vec::new() }).collect();
        Comparison { times, again: None }
    }

    /// Adds what was found of a peer in a round.
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
        let found = self.undisturbed()?;
        (found.ratio() < limit).then_some(found.name)
    }

    /// A peer's times.
    pub fn of(&self, name: &str) -> Option<&Times> {
        self.times.iter().find(|times| times.name == name)
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
        Some(self.fastest(&PEERS)?.over(self.of("dtc")?))
    }

    /// dtc and its fastest peer by the least times of the rounds, which other programs disturb less than the medians; as they were
    /// measured again, if they were.
    pub fn undisturbed(&self) -> Option<Undisturbed> {
        let times = self.again.as_ref().unwrap_or(&self.times);
        let of = |name: &str| times.iter().find(|times| times.name == name);
        let fastest =
            PEERS.iter().filter_map(|name| of(name)).min_by(|one, other| one.least().total_cmp(&other.least()))?;
        Some(Undisturbed { dtc: of("dtc")?.least(), fastest: fastest.least(), name: fastest.name })
    }

    /// The hand-written loop over dtc.
    pub fn loop_ratio(&self) -> Option<f64> {
        Some(self.hand_loop()?.over(self.of("dtc")?))
    }

    /// memcpy of the same bytes over dtc.
    pub fn memcpy_ratio(&self) -> Option<f64> {
        Some(self.of("memcpy")?.over(self.of("dtc")?))
    }

    /// What the lines that are touched allow, over dtc.
    pub fn limit_ratio(&self) -> Option<f64> {
        Some(self.of("limit")?.over(self.of("dtc")?))
    }

    /// Adds the rounds of another start.
    pub fn join(&mut self, other: Comparison) {
        for mut times in other.times {
            match self.times.iter_mut().find(|known| known.name == times.name) {
                Some(known) => known.samples.append(&mut times.samples),
                None => self.times.push(times),
            }
        }
        self.again = other.again.or(self.again.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(times: &[(&'static str, &[f64])]) -> Comparison {
        let mut comparison = Comparison::of_names(times.iter().map(|(name, _)| *name));
        for (name, samples) in times {
            samples.iter().for_each(|sample| comparison.record(name, Some(*sample)));
        }
        comparison
    }

    #[test]
    fn what_is_measured_again_counts() {
        let mut found = comparison(&[
            ("dtc", &[10.0, 12.0, 40.0]),
            ("memcpy", &[1.0; 3]),
            ("loop", &[9.0; 3]),
            ("mpich", &[8.0; 3]),
        ]);
        let first = found.undisturbed().unwrap();
        assert_eq!((first.name, first.ratio(), first.beyond()), ("mpich", 0.8, 2.0));
        assert_eq!((found.doubtful(0.95), found.doubtful(0.8)), (Some("mpich"), None));
        found.again = Some(comparison(&[("dtc", &[8.0, 9.0]), ("mpich", &[8.0, 8.5])]).times);
        assert_eq!(found.undisturbed().unwrap().ratio(), 1.0);
        assert_eq!(comparison(&[("dtc", &[1.0]), ("memcpy", &[1.0])]).undisturbed().map(|found| found.name), None);
    }

    #[test]
    fn who_leaves_the_race_has_no_figure() {
        let mut found = comparison(&[("dtc", &[1.0, 2.0]), ("openmpi", &[1.0])]);
        found.retain_complete();
        assert!(found.of("dtc").is_some() && found.of("openmpi").is_none());
    }

    #[test]
    fn long_rounds_are_fewer() {
        let mut settings = Settings { rounds: 9, starts: 1, least: 1e6, sparing: None };
        assert_eq!(settings.rounds_of(1e12), 9);
        settings.sparing = Some(Sparing { longest: 4e8, doubtful: 0.95 });
        assert_eq!([1e6, 8e7, 1e12].map(|round| settings.rounds_of(round)), [9, 5, 3]);
    }
}
