//! A group of runs that is repeated at many places becomes a list of the group.
//!
//! The canonical form of a list of structs is the list of its fields. Machines prefer one place for each struct: a kernel knows
//! the fields, and the list is shorter by as many.
//!
//! A group is found by its first gap. With groups of `b` packed bytes, the first run ends at packed byte `e`, and the same gap
//! follows at `e + b`. That holds also if groups touch, so that the last run of one and the first of the next are one maximal run.
//! Each distance from the first gap to a later one of the same width is tried as `b`, the shortest first: groups end at its
//! multiples, and each must have the lengths and the inner gaps of the first.

use super::list_cost;
use super::rewriter::Rewriter;
use super::{Pass, detect_period};
use crate::layout::{Edge, Kind, Node, NodeId, Run};

pub(super) const PASS: Pass = Pass {
    name: "group-runs",
    summary: "a group of runs that is repeated at many places becomes a list of the group, if that is faster",
    rewrite,
};

/// Gaps that are tried as the end of the first group, from each run that a search begins at.
const TRIED_GAPS: usize = 64;

/// Runs of the longest group, over [`TRIED_GAPS`]: a group may have a gap more often than once.
const FARTHEST_GAP: usize = 1024;

/// Comparisons of runs for each run, which keeps the search linear: groups are compared once, those that touch twice, and as much may
/// be tried in vain.
const COMPARISONS: usize = 3;

/// Gaps that are looked at beside one for every two runs: those of groups behind a few other runs in short lists. With them plans of four
/// lists of 243 blocks take 13 us, and of 65,536 blocks 0.1 ms (Zen 4); with one comparison for all purposes they took 0.1 and 0.25 ms.
const LEAST_GAPS: usize = 512;

/// Fewest groups of a list. Fewer are as fast by runs, which need no loop of their own.
const FEWEST_GROUPS: usize = 4;

/// Lists of groups in place of one list of runs, at most: each is a step of a plan.
const MOST_LISTS: usize = 8;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    match rewriter.builder.node(id) {
        Node::Runs { runs, kind: Kind::Byte } => {
            let runs = runs.clone();
            write(rewriter, runs.len(), |at| runs[at])
        }
        Node::Indexed { offsets, child } if offsets.len() >= FEWEST_GROUPS * list_cost::FEWEST_EQUAL_RUNS => {
            let &Node::Dense { count, kind: Kind::Byte } = rewriter.builder.node(child.node) else { return None };
            let (offsets, base) = (offsets.clone(), child.offset);
            write(rewriter, offsets.len(), |at| Run { offset: offsets[at] + base, count })
        }
        _ => None,
    }
}

/// Writes a list of runs as lists of groups, if that is faster.
fn write(rewriter: &mut Rewriter, length: usize, run: impl Fn(usize) -> Run) -> Option<Edge> {
    let parts = divide(&RunSource { length, run })?;
    let mut edges = Vec::with_capacity(parts.len());
    for part in &parts {
        edges.push(match part {
            RunStretch::Runs(runs) => written(rewriter, runs)?,
            RunStretch::Groups { places, group } => {
                let group = written(rewriter, group)?;
                let offsets = places.iter().map(|place| place + group.offset).collect();
                let child = Edge { offset: 0, ..group };
                let node = rewriter.builder.intern(Node::Indexed { offsets, child })?;
                rewriter.settle(Edge { offset: 0, node })
            }
        });
    }
    if let [only] = edges[..] {
        return Some(only);
    }
    let node = rewriter.builder.intern(Node::Record { parts: edges.into() })?;
    Some(Edge { offset: 0, node })
}

/// Runs as a node that begins at offset 0: a stream if they repeat at one distance.
fn written(rewriter: &mut Rewriter, runs: &[Run]) -> Option<Edge> {
    let first = runs[0].offset;
    let based = |at: usize| Run { offset: runs[at].offset - first, ..runs[at] };
    let edge = match runs {
        [only] => rewriter.builder.bytes(0, only.count)?,
        _ => match detect_period::find(runs.len(), based).and_then(|period| period.write(rewriter)) {
            Some(stream) => stream,
            None if runs.iter().all(|run| run.count == runs[0].count) => {
                let child = rewriter.builder.bytes(0, runs[0].count)?;
                let offsets = (0..runs.len()).map(|at| based(at).offset).collect();
                Edge { offset: 0, node: rewriter.builder.intern(Node::Indexed { offsets, child })? }
            }
            None => rewriter.builder.runs((0..runs.len()).map(based).collect())?,
        },
    };
    let edge = rewriter.settle(edge);
    Some(Edge { offset: first + edge.offset, ..edge })
}

/// A stretch of a list of runs.
#[derive(Debug, PartialEq, Eq)]
enum RunStretch {
    /// Runs that are no groups.
    Runs(Vec<Run>),
    /// A group, whose first run is at offset 0, and its places.
    Groups { places: Vec<i64>, group: Vec<Run> },
}

/// A list of runs, which may be blocks of one length.
struct RunSource<F> {
    length: usize,
    run: F,
}

impl<F: Fn(usize) -> Run> RunSource<F> {
    fn run(&self, index: usize) -> Run {
        (self.run)(index)
    }

    /// Bytes of memory between a run and the next.
    fn gap(&self, index: usize) -> i64 {
        let run = self.run(index);
        self.run(index + 1).offset.wrapping_sub(run.offset.wrapping_add(run.count as i64))
    }

    /// What is left of the run that a position is in.
    fn rest(&self, at: Position) -> Run {
        let run = self.run(at.index);
        Run { offset: run.offset + at.within as i64, count: run.count - at.within }
    }

    /// The runs from one position to another.
    fn between(&self, from: Position, to: Position) -> Vec<Run> {
        let end = to.index + usize::from(to.within > 0);
        let cut = |index: usize| {
            let mut run = self.rest(Position { index, within: if index == from.index { from.within } else { 0 } });
            if index == to.index {
                run.count -= self.run(index).count - to.within;
            }
            run
        };
        (from.index..end).map(cut).collect()
    }

    /// The position some bytes behind another, in the same run or at the beginning of the next.
    fn behind(&self, at: Position, bytes: u64) -> Position {
        if at.within + bytes == self.run(at.index).count {
            Position { index: at.index + 1, within: 0 }
        } else {
            Position { within: at.within + bytes, ..at }
        }
    }
}

/// A list of runs as lists of groups and the runs between them, if moving those costs less.
fn divide(runs: &RunSource<impl Fn(usize) -> Run>) -> Option<Vec<RunStretch>> {
    let mut search = Search { comparisons: COMPARISONS * runs.length, gaps: runs.length / 2 + LEAST_GAPS };
    let start = Position { index: 0, within: 0 };
    let (mut parts, mut at, mut alone, mut saved) = (Vec::new(), start, start, 0u64);
    while at.index < runs.length && search.comparisons > 0 && search.gaps > 0 {
        let Some(found) = search.groups_from(runs, at) else {
            at = Position { index: at.index + 1, within: 0 };
            continue;
        };
        saved += found.saved;
        if alone != at {
            parts.push(RunStretch::Runs(runs.between(alone, at)));
        }
        (at, alone) = (found.end, found.end);
        parts.push(RunStretch::Groups { places: found.places, group: found.group });
        if parts.len() > 2 * MOST_LISTS {
            return None;
        }
    }
    let end = Position { index: runs.length, within: 0 };
    if saved > 0 && alone != end {
        parts.push(RunStretch::Runs(runs.between(alone, end)));
    }
    // Each further part is a step of its own.
    (saved > (parts.len() as u64).saturating_sub(1) * list_cost::STRETCH).then_some(parts)
}

/// A byte of a list of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    index: usize,
    /// Bytes of the run before it.
    within: u64,
}

/// Groups that follow each other, and where they end.
struct FoundGroups {
    places: Vec<i64>,
    group: Vec<Run>,
    end: Position,
    /// What moving groups costs less than moving their runs, as [`list_cost`] counts.
    saved: u64,
}

/// What a search may still do.
struct Search {
    /// Comparisons of runs that are left.
    comparisons: usize,
    /// Gaps that may still be looked at.
    gaps: usize,
}

impl Search {
    /// Counts a comparison, if there are any left.
    fn compare(&mut self) -> Option<()> {
        self.comparisons = self.comparisons.checked_sub(1)?;
        Some(())
    }

    /// Counts a gap that is looked at, if any may be.
    fn look(&mut self) -> Option<()> {
        self.gaps = self.gaps.checked_sub(1)?;
        Some(())
    }

    /// The groups that begin at a position, if there are enough.
    fn groups_from(&mut self, runs: &RunSource<impl Fn(usize) -> Run>, at: Position) -> Option<FoundGroups> {
        let last = runs.length.checked_sub(1)?;
        if at.index >= last {
            return None;
        }
        let (first_gap, first) = (runs.gap(at.index), runs.rest(at).count);
        let (mut bytes, mut tried) = (0u64, 0);
        for index in at.index + 1..last.min(at.index + FARTHEST_GAP) {
            self.look()?;
            bytes += runs.run(index).count;
            if runs.gap(index) != first_gap || bytes <= first {
                continue;
            }
            // Most are given up here, before anything is written. The second of two runs may be longer: it may touch the next group.
            let (one, other) = (at.index + 1, index + 1);
            if index > one + 1 && runs.run(one).count != runs.run(other).count {
                continue;
            }
            tried += 1;
            if tried > TRIED_GAPS {
                return None;
            }
            if let Some(found) = self.groups_of(runs, at, bytes) {
                return Some(found);
            }
        }
        None
    }

    /// The groups of `bytes` packed bytes that begin at a position, if there are enough and they cost less than their runs.
    fn groups_of(&mut self, runs: &RunSource<impl Fn(usize) -> Run>, at: Position, bytes: u64) -> Option<FoundGroups> {
        let (mut group, mut end) = (Vec::new(), at);
        let first = runs.rest(at).offset;
        let mut left = bytes;
        while left > 0 {
            self.compare()?;
            let run = runs.rest(end);
            let taken = run.count.min(left);
            group.push(Run { offset: run.offset.wrapping_sub(first), count: taken });
            left -= taken;
            end = runs.behind(end, taken);
        }
        let mut places = vec![first];
        while let Some(next) = self.same_group(runs, end, &group) {
            places.push(runs.rest(end).offset);
            end = next;
        }
        if places.len() < FEWEST_GROUPS {
            return None;
        }
        let cost = list_cost::of_groups(&group, places.len());
        let saved = list_cost::of_list(&runs.between(at, end)).checked_sub(cost).filter(|&saved| saved > 0)?;
        Some(FoundGroups { places, group, end, saved })
    }

    /// The position behind a group like this one, if there is one at a position.
    fn same_group(
        &mut self,
        runs: &RunSource<impl Fn(usize) -> Run>,
        mut at: Position,
        group: &[Run],
    ) -> Option<Position> {
        let first = (at.index < runs.length).then(|| runs.rest(at).offset)?;
        for (index, expected) in group.iter().enumerate() {
            self.compare()?;
            let run = (at.index < runs.length).then(|| runs.rest(at))?;
            // The last run of a group may be one with the first of the next.
            let ends = index + 1 == group.len();
            let fits = run.count == expected.count || ends && run.count > expected.count;
            if !fits || run.offset.wrapping_sub(first) != expected.offset {
                return None;
            }
            at = runs.behind(at, expected.count);
        }
        Some(at)
    }
}
