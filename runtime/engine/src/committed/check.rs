//! What a call may do.

use super::Committed;
use crate::cached_type::CachedType;
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

    /// The cached type and the packed bytes of a call that moves whole elements of a type that is not counted, if the cached type is there and the
    /// range has them all within `room` bytes.
    #[inline]
    pub(super) fn whole(&self, range: Range, room: u64) -> Option<(&CachedType, u64)> {
        let cached = self.known()?;
        // Fewer than `u64::MAX`, the size of a type that is counted.
        let room = room.min(range.length()).min(i64::MAX as u64);
        let bytes = cached.whole.bytes(range.count(), room)?;
        (range.offset() == 0).then_some((cached, bytes))
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

/// A range that the packed bytes of a call have room for; an error if they do not.
#[inline]
pub(crate) fn check_packed(range: Range, found: usize) -> Result<Range, PackError> {
    match range.length() {
        expected if expected > found as u64 => Err(PackError::Packed { expected, found }),
        _ => Ok(range),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use dtc_compiler::datatype::text;

    #[test]
    fn the_short_check_admits_nothing_that_the_long_one_refuses() {
        // Bytes above, below and around the origin; extents of more and fewer bytes, of none, negative, and of more than 32 bits.
        let types = [
            ("vector 3 1 2 short", true),
            ("resized 0 3 (vector 3 1 2 short)", true),
            ("resized 0 0 (vector 3 1 2 short)", true),
            ("resized 0 24 (vector 3 1 -2 short)", true),
            ("resized 0 -2 (vector 3 1 2 short)", false),
            ("resized 0 8589934592 short", false),
            ("hindexed [1@6] short", true),
        ];
        for (description, serves_several) in types {
            let committed = Engine::new().commit(&text::parse(description).unwrap());
            let whole = &committed.cached().whole;
            let size = committed.facts().size;
            assert_eq!(whole.bytes(2, u64::MAX - 1).is_some(), serves_several, "{description}");
            for (count, length, origin) in (0..4)
                .flat_map(|count| (0..60).flat_map(move |length| (0..64).map(move |origin| (count, length, origin))))
            {
                let room = Room { length, origin };
                let short = whole.bytes(count, u64::MAX - 1).is_some() && whole.fits(count, room);
                let long = committed.check(room, Range::elements(count));
                assert!(!short || long.is_ok(), "{description}: {count} in {length} bytes from {origin} on");
                if description == "vector 3 1 2 short" && count > 0 {
                    assert_eq!(short, long.is_ok(), "{description}: {count} in {length} bytes from {origin} on");
                }
                assert!(!short || whole.bytes(count, u64::MAX - 1) == Some(count * size));
            }
        }
    }

    #[test]
    fn calls_without_bytes_and_counts_that_overflow_are_no_short_ones() {
        let committed = Engine::new().commit(&text::parse("vector 3 1 2 short").unwrap());
        let whole = &committed.cached().whole;
        assert_eq!(whole.bytes(1, 6), Some(6));
        for (count, room) in [(0, 6), (1, 5), (2, 11), (u64::MAX, u64::MAX - 1), (1 << 63, u64::MAX - 1)] {
            assert_eq!(whole.bytes(count, room), None, "{count}");
        }
    }
}
