//! Where a packed byte lies in memory, and how far memory is contiguous from there.

use super::program::Program;
use dtc_compiler::plan::{Part, Step};

/// A piece of memory whose bytes are neighbours in the packed bytes, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Of its first byte, in bytes from the address that element 0 is applied to.
    pub(crate) offset: i64,
    /// Length in bytes.
    pub(crate) bytes: u64,
}

impl Program {
    /// The run from a packed byte on. A type without gaps is one run for any count; otherwise runs end with the step that
    /// moves them, so the next one may continue it. Costs O(depth), and O(log n) for lists of differing lengths.
    pub(crate) fn run_at(&self, position: u64) -> Run {
        let plan = self.plan();
        let Part { offset, step: mut id, .. } = plan.root();
        if self.is_contiguous() {
            return Run { offset: offset + position as i64, bytes: u64::MAX };
        }
        let Some(element) = position.checked_div(plan.size()) else { return Run { offset: 0, bytes: 0 } };
        let mut offset = offset.wrapping_add((element as i64).wrapping_mul(plan.extent()));
        let mut rest = position % plan.size();
        let at = |index: u64, stride: i64| (index as i64).wrapping_mul(stride);
        loop {
            let (block, bytes) = match plan.step(id) {
                Step::Nothing => (0, 0),
                Step::Copy { bytes } => (0, *bytes),
                Step::Rows { stride, bytes, .. } => (at(rest / bytes, *stride), *bytes),
                Step::Planes { plane_stride, rows, stride, bytes, .. } => {
                    let row = rest / bytes;
                    (at(row / rows, *plane_stride) + at(row % rows, *stride), *bytes)
                }
                Step::Tile { plane_stride, layers, layer_stride, rows, stride, bytes, .. } => {
                    let (row, layer) = (rest / bytes, rest / bytes / rows);
                    let layer_offset = at(layer / layers, *plane_stride) + at(layer % layers, *layer_stride);
                    (layer_offset + at(row % rows, *stride), *bytes)
                }
                Step::List { offsets, bytes } => (offsets.get((rest / bytes) as usize), *bytes),
                Step::Runs(table) => {
                    let index = table.positions.partition_point(|&position| position <= rest) - 1;
                    rest -= table.positions[index];
                    (table.runs[index].offset, table.runs[index].count)
                }
                Step::Repeat { stride, body, .. } => {
                    let size = plan.size_of(*body);
                    (offset, rest, id) = (offset.wrapping_add(at(rest / size, *stride)), rest % size, *body);
                    continue;
                }
                Step::Scatter { offsets, body } => {
                    let size = plan.size_of(*body);
                    offset = offset.wrapping_add(offsets.get((rest / size) as usize));
                    (rest, id) = (rest % size, *body);
                    continue;
                }
                Step::Sequence { parts } => {
                    let part = parts[parts.partition_point(|part| part.position <= rest) - 1];
                    (offset, rest, id) = (offset.wrapping_add(part.offset), rest - part.position, part.step);
                    continue;
                }
            };
            let within = rest.checked_rem(bytes).unwrap_or(0);
            return Run { offset: offset.wrapping_add(block).wrapping_add(within as i64), bytes: bytes - within };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::layout::Layout;
    use dtc_compiler::plan::{Plan, Target};

    /// Every byte of three elements, by the reference walker.
    fn check(text: &str) {
        let layout = dtc_compiler::canonicalise(&Layout::parse(text).unwrap()).layout;
        let program = Program::new(Plan::new(&layout), &Target::default());
        let (one, extent): (Vec<i64>, i64) = (layout.displacements().collect(), layout.extent());
        let element = |at: i64| one.iter().map(move |byte| byte + at * extent);
        let bytes: Vec<i64> = (0..3).flat_map(element).collect();
        for position in 0..bytes.len() {
            let run = program.run_at(position as u64);
            assert!(run.bytes > 0, "{text}");
            let length = (run.bytes as usize).min(bytes.len() - position);
            let expected: Vec<i64> = (run.offset..).take(length).collect();
            assert_eq!(bytes[position..position + length], expected, "{text} at {position}");
        }
    }

    #[test]
    fn runs_are_where_the_bytes_are() {
        let layout = |extent: i64, nodes: &str| format!("layout lb 0 extent {extent} {{\n{nodes}\n}}");
        check(&layout(8, "  %0 = dense 8 x byte\n  root %0"));
        check(&layout(9, "  %0 = dense 8 x byte\n  root 5: %0"));
        check(&layout(-40, "  %0 = dense 3 x byte\n  %1 = stream 5 x -7 of %0\n  root %1"));
        check(&layout(
            500,
            "  %0 = dense 3 x byte\n  %1 = stream 5 x 7 of %0\n  %2 = stream 4 x 100 of %1\n  root 1: %2",
        ));
        check(&layout(4, "  %0 = dense 4 x byte\n  %1 = stream 40 x 160 of %0\n  %2 = stream 40 x 4 of %1\n  root %2"));
        check(&layout(90, "  %0 = dense 3 x byte\n  %1 = indexed [40 0 7 31] of %0\n  root %1"));
        check(&layout(90, "  %0 = runs [(40 2) (0 5) (7 1) (31 9)] x byte\n  root 3: %0"));
        let lists = "  %0 = runs [(0 2) (5 3)] x byte\n  %1 = stream 7 x 11 of %0\n  %2 = dense 5 x byte\n";
        check(&layout(400, &format!("{lists}  %3 = record [300: %1, 0: %2, 101: %1]\n  root %3")));
        check(&layout(900, &format!("{lists}  %3 = indexed [300 0 81 500] of %1\n  root %3")));
    }
}
