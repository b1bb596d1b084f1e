//! From canonical layouts to steps.

use super::cost::decide;
use super::{Offsets, Part, Plan, RunTable, Step, StepId};
use crate::layout::{Kind, Layout, Node, NodeId, Run};
use crate::passes;
use std::collections::HashMap;

/// Planes closer than a cache line share lines that rows further apart than this would fetch again and again.
const FAR: u64 = 256;
const LINE: u64 = 64;

pub(super) fn plan(layout: &Layout) -> Plan {
    let regular = passes::regularise(layout);
    let mut builder = Builder { layout: &regular, steps: Vec::new(), sizes: Vec::new(), known: HashMap::new() };
    let mut planned: Vec<StepId> = Vec::with_capacity(regular.nodes().len());
    for (id, node) in regular.nodes() {
        let step = builder.step(node, &planned);
        planned.push(builder.add(step, regular.measure(id).size));
    }
    let root = regular.root();
    let root = Part { offset: root.offset, position: 0, step: planned[root.node.index()] };
    let mut plan = Plan {
        steps: builder.steps,
        sizes: builder.sizes,
        root,
        size: layout.size(),
        extent: layout.extent(),
        decision: super::Decision::GENERIC,
    };
    plan.decision = decide(&plan);
    plan
}

struct Builder<'a> {
    layout: &'a Layout,
    steps: Vec<Step>,
    sizes: Vec<u64>,
    known: HashMap<NodeId, StepId>,
}

impl Builder<'_> {
    fn add(&mut self, step: Step, size: u64) -> StepId {
        let id = StepId(self.steps.len() as u32);
        self.steps.push(step);
        self.sizes.push(size);
        id
    }

    fn step(&mut self, node: &Node, planned: &[StepId]) -> Step {
        match node {
            Node::Dense { count, kind } => Step::Copy { bytes: count * kind.size() },
            Node::Stream { count, stride, child } => {
                let body = self.at_origin(child.node, child.offset, planned);
                repeat(&self.steps[body.index()], *count, *stride).unwrap_or(Step::Repeat {
                    count: *count,
                    stride: *stride,
                    body,
                })
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
        if let Some(&known) = self.known.get(&node) {
            return known;
        }
        let size = self.sizes[step.index()];
        let displaced = self.add(Step::Sequence { parts: [Part { offset, position: 0, step }].into() }, size);
        self.known.insert(node, displaced);
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
