//! What a family of kernels is.

use super::generic::Generic;
use super::query::Query;
use crate::plan::Direction;
use crate::plan::gpu::{Analysis, Call, Grid, KernelText, Tuning};
use std::fmt;

/// What the template of a family is instantiated for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance<'a> {
    /// What the plan knows of the layout.
    pub(crate) analysis: &'a Analysis,
    /// The direction of the calls.
    pub(crate) direction: Direction,
    /// Whether a grid may have fewer blocks than the work.
    pub(crate) capped: bool,
    /// Threads of a block: those of the family, or those of a batch.
    pub(crate) threads: u32,
}

impl Instance<'_> {
    /// Whether the kernel packs.
    pub(crate) fn packs(&self) -> bool {
        self.direction == Direction::Pack
    }

    /// Whether the kernel may bring sectors of memory to the L2 cache before it stores them in part. Kernels on few multiprocessors may store to pinned
    /// memory of the host, where this would be read over the link.
    pub(crate) fn may_prefetch(&self) -> bool {
        self.direction == Direction::Unpack && !self.capped
    }
}

/// A family of kernels: one template, and when and how it moves bytes. The type that implements it has the parameters of a kernel of the family.
///
/// Methods that return nothing do so where the layout has not what the kernel moves.
pub(crate) trait KernelFamily {
    /// Adds what the family moves to what is known of a layout, if the layout has it.
    fn find(_analysis: &mut Analysis)
    where
        Self: Sized,
    {
    }

    /// The kernels of the family that may serve a call, also where another family is faster.
    fn candidates(query: &Query<'_>) -> Vec<Self>
    where
        Self: Sized;

    /// The largest index that a kernel counts to for a call.
    fn indices(&self, _analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        call.end()
    }

    /// Threads of a block.
    fn threads(&self, tuning: &Tuning, direction: Direction, capped: bool) -> u32;

    /// How the work is spread over blocks.
    fn grid(&self, instance: &Instance<'_>) -> Option<Grid>;

    /// How many blocks a call has; nothing if no grid is that large.
    fn blocks(&self, instance: &Instance<'_>, call: &Call) -> Option<u32> {
        self.grid(instance)?.blocks_of(call)
    }

    /// Bytes of shared memory of a block; nothing where its threads share none.
    fn shared_bytes(&self, _instance: &Instance<'_>) -> Option<u32> {
        None
    }

    /// Whether the kernel brings lines of memory to the L2 cache before it needs them.
    fn prefetches(&self, _instance: &Instance<'_>) -> bool {
        false
    }

    /// What the text of the kernel is made from.
    fn text(&self, instance: &Instance<'_>) -> Option<KernelText>;

    /// The generic kernel that serves a call in the place of this kernel.
    fn generic(&self, query: &Query<'_>) -> Generic {
        Generic::words_or_bytes(query)
    }

    /// What people read of the kernel.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}
