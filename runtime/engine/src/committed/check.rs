//! What a call may do.

use super::Committed;
use crate::entry::Entry;
use crate::error::PackError;
use crate::memory::Room;
use crate::range::Range;
use dtc_compiler::operation::Element;
use std::sync::atomic::Ordering;

impl Committed {
    /// A range, cut to the packed bytes of its elements, which fit 63 bits.
    #[inline]
    pub(crate) fn exact(&self, range: Range) -> Range {
        range.within(range.count().wrapping_mul(self.facts().size))
    }

    /// The entry, if it is there, and if a safe call moves one whole element and may, of a type that is not lazy.
    #[inline]
    pub(super) fn one(&self, room: Room, range: Range, packed: usize) -> Option<&Entry> {
        let entry = self.known()?;
        let whole = &entry.whole;
        let asked = range.count() == 1 && range.offset() == 0 && range.length() >= whole.packed;
        let asked = asked && packed as u64 == whole.packed;
        // The first byte has as many places as the buffer is longer than the element.
        let (length, origin) = (room.length as u64, room.origin as u64);
        let fits = asked && length >= whole.span && origin.wrapping_sub(whole.before) <= length - whole.span;
        fits.then_some(entry)
    }

    /// Whether the type may consist of such elements: its signature does not contradict that.
    pub(crate) fn may_consist_of(&self, element: Element) -> bool {
        let bit = 1 << element as u32;
        let known = &self.inner.elements;
        // Each bit is a fact of its own, so no order is needed.
        known.load(Ordering::Relaxed) & bit != 0
            || !element.contradicts(&self.signature()) && {
                known.fetch_or(bit, Ordering::Relaxed);
                true
            }
    }

    /// The packed bytes that a safe call moves; an error if it must not.
    pub(crate) fn check(&self, room: Room, range: Range) -> Result<Range, PackError> {
        self.check_fragment(room, range, self.packed_size(range.count())?)
    }

    /// Those of `total` bytes that a safe call moves; an error if it must not.
    pub(crate) fn check_fragment(&self, room: Room, range: Range, total: usize) -> Result<Range, PackError> {
        let Room { length, origin } = room;
        if origin > length {
            return Err(PackError::Origin { origin, length });
        }
        if let Some((low, high)) = self.span(range.count()) {
            let (before, after) = (origin, length - origin);
            if -low > before as i128 || high > after as i128 {
                return Err(PackError::Bounds { low, high, before, after });
            }
        }
        check_offset(range, total)
    }
}

/// A range, cut to `total` bytes; an error if it begins behind them.
pub(crate) fn check_offset(range: Range, total: usize) -> Result<Range, PackError> {
    let total = total as u64;
    match range.offset() {
        offset if offset > total => Err(PackError::Offset { offset, total }),
        _ => Ok(range.within(total)),
    }
}
