//! What all threads know of a datatype without looking it up: its size, and which calls dtc does with it. It says of calls alone that the MPI does them,
//! so that an entry that is out of date costs time, and no more.

use dtc_mpi_table::{Sizes, Use};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// An entry of the table: 0, or a handle, and what is known of the datatype. A thread may read the second of another handle while that is replaced.
struct Kept {
    /// [`REPLACED`] while a thread writes both.
    datatype: AtomicUsize,
    /// The size, and above it the sizes of calls, by use.
    known: AtomicU64,
}

/// No handle of any MPI.
const REPLACED: usize = usize::MAX;

/// Bits of the size of a datatype. Larger ones are not kept.
const SIZE: u32 = 24;

const _: () = assert!(SIZE + Sizes::BITS * Use::ALL.len() as u32 <= u64::BITS);

static KEPT: [Kept; 256] = [const { Kept { datatype: AtomicUsize::new(0), known: AtomicU64::new(0) } }; 256];

/// The place of a datatype, by its handle.
#[inline(always)]
fn place(datatype: usize) -> &'static Kept {
    // The upper 8 bits of a product with 2^64 over the golden ratio.
    &KEPT[(datatype as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 56]
}

/// Keeps the size of a datatype, and the packed bytes of the calls that dtc does with it. They are forgotten when the program frees the handle.
pub fn keep(datatype: usize, size: i64, served: &[Sizes; Use::ALL.len()]) {
    if !(0..1 << SIZE).contains(&size) {
        return;
    }
    let bits = served.iter().rev().fold(0, |bits, sizes| bits << Sizes::BITS | sizes.bits());
    let place = place(datatype);
    // One thread writes at a time: otherwise a handle could stay with what is known of another.
    if place.datatype.swap(REPLACED, Ordering::Acquire) == REPLACED {
        return;
    }
    place.known.store(bits << SIZE | size as u64, Ordering::Release);
    place.datatype.store(datatype, Ordering::Release);
}

/// Before the program frees a handle, and when its datatype is decoded.
pub fn forget(datatype: usize) {
    let place = place(datatype);
    let _ = place.datatype.compare_exchange(datatype, 0, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether the MPI does a call with so many elements, as far as that is kept.
#[inline(always)]
pub fn is_left(datatype: usize, elements: i64, of: Use) -> bool {
    let place = place(datatype);
    if place.datatype.load(Ordering::Acquire) != datatype {
        return false;
    }
    let known = place.known.load(Ordering::Relaxed);
    let size = (known & ((1 << SIZE) - 1)) as i64;
    let sizes = Sizes::of_bits(known >> (SIZE + Sizes::BITS * of as u32));
    !elements.checked_mul(size).is_some_and(|bytes| sizes.hold(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_has_what_is_known_of_it() {
        // Two handles of one entry: of one, packs are the MPI's, of the other, unpacks.
        let first = 0x1000;
        let second = (1..).map(|at| first + at * 16).find(|&other| std::ptr::eq(place(first), place(other))).unwrap();
        let served =
            [[Sizes::NONE, Sizes::ALL, Sizes::NONE, Sizes::NONE], [Sizes::ALL, Sizes::NONE, Sizes::NONE, Sizes::NONE]];
        std::thread::scope(|scope| {
            for (datatype, served) in [(first, served[0]), (second, served[1])] {
                scope.spawn(move || (0..100_000).for_each(|_| keep(datatype, 1000, &served)));
            }
        });
        let left = |datatype| [Use::Pack, Use::Unpack].map(|of| is_left(datatype, 3, of));
        let found = [left(first), left(second)];
        assert!(found == [[true, false], [false; 2]] || found == [[false; 2], [false, true]], "{found:?}");
        forget(first);
        forget(second);
    }

    #[test]
    fn what_is_kept_of_a_datatype_says_which_calls_are_left() {
        let (datatype, all) = (0x7f00_1234_5670, [Sizes::ALL; Use::ALL.len()]);
        assert!(!is_left(datatype, 1, Use::Pack));
        let served = [Sizes::NONE, Sizes::ALL, Sizes::NONE, Sizes::NONE];
        keep(datatype, 1000, &served);
        assert!(is_left(datatype, 3, Use::Pack) && !is_left(datatype, 3, Use::Unpack));
        assert!(is_left(datatype, 3, Use::Exchange) && !is_left(datatype + 16, 3, Use::Exchange));
        forget(datatype);
        assert!(!is_left(datatype, 3, Use::Pack));
        keep(datatype, 1 << SIZE, &all);
        assert!(!is_left(datatype, 0, Use::Pack));
    }
}
