//! Aligned packed words to memory at any alignment: unpacks that no other family serves.

use super::{Instance, KernelFamily, Query};
use crate::plan::Direction;
use crate::plan::gpu::{AddressFunction, Grid, KernelText, LibraryPart, SLOT, Tuning, Units};
use std::fmt;

/// A kernel whose threads store the words of memory that begin among 16 packed bytes. Unpacks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScatterKernel;

impl KernelFamily for ScatterKernel {
    fn candidates(query: &Query<'_>) -> Vec<ScatterKernel> {
        if query.unpacks() { vec![ScatterKernel] } else { Vec::new() }
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.scatter.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(Grid::new(Units::Needed, 2 * SLOT, instance.threads.into()))
    }

    fn text(&self, _instance: &Instance<'_>) -> Option<KernelText> {
        let bytes = AddressFunction::Elements { unit: 1, run: true };
        let library = vec![LibraryPart::LoadBytes, LibraryPart::StoreBytes];
        Some(KernelText { library, ..KernelText::new("scatter", 1, vec![bytes]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("packed words scattered to runs at any alignment")
    }
}
