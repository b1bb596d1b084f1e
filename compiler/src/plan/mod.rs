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
mod step;
pub mod strategy;

pub use direction::Direction;
pub use step::{Offsets, Part, RunTable, Step, StepId};
pub use strategy::{Decision, Level, SPECIALISED_DEPTH, SPECIALISED_STEPS, Strategy, Target};
pub(crate) use strategy::{
    INLINE_BYTES, INLINE_CLOSE_ROWS, INLINE_PIECE_BYTES, INLINE_ROWS, INLINE_STRIDE, INLINE_WORD_BYTES,
    INTERLEAVED_ARRAYS, LOOP_WORDS, MICROKERNEL_ROWS, PieceWord, UNROLLED_LIST_WORDS, UNROLLED_WORDS, words_of,
};

use smallvec::SmallVec;

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
/// # Ok::<(), dtc_compiler::TextError>(())
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

    /// Distance from element to element in memory, in bytes.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Whether a compiled kernel is worth having, and why.
    pub fn decision(&self) -> Decision {
        self.decision
    }
}
