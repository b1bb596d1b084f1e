//! A window of memory: what is drawn where copies are interleaved, and the area of one would cover those of others.

use crate::regions::{Content, Entry, Region};
use std::ops::Range;

/// Copies that are looked at for a window.
const MOST_VISITED: u64 = 200_000;

/// Runs of a window.
const MOST_RUNS: usize = 1024;

/// Consecutive bytes of memory that are consecutive among the packed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRun {
    /// Offset in memory.
    pub memory: i64,
    /// Offset among the packed bytes.
    pub packed: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// The search for the runs in a range of memory.
struct Search<'a> {
    regions: &'a [Region],
    range: Range<i64>,
    left: u64,
    found: Vec<WindowRun>,
}

/// The runs of a region in a range of memory, in no order; `None` if they are too many to be drawn, or to be found soon.
pub fn runs_within(regions: &[Region], number: usize, memory: i64, range: Range<i64>) -> Option<Vec<WindowRun>> {
    let mut search = Search { regions, range, left: MOST_VISITED, found: Vec::new() };
    search.descend(number, memory, 0)?;
    Some(search.found)
}

impl Search<'_> {
    /// Descends into a region, whose regions are fewer than the stack has space for. `None` ends the search.
    fn descend(&mut self, number: usize, memory: i64, packed: u64) -> Option<()> {
        let regions = self.regions;
        let region = &regions[number];
        if !self.meets(memory.checked_add(region.low)?, memory.checked_add(region.high)?) {
            return Some(());
        }
        match &region.content {
            Content::Entries { listed, .. } => {
                listed.iter().try_for_each(|entry| self.visit(entry, memory, packed))?;
            }
            Content::Copies { count, stride, first } => {
                for copy in self.copies(memory, *count, *stride, first)? {
                    let shift = i64::try_from(copy).ok()?.checked_mul(*stride)?;
                    self.visit(first, memory.checked_add(shift)?, packed + copy * first.bytes)?;
                }
            }
        }
        Some(())
    }

    fn meets(&self, low: i64, high: i64) -> bool {
        low < self.range.end && high > self.range.start
    }

    fn visit(&mut self, entry: &Entry, memory: i64, packed: u64) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        let (memory, packed) = (memory.checked_add(entry.memory)?, packed + entry.packed);
        if let Some(region) = entry.region {
            return self.descend(region, memory, packed);
        }
        if self.meets(memory, memory.checked_add_unsigned(entry.bytes)?) {
            self.found.push(WindowRun { memory, packed, bytes: entry.bytes });
        }
        (self.found.len() <= MOST_RUNS).then_some(())
    }

    /// The copies whose bounds meet the range.
    fn copies(&self, memory: i64, count: u64, stride: i64, first: &Entry) -> Option<Range<u64>> {
        let bounds = first.region.map_or((0, first.bytes as i64), |number| {
            let region = &self.regions[number];
            (region.low, region.high)
        });
        let at = i128::from(memory) + i128::from(first.memory);
        let (low, high) = (at + i128::from(bounds.0), at + i128::from(bounds.1));
        let (start, end) = (i128::from(self.range.start), i128::from(self.range.end));
        let step = i128::from(stride.unsigned_abs());
        let (from, to) = match stride {
            0 => (0, i128::from(count)),
            1.. => ((start - high).div_euclid(step) + 1, (end - low - 1).div_euclid(step) + 1),
            _ => ((low - end).div_euclid(step) + 1, (high - start - 1).div_euclid(step) + 1),
        };
        let clamped = |copy: i128| u64::try_from(copy.clamp(0, i128::from(count))).ok();
        Some(clamped(from)?..clamped(to)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regions::Regions;
    use dtc_compiler::Pipeline;
    use dtc_compiler::datatype::text;

    #[test]
    fn windows_have_the_runs_of_the_layout() {
        for notation in [
            "struct [1@0 (hvector 2000 1 24 double), 1@8 (hvector 2000 1 24 int), 1@16 (hvector 2000 1 24 char)]",
            "contiguous 40 (resized 0 4 (vector 500 1 40 float))",
            "hvector 900 1 -16 (hvector 2 1 5 short)",
        ] {
            let pipeline = Pipeline::new(text::parse(notation).expect(notation));
            let layout = pipeline.layout();
            let mut regions = Regions::default();
            let root = regions.add(layout);
            let regions = regions.into_regions();
            for start in [layout.true_lb() - 3, 1001, layout.true_ub() - 77] {
                let range = start..start + 400;
                let mut packed = 0;
                let mut expected = Vec::new();
                for run in layout.clone().into_runs() {
                    let end = run.offset + run.bytes as i64;
                    if run.offset < range.end && end > range.start {
                        expected.push(WindowRun { memory: run.offset, packed, bytes: run.bytes });
                    }
                    packed += run.bytes;
                }
                let mut found = runs_within(&regions, root, layout.root().offset, range).expect("a few");
                found.sort_by_key(|run| run.packed);
                assert_eq!(found, expected, "{notation} {start}");
            }
        }
    }
}
