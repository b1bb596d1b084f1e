//! Runs seeds with a time limit: work that does not end fails with its seed, and does not hang the suite.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Calls `work` with every seed, in order, on one thread.
///
/// # Panics
///
/// As `work` does, and if one seed exceeds the limit; its thread is then abandoned.
pub fn each_seed(seeds: Range<u64>, limit: Duration, mut work: impl FnMut(u64) + Send + 'static) {
    let current = Arc::new(AtomicU64::new(seeds.start));
    let progress = Arc::clone(&current);
    let worker = thread::spawn(move || {
        for seed in seeds {
            progress.store(seed, Ordering::Relaxed);
            work(seed);
        }
    });
    let (mut seed, mut since) = (current.load(Ordering::Relaxed), Instant::now());
    while !worker.is_finished() {
        thread::sleep(Duration::from_millis(2));
        let now = current.load(Ordering::Relaxed);
        if now != seed {
            (seed, since) = (now, Instant::now());
        }
        assert!(since.elapsed() < limit, "seed {seed} has not ended after {limit:?}");
    }
    if let Err(panic) = worker.join() {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_worked_on() {
        let sum = Arc::new(AtomicU64::new(0));
        let total = Arc::clone(&sum);
        each_seed(3..6, Duration::from_secs(60), move |seed| {
            total.fetch_add(seed, Ordering::Relaxed);
        });
        assert_eq!(sum.load(Ordering::Relaxed), 12);
    }

    #[test]
    #[should_panic(expected = "seed 1 has not ended")]
    fn endless_work_is_named() {
        each_seed(0..3, Duration::from_millis(40), |seed| {
            if seed == 1 {
                thread::sleep(Duration::from_secs(5));
            }
        });
    }
}
