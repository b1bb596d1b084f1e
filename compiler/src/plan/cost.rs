//! Whether a compiled kernel pays.

use super::{Plan, Step, StepId, Target};
use std::fmt;

/// Plans with more steps than this, shared bodies counted once for every use, stay on the generic tier.
pub const SPECIALISED_STEPS: u64 = 256;

/// Plans nested deeper than this stay on the generic tier.
pub const SPECIALISED_DEPTH: u32 = 16;

/// Nanoseconds that the interpreter spends on a step around what the leaf does: dispatch and call.
const INTERPRETED_STEP: u64 = 5;

/// Bytes that a leaf moves in a nanosecond when they are in cache.
const LEAF_BYTES: u64 = 16;

/// What the cost model says of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    worth: Worth,
    interpreted: u64,
    moving: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    OneLeaf,
    LittleOverhead,
    TooLarge,
    Compiled,
}

impl Decision {
    pub(super) const GENERIC: Decision = Decision { worth: Worth::OneLeaf, interpreted: 0, moving: 0 };

    /// Whether a kernel should be compiled.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::{Plan, Target};
    /// let row = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert!(!Plan::new(&row, &Target::default()).decision().specialise());
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn specialise(&self) -> bool {
        self.worth == Worth::Compiled
    }

    /// Whether a kernel may be compiled at all: the plan is not too large.
    ///
    /// ```
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::{Plan, Target};
    /// let row = Layout::parse("layout lb 0 extent 8 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert!(Plan::new(&row, &Target::default()).decision().allows());
    /// # Ok::<(), dtc_compiler::layout::ParseError>(())
    /// ```
    pub fn allows(&self) -> bool {
        self.worth != Worth::TooLarge
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
            Worth::Compiled => {
                write!(f, "specialised: saves about {interpreted} ns of interpreting beside {moving} ns of moving")
            }
        }
    }
}

/// Estimates the cost of a plan on the generic tier and whether compiled code would save more than a twentieth.
pub(super) fn decide(plan: &Plan, _target: &Target) -> Decision {
    let mut interpreted = vec![0u64; plan.steps.len()];
    let mut expanded = vec![0u64; plan.steps.len()];
    let mut depth = vec![0u32; plan.steps.len()];
    for (index, step) in plan.steps.iter().enumerate() {
        let of = |id: &StepId, table: &[u64]| table[id.index()];
        (interpreted[index], expanded[index], depth[index]) = match step {
            Step::Repeat { count, body, .. } => (
                count.saturating_mul(of(body, &interpreted)),
                of(body, &expanded).saturating_add(1),
                1 + depth[body.index()],
            ),
            Step::Scatter { offsets, body } => {
                let count = offsets.len() as u64;
                (
                    count.saturating_mul(of(body, &interpreted)),
                    of(body, &expanded).saturating_add(1),
                    1 + depth[body.index()],
                )
            }
            Step::Sequence { parts } => (
                parts.iter().fold(0u64, |sum, part| sum.saturating_add(of(&part.step, &interpreted))),
                parts.iter().fold(1, |sum: u64, part| sum.saturating_add(of(&part.step, &expanded))),
                1 + parts.iter().map(|part| depth[part.step.index()]).max().unwrap_or(0),
            ),
            // A short list of runs is unrolled into constants.
            Step::Runs(table) if table.runs.len() as u64 <= SPECIALISED_STEPS / 4 => {
                (table.runs.len() as u64 * INTERPRETED_STEP, table.runs.len() as u64, 0)
            }
            _ => (INTERPRETED_STEP, 1, 0),
        };
    }
    let root = plan.root.step.index();
    let moving = plan.size / LEAF_BYTES;
    let worth = if expanded[root] > SPECIALISED_STEPS || depth[root] > SPECIALISED_DEPTH {
        Worth::TooLarge
    } else if interpreted[root] <= INTERPRETED_STEP {
        Worth::OneLeaf
    } else if interpreted[root].saturating_mul(20) < moving {
        Worth::LittleOverhead
    } else {
        Worth::Compiled
    };
    Decision { worth, interpreted: interpreted[root], moving }
}
