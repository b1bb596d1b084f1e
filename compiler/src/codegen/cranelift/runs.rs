//! Straight code for tables of runs.

use super::emit::{Emitter, Place};
use crate::plan::{Direction, RunTable};

/// Longest word of Cranelift, in bytes.
const WIDEST: u64 = 16;

/// Bytes of the smallest page, which is what memory is mapped by.
const PAGE: i64 = 4 << 10;

impl Emitter<'_, '_> {
    /// The runs of a table, one after the other. A pack moves short ones as whole words where it can: the runs behind are packed over
    /// the bytes too many.
    pub(super) fn straight_runs(&mut self, table: &RunTable, place: Place) {
        let size = table.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.count));
        for (run, &position) in table.runs.iter().zip(table.positions.iter()) {
            let word = run.count.next_power_of_two();
            let is_whole = self.direction == Direction::Pack
                && run.count > 2
                && word <= WIDEST
                && position.saturating_add(word) <= size
                && is_mapped(table, run.offset, run.count, word);
            self.copy(if is_whole { word } else { run.count }, place.further(run.offset, position));
        }
    }
}

/// Whether a word at a run of `count` bytes is in pages with runs: between two bytes of runs that are no more than a page apart, each page
/// has one of them.
fn is_mapped(table: &RunTable, offset: i64, count: u64, word: u64) -> bool {
    let (behind, last) = (offset.saturating_add(count as i64), offset.saturating_add(word as i64 - 1));
    table.runs.iter().any(|run| {
        run.offset >= behind
            && run.offset < behind.saturating_add(PAGE)
            && run.offset.saturating_add(run.count as i64) > last
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::plan::{Plan, Step};

    /// Whether each run of a table can be loaded as a word that is the next power of two.
    fn mapped(runs: &str) -> Vec<bool> {
        let layout =
            Layout::parse(&format!("layout lb 0 extent 100000 {{\n  %0 = runs [{runs}] x byte\n  root %0\n}}"));
        let plan = Plan::new(&layout.unwrap());
        let Step::Runs(table) = plan.step(plan.root().step) else { panic!("no runs: {plan}") };
        table.runs.iter().map(|run| is_mapped(table, run.offset, run.count, run.count.next_power_of_two())).collect()
    }

    #[test]
    fn words_end_within_a_page_of_bytes_that_are_moved() {
        assert_eq!(mapped("(0 6) (8 3) (20 12)"), [true, true, false]);
        // The word reaches beyond the next run, and beyond all of them.
        assert_eq!(mapped("(0 9) (11 2) (14 5)"), [true, true, false]);
        assert_eq!(mapped("(0 9) (11 2)"), [false, false]);
        // Another order in memory.
        assert_eq!(mapped("(50 6) (0 7) (20 3)"), [false, true, true]);
        // The next run begins a page on, or more.
        assert_eq!(mapped("(0 6) (4101 3)"), [true, false]);
        assert_eq!(mapped("(0 6) (4102 3)"), [false, false]);
    }
}
