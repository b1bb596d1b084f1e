//! Words of memory that rows of one length fill. The threads are numbered by words of memory instead of packed words, as many for each row.

use super::{Generic, Instance, KernelFamily, Query};
use crate::plan::Direction;
use crate::plan::gpu::{
    AddressFunction, Analysis, Call, Grid, KernelText, LibraryPart, SLOT, Tuning, Units, alignment,
};
use minijinja::context;
use std::fmt;

/// Rows whose columns 32 bits count with room to spare.
const LONGEST_ROW: u64 = 1 << 30;

/// A kernel that fills the words of memory which rows touch. Unpacks only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowsKernel {
    /// Words of memory that a row may touch, which depends on the alignment of element 0.
    pub slots: u64,
}

/// Bytes of a row, if all runs have one length between `SLOT` and `LONGEST_ROW`, and how many aligned words of memory a row may touch. Nothing for a
/// call with less than a row, since a grid has the words of whole ones.
pub(crate) fn slots(analysis: &Analysis, memory: u64, bytes: u64) -> Option<(u64, u64)> {
    let row = analysis.row.filter(|row| (SLOT..LONGEST_ROW).contains(row) && *row <= bytes)?;
    let before = SLOT - u64::from(analysis.granularity.starts.min(alignment(memory))).min(SLOT);
    Some((row, (before + row).div_ceil(SLOT)))
}

/// Serves unpacks of rows.
pub(super) fn admits(query: &Query<'_>) -> Option<RowsKernel> {
    let (_, slots) = slots(query.analysis, query.call.memory, query.call.bytes)?;
    query.unpacks().then_some(RowsKernel { slots })
}

/// Serves unpacks of permuted rows of up to a sector that begin inside of sectors: single words wait for their sectors longer.
pub(super) fn inside_sectors(query: &Query<'_>) -> Option<RowsKernel> {
    let Analysis { runs, row, whole_sectors, .. } = query.analysis;
    let short = row.is_some_and(|row| query.tuning().rows.inside_sectors.contains(&row));
    (short && runs.permuted && !whole_sectors).then(|| admits(query)).flatten()
}

impl KernelFamily for RowsKernel {
    fn candidates(query: &Query<'_>) -> Vec<RowsKernel> {
        admits(query).into_iter().collect()
    }

    fn indices(&self, analysis: &Analysis, _direction: Direction, call: &Call) -> u64 {
        let end = call.end();
        analysis.row.map_or(end, |row| (end / row + 2).saturating_mul(self.slots))
    }

    fn threads(&self, tuning: &Tuning, _direction: Direction, _capped: bool) -> u32 {
        tuning.rows.threads
    }

    fn grid(&self, instance: &Instance<'_>) -> Option<Grid> {
        let grid = Grid::new(Units::Touched, instance.analysis.row?, instance.threads.into());
        Some(Grid { share: self.slots, ..grid })
    }

    fn prefetches(&self, instance: &Instance<'_>) -> bool {
        instance.may_prefetch() && !instance.analysis.whole_sectors
    }

    fn text(&self, instance: &Instance<'_>) -> Option<KernelText> {
        let row = instance.analysis.row?;
        let rows = AddressFunction::Elements { unit: row, run: false };
        let values = context! { row, slots => self.slots };
        let library = vec![LibraryPart::LoadBytes, LibraryPart::StorePart];
        Some(KernelText { values, library, ..KernelText::new("rows", 1, vec![rows]) })
    }

    fn generic(&self, _query: &Query<'_>) -> Generic {
        Generic::Bytes
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words of memory that odd rows fill")
    }
}
