//! Aligned packed words from memory at any alignment: packs that no other family serves.

use super::{Instance, KernelFamily, Query};
use crate::plan::Direction;
use crate::plan::gpu::{AddressFunction, Grid, KernelText, LibraryPart, SLOT, Tuning, Units, shortest_run};
use minijinja::context;
use std::fmt;

/// A kernel whose threads put a packed word together, each from the runs that it has. Packs only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GatherKernel;

/// Serves every pack.
pub(super) fn admits(query: &Query<'_>) -> Option<GatherKernel> {
    (!query.unpacks()).then_some(GatherKernel)
}

impl KernelFamily for GatherKernel {
    fn candidates(query: &Query<'_>) -> Vec<GatherKernel> {
        admits(query).into_iter().collect()
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.gather.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(Grid::new(Units::Addressed, SLOT, instance.threads.into()))
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let bytes = AddressFunction::Elements { unit: 1, run: true };
        // After its first byte at least, a run of seven fills a word.
        let values = context! { crosses_once => shortest_run(&instance.analysis.layout) >= SLOT - 1 };
        let library = vec![LibraryPart::LoadBytes];
        Some(KernelText { values, library, ..KernelText::new("gather", 1, vec![bytes]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("packed words gathered from runs at any alignment")
    }
}
