//! Blocks of more than 32 bytes in whole vectors, of which the last overlaps the one before: no masks.

use core::arch::x86_64::{__m128i, __m256i, __m512i};

use super::{Block, lines, lines_until, of_length, vectors};

/// Blocks of `K * V` to `K * V + T` bytes: `K` whole vectors of `V` bytes and a last one of `T` bytes that ends with the block.
#[derive(Clone, Copy)]
pub(crate) struct Overlapped<const V: usize, const K: usize, const T: usize>(usize);

impl<const V: usize, const K: usize, const T: usize> Block for Overlapped<V, K, T> {
    of_length!();

    #[inline(always)]
    unsafe fn copy(self, destination: *mut u8, source: *const u8) {
        macro_rules! ending_in {
            ($vector:ty) => {{
                let last = self.0 - size_of::<$vector>();
                // SAFETY: the whole vectors and the last one are within the block, since K * V and T are at most its length. The
                // last is loaded first, as all loads of a block are.
                unsafe {
                    let tail = source.add(last).cast::<$vector>().read_unaligned();
                    vectors::<V, K>(destination, source);
                    destination.add(last).cast::<$vector>().write_unaligned(tail);
                }
            }};
        }
        match T {
            16 => ending_in!(__m128i),
            32 => ending_in!(__m256i),
            _ => ending_in!(__m512i),
        }
    }
}

/// Blocks of 64 bytes and more: a first vector, whole lines of the destination, and a last vector, which may overlap them.
#[derive(Clone, Copy)]
pub(crate) struct OverlappedLines(usize);

impl Block for OverlappedLines {
    const LONG: bool = true;

    of_length!();

    #[inline(always)]
    unsafe fn copy(self, destination: *mut u8, source: *const u8) {
        let misaligned = destination as usize % 64;
        // SAFETY: 64 <= bytes, so that the first and the last vector are within the block; lines are moved while they do.
        unsafe {
            let mut at = 0;
            if misaligned != 0 {
                lines::<1>(destination, source);
                at = 64 - misaligned;
            }
            at = lines_until(destination, source, at, self.0);
            if self.0 != at {
                lines::<1>(destination.add(self.0 - 64), source.add(self.0 - 64));
            }
        }
    }
}
