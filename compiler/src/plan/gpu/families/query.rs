//! What rules ask of a call.

use crate::plan::Direction;
use crate::plan::gpu::{Analysis, Call, Structure, Tuning, alignment};

/// A call for a kernel of a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    /// What the plan knows of the layout.
    pub(crate) analysis: &'a Analysis,
    /// The direction of the call.
    pub(crate) direction: Direction,
    /// Its range and its addresses.
    pub(crate) call: Call,
    /// Bytes that divide the address of element 0: a power of two up to 16.
    pub(crate) memory: u32,
    /// Bytes that divide where packed byte 0 would be: a power of two up to 16.
    pub(crate) packed: u32,
    /// The widest word of memory that is aligned there.
    pub(crate) word: u32,
}

impl<'a> Query<'a> {
    pub(crate) fn new(analysis: &'a Analysis, direction: Direction, call: &Call) -> Query<'a> {
        let (memory, packed) = (alignment(call.memory), alignment(call.packed.wrapping_sub(call.first)));
        Query { analysis, direction, call: *call, memory, packed, word: analysis.granularity.word().min(memory) }
    }

    /// The widest word that is aligned on both sides.
    pub(crate) fn aligned_word(&self) -> u32 {
        self.word.min(self.packed)
    }

    /// Whether the call unpacks.
    pub(crate) fn unpacks(&self) -> bool {
        self.direction == Direction::Unpack
    }

    /// Whether the call moves whole elements.
    pub(crate) fn has_whole_elements(&self) -> bool {
        let size = self.analysis.layout.size();
        self.call.first.is_multiple_of(size) && self.call.bytes.is_multiple_of(size)
    }

    /// What a family found in the layout.
    pub(crate) fn found<Found: Structure>(&self) -> Option<&'a Found> {
        self.analysis.found()
    }

    /// The numbers of the cost model.
    pub(crate) fn tuning(&self) -> &'static Tuning {
        self.analysis.tuning
    }
}
