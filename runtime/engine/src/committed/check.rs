//! What a call may do.

use super::Committed;
use crate::entry::Entry;
use crate::error::PackError;
use crate::range::Range;
use dtc_compiler::operation::Element;
use std::sync::atomic::Ordering;

impl Committed {
    /// How many bytes a raw call moves.
    #[inline]
    pub(crate) fn take(&self, range: Range) -> u64 {
        range.length().min(range.count().wrapping_mul(self.facts().size).saturating_sub(range.offset()))
    }

    /// The entry, if it is there, and if a safe call moves one whole element and may, of a type that is not lazy.
    #[inline]
    pub(super) fn one(&self, length: usize, origin: usize, range: Range, packed: usize) -> Option<&Entry> {
        let entry = self.known()?;
        let whole = &entry.whole;
        let asked = range.count() == 1 && range.offset() == 0 && range.length() >= whole.packed;
        let asked = asked && packed as u64 == whole.packed;
        // The first byte has as many places as the buffer is longer than the element.
        let (length, origin) = (length as u64, origin as u64);
        let fits = asked && length >= whole.span && origin.wrapping_sub(whole.before) <= length - whole.span;
        fits.then_some(entry)
    }

    /// Whether the signature leaves it possible that the type consists of such elements.
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

    /// How many bytes a safe call moves; an error if it must not.
    pub(crate) fn check(&self, length: usize, origin: usize, range: Range, packed: usize) -> Result<usize, PackError> {
        let total = self.packed_size(range.count())?;
        self.check_fragment(length, origin, range, total, packed)
    }

    /// How many of `total` bytes a safe call moves; an error if it must not.
    pub(crate) fn check_fragment(
        &self,
        length: usize,
        origin: usize,
        range: Range,
        total: u64,
        packed: usize,
    ) -> Result<usize, PackError> {
        if origin > length {
            return Err(PackError::Origin { origin, length });
        }
        if let Some((low, high)) = self.span(range.count()) {
            let (before, after) = (origin, length - origin);
            if -low > before as i128 || high > after as i128 {
                return Err(PackError::Bounds { low, high, before, after });
            }
        }
        match total.checked_sub(range.offset()) {
            Some(rest) => Ok(packed.min(usize::try_from(rest.min(range.length())).unwrap_or(usize::MAX))),
            None => Err(PackError::Offset { offset: range.offset(), total }),
        }
    }
}
