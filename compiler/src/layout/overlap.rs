//! Whether several packed bytes have one place in memory.

use super::Layout;
use std::fmt;

/// Most elements that are looked at for those of any count: more overlap only if their extent is a tiny part of what they span.
const MOST_ELEMENTS: u64 = 1 << 20;

/// Whether elements have several packed bytes for one byte of memory. Which of these an unpack leaves there is not defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Every byte of memory has one packed byte at most.
    None,
    /// One element overlaps itself.
    Element {
        /// Packed bytes of an element.
        packed: u64,
        /// Bytes of memory that it has.
        memory: u64,
    },
    /// Elements of a count overlap each other, and none itself.
    Elements {
        /// How many elements were looked at.
        count: u64,
        /// Their packed bytes.
        packed: u64,
        /// Bytes of memory that they have.
        memory: u64,
    },
    /// The layout is too irregular to find out in a few milliseconds.
    Unknown,
}

impl Layout {
    /// Whether `count` elements overlap, or elements of any count for `None`.
    ///
    /// ```
    /// use dtc_compiler::layout::{Layout, Overlap};
    /// let layout = Layout::parse("layout lb 0 extent 4 {\n  %0 = dense 8 x byte\n  root %0\n}")?;
    /// assert_eq!(layout.overlap(Some(1)), Overlap::None);
    /// let found = layout.overlap(None);
    /// assert_eq!(found, Overlap::Elements { count: 3, packed: 24, memory: 16 });
    /// assert_eq!(
    ///     found.to_string(),
    ///     "elements overlap each other: 3 have 24 packed bytes for 16 bytes of memory; which of the values an unpack leaves is not defined"
    /// );
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn overlap(&self, count: Option<u64>) -> Overlap {
        let size = self.size();
        let Some(own) = self.distinct_bytes(1) else { return Overlap::Unknown };
        if own < size && count != Some(0) {
            return Overlap::Element { packed: size, memory: own };
        }
        let span = self.true_ub().abs_diff(self.true_lb());
        // Those that are within the span of one.
        let reached = span.checked_div(self.extent().unsigned_abs()).unwrap_or(0).saturating_add(1);
        let count = count.unwrap_or(reached.clamp(2, MOST_ELEMENTS));
        if reached == 1 && self.extent() != 0 {
            return Overlap::None;
        }
        match (self.distinct_bytes(count), size.checked_mul(count)) {
            (Some(memory), Some(packed)) if memory < packed => Overlap::Elements { count, packed, memory },
            (Some(_), Some(_)) => Overlap::None,
            _ => Overlap::Unknown,
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OUTCOME: &str = "which of the values an unpack leaves is not defined";
        match self {
            Overlap::None => f.write_str("no byte of memory is in the elements twice"),
            Overlap::Element { packed, memory } => {
                write!(f, "an element has {packed} packed bytes for {memory} bytes of memory; {OUTCOME}")
            }
            Overlap::Elements { count, packed, memory } => write!(
                f,
                "elements overlap each other: {count} have {packed} packed bytes for {memory} bytes of memory; {OUTCOME}"
            ),
            Overlap::Unknown => f.write_str("not known: the layout is too irregular to find out whether bytes overlap"),
        }
    }
}
