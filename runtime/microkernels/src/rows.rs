//! Rows at one stride, and planes of such rows.

use super::block::{Block, Library, transfer};
use super::tile::LINE;

/// An unpack of so many short rows and more, each in a line of its own, finds them in the second-level cache at best.
const FAR_ROWS: usize = 512;

/// So many rows ahead, an unpack fetches the lines that it will write.
const AHEAD: usize = 16;

/// Longer blocks often lie in two lines, and a fetched one alone gains nothing.
const FAR_BYTES: usize = 16;

/// Rows closer than this follow each other as the hardware expects; fetching them on top cost a fifth.
const FAR_STRIDE: usize = 4 * LINE;

/// Up to so many rows, the same row of a later plane is fetched: rows ahead would leave out the first ones of each plane.
const SHORT_PLANE: usize = 128;

/// Pages that the processor knows the addresses of. Fetching beyond waits for them just as a store does, and cost a fifth; a pack
/// in pairs cost a twentieth.
const KNOWN_PAGES: usize = 2048;

/// Beyond the known pages, rows this close still gain by being fetched.
const CLOSE_STRIDE: usize = 1 << 10;

/// So many rows at multiples of half a page, which crowd into a few sets of each cache, gain by it again: a third.
const CROWDED_ROWS: usize = 1 << 17;

/// How far ahead of each row lines are fetched, in bytes of `memory`; 0 if they are not.
///
/// Stores leave in order and wait for their lines one by one, where loads overtake each other: 3,000 words at random places of 72
/// KiB took 3.6 us without and 2.2 us with fetching ahead. In the first level it would cost a quarter.
#[inline(always)]
pub(super) fn ahead<B: Block, const PACK: bool>(
    planes: usize,
    plane_stride: isize,
    rows: usize,
    stride: isize,
) -> isize {
    if PACK || !B::FETCHED || B::EXACT == 0 || B::EXACT > FAR_BYTES {
        return 0;
    }
    let (step, lines) = (stride.unsigned_abs(), planes.saturating_mul(rows));
    let apart = step >= FAR_STRIDE && (planes == 1 || plane_stride.unsigned_abs() >= FAR_STRIDE);
    let unknown = are_unknown(lines, step);
    let crowded = step.is_multiple_of(PAGE / 2) && lines > CROWDED_ROWS;
    if !apart || lines < FAR_ROWS || unknown && !crowded {
        0
    } else if planes > 1 && rows <= SHORT_PLANE {
        plane_stride.wrapping_mul(AHEAD.div_ceil(rows.max(1)) as isize)
    } else {
        stride.wrapping_mul(AHEAD as isize)
    }
}

/// Whether rows at a stride, in bytes, lie in more pages than the processor knows the addresses of, and not close together.
pub(super) fn are_unknown(rows: usize, stride: usize) -> bool {
    stride > CLOSE_STRIDE && rows.saturating_mul(stride.min(PAGE)) > KNOWN_PAGES * PAGE
}

/// Fetches the line at an address, wherever it is: a prefetch neither reads into a register nor faults.
#[inline(always)]
pub(super) fn fetch(address: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as said above.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The loop of [`RowsFn`](super::RowsFn).
///
/// # Safety
///
/// The contract of [`RowsFn`](super::RowsFn).
#[inline(always)]
pub(super) unsafe fn rows<B: Block, const PACK: bool>(
    memory: *mut u8,
    packed: *mut u8,
    rows: usize,
    block: B,
    stride: isize,
) {
    // SAFETY: the caller's guarantee.
    unsafe {
        if B::LONG {
            long::<B, PACK>(memory, packed, rows, block, stride, 1);
            return;
        }
        let ahead = ahead::<B, PACK>(1, 0, rows, stride);
        if !PACK && ahead != 0 {
            short::<B, PACK, true>(memory, packed, rows, block, stride, ahead);
        } else {
            short::<B, PACK, false>(memory, packed, rows, block, stride, 0);
        }
    }
}

/// Rows of at most this many bytes are moved four at a time by every level.
#[cfg(target_arch = "x86_64")]
const ALONE: usize = 32;

/// Rows that are not long, four at a time; where `FETCH`, with what lies `ahead` fetched.
///
/// # Safety
///
/// The contract of [`RowsFn`](super::RowsFn).
#[inline(always)]
unsafe fn short<B: Block, const PACK: bool, const FETCH: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    mut rows: usize,
    block: B,
    stride: isize,
    ahead: isize,
) {
    let bytes = block.bytes();
    // SAFETY: the caller guarantees each row; `memory` may step outside after the last row, hence the wrapping arithmetic.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if !B::FETCHED && bytes > ALONE {
            // Zen's prefetcher follows the stride of one load: 987 rows of 64 bytes in the second-level cache take 0.89 us one at
            // a time and 1.04 us by four. The compiler unrolls loops whose number of iterations it knows.
            while rows > 0 {
                transfer::<B, PACK>(block, memory, packed);
                memory = memory.wrapping_offset(stride);
                packed = packed.add(bytes);
                rows = super::block::opaque(rows as isize - 1) as usize;
            }
            return;
        }
        while rows >= 4 {
            let four = [0, 1, 2, 3].map(|row| memory.wrapping_offset(stride.wrapping_mul(row)));
            if FETCH {
                fetch(four[0].wrapping_offset(ahead));
                fetch(four[1].wrapping_offset(ahead));
                fetch(four[2].wrapping_offset(ahead));
                fetch(four[3].wrapping_offset(ahead));
            }
            transfer::<B, PACK>(block, four[0], packed);
            transfer::<B, PACK>(block, four[1], packed.add(bytes));
            transfer::<B, PACK>(block, four[2], packed.add(2 * bytes));
            transfer::<B, PACK>(block, four[3], packed.add(3 * bytes));
            memory = memory.wrapping_offset(stride.wrapping_mul(4));
            packed = packed.add(4 * bytes);
            rows -= 4;
        }
        while rows > 0 {
            if FETCH {
                fetch(memory.wrapping_offset(ahead));
            }
            transfer::<B, PACK>(block, memory, packed);
            memory = memory.wrapping_offset(stride);
            packed = packed.add(bytes);
            rows -= 1;
        }
    }
}

/// An unpack of so many bytes finds its destination in the second-level cache; of more, memory decides, and of fewer, the first
/// level has it.
const FETCHED_TOTAL: std::ops::RangeInclusive<usize> = 32 << 10..=1 << 20;

/// Longer rows are not fetched ahead: they would evict each other.
const FETCHED_ROW: usize = 8 << 10;

/// So do shorter rows than half of a page at multiples of a page, which all fall into a few sets of the cache.
const PAGE: usize = 4 << 10;

/// Of so many bytes in all, rows of [`LIBRARY_ROW`] and more are left to the C library, which copies them by string instructions:
/// 4 MiB that lie in the third-level cache pack in 0.96 of the time. In the second level vectors take 0.9 of the library's time.
const LIBRARY_TOTAL: usize = 3 << 19;

/// See [`LIBRARY_TOTAL`].
const LIBRARY_ROW: usize = 2 << 10;

/// Rows that are long themselves, so that unrolling the loop around them gains nothing. An unpack fetches the lines of the next
/// row while it writes one, since stores wait for their lines and nothing else can tell where the next row is: a tenth faster.
///
/// # Safety
///
/// The contract of [`RowsFn`](super::RowsFn).
#[inline(always)]
unsafe fn long<B: Block, const PACK: bool>(
    mut memory: *mut u8,
    packed: *mut u8,
    rows: usize,
    block: B,
    stride: isize,
    planes: usize,
) {
    let bytes = block.bytes();
    if bytes >= LIBRARY_ROW && planes.saturating_mul(rows * bytes) >= LIBRARY_TOTAL {
        for row in 0..rows {
            // SAFETY: the caller guarantees each row.
            unsafe { transfer::<_, PACK>(Library::new(bytes), memory, packed.add(row * bytes)) };
            memory = memory.wrapping_offset(stride);
        }
        return;
    }
    let crowded = stride % PAGE as isize == 0 && bytes < PAGE / 2;
    let fetched = B::FETCHED && !PACK && bytes <= FETCHED_ROW && FETCHED_TOTAL.contains(&(rows * bytes)) && !crowded;
    for row in 0..rows {
        let next = memory.wrapping_offset(stride);
        if fetched {
            for part in (0..bytes).step_by(LINE) {
                fetch(next.wrapping_add(part));
            }
        }
        // SAFETY: the caller guarantees each row.
        unsafe { transfer::<B, PACK>(block, memory, packed.add(row * bytes)) };
        memory = next;
    }
}

/// The loop of [`PlanesFn`](super::PlanesFn).
///
/// # Safety
///
/// The contract of [`PlanesFn`](super::PlanesFn).
#[inline(always)]
pub(super) unsafe fn planes<B: Block, const PACK: bool>(
    mut memory: *mut u8,
    mut packed: *mut u8,
    planes: usize,
    plane_stride: isize,
    rows: usize,
    block: B,
    stride: isize,
) {
    let plane = rows * block.bytes();
    let ahead = ahead::<B, PACK>(planes, plane_stride, rows, stride);
    for _ in 0..planes {
        // SAFETY: the caller guarantees each plane.
        unsafe {
            if B::LONG {
                long::<B, PACK>(memory, packed, rows, block, stride, planes);
            } else if !PACK && ahead != 0 {
                short::<B, PACK, true>(memory, packed, rows, block, stride, ahead);
            } else {
                short::<B, PACK, false>(memory, packed, rows, block, stride, 0);
            }
            packed = packed.add(plane);
        }
        memory = memory.wrapping_offset(plane_stride);
    }
}
