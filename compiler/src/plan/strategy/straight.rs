//! Which elements thunks move by straight code of their own.
//!
//! A thunk that has the words of an element calls nothing, and has vectors of up to 64 bytes, which kernels have not.

use super::group::WordGroup;
use super::pieces::ShortPieces;
use super::{Level, Strategy};
use crate::plan::Step;

/// Fewest bytes of a word, on average, with which straight code is as fast as a microkernel, which may move several short rows at a time.
const WIDE_WORD_BYTES: u64 = 16;

/// Lengths of rows, in bytes, with which straight code moves several elements that make a nest: up to the longest that a microkernel moves
/// without a loop inside. Shorter ones are shuffled, paired, transposed or prefetched.
const STRAIGHT_ROWS: std::ops::RangeInclusive<u64> = 32..=255;

/// An element that thunks move by straight code.
#[derive(Clone, Debug)]
pub struct Straight {
    /// The words of the element, from the place of the plan's root.
    pub group: WordGroup,
    /// Whether calls for several elements go on from one to the next.
    pub several: bool,
}

impl Strategy<'_> {
    /// The words of an element that a thunk moves by itself; `None` where a microkernel or a kernel is as fast.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::strategy::{Level, Strategy, Target};
    /// use dtc_compiler::plan::Plan;
    /// let rows = |number| format!("layout lb 0 extent 9000 {{\n  %0 = dense 104 x byte\n  %1 = stream {number} x 208 of %0\n  root %1\n}}");
    /// let target = Target { level: Level::Zen4, ..Target::default() };
    /// let straight = |number| Some(Strategy::new(&Plan::new(&Layout::parse(&rows(number)).ok()?), &target, 1).straight()?.group.words().len());
    /// assert_eq!((straight(3), straight(24), straight(25)), (Some(6), Some(48), None));
    /// ```
    pub fn straight(&self) -> Option<Straight> {
        if self.level.instructions() < Level::Avx512 || self.non_temporal {
            return None;
        }
        let (plan, root) = (self.plan, self.plan.root().step);
        let group = WordGroup::new(ShortPieces::straight(plan.steps(), root)?, plan.size_of(root))?;
        if group.bytes() < WIDE_WORD_BYTES * group.words().len() as u64 {
            return None;
        }
        let several = match plan.repeated(2) {
            None => true,
            Some(Step::Rows { bytes, .. } | Step::Planes { bytes, .. }) => STRAIGHT_ROWS.contains(&bytes),
            Some(_) => false,
        };
        Some(Straight { group, several })
    }
}
