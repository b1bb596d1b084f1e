//! Draws byte sequences, and sequences that differ from them slightly.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// A type map as bytes: the displacement of every byte in packed order, and the bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Displacements in packed order.
    pub bytes: Vec<i64>,
    /// Lower bound.
    pub lb: i64,
    /// Bytes from one element of an array to the next.
    pub extent: i64,
}

impl Sequence {
    /// Draws a sequence of at least one byte and about `most` bytes at most.
    ///
    /// Sequences are nested structures, arithmetic patterns, irregular lists, permutations and nearly regular
    /// sequences. They have repeats, overlap, and displacements of both signs.
    pub fn draw(rng: &mut SmallRng, most: usize) -> Sequence {
        let most = log_uniform(rng, most);
        let mut bytes = match rng.random_range(0..10) {
            0..=3 => nest(rng, most),
            4 => nearly_regular(rng, most),
            5 => arithmetic(rng, most),
            6 => irregular_runs(rng, most),
            7 => permuted_blocks(rng, most),
            8 => crossing_periods(rng, most),
            _ => scattered(rng, most),
        };
        if rng.random_bool(0.2) {
            let shift = rng.random_range(-1_000_000_000..=1_000_000_000);
            bytes.iter_mut().for_each(|byte| *byte += shift);
        }
        let low = bytes.iter().copied().min().unwrap_or(0);
        let span = bytes.iter().copied().max().unwrap_or(0) - low + 1;
        let lb = if rng.random_bool(0.5) { low } else { low + rng.random_range(-20..20) };
        let extent = match rng.random_range(0..8) {
            0 => 0,
            1 => -span,
            2 => rng.random_range(1..=span),
            3 => span + rng.random_range(0..100),
            _ => span,
        };
        Sequence { bytes, lb, extent }
    }

    /// Sequences that must be told apart from this one: another pack order of the same bytes, one displacement changed,
    /// one byte more, another extent. The first is missing if no other order exists.
    pub fn partners(&self, rng: &mut SmallRng) -> Vec<(&'static str, Sequence)> {
        let mut partners = Vec::new();
        let count = self.bytes.len();
        if let Some(other) = (1..count).find(|&other| self.bytes[other] != self.bytes[0]) {
            let mut bytes = self.bytes.clone();
            match rng.random_range(0..3) {
                0 => bytes.reverse(),
                1 => bytes.rotate_left(other),
                _ => bytes.swap(0, other),
            }
            if bytes == self.bytes {
                // In a palindrome or a periodic sequence, swapping two unequal bytes still changes the order.
                bytes.swap(0, other);
            }
            partners.push(("another pack order", Sequence { bytes, ..*self }));
        }
        let mut changed = self.clone();
        let at = rng.random_range(0..count);
        changed.bytes[at] += *[-1, 1, 8, -64, 1 << 32].get(rng.random_range(0..5)).unwrap_or(&1);
        partners.push(("one displacement changed", changed));
        let mut longer = self.clone();
        let next = if rng.random_bool(0.5) { longer.bytes[count - 1] + 1 } else { longer.bytes[0] };
        longer.bytes.push(next);
        partners.push(("one byte more", longer));
        let extent = self.extent + if rng.random_bool(0.5) { 1 } else { -1 };
        partners.push(("another extent", Sequence { extent, ..self.clone() }));
        partners
    }
}

/// A random number in `1..=most`, with a uniform logarithm.
pub fn log_uniform(rng: &mut SmallRng, most: usize) -> usize {
    let exponent = rng.random_range(0.0..=(most as f64).ln());
    (f64::exp(exponent) as usize).clamp(1, most)
}

fn run(start: i64, length: i64) -> impl Iterator<Item = i64> {
    start..start + length
}

fn element_size(rng: &mut SmallRng) -> i64 {
    [1, 1, 2, 3, 4, 4, 5, 8, 8, 12, 16, 17][rng.random_range(0..12)]
}

/// A random stride for copies that span `span` bytes.
fn distance(rng: &mut SmallRng, span: i64) -> i64 {
    match rng.random_range(0..12) {
        0 => 0,
        1 => -span,
        2 => rng.random_range(-3 * span..=3 * span),
        3 => rng.random_range(1..=span),
        4 => 4096,
        5..=6 => span,
        7..=9 => (span + rng.random_range(1..=2 * span)).next_multiple_of_8(),
        _ => span + rng.random_range(1..=2 * span),
    }
}

trait NextMultipleOf8 {
    fn next_multiple_of_8(self) -> Self;
}

impl NextMultipleOf8 for i64 {
    fn next_multiple_of_8(self) -> i64 {
        (self + 7) / 8 * 8
    }
}

fn repeat(bytes: &[i64], count: usize, stride: i64) -> Vec<i64> {
    (0..count as i64).flat_map(|copy| bytes.iter().map(move |byte| byte + copy * stride)).collect()
}

/// Runs, repeated and concatenated.
fn nest(rng: &mut SmallRng, most: usize) -> Vec<i64> {
    let mut bytes: Vec<i64> = run(0, element_size(rng).min(most as i64)).collect();
    loop {
        let span = bytes.iter().max().unwrap_or(&0) - bytes.iter().min().unwrap_or(&0) + 1;
        if rng.random_bool(0.75) {
            let count = log_uniform(rng, 20).max(2);
            if bytes.len() * count > most {
                return bytes;
            }
            bytes = repeat(&bytes, count, distance(rng, span));
        } else {
            let piece: Vec<i64> = run(distance(rng, span), element_size(rng)).collect();
            if bytes.len() + piece.len() > most {
                return bytes;
            }
            let at = if rng.random_bool(0.5) { 0 } else { bytes.len() };
            bytes.splice(at..at, piece);
        }
    }
}

/// A nest with one irregularity.
fn nearly_regular(rng: &mut SmallRng, most: usize) -> Vec<i64> {
    let mut bytes = nest(rng, most);
    let at = rng.random_range(0..bytes.len());
    match rng.random_range(0..3) {
        0 if bytes.len() > 1 => {
            bytes.remove(at);
        }
        1 => bytes.insert(at, rng.random_range(-100..100)),
        _ => bytes[at] += rng.random_range(-9..=9),
    }
    bytes
}

/// Elements at a constant stride.
fn arithmetic(rng: &mut SmallRng, most: usize) -> Vec<i64> {
    let size = element_size(rng).min(most as i64);
    let stride = distance(rng, size);
    repeat(&run(0, size).collect::<Vec<_>>(), most / size as usize, stride)
}

/// Runs of differing lengths at ascending displacements.
fn irregular_runs(rng: &mut SmallRng, most: usize) -> Vec<i64> {
    let unit = [1, 1, 4, 8][rng.random_range(0..4)];
    let mut bytes = Vec::new();
    let mut position = 0;
    loop {
        let length = unit * rng.random_range(1..6);
        bytes.extend(run(position, length));
        if bytes.len() > most {
            return bytes;
        }
        position += length + unit * rng.random_range(0..5);
    }
}

/// The blocks of an array in another order.
fn permuted_blocks(rng: &mut SmallRng, most: usize) -> Vec<i64> {
    let size = element_size(rng);
    let mut order: Vec<i64> = (0..(most as i64 / size).max(1)).collect();
    order.shuffle(rng);
    order.into_iter().flat_map(|block| run(block * size, size)).collect()
}

/// Two levels whose runs continue from one iteration into the next.
fn crossing_periods(rng: &mut SmallRng, most: usize) -> Vec<i64> {
    let size = rng.random_range(1..5);
    let inner_stride = size + rng.random_range(1..5);
    let inner_count = rng.random_range(2..5);
    // The next iteration begins where the last run of the current one ends.
    let outer_stride = inner_stride * (inner_count - 1) + size;
    let inner = repeat(&run(0, size).collect::<Vec<_>>(), inner_count as usize, inner_stride);
    repeat(&inner, (most / inner.len()).max(1), outer_stride)
}

/// Single bytes at random displacements.
fn scattered(rng: &mut SmallRng, most: usize) -> Vec<i64> {
    let span = rng.random_range(1..=4 * most as i64);
    (0..most).map(|_| rng.random_range(-span..=span)).collect()
}
