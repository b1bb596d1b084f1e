//! The iov list of one element by number: the segment that contains a packed byte, and the begin of a segment.

use super::positions::Positions;
use super::{Edge, Layout, Measure, Node};

/// Looks up segments of [`Positions::segments`] by number: O(depth) for strided nodes, O(log n) for lists.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::{Layout, positions::Positions, segments::SegmentIndex};
/// let layout = Layout::parse("layout lb 0 extent 64 {\n  %0 = dense 2 x i32\n  %1 = stream 3 x 16 of %0\n  root %1\n}")?;
/// let (positions, index) = (Positions::new(&layout), SegmentIndex::new(&layout));
/// assert_eq!(index.segment_at(&positions, 17), Some(2));
/// assert_eq!(index.start_of(&positions, 2), Some(16));
/// // The next element has segments of its own.
/// assert_eq!(index.start_of(&positions, 4), Some(32));
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SegmentIndex {
    /// For lists: number of segments of the node that begin before each entry. Empty for other nodes.
    before: Vec<Vec<u64>>,
}

/// A part of a node, with counts of the segments around it.
struct SegmentedPart {
    /// Index of the part.
    at: u64,
    edge: Edge,
    /// Segments of the node that begin before the part.
    before: u64,
    /// Whether its first segment continues one that began before the part.
    continues: bool,
}

impl SegmentIndex {
    /// Prepares the look-up, in time and memory linear in the lists of the layout.
    pub fn new(layout: &Layout) -> SegmentIndex {
        let counted = |parts: &mut dyn Iterator<Item = Option<Measure>>| {
            let (mut sum, mut end, mut before) = (0u64, None, Vec::new());
            for part in parts {
                before.push(sum);
                if let Some(part) = part.filter(|part| part.size > 0) {
                    sum = sum.saturating_add(part.runs - u64::from(end == Some(part.first)));
                    end = Some(part.last);
                }
            }
            before
        };
        let of = |edge: &Edge| layout.measure(edge.node).shifted(edge.offset);
        let before = layout.nodes().map(|(_, node)| match node {
            Node::Runs { runs, kind } => counted(&mut runs.iter().map(|run| {
                let size = run.count * kind.size();
                let (first, last) = (run.offset, run.offset.wrapping_add(size as i64));
                Some(Measure { size, low: first, high: last, first, last, runs: 1 })
            })),
            Node::Indexed { offsets, child } => counted(&mut offsets.iter().map(|&offset| of(child)?.shifted(offset))),
            Node::Record { parts } => counted(&mut parts.iter().map(of)),
            Node::Dense { .. } | Node::Stream { .. } => Vec::new(),
        });
        SegmentIndex { before: before.collect() }
    }

    /// The number of the segment that contains a packed byte; `None` for a layout without bytes.
    pub fn segment_at(&self, positions: &Positions<'_>, position: u64) -> Option<u64> {
        let layout = positions.layout();
        let element = position.checked_div(layout.size())?;
        let mut rest = position % layout.size();
        let mut edge = layout.root();
        let mut number = element.checked_mul(layout.measure(edge.node).runs)?;
        loop {
            let starts = positions.starts_of(edge.node);
            let part = match layout.node(edge.node) {
                Node::Dense { .. } => return Some(number),
                Node::Stream { child, .. } => {
                    let at = rest / layout.measure(child.node).size;
                    rest %= layout.measure(child.node).size;
                    self.copy(layout, edge, at)
                }
                Node::Indexed { child, .. } => {
                    let at = rest / layout.measure(child.node).size;
                    rest %= layout.measure(child.node).size;
                    self.entry(layout, edge, at)
                }
                Node::Runs { .. } => {
                    let at = starts.partition_point(|&start| start <= rest) as u64 - 1;
                    let part = self.entry(layout, edge, at);
                    return Some(number + part.before - u64::from(part.continues));
                }
                Node::Record { .. } => {
                    let at = starts.partition_point(|&start| start <= rest) - 1;
                    rest -= starts[at];
                    self.entry(layout, edge, at as u64)
                }
            };
            number = number + part.before - u64::from(part.continues);
            edge = part.edge;
        }
    }

    /// The packed position where a segment begins. `None` for a layout without bytes, or if the position does not fit
    /// 64 bits.
    pub fn start_of(&self, positions: &Positions<'_>, number: u64) -> Option<u64> {
        let layout = positions.layout();
        let mut edge = layout.root();
        let runs = layout.measure(edge.node).runs;
        let mut position = number.checked_div(runs)?.checked_mul(layout.size())?;
        let mut rest = number % runs;
        loop {
            let part = match layout.node(edge.node) {
                Node::Dense { .. } => return Some(position),
                Node::Stream { count, child, .. } => {
                    let each = layout.measure(child.node).runs;
                    let begun = each - u64::from(self.copy(layout, edge, 1).continues && *count > 1);
                    let at = if rest < each { 0 } else { 1 + (rest - each) / begun };
                    self.copy(layout, edge, at)
                }
                Node::Runs { .. } | Node::Indexed { .. } | Node::Record { .. } => {
                    let before = &self.before[edge.node.index()];
                    // The last entry before which at most `rest` segments have begun.
                    let at = before.partition_point(|&begun| begun <= rest) as u64 - 1;
                    self.entry(layout, edge, at)
                }
            };
            let starts = positions.starts_of(edge.node);
            let size = layout.measure(part.edge.node).size;
            let start = if starts.is_empty() { part.at.checked_mul(size)? } else { starts[part.at as usize] };
            position = position.checked_add(start)?;
            if matches!(layout.node(edge.node), Node::Runs { .. }) {
                return Some(position);
            }
            rest = rest - part.before + u64::from(part.continues);
            edge = part.edge;
        }
    }

    /// A copy of a stream.
    fn copy(&self, layout: &Layout, edge: Edge, at: u64) -> SegmentedPart {
        let Node::Stream { stride, child, .. } = layout.node(edge.node) else {
            return SegmentedPart { at, edge, before: 0, continues: false };
        };
        let measure = layout.measure(child.node);
        let touching = measure.first.wrapping_add(*stride) == measure.last;
        let begun = measure.runs - u64::from(touching);
        let before = if at == 0 { 0 } else { measure.runs.saturating_add((at - 1).saturating_mul(begun)) };
        SegmentedPart { at, edge: *child, before, continues: touching && at > 0 }
    }

    /// An entry of a list.
    fn entry(&self, layout: &Layout, edge: Edge, at: u64) -> SegmentedPart {
        let before = &self.before[edge.node.index()];
        let index = at as usize;
        let (child, runs) = match layout.node(edge.node) {
            Node::Indexed { child, .. } => (*child, layout.measure(child.node).runs),
            Node::Record { parts } => (parts[index], layout.measure(parts[index].node).runs),
            _ => (edge, 1),
        };
        // All segments of the entry begin in it, except one that continues.
        let begun_behind = before.get(index + 1).copied().unwrap_or(layout.measure(edge.node).runs);
        let continues = begun_behind.saturating_sub(before[index]) < runs;
        SegmentedPart { at, edge: child, before: before[index], continues }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_list() {
        let texts = [
            "%0 = dense 3 x i16\n %1 = stream 4 x 6 of %0\n root %1",
            "%0 = dense 3 x i16\n %1 = stream 4 x -7 of %0\n root %1",
            "%0 = runs [(0 4) (4 2) (20 8)] x byte\n %1 = stream 5 x 28 of %0\n %2 = stream 3 x 200 of %1\n root %2",
            "%0 = runs [(0 4) (8 2) (20 8)] x byte\n %1 = indexed [0 28 100 128 156] of %0\n root 3: %1",
            "%0 = dense 3 x byte\n %1 = runs [(3 1) (9 1)] x byte\n %2 = record []\n
             %3 = record [0: %0, 50: %2, 0: %1, 7: %0, 10: %1]\n %4 = indexed [0 13 40] of %3\n root %4",
            "%0 = dense 3 x byte\n %1 = indexed [0 3 6 12 15] of %0\n %2 = stream 2 x 18 of %1\n root %2",
        ];
        for text in texts {
            let layout = Layout::parse(&format!("layout lb 0 extent 10000 {{\n{text}\n}}")).unwrap();
            let (positions, index) = (Positions::new(&layout), SegmentIndex::new(&layout));
            let runs = layout.measure(layout.root().node).runs;
            let mut position = 0;
            for (number, segment) in positions.segments(0).take(3 * runs as usize).enumerate() {
                assert_eq!(index.start_of(&positions, number as u64), Some(position), "{text}: segment {number}");
                for byte in position..position + segment.bytes {
                    assert_eq!(index.segment_at(&positions, byte), Some(number as u64), "{text}: byte {byte}");
                }
                position += segment.bytes;
            }
        }
    }

    #[test]
    fn huge_streams_cost_nothing() {
        let text = "layout lb 0 extent 1152921504606846976 {
            %0 = dense 3 x byte
            %1 = stream 1000000000 x 4 of %0
            %2 = stream 1000000 x 1000000000000 of %1
            root %2
        }";
        let layout = Layout::parse(text).unwrap();
        let (positions, index) = (Positions::new(&layout), SegmentIndex::new(&layout));
        let number = 999_999 * 1_000_000_000 + 12_345;
        assert_eq!(index.start_of(&positions, number), Some(3 * number));
        assert_eq!(index.segment_at(&positions, 3 * number + 2), Some(number));
    }
}
