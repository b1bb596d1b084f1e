//! Measuring calls: as the peers in `bench/` do it.

use std::time::{Duration, Instant};

/// Nanoseconds per call, over `repetitions` calls in a row. One call before the clock starts fills the caches.
pub fn sample(repetitions: u64, mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    for _ in 0..repetitions {
        call();
    }
    start.elapsed().as_nanos() as f64 / repetitions as f64
}

/// How many calls take at least `least` nanoseconds.
pub fn repetitions(least: f64, mut call: impl FnMut()) -> u64 {
    let mut repetitions = 1;
    loop {
        let nanoseconds = sample(repetitions, &mut call) * repetitions as f64;
        if nanoseconds >= least / 4.0 {
            let wanted = repetitions as f64 * least / nanoseconds.max(1.0);
            return wanted.ceil().max(1.0) as u64;
        }
        repetitions *= 4;
    }
}

/// The middle one; the mean of the middle two of an even number; 0 of none.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[length / 2],
        length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
    }
}

/// The shortest; 0 of none. On a machine where other programs run, what others did not disturb.
pub fn least(samples: &[f64]) -> f64 {
    samples.iter().copied().reduce(f64::min).unwrap_or(0.0)
}

/// By which share of the shortest sample the median is longer: 0 on a machine that does nothing else.
pub fn spread(samples: &[f64]) -> f64 {
    match least(samples) {
        least if least > 0.0 => median(samples) / least - 1.0,
        _ => 0.0,
    }
}

/// A spread beyond this share says that something else ran on the machine.
pub const NOISY: f64 = 0.15;

/// Interleaved rounds: as many as have a good chance to be undisturbed, fewer of calls that take long.
pub struct Rounds {
    start: Instant,
    done: usize,
}

impl Rounds {
    const LEAST: usize = 5;
    const MOST: usize = 40;
    const TIME: Duration = Duration::from_millis(500);

    /// Starts the clock.
    pub fn start() -> Rounds {
        Rounds { start: Instant::now(), done: 0 }
    }
}

impl Iterator for Rounds {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let more = self.done < Self::LEAST || self.done < Self::MOST && self.start.elapsed() < Self::TIME;
        self.done += usize::from(more);
        more.then_some(self.done)
    }
}

/// The geometric mean; 1 of nothing.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_shares_of_the_shortest() {
        assert_eq!(least(&[3.0, 2.0, 4.0]), 2.0);
        assert_eq!(spread(&[3.0, 2.0, 4.0]), 0.5);
        assert_eq!((least(&[]), spread(&[])), (0.0, 0.0));
        assert!((Rounds::LEAST..=Rounds::MOST).contains(&Rounds::start().count()));
    }

    #[test]
    fn middles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
    }
}
