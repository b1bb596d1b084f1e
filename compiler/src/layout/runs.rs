//! The runs of a layout, one after the other.

use super::Layout;
use super::positions::{Segment, next_segment};
use super::walk::Frame;
use std::iter::FusedIterator;

/// The contiguous pieces of memory of one element, in packed order; none continues the one before it.
#[derive(Clone, Debug)]
pub struct Runs {
    layout: Layout,
    stack: Vec<Frame>,
    /// The piece that the last run ended before.
    ahead: Option<Segment>,
}

impl Layout {
    /// The runs of one element, which keep the layout. A run costs time linear in the depth and in the lists that it
    /// crosses, however many copies it merges.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let text = "layout lb 0 extent 16 {\n  %0 = dense 2 x i32\n  %1 = stream 2 x 8 of %0\n  root 4: %1\n}";
    /// let runs: Vec<_> = Layout::parse(text)?.into_runs().map(|run| (run.offset, run.bytes)).collect();
    /// assert_eq!(runs, [(4, 16)]);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn into_runs(self) -> Runs {
        Runs { stack: vec![Frame { edge: self.root, next: 0 }], layout: self, ahead: None }
    }
}

impl Runs {
    fn piece(&mut self) -> Option<Segment> {
        next_segment(&self.layout, &mut self.stack)
    }
}

impl Iterator for Runs {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let mut run = match self.ahead.take() {
            Some(piece) => piece,
            None => self.piece()?,
        };
        while let Some(next) = self.piece() {
            if run.offset.checked_add(run.bytes as i64) != Some(next.offset) {
                self.ahead = Some(next);
                break;
            }
            run.bytes += next.bytes;
        }
        Some(run)
    }
}

impl FusedIterator for Runs {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_copies_that_touch_are_one_run() {
        let text = "layout lb 0 extent 4 {
            %0 = dense 1 x i32
            %1 = stream 1000000000000 x 4 of %0
            %2 = record [-8: %0, 0: %1, 4000000000000: %0]
            root %2
        }";
        let runs: Vec<_> = Layout::parse(text).unwrap().into_runs().map(|run| (run.offset, run.bytes)).collect();
        assert_eq!(runs, [(-8, 4), (0, 4_000_000_000_004)]);
    }
}
