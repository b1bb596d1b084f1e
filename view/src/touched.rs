//! Which units of memory, sectors or cache lines, some packed bytes touch, and what is wanted of each.

use dtc_compiler::layout::positions::{Positions, Segment};
use serde::Serialize;
use std::collections::BTreeMap;

/// Wanted bytes inside a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// First byte, from the begin of the unit.
    pub at: u64,
    /// How many.
    pub bytes: u64,
    /// The packed byte of the first.
    pub packed: u64,
}

/// A unit that is touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TouchedUnit {
    /// Where it begins, in bytes from element 0, which is taken to begin at a unit.
    pub memory: i64,
    /// What is wanted of it.
    pub wanted: Vec<Wanted>,
}

/// The units of `unit` bytes that the first `bytes` packed bytes touch, in the order of memory.
pub fn touched(positions: &Positions<'_>, bytes: u64, unit: u64) -> Vec<TouchedUnit> {
    let segments = positions.segments_within(0, bytes);
    let mut units: BTreeMap<i64, Vec<Wanted>> = BTreeMap::new();
    let mut packed = 0;
    for segment in segments {
        let end = segment.offset.saturating_add(segment.bytes as i64);
        let mut from = segment.offset;
        while from < end {
            let begin = from - from.rem_euclid(unit as i64);
            let to = begin.saturating_add(unit as i64).min(end);
            let wanted = Wanted { at: (from - begin) as u64, bytes: (to - from) as u64, packed };
            packed += wanted.bytes;
            units.entry(begin).or_default().push(wanted);
            from = to;
        }
    }
    units.into_iter().map(|(memory, wanted)| TouchedUnit { memory, wanted }).collect()
}

/// How many units runs touch. Time and memory depend on the number of runs, not on their lengths.
pub fn count_touched(segments: impl Iterator<Item = Segment>, unit: u64) -> u64 {
    let unit_of = |at: i64| at.div_euclid(unit as i64);
    let last = |segment: &Segment| segment.offset.saturating_add_unsigned(segment.bytes - 1);
    let some = segments.filter(|segment| segment.bytes > 0);
    let mut spans: Vec<(i64, i64)> = some.map(|segment| (unit_of(segment.offset), unit_of(last(&segment)))).collect();
    spans.sort_unstable();
    let (mut count, mut counted) = (0, i64::MIN);
    for (first, last) in spans {
        // Neither end is the first of all numbers: a unit has more than one byte.
        let from = first.max(counted.saturating_add(1));
        if from <= last {
            count += from.abs_diff(last) + 1;
            counted = last;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::layout::Layout;

    #[test]
    fn runs_are_cut_at_units() {
        let text = "layout lb 0 extent 200 {\n  %0 = dense 40 x byte\n  %1 = stream 2 x 100 of %0\n  root -8: %1\n}";
        let layout = Layout::parse(text).expect("a layout");
        let units = touched(&Positions::new(&layout), 60, 32);
        let found: Vec<(i64, u64)> =
            units.iter().map(|unit| (unit.memory, unit.wanted.iter().map(|wanted| wanted.bytes).sum())).collect();
        assert_eq!(found, [(-32, 8), (0, 32), (64, 4), (96, 16)]);
        assert_eq!(units[2].wanted, [Wanted { at: 28, bytes: 4, packed: 40 }]);
        assert_eq!(count_touched(Positions::new(&layout).segments_within(0, 60), 32), 4);
    }

    #[test]
    fn units_of_long_and_overlapping_runs_are_counted() {
        let of = |runs: &[(i64, u64)]| count_touched(runs.iter().map(|&(offset, bytes)| Segment { offset, bytes }), 32);
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[(0, 0)]), 0);
        assert_eq!(of(&[(40, 8), (0, 33), (40, 100), (-1, 1)]), 6);
        assert_eq!(of(&[(0, 1 << 62), (1 << 61, 1)]), 1 << 57);
    }
}
