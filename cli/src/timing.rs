//! Measuring calls: as the peers in `bench/` do it.

use std::time::Instant;

/// Nanoseconds per call, of so many calls in a row. One call before the clock starts brings back what others evicted.
pub fn sample(repetitions: u64, mut call: impl FnMut()) -> f64 {
    call();
    let start = Instant::now();
    for _ in 0..repetitions {
        call();
    }
    start.elapsed().as_nanos() as f64 / repetitions as f64
}

/// How many calls take so many nanoseconds.
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

/// The geometric mean; 1 of nothing.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
    }
}
