//! Sizes of calls that dtc does.

/// Packed bytes of the calls that are measured, by column.
pub const SIZES: [i64; 9] = [1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24];

/// Most packed bytes of a message that dtc packs: it takes as many bytes of memory more.
pub const LARGEST_MESSAGE: i64 = 256 << 20;

/// Sizes of calls that dtc does, in packed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// A bit for each column of a table, from the lowest on; and [`EVERY`].
    columns: u16,
}

/// The bit of [`Sizes::ALL`].
const EVERY: u16 = 1 << 15;

/// The bits of columns.
const COLUMNS: u16 = (1 << SIZES.len()) - 1;

/// Bits of the smallest size, and how many a column is beyond the one before.
const FIRST: u32 = SIZES[0].trailing_zeros();
const STEP: u32 = SIZES[1].trailing_zeros() - FIRST;

impl Sizes {
    /// No size.
    pub const NONE: Sizes = Sizes { columns: 0 };

    /// Every size of 2 bytes and more: a datatype with a gap, as a receive may need one, has as many.
    pub const ALL: Sizes = Sizes { columns: u16::MAX };

    /// The sizes whose columns say so.
    pub(crate) fn of_columns(columns: [bool; SIZES.len()]) -> Sizes {
        let bit = |(at, gains): (usize, bool)| u16::from(gains) << at;
        Sizes { columns: columns.into_iter().enumerate().map(bit).sum() }
    }

    /// Bits that say which sizes these are.
    pub const BITS: u32 = SIZES.len() as u32 + 1;

    /// The lowest [`Sizes::BITS`] bits, for [`Sizes::of_bits`].
    pub fn bits(self) -> u64 {
        u64::from(self.columns & COLUMNS) | u64::from(self.columns & EVERY != 0) << SIZES.len()
    }

    /// The sizes of these bits; those above do not count.
    #[inline]
    pub fn of_bits(bits: u64) -> Sizes {
        let every = if bits >> SIZES.len() & 1 == 1 { EVERY } else { 0 };
        Sizes { columns: bits as u16 & COLUMNS | every }
    }

    /// Those of both.
    pub fn and(self, other: Sizes) -> Sizes {
        Sizes { columns: self.columns & other.columns }
    }

    /// Those of either.
    pub fn or(self, other: Sizes) -> Sizes {
        Sizes { columns: self.columns | other.columns }
    }

    /// The sizes of `bytes` packed bytes and more.
    pub fn from(self, bytes: i64) -> Sizes {
        self.and(Sizes::of_columns(SIZES.map(|size| size >= bytes)))
    }

    /// Whether a call of so many packed bytes is among them: if the columns on either side are.
    ///
    /// ```
    /// use dtc_mpi_table::Sizes;
    ///
    /// assert!(Sizes::ALL.hold(1000) && !Sizes::NONE.hold(1000));
    /// ```
    #[inline]
    pub fn hold(self, bytes: i64) -> bool {
        if bytes < SIZES[0] {
            return self.columns & EVERY != 0 && bytes >= 2;
        }
        let last = SIZES.len() as u32 - 1;
        let below = ((bytes.ilog2() - FIRST) / STEP).min(last);
        let between = below < last && bytes > SIZES[below as usize];
        let needed = if between { 0b11 } else { 0b1 };
        self.columns >> below & needed == needed
    }

    /// The smallest of them.
    pub fn smallest(self) -> Option<i64> {
        if self.columns & EVERY != 0 {
            return Some(2);
        }
        SIZES.get(self.columns.trailing_zeros() as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_equally_far_apart() {
        assert!(SIZES.windows(2).all(|pair| pair[1] == pair[0] << STEP));
        assert!(SIZES.len() < 15);
    }

    #[test]
    fn every_size_is_held_or_none() {
        for bytes in [0, 1, 2, 255, 256, 257, 1 << 24, (1 << 24) + 1, i64::MAX] {
            assert_eq!(Sizes::ALL.hold(bytes), bytes >= 2, "{bytes}");
            assert!(!Sizes::NONE.hold(bytes), "{bytes}");
        }
        assert_eq!((Sizes::ALL.smallest(), Sizes::NONE.smallest()), (Some(2), None));
    }

    #[test]
    fn sizes_are_those_of_their_bits() {
        let some = Sizes::of_columns([false, true, true, false, false, false, false, false, true]);
        for sizes in [Sizes::NONE, some] {
            assert_eq!(Sizes::of_bits(sizes.bits() | 1 << Sizes::BITS), sizes);
        }
        let all = Sizes::of_bits(Sizes::ALL.bits());
        assert!([2, 255, 256, i64::MAX].into_iter().all(|bytes| all.hold(bytes)));
    }
}
