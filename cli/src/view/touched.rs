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
    touched_by(positions.segments_within(0, bytes), unit)
}

/// The units that runs touch, which follow each other among the packed bytes.
pub fn touched_by(segments: impl Iterator<Item = Segment>, unit: u64) -> Vec<TouchedUnit> {
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
    }
}
