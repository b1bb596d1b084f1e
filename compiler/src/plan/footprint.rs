//! How much of a cache a transfer takes.

use super::Plan;
use super::step::{Offsets, Step};
use smallvec::SmallVec;

/// Bytes of a cache line.
const LINE: u64 = 64;

impl Plan {
    /// Bytes of cache that moving one element takes, about: the lines that its blocks are in, and the packed bytes.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let text = "layout lb 0 extent 8000 {\n  %0 = dense 8 x byte\n  %1 = stream 10 x 800 of %0\n  root %1\n}";
    /// assert_eq!(Plan::new(&Layout::parse(text)?).footprint(), 10 * 64 + 80);
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn footprint(&self) -> u64 {
        let mut lines: SmallVec<[u64; 32]> = SmallVec::with_capacity(self.steps.len());
        for step in &self.steps {
            let of_step = match step {
                Step::Nothing => 0,
                Step::Copy { bytes } => block(*bytes),
                Step::Rows { rows, stride, bytes } => strided(*rows, *stride, block(*bytes)),
                Step::Planes { planes, plane_stride, rows, stride, bytes } => {
                    strided(*planes, *plane_stride, strided(*rows, *stride, block(*bytes)))
                }
                Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride, bytes } => {
                    let layer = strided(*layers, *layer_stride, strided(*rows, *stride, block(*bytes)));
                    strided(*planes, *plane_stride, layer)
                }
                Step::List { offsets, bytes } => listed(offsets, block(*bytes)),
                Step::Runs(table) => table.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(block(run.count))),
                Step::Repeat { count, stride, body } => strided(*count, *stride, lines[body.index()]),
                Step::Scatter { offsets, body } => (offsets.len() as u64).saturating_mul(lines[body.index()]),
                Step::Sequence { parts } => {
                    parts.iter().fold(0, |sum: u64, part| sum.saturating_add(lines[part.step.index()]))
                }
            };
            lines.push(of_step);
        }
        lines[self.root.step.index()].saturating_mul(LINE).saturating_add(self.size)
    }
}

/// Lines of a block of `bytes` bytes.
fn block(bytes: u64) -> u64 {
    bytes.div_ceil(LINE)
}

/// Lines of copies at a stride; neighbours share them.
fn strided(count: u64, stride: i64, body: u64) -> u64 {
    let apart = count.saturating_mul(body);
    match stride.unsigned_abs() {
        0 => body,
        step if step < LINE => apart.min((count.saturating_mul(step) / LINE).saturating_add(body)),
        _ => apart,
    }
}

/// Lines of blocks at listed offsets, which are between the least and the greatest of them.
fn listed(offsets: &Offsets, body: u64) -> u64 {
    let bounds = match offsets {
        Offsets::Narrow(list) => {
            list.iter().fold((0i64, 0i64), |(low, high), &at| (low.min(at.into()), high.max(at.into())))
        }
        Offsets::Wide(list) => list.iter().fold((0, 0), |(low, high), &at| (low.min(at), high.max(at))),
    };
    let between = bounds.1.abs_diff(bounds.0) / LINE;
    (offsets.len() as u64).saturating_mul(body).min(between.saturating_add(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    fn of(nodes: &str) -> u64 {
        let text = format!("layout lb 0 extent 8 {{\n{nodes}\n}}");
        Plan::new(&Layout::parse(&text).unwrap()).footprint()
    }

    #[test]
    fn lines_are_counted_once() {
        // One line for each row, and the packed bytes.
        assert_eq!(of("  %0 = dense 8 x byte\n  %1 = stream 100 x 1000 of %0\n  root %1"), 100 * 64 + 800);
        // Neighbours in 1,600 bytes.
        assert_eq!(of("  %0 = dense 8 x byte\n  %1 = stream 100 x 16 of %0\n  root %1"), 26 * 64 + 800);
        // A list within three lines.
        assert_eq!(of("  %0 = dense 8 x byte\n  %1 = indexed [40 0 90 16 60] of %0\n  root %1"), 2 * 64 + 40);
    }
}
