//! One contiguous block whose length is known at commit.

use super::{CopyFn, Level, copy};

/// The copy of one block of `bytes` bytes on a CPU of this level. It is called with that length alone.
///
/// With AVX-512, up to 512 bytes are as few vectors as hold them, without a branch: 480 bytes take 3.6 ns where the C library's
/// `memcpy` takes 4.7. Above, stores are to whole lines of the destination: 600 bytes take 4.5 ns instead of 6.9, 1,320 bytes at
/// an odd address 9.0 instead of 12.2, 4,080 bytes 34 instead of 36. Long ones are left to the C library.
#[must_use]
pub fn select_copy(level: Level, bytes: u64) -> CopyFn {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Avx512 {
        return match bytes {
            1..=64 => avx512::masked,
            65..=128 => avx512::vectors::<2>,
            129..=192 => avx512::vectors::<3>,
            193..=256 => avx512::vectors::<4>,
            257..=320 => avx512::vectors::<5>,
            321..=384 => avx512::vectors::<6>,
            385..=448 => avx512::vectors::<7>,
            449..=512 => avx512::vectors::<8>,
            513..=16384 => avx512::lines,
            _ => copy,
        };
    }
    let _ = (level, bytes);
    copy
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::super::block::Block;
    use super::super::masked::{Lines, Masked, low_bits};
    use core::arch::x86_64::{
        _mm512_loadu_si512, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_setzero_si512, _mm512_storeu_si512,
    };

    /// Bytes of a vector.
    const VECTOR: usize = 64;

    /// # Safety
    ///
    /// As for [`CopyFn`](super::CopyFn), with 1 to 64 bytes, on a CPU of [`Level::Avx512`](super::Level::Avx512).
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe extern "C" fn masked(destination: *mut u8, source: *const u8, bytes: usize) {
        // SAFETY: the caller's guarantee.
        unsafe { Masked::<64>::new(bytes).copy(destination, source) }
    }

    /// Copies `64 * (N - 1) + 1` to `64 * N` bytes: whole vectors, all loaded before the first is stored, and a masked tail.
    ///
    /// # Safety
    ///
    /// As for [`masked`], with so many bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe extern "C" fn vectors<const N: usize>(destination: *mut u8, source: *const u8, bytes: usize) {
        let mut values = [_mm512_setzero_si512(); N];
        let (last, mask) = ((N - 1) * VECTOR, low_bits(bytes - (N - 1) * VECTOR));
        // SAFETY: every vector, and what the mask selects of the last, lies inside the block.
        unsafe {
            for (place, value) in values.iter_mut().take(N - 1).enumerate() {
                *value = _mm512_loadu_si512(source.add(place * VECTOR).cast());
            }
            values[N - 1] = _mm512_maskz_loadu_epi8(mask, source.add(last).cast());
            for (place, value) in values.iter().take(N - 1).enumerate() {
                _mm512_storeu_si512(destination.add(place * VECTOR).cast(), *value);
            }
            _mm512_mask_storeu_epi8(destination.add(last).cast(), mask, values[N - 1]);
        }
    }

    /// # Safety
    ///
    /// As for [`masked`], with 64 bytes or more.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe extern "C" fn lines(destination: *mut u8, source: *const u8, bytes: usize) {
        // SAFETY: the caller's guarantee.
        unsafe { Lines::new(bytes).copy(destination, source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_else() {
        let source: Vec<u8> = (0..20_000).map(|at| (at * 7 / 3) as u8).collect();
        for level in [Level::Portable, super::super::detect_level()] {
            for length in (0..=700).chain([1023, 2047, 2048, 2049, 4080, 16_384, 16_385]) {
                let copy = select_copy(level, length as u64);
                for (to, from) in [(0, 0), (1, 0), (63, 5), (7, 64)] {
                    let mut found = vec![0x5a; 20_000];
                    // SAFETY: both ranges lie in their buffers.
                    unsafe { copy(found.as_mut_ptr().add(to), source.as_ptr().add(from), length) };
                    let mut wanted = vec![0x5a; 20_000];
                    wanted[to..to + length].copy_from_slice(&source[from..from + length]);
                    assert!(found == wanted, "{level:?}, {length} bytes, {to} from {from}");
                }
            }
        }
    }
}
