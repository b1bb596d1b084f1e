//! The segments of a type by number.

use crate::status::Status;
use dtc_compiler::layout::Layout;
use dtc_compiler::layout::positions::Positions;
use dtc_compiler::layout::segments::SegmentIndex;

/// What a type needs to find its segments.
pub(crate) struct Segmented {
    pub(crate) positions: Positions<'static>,
    pub(crate) index: SegmentIndex,
}

impl Segmented {
    /// Of a canonical layout.
    pub(crate) fn new(layout: &Layout) -> Segmented {
        Segmented { positions: Positions::owning(layout.clone()), index: SegmentIndex::new(layout) }
    }

    /// The packed position where a segment begins, over a whole array.
    pub(crate) fn start_of(&self, segment: u64) -> Result<u64, Status> {
        self.index.start_of(&self.positions, segment).ok_or(Status::Internal)
    }
}
