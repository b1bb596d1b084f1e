//! Random draws of the checks.

use rand::Rng;
use rand::rngs::SmallRng;

/// Some byte ranges of a packed stream: whole, empty, at the ends, and random ones.
pub(super) fn fragments(rng: &mut SmallRng, size: usize, how_many: usize) -> Vec<(usize, usize)> {
    let mut fragments = vec![(0, size), (size, size), (0, size.min(1)), (size.saturating_sub(1), size)];
    for _ in 0..how_many {
        let from = rng.random_range(0..=size);
        let longest = if rng.random_bool(0.5) { 40 } else { size };
        fragments.push((from, from + rng.random_range(0..=longest.min(size - from))));
    }
    fragments
}

pub(super) fn random_bytes(rng: &mut SmallRng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes[..]);
    bytes
}
