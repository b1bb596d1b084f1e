//! The colours of packed order, from the first byte to the last: equally light, so that they stand on light and on dark ground.

/// Red, green and blue at equal steps: hues from blue over green and orange to magenta in OKLCH, lightness 0.60 to 0.82.
pub const STOPS: [[u8; 3]; 11] = [
    [91, 125, 235],
    [46, 162, 229],
    [45, 184, 204],
    [66, 195, 166],
    [113, 205, 118],
    [190, 204, 64],
    [236, 190, 36],
    [247, 157, 52],
    [243, 115, 68],
    [232, 77, 102],
    [209, 61, 145],
];

/// The colour at a share of the way, in the notation of CSS.
pub fn colour(share: f64) -> String {
    let at = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let stop = (at as usize).min(STOPS.len() - 2);
    let part = at - stop as f64;
    let mixed = |channel: usize| {
        let (from, to) = (f64::from(STOPS[stop][channel]), f64::from(STOPS[stop + 1][channel]));
        (from + (to - from) * part).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", mixed(0), mixed(1), mixed(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_mixed_between_stops() {
        assert_eq!([colour(0.0), colour(1.0)], ["#5b7deb", "#d13d91"]);
        assert_eq!(colour(0.05), "#4590e8");
    }
}
