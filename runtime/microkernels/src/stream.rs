//! Packs whose footprint is beyond the cache: the packed side is written around it.
//!
//! Rows are gathered in a small buffer that stays in the first-level cache, and its whole lines are written by non-temporal
//! stores, which spare the read of each destination line that an ordinary store makes. One buffer serves rows of every size
//! and packed addresses of every alignment. Meanwhile the rows of the next buffer are fetched.

use core::arch::x86_64::{
    _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm512_load_si512, _mm512_mask_storeu_epi8, _mm512_store_si512,
    _mm512_stream_si512,
};

use super::block::Block;
use super::masked::low_bits;
use super::rows;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of the buffer, without room for what the last flush left over.
const BUFFER: usize = 4096;

/// The shortest rows for which it pays: at 128 bytes of every 512 it was level to 1.4 times as fast, at 1,024 of 4,096 1.2 to 1.8
/// times (64 MiB packed, Sapphire Rapids); at 32 of 256 and 8 of 64 it lost up to a fifth.
///
/// The longest fill half of the buffer.
pub(super) const LENGTHS: std::ops::RangeInclusive<u64> = 128..=BUFFER as u64 / 2;

/// Up to so many bytes, a call packs through the cache: pieces of a large type go to small buffers, which are read again soon.
pub(super) const SHORT: usize = 8192;

/// Room for whole lines.
#[repr(C, align(64))]
struct Buffer(core::mem::MaybeUninit<[u8; BUFFER + LINE]>);

/// Packs rows of 1 byte to half of the buffer.
///
/// Fetching ahead may name addresses past the last row; a prefetch neither reads into a register nor faults.
///
/// # Safety
///
/// The contract of [`RowsFn`](super::RowsFn) in a pack, on a CPU of [`Level::Avx512`](super::Level::Avx512).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
#[inline]
pub(super) unsafe fn pack<B: Block>(mut memory: *mut u8, packed: *mut u8, mut left: usize, block: B, stride: isize) {
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
            rows::rows::<B, true>(memory, buffer.add(filled), count, block, stride);
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
