//! `external32` by way of the interface: whole and in fragments, beside the runtime's own, and what is refused.

mod common;

use common::{Engine, Type, fails, message, ok};
use dtc::*;
use dtc_compiler::lower;
use dtc_runtime::ExternalError;
use dtc_runtime::{Memory, MemoryMut, Range};
use dtc_tests::generate::random::{Limits, datatype};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ptr::{null, null_mut};

/// The status of a pack, and how many bytes it packed.
fn pack(made: &Type, memory: &[u8], origin: usize, offset: u64, packed: &mut [u8]) -> (i32, i64) {
    let mut done = -1;
    let (source, target) = (memory.as_ptr().wrapping_add(origin), packed.as_mut_ptr());
    // SAFETY: the memory holds one element, and the length is that of the buffer.
    let status = unsafe {
        let max = packed.len() as i64;
        dtc_pack_external(made.0, source.cast(), 1, offset as i64, target.cast(), max, &mut done, null())
    };
    (status, done)
}

fn unpack(made: &Type, packed: &[u8], offset: u64, memory: &mut [u8], origin: usize) -> i64 {
    let mut done = -1;
    let (source, target) = (packed.as_ptr(), memory.as_mut_ptr().wrapping_add(origin));
    // SAFETY: a live type, and slices that hold the elements and the packed bytes of the tests.
    ok(unsafe {
        let length = packed.len() as i64;
        dtc_unpack_external(made.0, target.cast(), 1, offset as i64, source.cast(), length, &mut done, null())
    });
    done
}

#[test]
fn fragments_are_those_of_the_runtime() {
    let (engine, runtime) = (Engine::new(), dtc_runtime::Engine::new());
    let mut rng = SmallRng::seed_from_u64(32);
    let (mut converted, mut misfits) = (0, 0);
    for _ in 0..300 {
        let described = datatype(&mut rng, &Limits::DISJOINT);
        let map: Vec<i64> = lower(&described).displacements().collect();
        let (low, high) = (map.iter().min().copied().unwrap_or(0), map.iter().max().map_or(0, |high| high + 1));
        let origin = (-low).max(0) as usize;
        let memory: Vec<u8> = (0..origin + high.max(0) as usize).map(|_| rng.random()).collect();
        let (made, independent) = (engine.describe(&described), runtime.commit(&described));
        let mut total = -1;
        // SAFETY: a live type and a place.
        ok(unsafe { dtc_external_size(made.0, 1, &mut total) });
        assert_eq!(Ok(total as usize), independent.packed_external_size(1));
        let mut restored = vec![0x5a; memory.len()];
        let mut expected = restored.clone();
        for _ in 0..4 {
            let offset = rng.random_range(0..=total as u64);
            let length = rng.random_range(0..=total as usize + 3);
            let (mut packed, mut wanted) = (vec![0xa5; length], vec![0xa5; length]);
            let range = Range::elements(1).fragment(offset, length as u64);
            let result = independent.pack_external(Memory::at(&memory, origin), range, &mut wanted);
            let (status, done) = pack(&made, &memory, origin, offset, &mut packed);
            match result {
                Ok(bytes) => assert_eq!((status, done), (DTC_OK, bytes as i64)),
                Err(error) => {
                    assert!(matches!(error, ExternalError::Value { .. }), "{error}");
                    assert_eq!((status, message()), (DTC_ERROR_VALUE, error.to_string()));
                    misfits += 1;
                }
            }
            assert_eq!(packed, wanted);
            let read = independent.unpack_external(&wanted, range, MemoryMut::at(&mut expected, origin));
            assert_eq!(Ok(unpack(&made, &wanted, offset, &mut restored, origin) as usize), read);
            assert_eq!(restored, expected);
            converted += done;
        }
    }
    assert!(converted > 10_000 && misfits > 10, "{converted} bytes, {misfits} values that do not fit");
}

#[test]
fn known_bytes() {
    let engine = Engine::new();
    let long = engine.named("MPI_LONG");
    // SAFETY: a live type.
    ok(unsafe { dtc_type_commit(long.0, 0) });
    let mut packed = [0; 4];
    assert_eq!(pack(&long, &(-2i64).to_ne_bytes(), 0, 0, &mut packed), (DTC_OK, 4));
    assert_eq!(packed, [0xff, 0xff, 0xff, 0xfe]);
    let mut memory = [0; 8];
    assert_eq!(unpack(&long, &packed, 0, &mut memory, 0), 4);
    assert_eq!(i64::from_ne_bytes(memory), -2);
    // What does not fit is named and cut, and everything is packed.
    assert_eq!(pack(&long, &(7i64 + (1 << 40)).to_ne_bytes(), 0, 0, &mut packed), (DTC_ERROR_VALUE, 4));
    assert!(message().contains("external byte 0") && message().contains("MPI_LONG"), "{}", message());
    assert_eq!(packed, [0, 0, 0, 7]);
}

#[test]
fn what_is_wrong_is_refused() {
    let engine = Engine::new();
    let long = engine.named("MPI_LONG");
    let (memory, mut packed) = ([7i64; 2], [0x5au8; 8]);
    let mut call = |count, offset, max, transfer: *const dtc_transfer| {
        let (source, target) = (memory.as_ptr().cast(), packed.as_mut_ptr().cast());
        // SAFETY: what is in range lies in the buffers; the rest is refused.
        unsafe { dtc_pack_external(long.0, source, count, offset, target, max, null_mut(), transfer) }
    };
    fails(call(1, 0, 4, null()), DTC_ERROR_COMMIT, "committed");
    // SAFETY: a live type, and null places.
    unsafe {
        fails(dtc_external_size(long.0, 1, &mut 0), DTC_ERROR_COMMIT, "committed");
        ok(dtc_type_commit(long.0, 0));
        fails(dtc_external_size(long.0, 1, null_mut()), DTC_ERROR_ARGUMENT, "bytes");
        fails(dtc_external_size(long.0, -1, &mut 0), DTC_ERROR_ARGUMENT, "count");
        fails(dtc_external_size(long.0, i64::MAX, &mut 0), DTC_ERROR_RANGE, "count");
        fails(dtc_external_size(null(), 1, &mut 0), DTC_ERROR_HANDLE, "dtc_type");
    }
    fails(call(-1, 0, 4, null()), DTC_ERROR_ARGUMENT, "count");
    fails(call(1, -1, 4, null()), DTC_ERROR_ARGUMENT, "offset");
    fails(call(1, 0, -4, null()), DTC_ERROR_ARGUMENT, "max");
    // A long has 4 bytes there.
    fails(call(1, 5, 4, null()), DTC_ERROR_RANGE, "offset: expected at most 4, found 5");
    fails(call(i64::MAX, 0, 4, null()), DTC_ERROR_RANGE, "count");
    // SAFETY: integers, and a pointer that may be null.
    let mut elsewhere: dtc_transfer = unsafe { std::mem::zeroed() };
    elsewhere.size = size_of::<dtc_transfer>() as i64;
    elsewhere.memory = DTC_MEMORY_DEVICE;
    fails(call(1, 0, 4, &elsewhere), DTC_ERROR_MEMORY, "memory: expected memory of the host");
    elsewhere.flags = DTC_TRANSFER_ENQUEUE;
    fails(call(1, 0, 4, &elsewhere), DTC_ERROR_ARGUMENT, "flags");
    ok(call(1, 4, 4, null()));
    assert_eq!(packed, [0x5a; 8]);
    let (mut target, source) = ([0i64; 1], [1u8; 4]);
    // SAFETY: a null side is refused, unless there is nothing to move.
    unsafe {
        let from = memory.as_ptr().cast();
        fails(dtc_pack_external(long.0, from, 1, 0, null_mut(), 4, null_mut(), null()), DTC_ERROR_ARGUMENT, "packed");
        ok(dtc_pack_external(long.0, null(), 0, 0, null_mut(), 4, null_mut(), null()));
        let (to, bytes) = (target.as_mut_ptr().cast(), source.as_ptr().cast());
        fails(dtc_unpack_external(long.0, to, 1, 5, bytes, 4, null_mut(), null()), DTC_ERROR_RANGE, "offset");
        fails(dtc_unpack_external(long.0, to, 1, 0, bytes, -4, null_mut(), null()), DTC_ERROR_ARGUMENT, "length");
    }
    assert_eq!(target, [0]);
}
