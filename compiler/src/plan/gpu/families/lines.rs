//! Packed bytes to short runs close to each other, in any order, through lines of memory in shared memory. Generic kernels only: for what masks serve where
//! kernels are compiled.

use super::masks::Masks;
use super::{Instance, KernelFamily, Query};
use crate::plan::Direction;
use crate::plan::gpu::{AddressFunction, Grid, KernelText, LibraryPart, SLOT, Tuning, Units};
use minijinja::context;
use std::fmt;

/// A kernel that unpacks through lines of memory in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinesKernel;

impl KernelFamily for LinesKernel {
    fn candidates(query: &Query<'_>) -> Vec<LinesKernel> {
        if query.unpacks() && query.analysis.has::<Masks>() { vec![LinesKernel] } else { Vec::new() }
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.lines.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        Some(Grid::new(Units::Needed, 2 * SLOT, instance.threads.into()))
    }

    fn shared_bytes(&self, instance: &Instance<'_>) -> Option<u32> {
        // The bytes, and for each whether it is filled.
        Some(2 * instance.analysis.tuning.lines.span)
    }

    fn prefetches(&self, _instance: &Instance<'_>) -> bool {
        true
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let bytes = AddressFunction::Elements { unit: 1, run: true };
        let values = context! { span => instance.analysis.tuning.lines.span };
        Some(KernelText { values, library: vec![LibraryPart::LoadBytes], ..KernelText::new("lines", 1, vec![bytes]) })
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("packed bytes to runs through lines of shared memory")
    }
}
