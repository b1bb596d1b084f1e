//! Blocks of up to 64 bytes in one masked load and one masked store.
//!
//! Bytes that the mask leaves out are neither touched nor able to fault.

use core::arch::x86_64::{
    _mm_mask_storeu_epi8, _mm_maskz_loadu_epi8, _mm256_mask_storeu_epi8, _mm256_maskz_loadu_epi8, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8,
};

use super::block::Block;

/// Blocks of 1 to `V` bytes, `V` being 16, 32 or 64.
#[derive(Clone, Copy)]
pub(super) struct Masked<const V: usize> {
    bytes: usize,
    mask: u64,
}

impl<const V: usize> Block for Masked<V> {
    #[inline(always)]
    fn new(bytes: usize) -> Self {
        Self { bytes, mask: low_bits(bytes) }
    }

    #[inline(always)]
    fn bytes(self) -> usize {
        self.bytes
    }

    #[inline(always)]
    unsafe fn copy(self, destination: *mut u8, source: *const u8) {
        let (destination, source) = (destination.cast::<i8>(), source.cast::<i8>());
        // SAFETY: the mask selects the bytes of the block alone, and the caller guarantees those and the CPU's features.
        unsafe {
            match V {
                16 => {
                    let mask = self.mask as u16;
                    _mm_mask_storeu_epi8(destination, mask, _mm_maskz_loadu_epi8(mask, source));
                }
                32 => {
                    let mask = self.mask as u32;
                    _mm256_mask_storeu_epi8(destination, mask, _mm256_maskz_loadu_epi8(mask, source));
                }
                _ => _mm512_mask_storeu_epi8(destination, self.mask, _mm512_maskz_loadu_epi8(self.mask, source)),
            }
        }
    }
}

/// A mask of the lowest `count` bits, for counts up to 64.
#[inline(always)]
pub(super) fn low_bits(count: usize) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}
