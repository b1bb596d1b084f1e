//! Which packed bytes a call moves.

use std::ops::{Bound, RangeBounds};

/// A range of the packed bytes of a number of elements.
///
/// A range that ends behind the packed bytes ends with them.
///
/// # Example
///
/// ```
/// use dtc_runtime::Range;
/// // All packed bytes of ten elements, those from byte 40 on, and the four bytes there.
/// let all = Range::elements(10);
/// let rest = Range::elements(10).bytes(40..);
/// let four = Range::elements(10).bytes(40..44);
/// assert_eq!(four, rest.fragment(40, 4));
/// # let _ = all;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    count: u64,
    start: u64,
    end: u64,
}

impl Range {
    /// All packed bytes of `count` elements.
    ///
    /// See [`Range`] for an example.
    #[inline]
    pub const fn elements(count: u64) -> Range {
        Range { count, start: 0, end: u64::MAX }
    }

    /// These of the packed bytes of the same elements. A range that ends before it begins is empty.
    ///
    /// See [`Range`] for an example.
    #[inline]
    pub fn bytes(self, bytes: impl RangeBounds<u64>) -> Range {
        let start = match bytes.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match bytes.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => u64::MAX,
        };
        Range { start, end, ..self }
    }

    /// `length` of the packed bytes of the same elements, from byte `offset` on.
    ///
    /// See [`Range`] for an example.
    #[inline]
    pub const fn fragment(self, offset: u64, length: u64) -> Range {
        Range { count: self.count, start: offset, end: offset.saturating_add(length) }
    }

    /// How many elements the packed bytes belong to.
    ///
    /// ```
    /// assert_eq!(dtc_runtime::Range::elements(10).bytes(40..).count(), 10);
    /// ```
    #[inline]
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The packed byte that the range begins with.
    ///
    /// ```
    /// assert_eq!(dtc_runtime::Range::elements(10).bytes(40..).offset(), 40);
    /// ```
    #[inline]
    pub const fn offset(self) -> u64 {
        self.start
    }

    /// Bytes from the beginning to the end, which may lie behind the packed bytes.
    ///
    /// ```
    /// assert_eq!(dtc_runtime::Range::elements(10).bytes(40..44).length(), 4);
    /// ```
    #[inline]
    pub const fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The first packed bytes of the range, at most this many: what a buffer of that length has room for.
    ///
    /// ```
    /// use dtc_runtime::{Engine, Range, datatype::Datatype};
    /// let ints = Engine::new().commit(&"vector 3 1 2 int".parse::<Datatype>()?);
    /// let mut part = [0; 2];
    /// let range = Range::elements(1);
    /// assert!(ints.pack(&[1, 2, 3, 4, 5], range, &mut part).is_err());
    /// assert_eq!(ints.pack(&[1, 2, 3, 4, 5], range.at_most(8), &mut part)?, 8);
    /// assert_eq!(part, [1, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub const fn at_most(self, bytes: u64) -> Range {
        let end = self.start.saturating_add(bytes);
        Range { end: if end < self.end { end } else { self.end }, ..self }
    }

    /// The part of the range that lies in a number of packed bytes; empty where the range begins behind them.
    #[inline]
    pub(crate) fn within(self, packed_bytes: u64) -> Range {
        Range { end: self.end.min(packed_bytes).max(self.start), ..self }
    }

    /// `length` bytes of the range, from its byte `at` on.
    #[inline]
    pub(crate) const fn part(self, at: u64, length: u64) -> Range {
        self.fragment(self.start + at, length)
    }

    /// Whether the range has every packed byte of its elements, which have `size` bytes each.
    #[inline]
    pub(crate) fn is_whole(self, size: u64) -> bool {
        self.start == 0 && self.end == self.count.wrapping_mul(size)
    }
}
