//! Address functions of a layout: packed positions to memory offsets, and the reverse.
//!
//! Positions count packed bytes of a whole call: element `i` of a count begins at position `i * size`.

use super::walk::{Frame, advance_by};
use super::{Edge, Kind, Layout, Node, NodeId, Piece, Run};
use std::borrow::Cow;

/// Looks up positions in a layout: O(depth) for strided nodes, O(log n) for lists of differing lengths.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::{Layout, positions::Positions};
/// let layout = Layout::parse("layout lb 0 extent 64 {\n  %0 = dense 2 x i32\n  %1 = stream 3 x 16 of %0\n  root %1\n}")?;
/// let positions = Positions::new(&layout);
/// assert_eq!(positions.memory_of(9), Some(17));
/// assert_eq!(positions.position_of(17), Some(9));
/// assert_eq!(positions.element_border(6), 4);
/// assert_eq!(positions.contiguous_prefix(1), 8);
/// # Ok::<(), dtc_compiler::TextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    layout: Cow<'a, Layout>,
    /// Packed position of each entry inside a node of runs or a record. Empty for other nodes.
    starts: Vec<Vec<u64>>,
}

/// A contiguous piece of memory in an iov list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its first byte, in bytes from the address of element 0.
    pub offset: i64,
    /// Length in bytes.
    pub bytes: u64,
}

impl<'a> Positions<'a> {
    /// Prepares the look-up, in time and memory linear in the lists of the layout.
    pub fn new(layout: &'a Layout) -> Positions<'a> {
        Positions::of(Cow::Borrowed(layout))
    }

    /// Like [`Positions::new`], for a layout that the look-up owns.
    ///
    /// ```
    /// use dtc_compiler::layout::{Layout, positions::Positions};
    /// fn prepared(text: &str) -> Option<Positions<'static>> {
    ///     Layout::parse(text).ok().map(Positions::owning)
    /// }
    /// let positions = prepared("layout lb 0 extent 8 {\n  %0 = dense 2 x i32\n  root 4: %0\n}").unwrap();
    /// assert_eq!(positions.memory_of(8), Some(12));
    /// ```
    pub fn owning(layout: Layout) -> Positions<'static> {
        Positions::of(Cow::Owned(layout))
    }

    fn of(layout: Cow<'a, Layout>) -> Positions<'a> {
        let prefix = |sizes: &mut dyn Iterator<Item = u64>| {
            sizes
                .scan(0, |sum, size| {
                    let start = *sum;
                    *sum += size;
                    Some(start)
                })
                .collect()
        };
        let starts = layout
            .nodes()
            .map(|(_, node)| match node {
                Node::Runs { runs, kind } => prefix(&mut runs.iter().map(|run| run.count * kind.size())),
                Node::Record { parts } => prefix(&mut parts.iter().map(|part| layout.measure(part.node).size)),
                _ => Vec::new(),
            })
            .collect();
        Positions { layout, starts }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Packed position of each entry inside a node of runs or a record. Empty for other nodes.
    pub(super) fn starts_of(&self, id: NodeId) -> &[u64] {
        &self.starts[id.index()]
    }

    /// Where a packed byte of one element is: the piece that begins at its basic element, and the bytes of that element before it.
    fn piece_at(&self, position: u64) -> Option<(Piece, u64)> {
        let (edge, at, rest) = self.descend(position, |_| false, |_| {})?;
        let (first, count, kind) = match self.layout.node(edge.node) {
            Node::Dense { count, kind } => (0, *count, *kind),
            Node::Runs { runs, kind } => (runs[at].offset, runs[at].count, *kind),
            Node::Stream { .. } | Node::Indexed { .. } | Node::Record { .. } => return None,
        };
        let whole = rest / kind.size();
        let offset = edge.offset + first + (whole * kind.size()) as i64;
        Some((Piece { offset, count: count - whole, kind }, rest % kind.size()))
    }

    /// Descends to a packed byte of one element, to the first node that is to be taken whole, or to one without children. Passes the
    /// nodes above it to `entered`, with their next children. Returns it with its absolute offset, the entry in a list of runs, and the
    /// bytes before the position in the node, or in the entry. `None` in a record without parts.
    fn descend(
        &self,
        position: u64,
        whole: impl Fn(NodeId) -> bool,
        mut entered: impl FnMut(Frame),
    ) -> Option<(Edge, usize, u64)> {
        let mut edge = self.layout.root();
        let mut rest = position;
        let list = |id: NodeId, rest: u64| self.starts[id.index()].partition_point(|&start| start <= rest) - 1;
        while !whole(edge.node) {
            let size_of = |edge: Edge| self.layout.measure(edge.node).size;
            let (at, child) = match self.layout.node(edge.node) {
                Node::Dense { .. } => break,
                Node::Runs { .. } => {
                    let at = list(edge.node, rest);
                    return Some((edge, at, rest - self.starts[edge.node.index()][at]));
                }
                Node::Stream { stride, child, .. } => {
                    let at = rest / size_of(*child);
                    rest %= size_of(*child);
                    (at, Edge { offset: at as i64 * stride + child.offset, ..*child })
                }
                Node::Indexed { offsets, child } => {
                    let at = rest / size_of(*child);
                    rest %= size_of(*child);
                    (at, Edge { offset: offsets[at as usize] + child.offset, ..*child })
                }
                Node::Record { parts } if parts.is_empty() => return None,
                Node::Record { parts } => {
                    let at = list(edge.node, rest);
                    rest -= self.starts[edge.node.index()][at];
                    (at as u64, parts[at])
                }
            };
            entered(Frame { edge, next: at + 1 });
            edge = Edge { offset: edge.offset + child.offset, ..child };
        }
        Some((edge, 0, rest))
    }

    fn split(&self, position: u64) -> Option<(i64, u64)> {
        let size = self.layout.size();
        let element = i64::try_from(position.checked_div(size)?).ok()?;
        Some((element.checked_mul(self.layout.extent())?, position % size))
    }

    /// The memory offset of a packed byte. `None` for a layout without bytes, or if the offset does not fit 64 bits.
    pub fn memory_of(&self, position: u64) -> Option<i64> {
        let (base, within) = self.split(position)?;
        let (piece, skipped) = self.piece_at(within)?;
        base.checked_add(piece.offset)?.checked_add(skipped as i64)
    }

    /// The first packed position of the byte of element 0 at a memory offset; `None` in gaps.
    ///
    /// Costs O(depth) for streams whose copies do not interleave, and otherwise time linear in the lists.
    pub fn position_of(&self, offset: i64) -> Option<u64> {
        let mut best: Option<u64> = None;
        // Candidates: an edge with its absolute offset, and the packed position where its node begins.
        let mut stack = vec![(self.layout.root(), 0u64)];
        while let Some((edge, position)) = stack.pop() {
            let measure = self.layout.measure(edge.node);
            let inside = i128::from(offset) - i128::from(edge.offset);
            let reachable = (i128::from(measure.low)..i128::from(measure.high)).contains(&inside);
            if !reachable || best.is_some_and(|best| best <= position) {
                continue;
            }
            let inside = inside as i64;
            let at = |child: Edge, shift: i64| Edge { offset: edge.offset + shift + child.offset, ..child };
            match self.layout.node(edge.node) {
                Node::Dense { .. } => best = Some(position + inside as u64),
                Node::Runs { runs, kind } => {
                    let starts = &self.starts[edge.node.index()];
                    let hit = runs.iter().zip(starts).find(|(run, _)| {
                        let bytes = (run.count * kind.size()) as i64;
                        (run.offset..run.offset + bytes).contains(&inside)
                    });
                    if let Some((run, start)) = hit {
                        let found = position + start + (inside - run.offset) as u64;
                        best = Some(best.map_or(found, |best| best.min(found)));
                    }
                }
                Node::Stream { count, stride, child } => {
                    let size = self.layout.measure(child.node).size;
                    // The last copy is pushed first, so that the first copy is tried first.
                    for copy in self.copies_around(inside, *count, *stride, *child).rev() {
                        stack.push((at(*child, copy as i64 * stride), position + copy * size));
                    }
                }
                Node::Indexed { offsets, child } => {
                    let size = self.layout.measure(child.node).size;
                    for (copy, &shift) in offsets.iter().enumerate().rev() {
                        stack.push((at(*child, shift), position + copy as u64 * size));
                    }
                }
                Node::Record { parts } => {
                    for (part, start) in parts.iter().zip(&self.starts[edge.node.index()]).rev() {
                        stack.push((at(*part, 0), position + start));
                    }
                }
            }
        }
        best
    }

    /// The copies of a stream whose bounds contain an offset.
    fn copies_around(&self, inside: i64, count: u64, stride: i64, child: Edge) -> std::ops::Range<u64> {
        let measure = self.layout.measure(child.node);
        let low = i128::from(child.offset) + i128::from(measure.low);
        let high = i128::from(child.offset) + i128::from(measure.high);
        let (inside, wide) = (i128::from(inside), i128::from(stride));
        let (from, to) = match stride.signum() {
            0 => (0, 1),
            1 => ((inside - high).div_euclid(wide) + 1, (inside - low).div_euclid(wide) + 1),
            // Copy i covers low + i*stride .. high + i*stride; for a negative stride the bounds are mirrored.
            _ => ((low - inside - 1).div_euclid(-wide) + 1, (high - inside - 1).div_euclid(-wide) + 1),
        };
        let clamp = |copy: i128| copy.clamp(0, i128::from(count)) as u64;
        clamp(from)..clamp(to)
    }

    /// The iov list from a packed byte on, over any number of elements: contiguous segments in packed order, merged
    /// within an element. It is infinite, unless the layout is empty or offsets stop fitting 64 bits.
    ///
    /// A segment costs time linear in the depth and in the lists that it crosses, however many copies it merges.
    pub fn segments(&self, position: u64) -> Segments<'_> {
        self.segments_within(position, u64::MAX)
    }

    /// The iov list of at most `length` packed bytes from `position` on, cut to them. Pieces beyond them are not visited.
    ///
    /// ```
    /// use dtc_compiler::layout::{Layout, positions::{Positions, Segment}};
    /// let text = "layout lb 0 extent 4 {\n  %0 = dense 1 x i32\n  %1 = stream 1000000000000 x 4 of %0\n  root %1\n}";
    /// let layout = Layout::parse(text)?;
    /// let positions = Positions::new(&layout);
    /// assert!(positions.segments_within(3, 10).eq([Segment { offset: 3, bytes: 10 }]));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn segments_within(&self, position: u64, length: u64) -> Segments<'_> {
        let next_position = self.split(position);
        Segments { positions: self, stack: Vec::new(), ahead: None, element: 0, next_position, left: length }
            .started(position)
    }

    /// A position rounded down to the begin of its basic element.
    pub fn element_border(&self, position: u64) -> u64 {
        match self.split(position) {
            Some((_, within)) => position - self.piece_at(within).map_or(0, |(_, skipped)| skipped),
            None => position,
        }
    }

    /// Length in bytes of the contiguous piece at the begin of `count` elements.
    pub fn contiguous_prefix(&self, count: u64) -> u64 {
        let size = self.layout.size();
        if size == 0 || count == 0 {
            return 0;
        }
        match self.layout.contiguous() {
            Some(_) if i128::from(self.layout.extent()) == i128::from(size) => size.saturating_mul(count),
            _ => self.segments(0).next().map_or(0, |segment| segment.bytes),
        }
    }
}

/// The node as one segment, if its bytes are one.
fn whole_segment(layout: &Layout, edge: Edge) -> Option<Segment> {
    let measure = layout.measure(edge.node);
    (measure.runs == 1).then(|| Segment { offset: edge.offset + measure.first, bytes: measure.size })
}

/// What follows in a walk that has come to `stack`: all of a node whose bytes are one segment, or an entry of a list of runs. It may
/// continue the one before it: the last in a copy and the first in the next one, or entries of lists.
#[inline]
pub(super) fn next_segment(layout: &Layout, stack: &mut Vec<Frame>) -> Option<Segment> {
    let listed =
        |base: i64, run: &Run, kind: Kind| Segment { offset: base + run.offset, bytes: run.count * kind.size() };
    advance_by(&layout.nodes, stack, |edge| whole_segment(layout, edge), listed)
}

/// The iterator that [`Positions::segments`] and [`Positions::segments_within`] return.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    positions: &'a Positions<'a>,
    /// The nodes on the path to the segment that follows `ahead`.
    stack: Vec<Frame>,
    ahead: Option<Segment>,
    element: i64,
    next_position: Option<(i64, u64)>,
    /// Packed bytes that are still to be returned.
    left: u64,
}

impl Segments<'_> {
    fn started(mut self, position: u64) -> Self {
        self.element = position.checked_div(self.positions.layout.size()).map_or(0, |element| element as i64);
        self
    }

    /// What follows in the current element.
    fn piece(&mut self) -> Option<Segment> {
        let layout = &*self.positions.layout;
        let base = self.element.checked_mul(layout.extent())?;
        let piece = next_segment(layout, &mut self.stack)?;
        Some(Segment { offset: base.checked_add(piece.offset)?, ..piece })
    }

    /// Begins at a packed byte of an element at an offset.
    fn begin(&mut self, base: i64, position: u64) -> Option<Segment> {
        let (positions, stack) = (self.positions, &mut self.stack);
        let layout = &*positions.layout;
        let whole = |id: NodeId| layout.measure(id).runs == 1;
        let (edge, at, skipped) = positions.descend(position, whole, |frame| stack.push(frame))?;
        let piece = match layout.node(edge.node) {
            _ if whole(edge.node) => whole_segment(layout, edge)?,
            Node::Runs { runs, kind } => {
                stack.push(Frame { edge, next: at as u64 + 1 });
                Segment { offset: edge.offset + runs[at].offset, bytes: runs[at].count * kind.size() }
            }
            _ => return None,
        };
        let offset = base.checked_add(piece.offset)?.checked_add(skipped as i64)?;
        Some(Segment { offset, bytes: piece.bytes - skipped })
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.left == 0 {
            return None;
        }
        if let Some((base, within)) = self.next_position.take() {
            self.ahead = Some(self.begin(base, within)?);
        }
        let mut current = match self.ahead.take() {
            Some(segment) => segment,
            None => {
                self.element = self.element.checked_add(1)?;
                self.stack.clear();
                self.stack.push(Frame { edge: self.positions.layout.root(), next: 0 });
                self.piece()?
            }
        };
        while current.bytes < self.left
            && let Some(next) = self.piece()
        {
            if current.offset.checked_add(current.bytes as i64) == Some(next.offset) {
                current.bytes += next.bytes;
            } else {
                self.ahead = Some(next);
                break;
            }
        }
        current.bytes = current.bytes.min(self.left);
        self.left -= current.bytes;
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Layout {
        let text = "layout lb 0 extent 300 {
            %0 = dense 3 x i16
            %1 = stream 4 x -16 of 2: %0
            %2 = indexed [5 -7 100] of 3: %1
            %3 = runs [(0 3) (40 1) (12 2)] x i32
            %4 = record [9: %2, 150: %3, 210: %0, 216: %0]
            root -33: %4
        }";
        Layout::parse(text).unwrap()
    }

    #[test]
    fn every_position_agrees_with_the_walk() {
        let layout = sample();
        let positions = Positions::new(&layout);
        let map: Vec<i64> = layout.displacements().collect();
        let size = map.len() as u64;
        for (position, &offset) in map.iter().enumerate() {
            assert_eq!(positions.memory_of(position as u64), Some(offset));
            assert_eq!(positions.memory_of(position as u64 + 5 * size), Some(offset + 1500));
            let first = map.iter().position(|&other| other == offset).map(|first| first as u64);
            assert_eq!(positions.position_of(offset), first);
        }
        for offset in -200..400 {
            let first = map.iter().position(|&other| other == offset).map(|first| first as u64);
            assert_eq!(positions.position_of(offset), first, "offset {offset}");
        }
    }

    #[test]
    fn a_position_is_found_at_once_where_endless_pieces_touch() {
        let text = "layout lb 0 extent 4 {
            %0 = dense 1 x i32
            %1 = stream 1152921504606846976 x 4 of %0
            root %1
        }";
        let layout = Layout::parse(text).unwrap();
        let positions = Positions::new(&layout);
        assert_eq!(positions.memory_of(4_000_000_001), Some(4_000_000_001));
    }

    #[test]
    fn endless_pieces_that_touch_are_merged_at_once() {
        // A record, whose copies touch, at the end of one that has a gap: each segment merges the end of one and the begin of the next.
        let text = "layout lb 0 extent 4 {
            %0 = dense 1 x i32
            %1 = stream 1000000000 x 4 of %0
            %2 = record [0: %1, 4000000000: %0]
            %3 = stream 1000000 x 4000000004 of %2
            %4 = runs [(0 1) (4 2)] x i32
            %5 = record [0: %4, 20: %3]
            %6 = stream 4 x 4000000004000020 of %5
            root %6
        }";
        let layout = Layout::parse(text).unwrap();
        let positions = Positions::new(&layout);
        let long = 4_000_000_004_000_000;
        let lengths: Vec<u64> = positions.segments(5).take(6).map(|segment| segment.bytes).collect();
        assert_eq!(lengths, [7, long + 12, long + 12, long + 12, long, 12]);
        assert_eq!(positions.segments(8_000_000_000).next().unwrap().offset, 8_000_000_008);
        assert_eq!(positions.contiguous_prefix(1), 12);
        let plain = Layout::parse(
            "layout lb 0 extent 8 {\n %0 = dense 1 x i32\n %1 = stream 1000000000000 x 4 of %0\n root %1\n}",
        );
        assert_eq!(Positions::new(&plain.unwrap()).contiguous_prefix(3), 4_000_000_000_000);
    }

    #[test]
    fn segments_from_any_byte_cover_the_rest() {
        let layout = sample();
        let positions = Positions::new(&layout);
        let map: Vec<i64> =
            (0..3).flat_map(|element| layout.displacements().map(move |offset| offset + element * 300)).collect();
        for position in 0..map.len() {
            let mut covered = Vec::new();
            for segment in positions.segments(position as u64) {
                covered.extend((0..segment.bytes as i64).map(|byte| segment.offset + byte));
                if covered.len() >= map.len() - position {
                    break;
                }
            }
            assert_eq!(covered[..map.len() - position], map[position..]);
        }
        let merged = positions.segments(0).take_while(|segment| segment.offset < 180).count();
        assert!(merged > 0);
    }

    #[test]
    fn element_borders_round_down() {
        let layout = sample();
        let positions = Positions::new(&layout);
        let mut borders = Vec::new();
        for piece in layout.walk() {
            let start = borders.len() as u64;
            for byte in 0..piece.bytes() {
                borders.push(start + byte / piece.kind.size() * piece.kind.size());
            }
        }
        for (position, &border) in borders.iter().enumerate() {
            assert_eq!(positions.element_border(position as u64), border);
        }
    }
}
