//! Contiguous copies of every level of this CPU.

use super::levels;
use dtc_microkernels::{select_bulk_copy, select_copy};

#[test]
fn every_length_is_copied_and_nothing_else() {
    let source: Vec<u8> = (0..20_000).map(|at| (at * 7 / 3) as u8).collect();
    for level in levels() {
        for length in (1..=700).chain([1023, 2047, 2048, 2049, 4080, 16_384, 16_385]) {
            let copy = select_copy(level, length as u64);
            for (to, from) in [(0, 0), (1, 0), (63, 5), (7, 64)] {
                let mut wanted = vec![0x5a; 20_000];
                let mut found = wanted.clone();
                wanted[to..to + length].copy_from_slice(&source[from..from + length]);
                // SAFETY: both blocks are in their buffers.
                unsafe { copy(found.as_mut_ptr().add(to), source.as_ptr().add(from), length) };
                assert!(found == wanted, "{level:?}, {length} bytes, {to} from {from}");
            }
        }
    }
}

#[test]
fn every_alignment_and_length_is_copied_and_nothing_else() {
    let source: Vec<u8> = (0..6000).map(|at| (at * 7 / 3) as u8).collect();
    for level in levels() {
        let copy = select_bulk_copy(level);
        for (to, from) in [(0, 0), (1, 0), (0, 1), (63, 5), (7, 64), (33, 31)] {
            for length in [0, 1, 63, 64, 65, 255, 256, 257, 319, 1000, 4096, 5555] {
                let mut found = vec![0x5a; 6000];
                // SAFETY: both ranges are in their buffers.
                unsafe { copy(found.as_mut_ptr().add(to), source.as_ptr().add(from), length) };
                let mut wanted = vec![0x5a; 6000];
                wanted[to..to + length].copy_from_slice(&source[from..from + length]);
                assert!(found == wanted, "{level:?}, {length} bytes, {to} from {from}");
            }
        }
    }
}
