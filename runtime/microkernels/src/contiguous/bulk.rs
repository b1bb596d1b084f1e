//! Long contiguous copies between pageable memory and pinned buffers, which are not read again by this processor.

use crate::copy;
use dtc_compiler::plan::strategy::Level;
#[cfg(target_arch = "x86_64")]
use dtc_compiler::plan::strategy::copies_non_temporally;

/// Copies `bytes` contiguous bytes.
///
/// # Safety
///
/// Both ranges are valid and do not overlap.
pub type CopyFn = unsafe extern "C" fn(destination: *mut u8, source: *const u8, bytes: usize);

/// The copy for a level: with prefetches and non-temporal stores where the strategy says so, or that of the C library.
pub fn select_bulk_copy(level: Level) -> CopyFn {
    #[cfg(target_arch = "x86_64")]
    if copies_non_temporally(level) {
        return avx512::copy;
    }
    let _ = level;
    copy
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm512_loadu_si512, _mm512_stream_si512};

    /// Bytes of a cache line.
    const LINE: usize = 64;

    /// Lines that are loaded before the first is stored.
    const BLOCK: usize = 4 * LINE;

    /// Distance of prefetches ahead of the loads, in bytes.
    const AHEAD: usize = 2048;

    /// # Safety
    ///
    /// As for [`CopyFn`](super::CopyFn), on a CPU of [`Level::Avx512`](crate::Level::Avx512).
    pub(super) unsafe extern "C" fn copy(destination: *mut u8, source: *const u8, bytes: usize) {
        // SAFETY: both ranges are valid and do not overlap (contract of `CopyFn`), and `select_bulk_copy` returns this function
        // for CPUs with AVX-512 only.
        unsafe { non_temporal(destination, source, bytes) }
    }

    /// Prefetches may name addresses past the source; a prefetch neither reads into a register nor faults.
    ///
    /// # Safety
    ///
    /// As for [`copy`].
    #[target_feature(enable = "avx512f")]
    unsafe fn non_temporal(destination: *mut u8, source: *const u8, bytes: usize) {
        // A non-temporal store of a whole line spares the read of that line.
        let head = destination.align_offset(LINE).min(bytes);
        let whole = (bytes - head) / BLOCK * BLOCK;
        // SAFETY: head, whole blocks and the rest are in both ranges, one behind the other; stores are to whole lines.
        unsafe {
            destination.copy_from_nonoverlapping(source, head);
            let mut at = head;
            while at < head + whole {
                let (from, to) = (source.add(at), destination.add(at));
                for line in (0..BLOCK).step_by(LINE) {
                    _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD + line).cast());
                }
                let lines = [0, 1, 2, 3].map(|line| _mm512_loadu_si512(from.add(line * LINE).cast()));
                for (line, value) in lines.into_iter().enumerate() {
                    _mm512_stream_si512(to.add(line * LINE).cast(), value);
                }
                at += BLOCK;
            }
            destination.add(at).copy_from_nonoverlapping(source.add(at), bytes - at);
        }
        // Non-temporal stores are not ordered with those that follow, such as the one that starts a device.
        _mm_sfence();
    }
}
