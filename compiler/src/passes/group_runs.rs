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

/// Comparisons of the whole search for each run, which keeps it linear.
const SEARCH_FACTOR: usize = 8;

/// Fewest groups of a list. Fewer are as fast by runs, which need no loop of their own.
const FEWEST_GROUPS: usize = 4;

/// Lists of groups in place of one list of runs, at most: each is a step of a plan.
const MOST_LISTS: usize = 8;

fn rewrite(rewriter: &mut Rewriter, id: NodeId) -> Option<Edge> {
    let list: Vec<Run> = match rewriter.builder.node(id) {
        Node::Runs { runs, kind: Kind::Byte } => runs.to_vec(),
        Node::Indexed { offsets, child } if offsets.len() >= FEWEST_GROUPS * list_cost::FEWEST_EQUAL_RUNS => {
            let &Node::Dense { count, kind: Kind::Byte } = rewriter.builder.node(child.node) else { return None };
            offsets.iter().map(|offset| Run { offset: offset + child.offset, count }).collect()
        }
        _ => return None,
    };
    let parts = divide(&list)?;
    let mut edges = Vec::with_capacity(parts.len());
    for part in &parts {
        edges.push(match part {
            Part::Runs(runs) => written(rewriter, runs)?,
            Part::Groups { places, group } => {
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
enum Part {
    /// Runs that are no groups.
    Runs(Vec<Run>),
    /// A group, whose first run is at offset 0, and its places.
    Groups { places: Vec<i64>, group: Vec<Run> },
}

/// A list of runs as lists of groups and the runs between them, if moving those costs less.
fn divide(runs: &[Run]) -> Option<Vec<Part>> {
    let mut search = Search { budget: SEARCH_FACTOR * runs.len() };
    let (mut parts, mut alone): (Vec<Part>, Vec<Run>) = (Vec::new(), Vec::new());
    let mut at = Position { index: 0, within: 0 };
    let mut saved = 0u64;
    while at.index < runs.len() {
        let Some(found) = search.groups_from(runs, at) else {
            alone.push(rest_of(runs, at));
            at = Position { index: at.index + 1, within: 0 };
            continue;
        };
        saved += found.saved;
        at = found.end;
        if !alone.is_empty() {
            parts.push(Part::Runs(std::mem::take(&mut alone)));
        }
        parts.push(Part::Groups { places: found.places, group: found.group });
        if parts.len() > 2 * MOST_LISTS {
            return None;
        }
    }
    if !alone.is_empty() {
        parts.push(Part::Runs(alone));
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

/// What is left of the run that a position is in.
fn rest_of(runs: &[Run], at: Position) -> Run {
    let run = runs[at.index];
    Run { offset: run.offset + at.within as i64, count: run.count - at.within }
}

/// Groups that follow each other, and where they end.
struct Found {
    places: Vec<i64>,
    group: Vec<Run>,
    end: Position,
    /// What moving groups costs less than moving their runs, as [`list_cost`] counts.
    saved: u64,
}

struct Search {
    /// Comparisons that are left.
    budget: usize,
}

impl Search {
    /// The groups that begin at a position, if there are enough.
    fn groups_from(&mut self, runs: &[Run], at: Position) -> Option<Found> {
        let gap = |index: usize| runs[index + 1].offset.wrapping_sub(runs[index].offset + runs[index].count as i64);
        let last = runs.len().checked_sub(1)?;
        if at.index >= last {
            return None;
        }
        let first_gap = gap(at.index);
        let mut bytes = 0u64;
        let mut tried = 0;
        for index in at.index + 1..last.min(at.index + FARTHEST_GAP) {
            self.budget = self.budget.checked_sub(1)?;
            bytes += runs[index].count;
            if gap(index) != first_gap || bytes <= rest_of(runs, at).count {
                continue;
            }
            // Most are given up here, before anything is written. The second of two runs may be longer: it may touch the next group.
            let (one, other) = (at.index + 1, index + 1);
            if index > one + 1 && runs[one].count != runs[other].count {
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
    fn groups_of(&mut self, runs: &[Run], at: Position, bytes: u64) -> Option<Found> {
        let (mut group, mut end) = (Vec::new(), at);
        let first = rest_of(runs, at).offset;
        let mut left = bytes;
        while left > 0 {
            self.budget = self.budget.checked_sub(1)?;
            let run = rest_of(runs, end);
            let taken = run.count.min(left);
            group.push(Run { offset: run.offset.wrapping_sub(first), count: taken });
            left -= taken;
            end = behind(runs, end, taken);
        }
        let mut places = vec![first];
        while let Some(next) = self.same_group(runs, end, &group) {
            places.push(rest_of(runs, end).offset);
            end = next;
        }
        let moved = &runs[at.index..end.index + usize::from(end.within > 0)];
        let cost = list_cost::of_groups(&group, places.len());
        let saved = list_cost::of_list(moved).checked_sub(cost).filter(|&saved| saved > 0)?;
        (places.len() >= FEWEST_GROUPS).then_some(Found { places, group, end, saved })
    }

    /// The position behind a group like this one, if there is one at a position.
    fn same_group(&mut self, runs: &[Run], mut at: Position, group: &[Run]) -> Option<Position> {
        let first = (at.index < runs.len()).then(|| rest_of(runs, at).offset)?;
        for (index, expected) in group.iter().enumerate() {
            self.budget = self.budget.checked_sub(1)?;
            let run = (at.index < runs.len()).then(|| rest_of(runs, at))?;
            let ends = index + 1 < group.len();
            // The last run of a group may be one with the first of the next.
            let fits = if ends { run.count == expected.count } else { run.count >= expected.count };
            if !fits || run.offset.wrapping_sub(first) != expected.offset {
                return None;
            }
            at = behind(runs, at, expected.count);
        }
        Some(at)
    }
}

/// The position some bytes behind another, in the same run or at the beginning of the next.
fn behind(runs: &[Run], at: Position, bytes: u64) -> Position {
    if at.within + bytes == runs[at.index].count {
        Position { index: at.index + 1, within: 0 }
    } else {
        Position { within: at.within + bytes, ..at }
    }
}
