//! Pieces of packed bytes that stay in the first-level cache.

use std::mem::MaybeUninit;

/// Bytes of a piece. A piece, the bytes that are accumulated in it and the memory around it fit the first-level cache together, and
/// the address of the next piece is found in a small part of the time that a piece takes.
pub(crate) const PIECE: u64 = 8192;

/// Room for a piece.
#[repr(align(64))]
pub(crate) struct Buffer(MaybeUninit<[u8; PIECE as usize]>);

impl Buffer {
    #[inline]
    pub(crate) fn new() -> Buffer {
        Buffer(MaybeUninit::uninit())
    }

    #[inline]
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Where the piece from `position` on ends: after whole units, and with an element of the type where there is an end of one
/// within reach, so that whole elements are moved by the best code for them. The range from `position` to `end`, the size of
/// the type and the position are multiples of the unit.
#[inline]
pub(crate) fn piece_end(position: u64, end: u64, size: u64, unit: u64) -> u64 {
    let furthest = position + PIECE / unit * unit;
    if furthest >= end {
        return end;
    }
    let border = furthest / size * size;
    if border > position { border } else { furthest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_elements_where_they_can() {
        assert_eq!(piece_end(0, 100, 10, 1), 100);
        assert_eq!(piece_end(0, 100_000, 3000, 4), 6000);
        assert_eq!(piece_end(2000, 100_000, 3000, 4), 9000);
        assert_eq!(piece_end(0, 100_000, 60_000, 6), 8190);
        assert_eq!(piece_end(59_994, 100_000, 60_000, 6), 60_000);
    }
}
