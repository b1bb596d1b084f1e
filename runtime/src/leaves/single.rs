//! One element whose numbers are known at commit: a block, or a nest of rows.

use super::direct::{Nest, select_single_nest};
use super::{Level, select};

/// What holds the description of an element, and hands itself to the function that moves it. Between the call of a user and the
/// moves lies nothing else: a copy of 480 bytes takes as long as twenty instructions.
pub trait Single {
    /// Where the element begins in memory, in bytes from the address of the type.
    fn offset(&self) -> isize;

    /// Its rows; a block is one of them.
    fn nest(&self) -> &Nest;
}

/// Moves the element that an object holds between memory, at the address of the type, and the packed bytes.
///
/// # Safety
///
/// See the [safety contract](super#safety-contract-of-every-leaf); the object's nest is the one that the function was selected
/// for.
pub type SingleFn<T> = unsafe fn(holder: &T, memory: *mut u8, packed: *mut u8);

/// The function that moves one element on a CPU of this level, if there is one: for blocks always, for rows with AVX-512 unless they
/// are `streaming` (see [`select_pack_rows`](super::select_pack_rows)), for planes where
/// [`select_nest`](super::select_nest) knows a leaf.
#[must_use]
pub fn select_single<T: Single, const PACK: bool>(level: Level, nest: &Nest, streaming: bool) -> Option<SingleFn<T>> {
    if (nest.planes, nest.rows) == (1, 1) {
        return Some(select_block::<T, PACK>(level, nest.bytes));
    }
    select_single_nest::<T, PACK>(level, nest).or_else(|| {
        let rows = nest.planes == 1 && !streaming;
        if rows { select::select_single_rows::<T, PACK>(level, nest.bytes as u64) } else { None }
    })
}

/// The function that moves one block of `bytes` bytes.
///
/// With AVX-512, up to 512 bytes are as few vectors as hold them, without a branch. Above, stores are to whole lines of the
/// destination but for the ends: 1,320 bytes take 10.6 ns packing and 11.0 unpacking, where the C library's `memcpy` takes 11.5 and
/// 13.2. Long ones are left to the C library.
fn select_block<T: Single, const PACK: bool>(level: Level, bytes: usize) -> SingleFn<T> {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Avx512 {
        use avx512::{lines, masked, vectors};
        // Vectors of 64 bytes and one more of 32 or 64 bytes.
        return match bytes {
            1..=64 => masked::<T, PACK>,
            65..=96 => vectors::<T, 1, 32, PACK>,
            97..=128 => vectors::<T, 1, 64, PACK>,
            129..=160 => vectors::<T, 2, 32, PACK>,
            161..=192 => vectors::<T, 2, 64, PACK>,
            193..=224 => vectors::<T, 3, 32, PACK>,
            225..=256 => vectors::<T, 3, 64, PACK>,
            257..=288 => vectors::<T, 4, 32, PACK>,
            289..=320 => vectors::<T, 4, 64, PACK>,
            321..=352 => vectors::<T, 5, 32, PACK>,
            353..=384 => vectors::<T, 5, 64, PACK>,
            385..=416 => vectors::<T, 6, 32, PACK>,
            417..=448 => vectors::<T, 6, 64, PACK>,
            449..=480 => vectors::<T, 7, 32, PACK>,
            481..=512 => vectors::<T, 7, 64, PACK>,
            513..=16384 => lines::<T, PACK>,
            _ => any::<T, PACK>,
        };
    }
    let _ = (level, bytes);
    any::<T, PACK>
}

/// Destination, source and length.
#[inline(always)]
fn ends<T: Single, const PACK: bool>(holder: &T, memory: *mut u8, packed: *mut u8) -> (*mut u8, *const u8, usize) {
    let (memory, bytes) = (memory.wrapping_offset(holder.offset()), holder.nest().bytes);
    if PACK { (packed, memory, bytes) } else { (memory, packed, bytes) }
}

/// # Safety
///
/// As for [`SingleFn`].
unsafe fn any<T: Single, const PACK: bool>(holder: &T, memory: *mut u8, packed: *mut u8) {
    let (destination, source, bytes) = ends::<T, PACK>(holder, memory, packed);
    // SAFETY: the caller's guarantee.
    unsafe { super::copy(destination, source, bytes) }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::super::block::{Block, in_order, lines as whole_lines};
    use super::super::masked::Masked;
    use super::{Single, ends};
    use core::arch::x86_64::{
        _mm256_loadu_si256, _mm256_storeu_si256, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_loadu_si512,
        _mm512_setzero_si512, _mm512_storeu_si512,
    };

    /// Bytes of a vector.
    const VECTOR: usize = 64;

    /// Moves 1 to 64 bytes.
    ///
    /// # Safety
    ///
    /// As for [`SingleFn`](super::SingleFn), on a CPU of [`Level::Avx512`](super::Level::Avx512).
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn masked<T: Single, const PACK: bool>(holder: &T, memory: *mut u8, packed: *mut u8) {
        let (destination, source, bytes) = ends::<T, PACK>(holder, memory, packed);
        // SAFETY: the caller's guarantee.
        unsafe { Masked::<64>::new(bytes).copy(destination, source) }
    }

    /// Moves `N` vectors and a last one of `TAIL` bytes, which may overlap them; all are loaded before the first is stored.
    ///
    /// # Safety
    ///
    /// As for [`masked`], with `64 * N` to `64 * N + TAIL` bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn vectors<T: Single, const N: usize, const TAIL: usize, const PACK: bool>(
        holder: &T,
        memory: *mut u8,
        packed: *mut u8,
    ) {
        let (destination, source, bytes) = ends::<T, PACK>(holder, memory, packed);
        let (mut values, last) = ([_mm512_setzero_si512(); N], bytes - TAIL);
        // SAFETY: every vector lies inside the block.
        unsafe {
            for (place, value) in values.iter_mut().enumerate() {
                *value = _mm512_loadu_si512(source.add(place * VECTOR).cast());
            }
            let tail = if TAIL == VECTOR {
                _mm512_loadu_si512(source.add(last).cast())
            } else {
                _mm512_castsi256_si512(_mm256_loadu_si256(source.add(last).cast()))
            };
            for (place, value) in values.iter().enumerate() {
                _mm512_storeu_si512(destination.add(place * VECTOR).cast(), *value);
                in_order();
            }
            if TAIL == VECTOR {
                _mm512_storeu_si512(destination.add(last).cast(), tail);
            } else {
                _mm256_storeu_si256(destination.add(last).cast(), _mm512_castsi512_si256(tail));
            }
        }
    }

    /// Moves a first vector, whole lines of the destination, and a last vector, which may overlap them.
    ///
    /// # Safety
    ///
    /// As for [`masked`], with 128 bytes or more.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    pub(super) unsafe fn lines<T: Single, const PACK: bool>(holder: &T, memory: *mut u8, packed: *mut u8) {
        const FOUR: usize = 4 * VECTOR;
        let (destination, source, bytes) = ends::<T, PACK>(holder, memory, packed);
        // SAFETY: lines are moved while more than one is left, and the last vector ends with the block.
        unsafe {
            whole_lines::<1>(destination, source);
            let mut at = VECTOR - destination as usize % VECTOR;
            while at + FOUR <= bytes {
                whole_lines::<4>(destination.add(at), source.add(at));
                at += FOUR;
            }
            while at + VECTOR < bytes {
                whole_lines::<1>(destination.add(at), source.add(at));
                at += VECTOR;
            }
            whole_lines::<1>(destination.add(bytes - VECTOR), source.add(bytes - VECTOR));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::At;
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_else() {
        let source: Vec<u8> = (0..20_000).map(|at| (at * 7 / 3) as u8).collect();
        for level in [Level::Portable, super::super::detect_level()] {
            for length in (1..=700).chain([1023, 2047, 2048, 2049, 4080, 16_384, 16_385]) {
                for (to, from) in [(0, 0), (1, 0), (63, 5), (7, 64)] {
                    let mut wanted = vec![0x5a; 20_000];
                    wanted[to..to + length].copy_from_slice(&source[from..from + length]);
                    let mut packed = vec![0x5a; 20_000];
                    let mut memory = packed.clone();
                    let nest = Nest { bytes: length, rows: 1, stride: 0, planes: 1, plane_stride: 0 };
                    // SAFETY: both blocks lie in their buffers, whose other sides are only read.
                    unsafe {
                        let pack = select_single::<At, true>(level, &nest, false).unwrap();
                        pack(&At(from as isize, nest), source.as_ptr().cast_mut(), packed.as_mut_ptr().add(to));
                        let unpack = select_single::<At, false>(level, &nest, false).unwrap();
                        let block = At(to as isize - 100, nest);
                        unpack(&block, memory.as_mut_ptr().wrapping_add(100), source.as_ptr().add(from).cast_mut());
                    }
                    assert!(packed == wanted, "{level:?}, pack of {length} bytes, {to} from {from}");
                    assert!(memory == wanted, "{level:?}, unpack of {length} bytes, {to} from {from}");
                }
            }
        }
    }
}
