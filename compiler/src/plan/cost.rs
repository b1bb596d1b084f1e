//! Whether a compiled kernel pays.

use super::{Plan, RunTable, Step, StepId};
use crate::passes::UNROLLED_RUNS;
use std::fmt;

/// Plans with more steps than this, shared bodies counted once for every use, stay on the generic tier.
pub const SPECIALISED_STEPS: u64 = 256;

/// Plans nested deeper than this stay on the generic tier.
pub const SPECIALISED_DEPTH: u32 = 16;

/// An element of at most so many loads and stores is unrolled whole: the call costs as much as the moving.
const SMALL_WORDS: u64 = 64;

/// The same for an element that one leaf moves in pieces longer than two words, which it has wider vectors for: 8 rows of
/// 40 bytes took 7 ns either way, 12 rows 10 ns by straight code and 8.4 by the leaf.
const SMALL_WIDE_WORDS: u64 = 16;

/// Nanoseconds that the interpreter spends on a step around what the leaf does: dispatch and call. Measured on 500 lists
/// of four runs, as the difference to a kernel that calls the same leaf.
const INTERPRETED_STEP: u64 = 7;

/// Nanoseconds that the interpreter spends on entering and leaving a loop over other steps.
const INTERPRETED_LOOP: u64 = 10;

/// Nanoseconds that straight code saves of each short run: a body of 4 to 10 of them took 2.5 to 6 ns instead of 20 to 38.
const UNROLLED_RUN: u64 = 2;

/// Pieces of up to so many bytes are moved by straight code; longer ones by a leaf.
pub(crate) const INLINE_BYTES: u64 = 64;

/// Bytes that a leaf moves in a nanosecond when they are in cache.
const LEAF_BYTES: u64 = 16;

/// What the cost model says of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    worth: Worth,
    interpreted: u64,
    moving: u64,
    steps: u64,
    levels: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    OneLeaf,
    LittleOverhead,
    TooLarge,
    Small,
    Compiled,
}

impl Decision {
    pub(super) const GENERIC: Decision =
        Decision { worth: Worth::OneLeaf, interpreted: 0, moving: 0, steps: 1, levels: 0 };

    /// Whether a kernel should be compiled.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let row = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert!(!Plan::new(&row).decision().specialise());
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn specialise(&self) -> bool {
        matches!(self.worth, Worth::Compiled | Worth::Small)
    }

    /// Whether the element is so small that its kernel is straight code.
    pub(crate) fn is_small(&self) -> bool {
        self.worth == Worth::Small
    }

    /// Whether a kernel may be compiled at all: the plan is not too large.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::Plan;
    /// let row = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert!(Plan::new(&row).decision().allows());
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn allows(&self) -> bool {
        self.worth != Worth::TooLarge
    }

    /// Steps of the plan, shared bodies counted once for every use, and its levels of nesting.
    pub(crate) fn extent(&self) -> (u64, u32) {
        (self.steps, self.levels)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decision { interpreted, moving, .. } = self;
        match self.worth {
            Worth::OneLeaf => f.write_str("generic: one leaf does it all"),
            Worth::LittleOverhead => {
                write!(f, "generic: interpreting costs about {interpreted} ns beside {moving} ns of moving")
            }
            Worth::TooLarge => {
                write!(f, "generic: more than {SPECIALISED_STEPS} steps or {SPECIALISED_DEPTH} levels")
            }
            Worth::Small => f.write_str("specialised: a few words, straight code"),
            Worth::Compiled => {
                write!(f, "specialised: saves about {interpreted} ns of interpreting beside {moving} ns of moving")
            }
        }
    }
}

/// Estimates the cost of a plan on the generic tier and whether compiled code would save more than a twentieth.
pub(super) fn decide(plan: &Plan) -> Decision {
    let mut interpreted = vec![0u64; plan.steps.len()];
    let mut expanded = vec![0u64; plan.steps.len()];
    let mut depth = vec![0u32; plan.steps.len()];
    let mut words = vec![0u64; plan.steps.len()];
    for (index, step) in plan.steps.iter().enumerate() {
        let of = |id: &StepId, table: &[u64]| table[id.index()];
        (interpreted[index], expanded[index], depth[index]) = match step {
            Step::Repeat { count, body, .. } => (
                count.saturating_mul(of(body, &interpreted)).saturating_add(INTERPRETED_LOOP),
                of(body, &expanded).saturating_add(1),
                1 + depth[body.index()],
            ),
            Step::Scatter { offsets, body } => {
                let count = offsets.len() as u64;
                (
                    count.saturating_mul(of(body, &interpreted)).saturating_add(INTERPRETED_LOOP),
                    of(body, &expanded).saturating_add(1),
                    1 + depth[body.index()],
                )
            }
            Step::Sequence { parts } => (
                parts.iter().fold(INTERPRETED_LOOP, |sum, part| sum.saturating_add(of(&part.step, &interpreted))),
                parts.iter().fold(1, |sum: u64, part| sum.saturating_add(of(&part.step, &expanded))),
                1 + parts.iter().map(|part| depth[part.step.index()]).max().unwrap_or(0),
            ),
            // The leaf looks every length up that straight code knows.
            Step::Runs(table) if table.is_unrolled() => {
                let runs = table.runs.len() as u64;
                (INTERPRETED_STEP + runs * UNROLLED_RUN, runs, 0)
            }
            _ => (INTERPRETED_STEP, 1, 0),
        };
    }
    for (index, step) in plan.steps.iter().enumerate() {
        let of = |id: &StepId| words[id.index()];
        words[index] = match step {
            Step::Nothing => 0,
            Step::Copy { bytes } => words_of(*bytes),
            Step::Rows { rows, bytes, .. } => words_of(*bytes).saturating_mul(*rows),
            Step::Planes { planes, rows, bytes, .. } => words_of(*bytes).saturating_mul(*rows).saturating_mul(*planes),
            Step::Tile { planes, layers, rows, bytes, .. } => {
                words_of(*bytes).saturating_mul(*rows).saturating_mul(*layers).saturating_mul(*planes)
            }
            Step::List { offsets, bytes } => words_of(*bytes).saturating_mul(offsets.len() as u64),
            Step::Runs(table) => table.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(words_of(run.count))),
            Step::Repeat { count, body, .. } => count.saturating_mul(of(body)),
            Step::Scatter { offsets, body } => of(body).saturating_mul(offsets.len() as u64),
            Step::Sequence { parts } => parts.iter().fold(0, |sum: u64, part| sum.saturating_add(of(&part.step))),
        };
    }
    let root = plan.root.step.index();
    let moving = plan.size / LEAF_BYTES;
    let worth = if expanded[root] > SPECIALISED_STEPS || depth[root] > SPECIALISED_DEPTH {
        Worth::TooLarge
    } else if (1..=small_words(&plan.steps[root])).contains(&words[root]) {
        Worth::Small
    } else if interpreted[root] <= INTERPRETED_STEP {
        Worth::OneLeaf
    } else if interpreted[root].saturating_mul(20) < moving {
        Worth::LittleOverhead
    } else {
        Worth::Compiled
    };
    Decision { worth, interpreted: interpreted[root], moving, steps: expanded[root], levels: depth[root] }
}

impl RunTable {
    /// Whether a kernel moves the runs by straight code. A leaf moves long runs faster than code that calls for each.
    pub(crate) fn is_unrolled(&self) -> bool {
        self.runs.len() <= UNROLLED_RUNS && self.runs.iter().all(|run| run.count <= INLINE_BYTES)
    }
}

/// Up to how many words straight code moves an element sooner than anything else.
fn small_words(root: &Step) -> u64 {
    match root {
        Step::Nothing | Step::Copy { .. } => 0,
        Step::Rows { bytes, .. } | Step::Planes { bytes, .. } | Step::Tile { bytes, .. } | Step::List { bytes, .. }
            if *bytes > 32 =>
        {
            SMALL_WIDE_WORDS
        }
        _ => SMALL_WORDS,
    }
}

/// Loads that move a piece, with vectors of 16 bytes.
fn words_of(bytes: u64) -> u64 {
    bytes / 16 + u64::from(!bytes.is_multiple_of(16))
}
