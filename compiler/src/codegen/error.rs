//! Why there is no kernel.

use crate::plan::{Plan, SPECIALISED_DEPTH, SPECIALISED_STEPS};
use thiserror::Error;

/// Why there is no kernel. The generic tier serves instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodegenError {
    /// The compiler has no backend for this machine, or a setting it refuses.
    #[error("expected a machine that kernels are compiled for, found {0}")]
    Target(String),
    /// The compiler refused the function, which is a fault of this crate.
    #[error("expected a function that compiles, found {0}")]
    Function(String),
    /// The plan is too large for a kernel, which has straight code for every step.
    #[error(
        "expected a plan of at most {} steps in {} levels, found {steps} steps in {levels} levels",
        SPECIALISED_STEPS,
        SPECIALISED_DEPTH
    )]
    Size {
        /// Steps, shared bodies counted once for every use.
        steps: u64,
        /// Levels of nesting.
        levels: u32,
    },
}

/// Refuses plans that are too large for a kernel.
pub(super) fn checked_size(plan: &Plan) -> Result<(), CodegenError> {
    let (steps, levels) = plan.decision().extent();
    if plan.decision().allows() { Ok(()) } else { Err(CodegenError::Size { steps, levels }) }
}
