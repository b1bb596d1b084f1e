//! Types as bytes: what comes back, and what hostile bytes do.

mod common;

use common::{Engine, Type, fails};
use dtc::*;
use dtc_tests::generate::random::{Limits, datatype};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::ptr::{null, null_mut};

fn unflatten(engine: &Engine, bytes: &[u8]) -> Result<Type, std::ffi::c_int> {
    let mut made = null_mut();
    // SAFETY: bytes of that length, and a place.
    let status = unsafe { dtc_unflatten(engine.0, bytes.as_ptr().cast(), bytes.len() as i64, &mut made) };
    if status == DTC_OK { Ok(Type(made)) } else { Err(status) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn types_come_back_with_their_bounds_and_bytes(seed: u64) {
        let engine = Engine::new();
        let described = datatype(&mut SmallRng::seed_from_u64(seed), &Limits::ANYWHERE);
        let made = engine.describe(&described);
        let bytes = made.flattened();
        let again = unflatten(&engine, &bytes).expect("what was written");
        let (expected, found) = (made.info(), again.info());
        prop_assert_eq!(
            (found.packed_size, found.lb, found.extent, found.true_lb, found.true_extent, found.hash),
            (expected.packed_size, expected.lb, expected.extent, expected.true_lb, expected.true_extent, expected.hash)
        );
        prop_assert_eq!(
            (found.basic_elements, found.kind, found.kind_size, found.blocks),
            (expected.basic_elements, expected.kind, expected.kind_size, expected.blocks)
        );
        // And may be sent on.
        prop_assert_eq!(unflatten(&engine, &again.flattened()).expect("what was written").info().hash, expected.hash);
    }

    #[test]
    fn hostile_bytes_are_refused(seed: u64, cut: u16, flips in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4)) {
        let engine = Engine::new();
        let made = engine.describe(&datatype(&mut SmallRng::seed_from_u64(seed), &Limits::SMALL));
        let mut bytes = made.flattened();
        let original = bytes.clone();
        if cut % 3 == 0 {
            bytes.truncate(cut as usize % bytes.len());
        }
        for (at, flip) in flips {
            let length = bytes.len();
            if length > 0 {
                bytes[at as usize % length] ^= flip;
            }
        }
        match unflatten(&engine, &bytes) {
            Ok(_) => prop_assert_eq!(bytes, original),
            Err(status) => prop_assert_eq!(status, DTC_ERROR_ENCODING),
        }
    }
}

#[test]
fn buffers_that_are_wrong_are_refused() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let mut length = 0;
    // SAFETY: null pointers and wrong lengths are refused.
    unsafe {
        fails(dtc_flatten_size(int.0, &mut length), DTC_ERROR_COMMIT, "committed");
        common::ok(dtc_type_commit(int.0, 0));
        fails(dtc_flatten_size(int.0, null_mut()), DTC_ERROR_ARGUMENT, "bytes");
        common::ok(dtc_flatten_size(int.0, &mut length));
        let mut bytes = vec![0x5au8; length as usize];
        fails(dtc_flatten(int.0, null_mut(), length), DTC_ERROR_ARGUMENT, "buffer");
        fails(dtc_flatten(int.0, bytes.as_mut_ptr().cast(), length - 1), DTC_ERROR_ARGUMENT, "length");
        fails(dtc_flatten(int.0, bytes.as_mut_ptr().cast(), -1), DTC_ERROR_ARGUMENT, "length");
        assert!(bytes.iter().all(|&byte| byte == 0x5a));
        let mut made = null_mut();
        fails(dtc_unflatten(engine.0, null(), 8, &mut made), DTC_ERROR_ARGUMENT, "bytes");
        fails(dtc_unflatten(engine.0, bytes.as_ptr().cast(), -8, &mut made), DTC_ERROR_ARGUMENT, "bytes");
        fails(dtc_unflatten(engine.0, bytes.as_ptr().cast(), length, &mut made), DTC_ERROR_ENCODING, "other data");
        fails(dtc_unflatten(engine.0, null(), 0, &mut made), DTC_ERROR_ENCODING, "other data");
        fails(dtc_unflatten(engine.0, bytes.as_ptr().cast(), length, null_mut()), DTC_ERROR_ARGUMENT, "type");
    }
}
