//! Numbers from a seed.

/// The output function of SplitMix64.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number that a seed has at an index.
pub fn draw(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Numbers from a seed, one after the other.
pub struct Draws {
    seed: u64,
    next: u64,
}

impl Draws {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Draws {
        Draws { seed, next: 0 }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        draw(self.seed, self.next - 1)
    }

    /// From one number to another, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low + 1)
    }

    /// The same, where numbers of each magnitude are equally likely.
    pub fn about(&mut self, low: u64, high: u64) -> u64 {
        let high = high.max(low);
        let share = self.number() as f64 / 2f64.powi(64);
        let drawn = low as f64 * (high as f64 / low as f64).powf(share);
        (drawn.round() as u64).clamp(low, high)
    }

    /// Whether something happens that does in one of `number` cases.
    pub fn one_in(&mut self, number: u64) -> bool {
        self.between(1, number) == 1
    }

    /// One of several.
    pub fn of<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.between(0, several.len() as u64 - 1) as usize]
    }

    /// A random order of the numbers below `number`.
    pub fn order(&mut self, number: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..number).collect();
        let seed = self.number();
        order.sort_by_cached_key(|&index| draw(seed, index));
        order
    }
}
