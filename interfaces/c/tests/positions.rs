//! Where the bytes lie: iov lists, leading pieces, borders.

mod common;

use common::{Engine, Type, fails, ok};
use dtc::*;
use dtc_compiler::lower;
use dtc_tests::generate::random::{Limits, datatype};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ptr::{null, null_mut};

const BASE: usize = 1 << 40;

/// Pieces from one on: displacements and lengths, and the bytes that the call says they have.
fn iov(made: &Type, count: i64, first: i64, skip: i64, max: usize) -> (Vec<(i64, usize)>, i64) {
    let mut list = vec![dtc_iovec { base: null_mut(), length: 0 }; max];
    let (mut pieces, mut bytes) = (-1, -1);
    let base = std::ptr::without_provenance(BASE);
    // SAFETY: a list of that length; the buffer is not touched.
    let status =
        unsafe { dtc_iov(made.0, base, count, first, skip, list.as_mut_ptr(), max as i64, &mut pieces, &mut bytes) };
    ok(status);
    list.truncate(pieces as usize);
    (list.iter().map(|piece| (piece.base.addr().wrapping_sub(BASE) as i64, piece.length)).collect(), bytes)
}

#[test]
fn lists_from_any_piece_and_byte_agree_with_the_map() {
    let engine = Engine::new();
    let mut rng = SmallRng::seed_from_u64(3);
    for _ in 0..300 {
        let described = datatype(&mut rng, &Limits::SMALL);
        let (layout, extent) = (lower(&described), described.facts().extent());
        let count = rng.random_range(0..4i64);
        let map: Vec<i64> =
            (0..count).flat_map(|each| layout.displacements().map(move |at| at + each * extent)).collect();
        let made = engine.describe(&described);
        let (mut pieces, mut bytes) = (-1, -1);
        // SAFETY: a live type, and places.
        ok(unsafe { dtc_iov_len(made.0, count, -1, &mut pieces, &mut bytes) });
        assert_eq!((pieces, bytes), (count * made.info().blocks, map.len() as i64));
        let (all, bytes) = iov(&made, count, 0, 0, pieces as usize + 2);
        assert_eq!((all.len() as i64, bytes), (pieces, map.len() as i64));
        let covered = all.iter().flat_map(|&(at, length)| at..at + length as i64);
        assert!(covered.eq(map.iter().copied()));
        let lengths = all.iter().map(|&(_, length)| length as i64);
        if let Some(longest) = lengths.clone().max() {
            assert_eq!((lengths.min(), longest), (Some(made.info().shortest_block), made.info().longest_block));
        }
        for _ in 0..8 {
            let offset = rng.random_range(0..=map.len()) as i64;
            let (mut piece, mut skip) = (-1, -1);
            // SAFETY: a live type, and results on the stack.
            ok(unsafe { dtc_iov_at(made.0, count, offset, &mut piece, &mut skip) });
            let max = rng.random_range(0..5);
            let (some, bytes) = iov(&made, count, piece, skip, max);
            let covered: Vec<i64> = some.iter().flat_map(|&(at, length)| at..at + length as i64).collect();
            assert_eq!(covered, map[offset as usize..offset as usize + bytes as usize]);
            // Whole pieces of the first so many bytes.
            let (mut fitting, mut held) = (-1, -1);
            // SAFETY: a live type, and results on the stack.
            ok(unsafe { dtc_iov_len(made.0, count, offset, &mut fitting, &mut held) });
            let ends = all.iter().scan(0, |end, &(_, length)| {
                *end += length as i64;
                Some(*end)
            });
            let whole: Vec<i64> = ends.take_while(|&end| end <= offset).collect();
            assert_eq!((fitting as usize, held), (whole.len(), whole.last().copied().unwrap_or(0)));
        }
        let (mut begin, mut leading) = (-1, -1);
        // SAFETY: a live type, and results on the stack.
        ok(unsafe { dtc_leading_piece(made.0, count, &mut begin, &mut leading) });
        let mut run = map.windows(2).take_while(|pair| pair[1] == pair[0] + 1).count() + 1;
        run = run.min(map.len());
        assert!(leading as usize <= run && (leading > 0) == (run > 0));
        if leading > 0 {
            assert_eq!(begin, map[0]);
        }
        let sizes = (0..count)
            .flat_map(|_| layout.walk())
            .flat_map(|piece| vec![piece.kind.size() as i64; piece.count as usize]);
        let borders: Vec<i64> = sizes.scan(0, |end, size| Some(std::mem::replace(end, *end + size))).collect();
        for _ in 0..8 {
            let offset = rng.random_range(0..=map.len()) as i64;
            let mut border = -1;
            // SAFETY: a live type, and results on the stack.
            ok(unsafe { dtc_element_border(made.0, count, offset, &mut border) });
            let expected = match offset == map.len() as i64 {
                true => offset,
                false => *borders.iter().rev().find(|&&border| border <= offset).unwrap_or(&0),
            };
            assert_eq!(border, expected);
        }
    }
}

#[test]
fn huge_lists_are_entered_anywhere_at_once() {
    let engine = Engine::new();
    let byte = engine.named("MPI_BYTE");
    let wide = engine.create(DTC_COMBINER_VECTOR, &[1 << 40, 3, 4], &[], &[&byte], None).unwrap();
    // SAFETY: a live type.
    ok(unsafe { dtc_type_commit(wide.0, 0) });
    let first = (1 << 39) + 12_345;
    assert_eq!(iov(&wide, 1, first, 1, 2).0, [(4 * first + 1, 2), (4 * first + 4, 3)]);
    let (mut pieces, mut bytes) = (0, 0);
    // SAFETY: a live type, and results on the stack.
    ok(unsafe { dtc_iov_len(wide.0, 1, 3 * first + 2, &mut pieces, &mut bytes) });
    assert_eq!((pieces, bytes), (first, 3 * first));
}

#[test]
fn questions_that_are_wrong_are_refused() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let mut number = 0;
    let mut list = [dtc_iovec { base: null_mut(), length: 0 }; 2];
    // SAFETY: wrong numbers and null pointers are refused.
    unsafe {
        fails(dtc_iov_len(int.0, 1, -1, &mut number, null_mut()), DTC_ERROR_COMMIT, "committed");
        ok(dtc_type_commit(int.0, 0));
        fails(dtc_iov_len(int.0, -1, -1, &mut number, null_mut()), DTC_ERROR_ARGUMENT, "count");
        fails(dtc_iov_len(int.0, 1, -2, &mut number, null_mut()), DTC_ERROR_ARGUMENT, "max_bytes");
        fails(dtc_iov_len(int.0, i64::MAX, -1, &mut number, null_mut()), DTC_ERROR_RANGE, "count");
        let mut ask = |first, skip, list: *mut dtc_iovec, max| {
            dtc_iov(int.0, null(), 3, first, skip, list, max, &mut number, null_mut())
        };
        fails(ask(-1, 0, list.as_mut_ptr(), 2), DTC_ERROR_ARGUMENT, "first");
        fails(ask(4, 0, list.as_mut_ptr(), 2), DTC_ERROR_RANGE, "first");
        fails(ask(0, 5, list.as_mut_ptr(), 2), DTC_ERROR_ARGUMENT, "skip");
        fails(ask(0, -1, list.as_mut_ptr(), 2), DTC_ERROR_ARGUMENT, "skip");
        fails(ask(0, 0, null_mut(), 2), DTC_ERROR_ARGUMENT, "iov");
        fails(ask(0, 0, list.as_mut_ptr(), -2), DTC_ERROR_ARGUMENT, "max_pieces");
        ok(ask(3, 0, list.as_mut_ptr(), 2));
        assert_eq!(number, 0);
        fails(dtc_iov_at(int.0, 1, 5, &mut number, null_mut()), DTC_ERROR_RANGE, "offset");
        fails(dtc_iov_at(int.0, 1, -5, &mut number, null_mut()), DTC_ERROR_ARGUMENT, "offset");
        fails(dtc_element_border(int.0, 1, 5, &mut number), DTC_ERROR_RANGE, "offset");
        fails(dtc_element_border(int.0, 1, 4, null_mut()), DTC_ERROR_ARGUMENT, "border");
        fails(dtc_leading_piece(int.0, -1, null_mut(), &mut number), DTC_ERROR_ARGUMENT, "count");
        fails(dtc_leading_piece(int.0, 1, null_mut(), null_mut()), DTC_ERROR_ARGUMENT, "bytes");
    }
}
