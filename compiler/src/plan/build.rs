//! From canonical layouts to steps.

use super::cost::{INLINE_BYTES, decide};
use super::{Offsets, Part, Plan, RunTable, Step, StepId};
use crate::layout::{Kind, Layout, Node, NodeId, Run};
use crate::passes;
use std::collections::HashMap;

/// Planes closer than a cache line share lines that rows further apart than this would fetch again and again.
const FAR: u64 = 256;
const LINE: u64 = 64;

/// A loop around a nest of at most so many blocks costs as much as the nest.
const SHORT_NEST: u64 = 64;

/// So many blocks at most are listed instead: list and lines stay in the first-level cache, even where another load shares it.
const LISTED_BLOCKS: u64 = 512;

pub(super) fn plan(layout: &Layout) -> Plan {
    let regular = passes::regularise_for_cpu(layout);
    let mut builder = Builder { layout: &regular, steps: Vec::new(), sizes: Vec::new(), displaced: HashMap::new() };
    let mut planned: Vec<StepId> = Vec::with_capacity(regular.nodes().len());
    for (id, node) in regular.nodes() {
        let step = builder.step(node, &planned);
        planned.push(builder.add(step, regular.measure(id).size));
    }
    let root = regular.root();
    let root = Part { offset: root.offset, position: 0, step: planned[root.node.index()] };
    let (steps, sizes, root) = builder.reached_from(root);
    let mut plan =
        Plan { steps, sizes, root, size: layout.size(), extent: layout.extent(), decision: super::Decision::GENERIC };
    plan.decision = decide(&plan);
    plan
}

struct Builder<'a> {
    layout: &'a Layout,
    steps: Vec<Step>,
    sizes: Vec<u64>,
    displaced: HashMap<(NodeId, i64), StepId>,
}

impl Builder<'_> {
    fn add(&mut self, step: Step, size: u64) -> StepId {
        let id = StepId(self.steps.len() as u32);
        self.steps.push(step);
        self.sizes.push(size);
        id
    }

    /// The steps without bodies that have become part of those around them.
    fn reached_from(self, root: Part) -> (Vec<Step>, Vec<u64>, Part) {
        let mut reached = vec![false; self.steps.len()];
        reached[root.step.index()] = true;
        for index in (0..self.steps.len()).rev() {
            if reached[index] {
                self.steps[index].bodies().iter().for_each(|body| reached[body.index()] = true);
            }
        }
        let mut renamed = Vec::with_capacity(self.steps.len());
        let (mut steps, mut sizes) = (Vec::new(), Vec::new());
        for ((mut step, size), reached) in self.steps.into_iter().zip(self.sizes).zip(reached) {
            renamed.push(StepId(steps.len() as u32));
            if reached {
                step.rename_bodies(&renamed);
                steps.push(step);
                sizes.push(size);
            }
        }
        (steps, sizes, Part { step: renamed[root.step.index()], ..root })
    }

    fn step(&mut self, node: &Node, planned: &[StepId]) -> Step {
        match node {
            Node::Dense { count, kind } => Step::Copy { bytes: count * kind.size() },
            Node::Stream { count, stride, child } => {
                let (count, stride) = (*count, *stride);
                let body = self.at_origin(child.node, child.offset, planned);
                let step = &self.steps[body.index()];
                // A list that repeats was found as such: its offsets are read once.
                let in_loop = matches!(self.layout.node(child.node), Node::Stream { .. });
                let one_list = || in_loop.then(|| listed(step, count, stride))?;
                repeat(step, count, stride).or_else(one_list).unwrap_or(Step::Repeat { count, stride, body })
            }
            Node::Indexed { offsets, child } => {
                let (offsets, body) = (Offsets::new(offsets, child.offset), planned[child.node.index()]);
                match self.steps[body.index()] {
                    Step::Copy { bytes } => Step::List { offsets, bytes },
                    _ => Step::Scatter { offsets, body },
                }
            }
            Node::Runs { runs, kind } => {
                let in_bytes = |run: &Run| Run { count: run.count * kind.size(), ..*run };
                // Canonical layouts count in bytes: the list is theirs.
                let runs = if *kind == Kind::Byte { runs.clone() } else { runs.iter().map(in_bytes).collect() };
                let positions = prefix_sums(runs.iter().map(|run| run.count));
                Step::Runs(RunTable { runs, positions })
            }
            Node::Record { parts } if parts.is_empty() => Step::Nothing,
            Node::Record { parts } => {
                let positions = prefix_sums(parts.iter().map(|part| self.layout.measure(part.node).size));
                let parts = parts.iter().zip(positions.iter()).map(|(part, &position)| Part {
                    offset: part.offset,
                    position,
                    step: planned[part.node.index()],
                });
                Step::Sequence { parts: parts.collect() }
            }
        }
    }

    /// The step of a child that is displaced inside a stream: canonical layouts have none, others become a sequence of
    /// one.
    fn at_origin(&mut self, node: NodeId, offset: i64, planned: &[StepId]) -> StepId {
        let step = planned[node.index()];
        if offset == 0 {
            return step;
        }
        if let Some(&known) = self.displaced.get(&(node, offset)) {
            return known;
        }
        let size = self.sizes[step.index()];
        let displaced = self.add(Step::Sequence { parts: [Part { offset, position: 0, step }].into() }, size);
        self.displaced.insert((node, offset), displaced);
        displaced
    }
}

fn prefix_sums(sizes: impl Iterator<Item = u64>) -> std::sync::Arc<[u64]> {
    let mut sum = 0;
    // Mapped, not scanned: so the list is as long as the sizes are, and written once.
    let start = |size| {
        let start = sum;
        sum += size;
        start
    };
    sizes.map(start).collect()
}

/// A step repeated at a stride, as one step, if there is one.
pub(super) fn repeat(body: &Step, count: u64, stride: i64) -> Option<Step> {
    if count == 1 {
        return Some(body.clone());
    }
    let continues = |length: u64, step: i64| i128::from(stride) == i128::from(length) * i128::from(step);
    match *body {
        Step::Nothing => Some(Step::Nothing),
        Step::Copy { bytes } if continues(bytes, 1) => Some(Step::Copy { bytes: count.checked_mul(bytes)? }),
        Step::Copy { bytes } => Some(Step::Rows { rows: count, stride, bytes }),
        Step::Rows { rows, stride: step, bytes } if continues(rows, step) => {
            Some(Step::Rows { rows: count.checked_mul(rows)?, stride: step, bytes })
        }
        Step::Rows { rows, stride: step, bytes } => Some(nest(count, stride, rows, step, bytes)),
        Step::Planes { planes, plane_stride, rows, stride: step, bytes } if continues(planes, plane_stride) => {
            Some(Step::Planes { planes: count.checked_mul(planes)?, plane_stride, rows, stride: step, bytes })
        }
        // The level between becomes the layers of a tile.
        Step::Planes { planes, plane_stride, rows, stride: step, bytes }
            if transposes(count, stride, rows, step, bytes) =>
        {
            Some(Step::Tile {
                planes: count,
                plane_stride: stride,
                layers: planes,
                layer_stride: plane_stride,
                rows,
                stride: step,
                bytes,
            })
        }
        Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride: step, bytes }
            if continues(planes, plane_stride) =>
        {
            let planes = count.checked_mul(planes)?;
            Some(Step::Tile { planes, plane_stride, layers, layer_stride, rows, stride: step, bytes })
        }
        _ => None,
    }
}

/// A loop around a short nest, or around such a loop, as the list of its blocks.
fn listed(body: &Step, count: u64, stride: i64) -> Option<Step> {
    let (blocks, bytes) = match *body {
        Step::Planes { planes, plane_stride, rows, stride, bytes } if planes.checked_mul(rows)? <= SHORT_NEST => {
            (copies(planes, plane_stride, &copies(rows, stride, &[0])), bytes)
        }
        Step::List { ref offsets, bytes } => ((0..offsets.len()).map(|block| offsets.get(block)).collect(), bytes),
        _ => return None,
    };
    if bytes > INLINE_BYTES || count.checked_mul(blocks.len() as u64)? > LISTED_BLOCKS {
        return None;
    }
    Some(Step::List { offsets: Offsets::new(&copies(count, stride, &blocks), 0), bytes })
}

/// Offsets repeated at a stride.
fn copies(count: u64, stride: i64, offsets: &[i64]) -> Vec<i64> {
    let mut copies = Vec::with_capacity(count as usize * offsets.len());
    for copy in 0..count as i64 {
        copies.extend(offsets.iter().map(|offset| copy * stride + offset));
    }
    copies
}

/// Two levels of rows, in tiles where that is better.
fn nest(planes: u64, plane_stride: i64, rows: u64, stride: i64, bytes: u64) -> Step {
    if transposes(planes, plane_stride, rows, stride, bytes) {
        Step::Tile { planes, plane_stride, layers: 1, layer_stride: 0, rows, stride, bytes }
    } else {
        Step::Planes { planes, plane_stride, rows, stride, bytes }
    }
}

/// Whether packed neighbours are far apart in memory and memory neighbours are in another plane.
fn transposes(planes: u64, plane_stride: i64, rows: u64, stride: i64, bytes: u64) -> bool {
    bytes <= LINE / 2
        && plane_stride.unsigned_abs() <= LINE / 2
        && stride.unsigned_abs() >= FAR
        && planes >= 4
        && rows >= 8
}
