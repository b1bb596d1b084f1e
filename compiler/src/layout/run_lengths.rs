//! Lengths of the runs of a layout, computed without walking it.

use super::{Edge, Layout, Measure, Node};

/// Lengths of the maximal runs of one element, in bytes; 0 for a layout without bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLengths {
    /// Shortest run.
    pub shortest: u64,
    /// Longest run.
    pub longest: u64,
}

/// The runs of a node: the first and the last, which may join neighbours, and the range of the others.
#[derive(Clone, Copy)]
struct Ends {
    first: u64,
    last: u64,
    /// Whether the first run is also the last.
    single: bool,
    between: Option<(u64, u64)>,
}

/// The range of lengths, extended by `length`.
fn with(range: Option<(u64, u64)>, length: u64) -> Option<(u64, u64)> {
    Some(range.map_or((length, length), |(low, high)| (low.min(length), high.max(length))))
}

impl Ends {
    fn one(length: u64) -> Ends {
        Ends { first: length, last: length, single: true, between: None }
    }

    /// These runs followed by others. If `touching`, the last run of these and the first of `next` are one.
    fn then(self, next: Ends, touching: bool) -> Ends {
        let mut between = match (self.between, next.between) {
            (Some(range), Some((low, high))) => with(with(Some(range), low), high),
            (one, other) => one.or(other),
        };
        let (mut first, mut last) = (self.first, next.last);
        if touching {
            let joined = self.last + next.first;
            match (self.single, next.single) {
                (true, true) => return Ends::one(joined),
                (true, false) => first = joined,
                (false, true) => last = joined,
                (false, false) => between = with(between, joined),
            }
        } else {
            if !self.single {
                between = with(between, self.last);
            }
            if !next.single {
                between = with(between, next.first);
            }
        }
        Ends { first, last, single: false, between }
    }

    fn repeated(self, count: u64, touching: bool) -> Ends {
        match (count, self.single, touching) {
            (0 | 1, _, _) => self,
            (_, true, true) => Ends::one(self.first.saturating_mul(count)),
            (2, _, _) => self.then(self, touching),
            // Between its neighbours, the third copy has the same runs as every further one.
            _ => self.then(self, touching).then(self, touching),
        }
    }

    fn lengths(self) -> RunLengths {
        let range = with(with(self.between, self.first), self.last);
        let (shortest, longest) = range.unwrap_or_default();
        RunLengths { shortest, longest }
    }
}

impl Layout {
    /// The lengths of the maximal runs of one element, as [`Measure::runs`] counts them. Takes time linear in the nodes
    /// and their list entries.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// let layout = Layout::parse("layout lb 0 extent 24 {\n  %0 = runs [(0 3) (8 4) (12 2)] x byte\n  root %0\n}")?;
    /// let lengths = layout.run_lengths();
    /// assert_eq!((lengths.shortest, lengths.longest), (3, 6));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn run_lengths(&self) -> RunLengths {
        let mut ends: Vec<Option<Ends>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let of = |edge: &Edge| ends[edge.node.index()].zip(self.measure(edge.node).shifted(edge.offset));
            let found = match node {
                Node::Dense { count, kind } => Some(Ends::one(count * kind.size())),
                Node::Stream { count, stride, child } => {
                    of(child).map(|(ends, at)| ends.repeated(*count, at.first.wrapping_add(*stride) == at.last))
                }
                Node::Indexed { offsets, child } => {
                    let copy = |&offset: &i64| {
                        let (ends, at) = of(child)?;
                        Some((ends, at.shifted(offset)?))
                    };
                    chain(offsets.iter().filter_map(copy))
                }
                Node::Runs { runs, kind } => chain(runs.iter().map(|run| {
                    let bytes = run.count * kind.size();
                    let (first, last) = (run.offset, run.offset.wrapping_add(bytes as i64));
                    (Ends::one(bytes), Measure { first, last, ..Measure::EMPTY })
                })),
                Node::Record { parts } => chain(parts.iter().filter_map(of)),
            };
            ends.push(found);
        }
        let root = ends.get(self.root.node.index()).copied().flatten();
        root.map_or(RunLengths { shortest: 0, longest: 0 }, Ends::lengths)
    }
}

/// Joins parts in packed order, each with its measure.
fn chain(parts: impl Iterator<Item = (Ends, Measure)>) -> Option<Ends> {
    let joined = parts.reduce(|(all, before), (next, at)| (all.then(next, before.last == at.first), at));
    joined.map(|(ends, _)| ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::positions::Positions;

    #[test]
    fn lengths_are_those_of_the_segments() {
        let texts = [
            "%0 = dense 3 x i16\n %1 = stream 4 x 6 of %0\n root %1",
            "%0 = dense 3 x i16\n %1 = stream 4 x 7 of %0\n root %1",
            "%0 = runs [(0 4) (8 2) (20 8)] x byte\n %1 = stream 5 x 28 of %0\n root %1",
            "%0 = runs [(0 4) (8 2) (20 8)] x byte\n %1 = indexed [0 28 100 128 156] of %0\n root 3: %1",
            "%0 = dense 3 x byte\n %1 = runs [(3 1) (9 1)] x byte\n %2 = record [0: %0, 0: %1, 7: %0]\n root %2",
            "%0 = dense 3 x byte\n %1 = indexed [0 3 6 12 15] of %0\n %2 = stream 2 x 18 of %1\n root %2",
            "%0 = record []\n root %0",
        ];
        for text in texts {
            let layout = Layout::parse(&format!("layout lb 0 extent 10000 {{\n{text}\n}}")).unwrap();
            let positions = Positions::new(&layout);
            let runs = layout.measure(layout.root().node).runs as usize;
            let lengths: Vec<u64> = positions.segments(0).take(runs).map(|segment| segment.bytes).collect();
            let expected = RunLengths {
                shortest: lengths.iter().copied().min().unwrap_or(0),
                longest: lengths.iter().copied().max().unwrap_or(0),
            };
            assert_eq!(layout.run_lengths(), expected, "{text}");
        }
    }
}
