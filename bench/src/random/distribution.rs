//! Shares of many figures.

/// Percentiles that are reported, beside the minimum.
pub const PERCENTILES: [f64; 3] = [1.0, 5.0, 50.0];

/// Figures in ascending order.
pub struct Distribution(Vec<f64>);

impl Distribution {
    /// Of figures in any order.
    pub fn new(figures: impl IntoIterator<Item = f64>) -> Distribution {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Distribution(sorted)
    }

    /// How many figures there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The least figure.
    pub fn minimum(&self) -> Option<f64> {
        self.0.first().copied()
    }

    /// The greatest figure.
    pub fn maximum(&self) -> Option<f64> {
        self.0.last().copied()
    }

    /// The figure that `percent` percent of all do not exceed, by the nearest rank: the least of them is the 1st percentile of a hundred.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil().max(1.0) as usize;
        self.0.get(rank - 1).copied()
    }

    /// The share of figures that a bound is not below, in percent.
    pub fn percent_up_to(&self, bound: f64) -> f64 {
        let within = self.0.iter().filter(|figure| **figure <= bound).count();
        within as f64 * 100.0 / self.0.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_figures_of_the_nearest_rank() {
        let hundred = Distribution::new((1..=100).rev().map(f64::from));
        assert_eq!(PERCENTILES.map(|percent| hundred.percentile(percent)), [Some(1.0), Some(5.0), Some(50.0)]);
        assert_eq!((hundred.minimum(), hundred.maximum(), hundred.len()), (Some(1.0), Some(100.0), 100));
        assert_eq!((hundred.percentile(100.0), hundred.percentile(0.0)), (Some(100.0), Some(1.0)));
        let three = Distribution::new([3.0, 1.0, 2.0]);
        assert_eq!(PERCENTILES.map(|percent| three.percentile(percent)), [Some(1.0), Some(1.0), Some(2.0)]);
        assert_eq!(Distribution::new([]).percentile(50.0), None);
    }

    #[test]
    fn bounds_are_met_by_what_equals_them() {
        let four = Distribution::new([8.0, -3.0, 9.0, 2.0]);
        assert_eq!((four.percent_up_to(8.0), four.percent_up_to(-4.0)), (75.0, 0.0));
        assert_eq!(Distribution::new([]).percent_up_to(1.0), 0.0);
    }
}
