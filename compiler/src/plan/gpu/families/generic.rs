//! The generic kernels that families fall back to.

use super::query::Query;
use crate::plan::Direction;

/// What a generic kernel moves. Each serves any layout that has what it moves, at any alignment unless it is said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generic {
    /// Words of 4, 8 or 16 bytes at their alignment on both sides.
    Words(u32),
    /// Words of memory of 4 or 8 bytes, or of 16 in unpacks, that are unaligned among the packed bytes.
    Shifted(u32),
    /// Bytes.
    Bytes,
    /// Bytes of short runs, through lines of memory.
    Lines,
    /// Arrays of records that are packed field by field.
    Columns,
    /// Records whose fields are in arrays of their own.
    Fields,
    /// Small groups of runs.
    Groups,
    /// Tiles, whose words are aligned on both sides.
    Tiles,
}

impl Generic {
    /// Aligned words of a call, unless its look-ups take less time where bytes are moved.
    pub(crate) fn words_or_bytes(query: &Query<'_>) -> Generic {
        let word = query.aligned_word();
        if word >= 4 && !Generic::looks_up_bytes(query) { Generic::Words(word) } else { Generic::Bytes }
    }

    /// Whether a generic kernel, whose time is that of its look-ups, moves the runs of a call in 8 (packs) or 16 bytes at any alignment rather than in
    /// aligned words.
    pub(crate) fn looks_up_bytes(query: &Query<'_>) -> bool {
        let (word, mean, tuning) = (query.aligned_word(), query.analysis.runs.mean, &query.tuning().generic);
        let narrow = word <= 4 && mean >= tuning.min_run;
        narrow || (query.direction == Direction::Unpack && word == 8 && mean >= tuning.min_run_of_8)
    }
}
