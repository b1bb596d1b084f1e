//! Copies from type to type, and unpacking with an operation.

mod common;

use common::{Engine, Type, fails, ok};
use dtc::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// One side of a copy.
fn elements(r#type: *const dtc_type, memory: *const c_void, count: i64, offset: i64) -> dtc_elements {
    dtc_elements { r#type, memory: memory.cast_mut(), count, offset }
}

fn column(engine: &Engine, name: &str) -> Type {
    let element = engine.named(name);
    let made = engine.create(DTC_COMBINER_VECTOR, &[3, 1, 2], &[], &[&element], None).unwrap();
    // SAFETY: a live type.
    ok(unsafe { dtc_type_commit(made.0, 0) });
    made
}

#[test]
fn copies_are_packs_and_unpacks() {
    let engine = Engine::new();
    let (ints, doubles) = (column(&engine, "MPI_INT"), column(&engine, "MPI_DOUBLE"));
    let from: Vec<u8> = (0..40).collect();
    for bytes in 0..14usize {
        for (read, written) in [(0usize, 0usize), (3, 5), (11, 1), (12, 0)] {
            let mut to = vec![0xa5u8; 40];
            let mut done = -1;
            let (source, target) = (from.as_ptr().cast(), to.as_mut_ptr().cast());
            let (reading, writing) = (read as i64, written as i64);
            // SAFETY: both buffers are as long as their types.
            ok(unsafe {
                dtc_copy(
                    &elements(ints.0, source, 1, reading),
                    &elements(doubles.0, target, 1, writing),
                    bytes as i64,
                    &mut done,
                    null(),
                )
            });
            let mut packed = vec![0u8; bytes];
            let length = ints.pack(&from, 0, 1, reading, &mut packed);
            let mut expected = vec![0xa5u8; 40];
            doubles.unpack(&packed[..length], &mut expected, 0, 1, writing);
            assert_eq!((done as usize, to), (length, expected));
        }
    }
    let mut place = [0u8; 40];
    let mut call = |read, written, bytes, transfer: *const dtc_transfer| {
        let (source, target) = (from.as_ptr().cast(), place.as_mut_ptr().cast());
        // SAFETY: what is wrong is refused.
        unsafe {
            dtc_copy(
                &elements(ints.0, source, 1, read),
                &elements(doubles.0, target, 1, written),
                bytes,
                null_mut(),
                transfer,
            )
        }
    };
    fails(call(13, 0, 1, null()), DTC_ERROR_RANGE, "source offset");
    fails(call(0, 25, 1, null()), DTC_ERROR_RANGE, "destination offset");
    fails(call(-1, 0, 1, null()), DTC_ERROR_ARGUMENT, "source offset");
    fails(call(0, 0, -1, null()), DTC_ERROR_ARGUMENT, "bytes");
    // SAFETY: integers, and a pointer that may be null.
    let mut elsewhere: dtc_transfer = unsafe { std::mem::zeroed() };
    (elsewhere.size, elsewhere.packed) = (size_of::<dtc_transfer>() as i64, DTC_MEMORY_DEVICE);
    elsewhere.packed_device = 99;
    fails(call(0, 0, 1, &elsewhere), DTC_ERROR_DEVICE, "GPU");
    (elsewhere.packed, elsewhere.flags) = (0, 8);
    fails(call(0, 0, 1, &elsewhere), DTC_ERROR_ARGUMENT, "flags");
    (elsewhere.flags, elsewhere.reserved) = (0, 5);
    fails(call(0, 0, 1, &elsewhere), DTC_ERROR_ARGUMENT, "dtc_transfer.reserved: expected 0, found 5");
    (elsewhere.reserved, elsewhere.flags, elsewhere.stream_device) = (0, DTC_TRANSFER_ENQUEUE, 99);
    fails(call(0, 0, 1, &elsewhere), DTC_ERROR_DEVICE, "GPU");
    (elsewhere.flags, elsewhere.multiprocessors) = (0, 4);
    fails(call(0, 0, 1, &elsewhere), DTC_ERROR_ARGUMENT, "multiprocessors");
    assert_eq!(place, [0; 40]);
    // SAFETY: null sides are refused, unless there is nothing to move.
    unsafe {
        let (one, other) = (ints.0, doubles.0);
        let (source, target) = (from.as_ptr().cast(), place.as_mut_ptr().cast());
        fails(
            dtc_copy(&elements(one, null(), 1, 0), &elements(other, target, 1, 0), 4, null_mut(), null()),
            DTC_ERROR_MEMORY,
            "source: expected the address",
        );
        fails(
            dtc_copy(&elements(one, source, 1, 0), &elements(other, null_mut(), 1, 0), 4, null_mut(), null()),
            DTC_ERROR_MEMORY,
            "destination: expected the address",
        );
        ok(dtc_copy(&elements(one, null(), 1, 0), &elements(other, null_mut(), 1, 0), 0, null_mut(), null()));
    }
}

#[test]
fn started_copies_are_done_at_once_on_the_host() {
    let engine = Engine::new();
    let (ints, row) = (column(&engine, "MPI_INT"), engine.named("MPI_INT"));
    let memory = [1i32, 2, 3, 4, 5];
    let mut packed = [0i32; 3];
    let (source, target) = (memory.as_ptr().cast(), packed.as_mut_ptr().cast());
    let (mut request, mut done) = (std::ptr::dangling_mut(), 0);
    // SAFETY: live types and buffers as long as they.
    unsafe {
        ok(dtc_type_commit(row.0, 0));
        ok(dtc_copy_start(
            &elements(ints.0, source, 1, 0),
            &elements(row.0, target, 3, 0),
            12,
            &mut done,
            null(),
            &mut request,
        ));
        assert!(request.is_null());
        ok(dtc_wait(&mut request));
        let refused = dtc_copy_start(
            &elements(ints.0, source, 1, 0),
            &elements(row.0, target, 3, 0),
            12,
            &mut done,
            null(),
            null_mut(),
        );
        fails(refused, DTC_ERROR_ARGUMENT, "request");
    }
    assert_eq!((done, packed), (12, [1, 3, 5]));
}

#[test]
fn bfloats_are_elements_of_operations() {
    let engine = Engine::new();
    let (mut made, mut refused) = (null_mut(), null_mut());
    // SAFETY: an engine and places.
    unsafe {
        ok(dtc_type_basic(engine.0, DTC_KIND_BFLOAT, 2, &mut made));
        fails(dtc_type_basic(engine.0, DTC_KIND_BFLOAT, 4, &mut refused), DTC_ERROR_ARGUMENT, "size");
        fails(dtc_type_basic(engine.0, DTC_KIND_BFLOAT + 1, 2, &mut refused), DTC_ERROR_ARGUMENT, "kind");
    }
    let bfloat = Type(made);
    let pair = engine.create(DTC_COMBINER_VECTOR, &[2, 1, 2], &[], &[&bfloat], None).unwrap();
    // 1.5 and -2 lie in memory, 0.25 and 3 are added.
    let (mut memory, packed) = ([0x3fc0u16, 7, 0xc000], [0x3e80u16, 0x4040]);
    let mut supported = [-1; 3];
    // SAFETY: live types, places, and buffers as long as the types.
    unsafe {
        ok(dtc_type_commit(pair.0, 0));
        ok(dtc_op_supported(DTC_OPERATION_SUM, bfloat.0, null(), &mut supported[0]));
        ok(dtc_op_supported(DTC_OPERATION_BITWISE_AND, bfloat.0, null(), &mut supported[1]));
        ok(dtc_op_supported(DTC_OPERATION_MAX, pair.0, null(), &mut supported[2]));
        let (from, to) = (packed.as_ptr().cast(), memory.as_mut_ptr().cast());
        ok(dtc_accumulate(DTC_OPERATION_SUM, bfloat.0, pair.0, to, 1, 0, from, 4, null_mut(), null()));
    }
    assert_eq!((supported, memory), ([1, 0, 0], [0x3fe0, 7, 0x3f80]));
    assert_eq!((pair.info().kind, pair.info().kind_size), (DTC_KIND_UNSIGNED, 2));
}

#[test]
fn accumulations_are_those_of_the_operation() {
    let engine = Engine::new();
    let (int, ints) = (engine.named("MPI_INT"), column(&engine, "MPI_INT"));
    let call = |operation, basic: &Type, packed: &[i32], memory: &mut [i32], offset| {
        let (source, length) = (packed.as_ptr().cast(), size_of_val(packed) as i64);
        let target = memory.as_mut_ptr().cast();
        // SAFETY: buffers as long as the type.
        unsafe { dtc_accumulate(operation, basic.0, ints.0, target, 1, offset, source, length, null_mut(), null()) }
    };
    for (operation, expected) in [
        (DTC_OPERATION_SUM, [13, 4, 15]),
        (DTC_OPERATION_PRODUCT, [36, -12, 50]),
        (DTC_OPERATION_MIN, [4, -2, 5]),
        (DTC_OPERATION_MAX, [9, 6, 10]),
        (DTC_OPERATION_LOGICAL_AND, [1, 1, 1]),
        (DTC_OPERATION_LOGICAL_OR, [1, 1, 1]),
        (DTC_OPERATION_LOGICAL_XOR, [0, 0, 0]),
        (DTC_OPERATION_BITWISE_AND, [9 & 4, 6 & -2, 10 & 5]),
        (DTC_OPERATION_BITWISE_OR, [9 | 4, 6 | -2, 10 | 5]),
        (DTC_OPERATION_BITWISE_XOR, [9 ^ 4, 6 ^ -2, 10 ^ 5]),
        (DTC_OPERATION_REPLACE, [9, 6, 10]),
    ] {
        let mut memory = [4, 77, -2, 77, 5];
        ok(call(operation, &int, &[9, 6, 10], &mut memory, 0));
        assert_eq!(memory, [expected[0], 77, expected[1], 77, expected[2]], "operation {operation}");
    }
    let mut memory = [4, 77, -2, 77, 5];
    let (double, doubles) = (engine.named("MPI_DOUBLE"), column(&engine, "MPI_DOUBLE"));
    fails(call(99, &int, &[1], &mut memory, 0), DTC_ERROR_ARGUMENT, "operation");
    fails(call(DTC_OPERATION_MINLOC, &int, &[1], &mut memory, 0), DTC_ERROR_OPERATION, "MPI_MINLOC");
    fails(call(DTC_OPERATION_SUM, &double, &[1, 2], &mut memory, 0), DTC_ERROR_OPERATION, "size");
    fails(call(DTC_OPERATION_SUM, &int, &[1], &mut memory, 2), DTC_ERROR_OPERATION, "offset");
    fails(call(DTC_OPERATION_SUM, &int, &[1], &mut memory, 16), DTC_ERROR_RANGE, "offset");
    fails(call(DTC_OPERATION_SUM, &doubles, &[1], &mut memory, 0), DTC_ERROR_OPERATION, "basic");
    assert_eq!(memory, [4, 77, -2, 77, 5]);
}

#[test]
fn operations_are_supported_as_the_standard_says() {
    let engine = Engine::new();
    let supported = |operation, name: &str| {
        let (basic, mut answer) = (engine.named(name), -1);
        // SAFETY: a live type and a place.
        ok(unsafe { dtc_op_supported(operation, basic.0, null(), &mut answer) });
        answer == 1
    };
    assert!(supported(DTC_OPERATION_SUM, "MPI_C_DOUBLE_COMPLEX"));
    assert!(!supported(DTC_OPERATION_MAX, "MPI_C_DOUBLE_COMPLEX"));
    assert!(supported(DTC_OPERATION_MAXLOC, "MPI_DOUBLE_INT"));
    assert!(!supported(DTC_OPERATION_MAXLOC, "MPI_DOUBLE"));
    assert!(!supported(DTC_OPERATION_SUM, "MPI_REAL16"));
    assert!(supported(DTC_OPERATION_REPLACE, "MPI_BYTE"));
    // Whoever has the elements computes: a device has no long doubles.
    // SAFETY: integers, and a pointer that may be null.
    let mut there: dtc_transfer = unsafe { std::mem::zeroed() };
    (there.size, there.memory) = (size_of::<dtc_transfer>() as i64, DTC_MEMORY_DEVICE);
    let from_there = dtc_transfer { memory: DTC_MEMORY_HOST, packed: DTC_MEMORY_DEVICE, ..there };
    let managed = dtc_transfer { memory: DTC_MEMORY_MANAGED, packed: DTC_MEMORY_DEVICE, ..there };
    for (transfer, name, expected) in [
        (&there, "MPI_DOUBLE", 1),
        (&there, "MPI_LONG_DOUBLE", 0),
        (&managed, "MPI_LONG_DOUBLE", 0),
        (&from_there, "MPI_LONG_DOUBLE", i32::from(cfg!(target_arch = "x86_64"))),
    ] {
        let (basic, mut answer) = (engine.named(name), -1);
        // SAFETY: a live type, a struct with its size and a place.
        ok(unsafe { dtc_op_supported(DTC_OPERATION_SUM, basic.0, transfer, &mut answer) });
        assert_eq!(answer, expected, "{name}");
    }
    let int = engine.named("MPI_INT");
    // SAFETY: what is wrong is refused.
    unsafe {
        fails(dtc_op_supported(99, int.0, null(), &mut 0), DTC_ERROR_ARGUMENT, "operation");
        fails(dtc_op_supported(1, null(), null(), &mut 0), DTC_ERROR_HANDLE, "dtc_type");
        fails(dtc_op_supported(1, int.0, null(), null_mut()), DTC_ERROR_ARGUMENT, "supported");
    }
}
