//! How the bytes of a layout are moved by a CPU.
//!
//! A [`Plan`] is a DAG of [`Step`]s over a canonical layout: nests of rows, tiles, lists and runs, each of which one
//! microkernel of the runtime carries out, inside loops over what no microkernel covers. Two engines execute it: the
//! generic tier interprets it, and [`crate::codegen::cranelift`] compiles it. Planning is a pure function of the layout,
//! and the plan prints. A [`Strategy`] says which microkernels a processor binds the steps to.
//!
//! Steps address memory relative to the place they are applied to. The packed position of every byte is that of the
//! layout; the order in which a step visits its bytes is free.

mod build;
mod direction;
mod footprint;
pub mod gpu;
mod print;
pub mod strategy;

pub use direction::Direction;
pub use strategy::{Decision, Level, SPECIALISED_DEPTH, SPECIALISED_STEPS, Strategy, Target};
pub(crate) use strategy::{INLINE_BYTES, MICROKERNEL_ROWS, UNROLLED_WORDS};

use crate::layout::{Layout, Run};
use smallvec::SmallVec;
use std::sync::Arc;

/// Names a step of one plan; bodies have smaller numbers than the steps around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(u32);

impl StepId {
    /// The step at a position.
    pub(crate) fn new(index: usize) -> StepId {
        StepId(index as u32)
    }

    /// The position of the step in [`Plan::steps`].
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A displaced step, and where its packed bytes begin inside its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// In memory, in bytes.
    pub offset: i64,
    /// In the packed bytes.
    pub position: u64,
    /// What lies there.
    pub step: StepId,
}

/// A list of memory offsets, in the narrowest integers that hold them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Offsets {
    /// All fit 32 bits.
    Narrow(Arc<[i32]>),
    /// At least one does not.
    Wide(Arc<[i64]>),
}

impl Offsets {
    fn new(offsets: &[i64], shift: i64) -> Offsets {
        let shifted = offsets.iter().map(|offset| offset.wrapping_add(shift));
        // Branch-free, a few entries per iteration.
        let upper = shifted.clone().fold(0, |upper, offset| upper | (offset.wrapping_add(1 << 31) as u64 >> 32));
        if upper == 0 {
            Offsets::Narrow(shifted.map(|offset| offset as i32).collect())
        } else {
            Offsets::Wide(shifted.collect())
        }
    }

    /// Number of entries.
    #[expect(clippy::len_without_is_empty, reason = "lists of a plan are never empty")]
    pub fn len(&self) -> usize {
        match self {
            Offsets::Narrow(offsets) => offsets.len(),
            Offsets::Wide(offsets) => offsets.len(),
        }
    }

    /// One entry.
    ///
    /// # Panics
    ///
    /// When there is no such entry.
    pub fn get(&self, index: usize) -> i64 {
        match self {
            Offsets::Narrow(offsets) => offsets[index].into(),
            Offsets::Wide(offsets) => offsets[index],
        }
    }
}

/// Contiguous runs of differing length, with their packed positions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunTable {
    /// In packed order; `count` is in bytes.
    pub runs: Arc<[Run]>,
    /// The packed position of each run.
    pub positions: Arc<[u64]>,
}

/// One way of moving bytes. Counts are at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// One contiguous piece.
    Copy {
        /// Its length.
        bytes: u64,
    },
    /// Equal rows at one stride.
    Rows {
        /// How many.
        rows: u64,
        /// From row to row in memory.
        stride: i64,
        /// Length of a row.
        bytes: u64,
    },
    /// Rows at one stride, repeated at another.
    Planes {
        /// How many planes.
        planes: u64,
        /// From plane to plane in memory.
        plane_stride: i64,
        /// Rows in a plane.
        rows: u64,
        /// From row to row in memory.
        stride: i64,
        /// Length of a row.
        bytes: u64,
    },
    /// Planes of layers of rows, visited in tiles of rows and planes, layer by layer: rows are far apart in memory and
    /// planes are neighbours.
    Tile {
        /// How many planes.
        planes: u64,
        /// From plane to plane in memory; small.
        plane_stride: i64,
        /// Layers in a plane; 1 where rows and planes are neighbouring levels.
        layers: u64,
        /// From layer to layer in memory.
        layer_stride: i64,
        /// Rows in a layer.
        rows: u64,
        /// From row to row in memory; large.
        stride: i64,
        /// Length of a row.
        bytes: u64,
    },
    /// Equal blocks at listed offsets.
    List {
        /// Of the blocks in memory.
        offsets: Offsets,
        /// Length of a block.
        bytes: u64,
    },
    /// Runs of differing length.
    Runs(RunTable),
    /// A body repeated at one stride.
    Repeat {
        /// How often.
        count: u64,
        /// From copy to copy in memory.
        stride: i64,
        /// What is repeated.
        body: StepId,
    },
    /// A body repeated at listed offsets.
    Scatter {
        /// Of the copies in memory.
        offsets: Offsets,
        /// What is repeated.
        body: StepId,
    },
    /// Differing parts.
    Sequence {
        /// In packed order.
        parts: Arc<[Part]>,
    },
}

impl Step {
    /// The bodies of the step.
    pub fn bodies(&self) -> Vec<StepId> {
        let mut bodies = Vec::new();
        self.each_body(|body| bodies.push(body));
        bodies
    }

    fn each_body(&self, mut visit: impl FnMut(StepId)) {
        match self {
            Step::Repeat { body, .. } | Step::Scatter { body, .. } => visit(*body),
            Step::Sequence { parts } => parts.iter().for_each(|part| visit(part.step)),
            _ => {}
        }
    }

    fn rename_bodies(&mut self, names: &[StepId]) {
        match self {
            Step::Repeat { body, .. } | Step::Scatter { body, .. } => *body = names[body.index()],
            Step::Sequence { parts } => {
                *parts = parts.iter().map(|part| Part { step: names[part.step.index()], ..*part }).collect();
            }
            _ => {}
        }
    }
}

/// Packed bytes of each step. Few enough in most plans to need no allocation.
type Sizes = SmallVec<[u64; 4]>;

/// How the bytes of one element, or of a count of elements, are moved.
///
/// # Example
///
/// ```
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::Plan;
/// let text = "layout lb 0 extent 1344 {\n  %0 = dense 40 x byte\n  %1 = stream 12 x 112 of %0\n  root 8: %1\n}";
/// let plan = Plan::new(&Layout::parse(text)?);
/// assert!(plan.to_string().contains("rows 12 x 112 of 40 bytes"));
/// # Ok::<(), dtc_compiler::layout::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    steps: Vec<Step>,
    sizes: Sizes,
    root: Part,
    size: u64,
    extent: i64,
    decision: Decision,
}

impl Plan {
    /// Plans a canonical layout. Any layout is accepted; one that is not canonical is planned as it is.
    pub fn new(layout: &Layout) -> Plan {
        build::plan(layout)
    }

    /// Plans a layout as it was described, without rewriting it: in less time than [`Plan::new`] takes, for types that are
    /// moved too seldom to repay that. The same bytes are moved, in more steps.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let text = "layout lb 0 extent 64 {\n  %0 = dense 1 x f64\n  %1 = stream 2 x 8 of 8: %0\n  %2 = stream 2 x 32 of %1\n  root %2\n}";
    /// assert!(Plan::as_described(&Layout::parse(text)?).to_string().contains("rows 2 x 32 of 16 bytes"));
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn as_described(layout: &Layout) -> Plan {
        build::as_described(layout)
    }

    /// Every step, bodies before the steps around them.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// A step.
    #[inline]
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.index()]
    }

    /// Packed bytes of a step.
    pub fn size_of(&self, id: StepId) -> u64 {
        self.sizes[id.index()]
    }

    /// One element.
    #[inline]
    pub fn root(&self) -> Part {
        self.root
    }

    /// Packed bytes of one element.
    #[inline]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// From element to element in memory, in bytes.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Whether a compiled kernel is worth having, and why.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Bytes of cache that moving one element takes, about: the lines that its blocks lie in, and the packed bytes.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let text = "layout lb 0 extent 8000 {\n  %0 = dense 8 x byte\n  %1 = stream 10 x 800 of %0\n  root %1\n}";
    /// assert_eq!(Plan::new(&Layout::parse(text)?).footprint(), 10 * 64 + 80);
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn footprint(&self) -> u64 {
        footprint::footprint(self)
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
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn repeated(&self, count: u64) -> Option<Step> {
        build::repeat(self.step(self.root.step), count, self.extent)
    }
}
