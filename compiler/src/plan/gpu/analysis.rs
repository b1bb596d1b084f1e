//! What a plan knows of its layout: what every family reads, and what single families found in it.

use super::granularity::{self, Granularity};
use super::runs::RunStatistics;
use super::sizes::SECTOR;
use super::tuning::Tuning;
use crate::layout::{Layout, Node};
use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::sync::Arc;

/// What a family finds in a layout that it serves: tiles, records, groups and the like. A layout has at most one of each type.
pub trait Structure: Any + Debug + Send + Sync {}

/// What a plan knows of its layout.
#[derive(Clone, Debug)]
pub(crate) struct Analysis {
    /// The layout in the form that kernels follow.
    pub(crate) layout: Layout,
    /// The numbers of the cost model for the GPU.
    pub(crate) tuning: &'static Tuning,
    /// What addresses and lengths are multiples of.
    pub(crate) granularity: Granularity,
    /// Whether all runs begin and end at sectors, if element 0 begins at one.
    pub(crate) whole_sectors: bool,
    /// Whether the outermost node goes on through the elements of a count without a seam.
    pub(crate) continues: bool,
    /// The length of every run in bytes, where they are all of one.
    pub(crate) row: Option<u64>,
    /// The runs as the cost model sees them.
    pub(crate) runs: RunStatistics,
    structures: Vec<(TypeId, Arc<dyn Structure>)>,
}

impl Analysis {
    /// What every family reads. Structures are added by those that find them.
    pub(crate) fn new(layout: Layout, tuning: &'static Tuning) -> Analysis {
        let (granularity, whole_sectors) = granularity::measure(&layout);
        Analysis {
            granularity,
            whole_sectors,
            continues: continues(&layout),
            row: granularity::row(&layout),
            runs: RunStatistics::of(&layout, &tuning.words),
            structures: Vec::new(),
            tuning,
            layout,
        }
    }

    /// Keeps what a family found.
    pub(crate) fn add<Found: Structure>(&mut self, found: Option<Found>) {
        if let Some(found) = found {
            self.structures.push((TypeId::of::<Found>(), Arc::new(found)));
        }
    }

    /// What a family found.
    pub(crate) fn found<Found: Structure>(&self) -> Option<&Found> {
        let is = |(its, _): &&(TypeId, Arc<dyn Structure>)| *its == TypeId::of::<Found>();
        let (_, found) = self.structures.iter().find(is)?;
        let found: &dyn Any = &**found;
        found.downcast_ref()
    }

    /// Whether a family found its structure.
    pub(crate) fn has<Found: Structure>(&self) -> bool {
        self.found::<Found>().is_some()
    }

    /// Whether the layout is more than a nest of streams: the generic kernels read lists of it from memory.
    pub(crate) fn has_lists(&self) -> bool {
        self.layout.nodes().any(|(_, node)| !matches!(node, Node::Dense { .. } | Node::Stream { .. }))
    }

    /// Whether runs of `bytes` bytes, at multiples of `granularity` bytes, have sectors that are stored in part, and enough of them that bringing these
    /// to the L2 cache before they are stored gains.
    pub(crate) fn stored_in_part(&self, bytes: u64, granularity: u32) -> bool {
        // Of a sector, what is on average in front of a run that begins in it.
        let outside = SECTOR - u64::from(granularity).min(SECTOR);
        let tuning = &self.tuning.prefetch;
        tuning.runs.contains(&bytes) && tuning.one_in * 2 * outside >= bytes + outside
    }
}

/// Whether the outermost node goes on through the elements of a count without a seam.
fn continues(layout: &Layout) -> bool {
    match layout.node(layout.root().node) {
        Node::Stream { count, stride, .. } => i128::from(*count) * i128::from(*stride) == i128::from(layout.extent()),
        Node::Dense { count, kind } => count * kind.size() == layout.extent() as u64 && layout.extent() > 0,
        _ => false,
    }
}
