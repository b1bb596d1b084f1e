//! Packs by non-temporal stores, which bypass the caches.
//!
//! Rows are gathered in a small buffer that stays in the first-level cache, and its whole lines are written by non-temporal
//! stores, which spare the read of each destination line that an ordinary store makes. One buffer serves rows of every size
//! and packed addresses of every alignment. Meanwhile the rows of the next buffer are prefetched.

use core::arch::x86_64::{
    _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm512_load_si512, _mm512_mask_storeu_epi8, _mm512_store_si512,
    _mm512_stream_si512,
};

use super::rows;
use crate::block::masked::low_bits;
use crate::block::{Block, LINE};
use dtc_compiler::plan::strategy::RowLoop;

/// Bytes of the buffer, without room for what the last flush left over.
const BUFFER: usize = 4096;

/// Room for whole lines.
#[repr(C, align(64))]
struct Buffer(core::mem::MaybeUninit<[u8; BUFFER + LINE]>);

/// Packs rows of 1 byte to half of the buffer.
///
/// Prefetches may name addresses past the last row; a prefetch neither reads into a register nor faults.
///
/// # Safety
///
/// The contract of [`RowsFn`](crate::RowsFn) in a pack, on a CPU of [`Level::Avx512`](crate::Level::Avx512).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
pub(crate) unsafe fn pack<B: Block>(mut memory: *mut u8, packed: *mut u8, mut left: usize, block: B, stride: isize) {
    let bytes = block.bytes();
    let mut buffer = Buffer(core::mem::MaybeUninit::uninit());
    let buffer = buffer.0.as_mut_ptr().cast::<u8>();
    // The buffer repeats the alignment of the packed side; bytes of its first line before `start` are not ours.
    let mut start = packed as usize % LINE;
    let mut line = packed.wrapping_sub(start);
    let mut filled = start;
    // SAFETY: `filled` stays within the buffer: at most a line before each round, and a round adds at most BUFFER bytes. Lines
    // are written whole only if every byte of them has been packed, otherwise under a mask.
    unsafe {
        while left > 0 {
            let count = left.min((BUFFER + LINE - filled) / bytes);
            for row in count..2 * count {
                let row = memory.wrapping_offset(stride.wrapping_mul(row as isize));
                for part in (0..bytes).step_by(LINE) {
                    _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(part).cast());
                }
            }
            rows::rows::<B, true>(memory, buffer.add(filled), count, block, stride, RowLoop::PLAIN);
            memory = memory.wrapping_offset(stride.wrapping_mul(count as isize));
            left -= count;
            filled += count * bytes;
            let mut from = 0;
            if start != 0 && filled >= LINE {
                let mask = !low_bits(start);
                _mm512_mask_storeu_epi8(line.cast(), mask, _mm512_load_si512(buffer.cast()));
                start = 0;
                from = LINE;
            }
            while filled - from >= LINE {
                _mm512_stream_si512(line.wrapping_add(from).cast(), _mm512_load_si512(buffer.add(from).cast()));
                from += LINE;
            }
            if from != 0 && filled != from {
                _mm512_store_si512(buffer.cast(), _mm512_load_si512(buffer.add(from).cast()));
            }
            line = line.wrapping_add(from);
            filled -= from;
        }
        let mask = low_bits(filled) & !low_bits(start);
        _mm512_mask_storeu_epi8(line.cast(), mask, _mm512_load_si512(buffer.cast()));
        // Non-temporal stores are not ordered with those that follow, for example the flag that says the pack is done.
        _mm_sfence();
    }
}
