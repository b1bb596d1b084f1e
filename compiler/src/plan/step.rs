//! The steps of plans.

use crate::layout::Run;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Names a step of one plan; bodies have smaller numbers than the steps around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(u32);

impl StepId {
    /// The step at a position.
    pub(crate) fn new(index: usize) -> StepId {
        StepId(index as u32)
    }

    /// The position of the step in [`Plan::steps`](super::Plan::steps).
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A displaced step, and where its packed bytes begin inside its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Offset in memory, in bytes.
    pub offset: i64,
    /// Position of the first packed byte.
    pub position: u64,
    /// The displaced step.
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
    pub(super) fn new(offsets: &[i64], shift: i64) -> Offsets {
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
    /// The runs in packed order; `count` is in bytes.
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
        /// Distance from row to row in memory, in bytes.
        stride: i64,
        /// Length of a row.
        bytes: u64,
    },
    /// Rows at one stride, repeated at another.
    Planes {
        /// How many planes.
        planes: u64,
        /// Distance from plane to plane in memory, in bytes.
        plane_stride: i64,
        /// Rows in a plane.
        rows: u64,
        /// Distance from row to row in memory, in bytes.
        stride: i64,
        /// Length of a row.
        bytes: u64,
    },
    /// Planes of layers of rows, visited in tiles of rows and planes, layer by layer: rows are far apart in memory and
    /// planes are neighbours.
    Tile {
        /// How many planes.
        planes: u64,
        /// Distance from plane to plane in memory, in bytes; small.
        plane_stride: i64,
        /// Layers in a plane; 1 where rows and planes are neighbouring levels.
        layers: u64,
        /// Distance from layer to layer in memory, in bytes.
        layer_stride: i64,
        /// Rows in a layer.
        rows: u64,
        /// Distance from row to row in memory, in bytes; large.
        stride: i64,
        /// Length of a row.
        bytes: u64,
    },
    /// Equal blocks at listed offsets.
    List {
        /// Offsets of the blocks in memory.
        offsets: Offsets,
        /// Length of a block.
        bytes: u64,
    },
    /// Runs of differing length.
    Runs(RunTable),
    /// A body repeated at one stride.
    Repeat {
        /// Number of copies.
        count: u64,
        /// Distance from copy to copy in memory, in bytes.
        stride: i64,
        /// The repeated step.
        body: StepId,
    },
    /// A body repeated at listed offsets.
    Scatter {
        /// Offsets of the copies in memory.
        offsets: Offsets,
        /// The repeated step.
        body: StepId,
    },
    /// Differing parts.
    Sequence {
        /// The parts in packed order.
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

    pub(super) fn each_body(&self, mut visit: impl FnMut(StepId)) {
        match self {
            Step::Repeat { body, .. } | Step::Scatter { body, .. } => visit(*body),
            Step::Sequence { parts } => parts.iter().for_each(|part| visit(part.step)),
            _ => {}
        }
    }

    pub(super) fn rename_bodies(&mut self, names: &[StepId]) {
        match self {
            Step::Repeat { body, .. } | Step::Scatter { body, .. } => *body = names[body.index()],
            Step::Sequence { parts } => {
                *parts = parts.iter().map(|part| Part { step: names[part.step.index()], ..*part }).collect();
            }
            _ => {}
        }
    }
}
