//! From canonical layouts to steps.

use super::step::{Offsets, Part, RunTable, Step, StepId};
use super::strategy::{decide, shape};
use super::{Plan, Sizes};
use crate::layout::{Edge, Kind, Layout, Node, Run};
use crate::passes;
use smallvec::{SmallVec, smallvec};

impl Plan {
    /// Plans a canonical layout. Any layout is accepted; one that is not canonical is planned as it is.
    pub fn new(layout: &Layout) -> Plan {
        plan(layout)
    }

    /// Plans a layout as it was described, without rewriting it: in less time than [`Plan::new`] takes, for types that are
    /// moved too seldom to repay that. The same bytes are moved, in more steps.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let text = "layout lb 0 extent 64 {\n  %0 = dense 1 x f64\n  %1 = stream 2 x 8 of 8: %0\n  %2 = stream 2 x 32 of %1\n  root %2\n}";
    /// assert!(Plan::as_described(&Layout::parse(text)?).to_string().contains("rows 2 x 32 of 16 bytes"));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn as_described(layout: &Layout) -> Plan {
        as_described(layout)
    }

    /// The step that moves `count` elements: the element's own with a higher count where the extent continues it, the
    /// nest around it where a microkernel covers that, or nothing when a loop over elements is needed.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::{Plan, Step};
    /// let text = "layout lb 0 extent 24 {\n  %0 = dense 17 x byte\n  root %0\n}";
    /// let plan = Plan::new(&Layout::parse(text)?);
    /// assert_eq!(plan.repeated(1000), Some(Step::Rows { rows: 1000, stride: 24, bytes: 17 }));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn repeated(&self, count: u64) -> Option<Step> {
        repeat(self.step(self.root.step), count, self.extent)
    }
}

fn plan(layout: &Layout) -> Plan {
    as_described(&passes::regularise_for_cpu(layout))
}

/// Plans a layout node by node, without rewriting it first.
fn as_described(layout: &Layout) -> Plan {
    let nodes = layout.nodes().len();
    let mut builder = Builder { layout, steps: Vec::with_capacity(nodes), sizes: Sizes::with_capacity(nodes) };
    let mut planned: Planned = SmallVec::with_capacity(nodes);
    for (id, node) in layout.nodes() {
        let placed = builder.place(node, layout.measure(id).size, &planned);
        planned.push(placed);
    }
    let root = layout.root();
    let place = planned[root.node.index()];
    let root = Part { offset: root.offset.wrapping_add(place.offset), position: 0, step: place.step };
    let (steps, sizes, root) = builder.reached_from(root);
    let mut plan =
        Plan { steps, sizes, root, size: layout.size(), extent: layout.extent(), decision: super::Decision::GENERIC };
    plan.decision = decide(&plan.steps, plan.root.step, plan.size);
    plan
}

/// The step of a node, and where it is from the origin of the node.
///
/// Offsets move outwards this way, so no loop has a displaced body.
#[derive(Clone, Copy)]
struct PlacedStep {
    offset: i64,
    step: StepId,
}

/// The places of the nodes so far. Few enough for most types that they need no allocation.
type Planned = SmallVec<[PlacedStep; 12]>;

struct Builder<'a> {
    layout: &'a Layout,
    steps: Vec<Step>,
    sizes: Sizes,
}

impl Builder<'_> {
    fn add(&mut self, step: Step, size: u64) -> StepId {
        let id = StepId::new(self.steps.len());
        self.steps.push(step);
        self.sizes.push(size);
        id
    }

    /// The steps without bodies that have become part of those around them.
    fn reached_from(self, root: Part) -> (Vec<Step>, Sizes, Part) {
        let mut reached: SmallVec<[bool; 32]> = smallvec![false; self.steps.len()];
        reached[root.step.index()] = true;
        for index in (0..self.steps.len()).rev() {
            if reached[index] {
                self.steps[index].each_body(|body| reached[body.index()] = true);
            }
        }
        let Builder { mut steps, mut sizes, .. } = self;
        let mut names: SmallVec<[StepId; 32]> = SmallVec::with_capacity(steps.len());
        let mut kept = 0;
        for index in 0..steps.len() {
            names.push(StepId::new(kept));
            if reached[index] {
                // Up to the first step that goes, all keep their names.
                if kept < index {
                    steps[index].rename_bodies(&names);
                    steps.swap(kept, index);
                    sizes.swap(kept, index);
                }
                kept += 1;
            }
        }
        steps.truncate(kept);
        sizes.truncate(kept);
        (steps, sizes, Part { step: names[root.step.index()], ..root })
    }

    /// The place of a node of `size` packed bytes.
    fn place(&mut self, node: &Node, size: u64, planned: &[PlacedStep]) -> PlacedStep {
        // Displacements of bytes fit 64 bits, sums of the offsets on the way to them need not.
        let alone = match node {
            Node::Stream { count: 1, child, .. } => Some(*child),
            Node::Indexed { offsets, child } if offsets.len() == 1 => {
                Some(Edge { offset: child.offset.wrapping_add(offsets[0]), ..*child })
            }
            Node::Record { parts } if parts.len() == 1 => Some(parts[0]),
            _ => None,
        };
        if let Some(only) = alone {
            let place = planned[only.node.index()];
            return PlacedStep { offset: only.offset.wrapping_add(place.offset), ..place };
        }
        let (offset, step) = match node {
            Node::Dense { count, kind } => (0, Step::Copy { bytes: count * kind.size() }),
            Node::Stream { count, stride, child } => {
                let (count, stride) = (*count, *stride);
                let body = planned[child.node.index()];
                let step = &self.steps[body.step.index()];
                // A list that repeats was found as such: its offsets are read once.
                let in_loop = matches!(self.layout.node(child.node), Node::Stream { .. });
                let one_list = || in_loop.then(|| listed(step, count, stride))?;
                let step = repeat(step, count, stride).or_else(one_list);
                let step = step.unwrap_or(Step::Repeat { count, stride, body: body.step });
                (child.offset.wrapping_add(body.offset), step)
            }
            Node::Indexed { offsets, child } => {
                let body = planned[child.node.index()];
                let offsets = Offsets::new(offsets, child.offset.wrapping_add(body.offset));
                match self.steps[body.step.index()] {
                    Step::Copy { bytes } => (0, Step::List { offsets, bytes }),
                    _ => (0, Step::Scatter { offsets, body: body.step }),
                }
            }
            Node::Runs { runs, kind } => {
                let in_bytes = |run: &Run| Run { count: run.count * kind.size(), ..*run };
                // Canonical layouts count in bytes: the list is theirs.
                let runs = if *kind == Kind::Byte { runs.clone() } else { runs.iter().map(in_bytes).collect() };
                let positions = prefix_sums(runs.iter().map(|run| run.count));
                (0, Step::Runs(RunTable { runs, positions }))
            }
            Node::Record { parts } if parts.is_empty() => (0, Step::Nothing),
            Node::Record { parts } => {
                let positions = prefix_sums(parts.iter().map(|part| self.layout.measure(part.node).size));
                let places = parts.iter().map(|part| {
                    let place = planned[part.node.index()];
                    PlacedStep { offset: part.offset.wrapping_add(place.offset), ..place }
                });
                if places.clone().all(|place| matches!(self.steps[place.step.index()], Step::Copy { .. })) {
                    let run = |place: PlacedStep| Run { offset: place.offset, count: self.sizes[place.step.index()] };
                    let runs = places.map(run).collect();
                    (0, Step::Runs(RunTable { runs, positions }))
                } else {
                    let part =
                        |(place, &position): (PlacedStep, _)| Part { offset: place.offset, position, step: place.step };
                    let parts = places.zip(positions.iter()).map(part).collect();
                    (0, Step::Sequence { parts })
                }
            }
        };
        PlacedStep { offset, step: self.add(step, size) }
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
fn repeat(body: &Step, count: u64, stride: i64) -> Option<Step> {
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
            if shape::is_tile(count, stride, rows, step, bytes) =>
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
            shape::is_tile(planes, plane_stride, rows, step, bytes).then_some(Step::Tile {
                planes,
                plane_stride,
                layers,
                layer_stride,
                rows,
                stride: step,
                bytes,
            })
        }
        _ => None,
    }
}

/// A loop around a short nest, or around such a loop, as the list of its blocks.
fn listed(body: &Step, count: u64, stride: i64) -> Option<Step> {
    if !shape::is_listed(body, count) {
        return None;
    }
    let (blocks, bytes) = match *body {
        Step::Planes { planes, plane_stride, rows, stride, bytes } => {
            (copies(planes, plane_stride, &copies(rows, stride, &[0])), bytes)
        }
        Step::List { ref offsets, bytes } => ((0..offsets.len()).map(|block| offsets.get(block)).collect(), bytes),
        _ => return None,
    };
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
    if shape::is_tile(planes, plane_stride, rows, stride, bytes) {
        Step::Tile { planes, plane_stride, layers: 1, layer_stride: 0, rows, stride, bytes }
    } else {
        Step::Planes { planes, plane_stride, rows, stride, bytes }
    }
}
