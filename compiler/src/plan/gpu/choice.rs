//! The kernel that serves a call: the first family that fits the layout, the direction, the alignments and the length of the call.
//!
//! Which families a layout has at all is found once, when it is planned. Where a family begins to be faster than the next is in `cost.rs`.

use super::call::Call;
use super::columns::Columns;
use super::cost::{self, Otherwise};
use super::granularity::alignment;
use super::groups::Groups;
use super::sizes::{LINE, NARROW, SLOT};
use super::tiles::Tiles;
use super::{Family, GpuPlan, Variant};
use crate::plan::Direction;

/// Words that a shift puts together, in bytes.
pub(super) const WIDEST_SHIFT: u32 = 8;

/// Whether a call may begin or end inside a word, or inside a line of the packed bytes.
pub(super) fn cuts(word: u32, call: &Call) -> bool {
    !(call.first | call.bytes).is_multiple_of(word.into()) || !call.packed.is_multiple_of(LINE)
}

impl GpuPlan {
    /// The kernel that serves a call.
    pub fn variant(&self, direction: Direction, call: &Call) -> Variant {
        self.indexed(direction, self.family(direction, call), call)
    }

    /// The kernel of a family, with indices that count what a call has.
    pub(super) fn indexed(&self, direction: Direction, family: Family, call: &Call) -> Variant {
        let end = call.first.saturating_add(call.bytes);
        let units = match family {
            Family::Words { word, .. } | Family::Shifted { word } | Family::Ordered { word } => end / u64::from(word),
            Family::Tiles { .. } => end / u64::from(self.granularity.word()),
            Family::Gather | Family::Scatter | Family::Lines | Family::Joined => end,
            Family::Fields { .. } | Family::Columns { .. } | Family::Records | Family::Masks => end,
            Family::Groups { .. } => end,
            Family::Pieces => self
                .pieces
                .and_then(|pieces| Some(pieces.of_call(direction, call)?.max(end / pieces.size)))
                .unwrap_or(end),
            Family::Rows { slots } => self.row.map_or(end, |row| (end / row + 2).saturating_mul(slots)),
            Family::Accumulate(chosen) => end / u64::from(chosen.word),
        };
        Variant { direction, family, wide: units >= NARROW, capped: false }
    }

    /// The kernel that serves whole elements between allocations.
    pub fn usual(&self, direction: Direction) -> Variant {
        Variant { wide: false, ..self.variant(direction, &Call::whole(self.usual_bytes())) }
    }

    /// Packed bytes of a usual call: of as many elements as make a few megabytes, where what a count interleaves is visible and
    /// indices are narrow.
    pub(super) fn usual_bytes(&self) -> u64 {
        let size = self.layout.size().max(1);
        size.saturating_mul((4 << 20) / size).max(size)
    }

    /// Whether an unpack brings sectors that it stores in part to the L2 cache. Kernels on few multiprocessors may store to pinned memory of
    /// the host, where this would be read over the link.
    pub(crate) fn prefetches(&self, variant: &Variant) -> bool {
        let Variant { direction, family, capped, .. } = *variant;
        let in_part = match family {
            Family::Masks | Family::Pieces => !self.whole_sectors,
            Family::Words { .. } => {
                // Small calls, whose lists are short, wait for both.
                let many = self.row.is_some() || self.layout.size() >= cost::MANY_SHORT;
                many && !self.whole_sectors
                    && cost::prefetches(cost::Runs::of(&self.layout).mean, self.granularity.word())
            }
            Family::Columns { .. } => self.columns.as_ref().is_some_and(Columns::mostly_in_part),
            Family::Tiles { .. } => {
                let beside = |tiles: &Tiles| tiles.columns.saturating_mul(tiles.stride.unsigned_abs());
                self.tiles.as_ref().is_some_and(|tiles| cost::prefetches(beside(tiles), tiles.word))
            }
            Family::Groups { .. } => {
                let (mean, word) = (cost::Runs::of(&self.layout).mean, self.granularity.word());
                !self.whole_sectors && (word < 4 || cost::prefetches(mean, word))
            }
            _ => false,
        };
        direction == Direction::Unpack && !capped && in_part
    }

    /// Whether an interpreter moves more bytes at a time where it puts words together from bytes.
    pub(crate) fn interprets_bytes(&self, direction: Direction, word: u32) -> bool {
        cost::interprets_bytes(direction, word, cost::Runs::of(&self.layout).mean)
    }

    /// The first family that fits, from those that see most of a layout's structure to those that see runs alone, or bytes.
    fn family(&self, direction: Direction, call: &Call) -> Family {
        let aligned = alignment(call.memory);
        // Where packed byte 0 would lie.
        let packed = alignment(call.packed.wrapping_sub(call.first));
        let word = self.granularity.word().min(aligned);
        let narrow = word.min(packed);
        let resident = |otherwise| {
            let shape = cost::resident(narrow, call.bytes, otherwise)?;
            Some(Family::Words { word: narrow, shape, cut: cuts(narrow, call) })
        };
        let unpacks = direction == Direction::Unpack;
        let otherwise = if unpacks && self.disordered { Otherwise::Ordered } else { Otherwise::Structure };
        if let Some(family) = resident(otherwise) {
            return family;
        }
        let by_fields = self.fields.as_ref().and_then(|fields| {
            let (memory, packed) = fields.alignments(aligned, packed);
            fields.pays(packed, call).then_some(Family::Fields { memory, packed })
        });
        let by_columns = self.columns.as_ref().filter(|columns| columns.pays(call));
        let before_tiles = |tiles: &Tiles| {
            let columns = |its: &Columns| cost::columns_before_tiles(direction, tiles.word, its.columns.len() as u64);
            by_columns.is_some_and(columns)
                || (by_fields.is_some() && cost::fields_before_tiles(direction, tiles.word, tiles.rows))
        };
        if let Some(tiles) = &self.tiles
            && tiles.word <= word
            && tiles.pays(call)
            && (tiles.word <= packed || tiles.word <= WIDEST_SHIFT)
            && !before_tiles(tiles)
        {
            return Family::Tiles { shifted: tiles.word > packed };
        }
        if let Some(family) = by_fields {
            return family;
        }
        if let Some(columns) = by_columns {
            return Family::Columns { memory: columns.alignment(aligned) };
        }
        if let Some(groups) = &self.groups
            && groups.serves(aligned)
            && groups.pays(direction, word, self.records.is_some(), call)
        {
            let (memory, packed) = groups.alignments(aligned, packed);
            return Family::Groups { memory, packed };
        }
        let runs = cost::Runs::of(&self.layout);
        let whole = call.first.is_multiple_of(self.layout.size()) && call.bytes.is_multiple_of(self.layout.size());
        let fits = self.granularity.word() <= word.min(packed) && (word >= 4 || runs.mean < SLOT);
        if direction == Direction::Unpack && self.disordered && whole && fits && cost::in_order(word, call.bytes) {
            return Family::Ordered { word };
        }
        let preferred = cost::word(direction, word, &runs);
        let fitting = preferred.min(packed);
        if self.records.is_some() && cost::in_records(direction, word, runs.mean, call.bytes) {
            return Family::Records;
        }
        if self.masks.is_some() && cost::in_masks(direction, word, call.bytes) {
            return Family::Masks;
        }
        if let Some(pieces) = &self.pieces
            && cost::joined(direction, word, pieces.mean, call.bytes)
        {
            return Family::Joined;
        }
        if let Some(pieces) = &self.pieces
            && cost::by_pieces(direction, word, pieces.mean, call.bytes)
            && pieces.pays(call)
        {
            return Family::Pieces;
        }
        if fitting >= 4
            && let Some((row, slots)) = self.slots(call.memory, call.bytes)
            && cost::in_rows(direction, word, row, call.bytes)
        {
            return Family::Rows { slots };
        }
        // Putting a wide word together from bytes costs more than moving words of a few bytes, where runs are as short.
        let in_shorts = self.pieces.is_some() && cost::in_shorts(direction, word, runs.mean);
        let short = runs.mean < SLOT || in_shorts || (word == 2 && self.groups.as_ref().is_some_and(Groups::listed));
        if fitting >= 4 || (fitting == word && short) {
            let shape = cost::shape(direction, fitting, &runs);
            return Family::Words { word: fitting, shape, cut: cuts(fitting, call) };
        }
        if word < 4
            && let Some(family) = resident(Otherwise::Bytes)
        {
            return family;
        }
        match direction {
            Direction::Pack if word >= 4 => Family::Shifted { word: preferred.min(WIDEST_SHIFT) },
            Direction::Pack => Family::Gather,
            Direction::Unpack if word >= 4 => Family::Shifted { word: preferred },
            Direction::Unpack => {
                self.slots(call.memory, call.bytes).map_or(Family::Scatter, |(_, slots)| Family::Rows { slots })
            }
        }
    }
}
