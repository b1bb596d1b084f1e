//! Packing and unpacking: whole, in fragments, started, and what is refused.

mod common;

use common::{Engine, fails, ok};
use dtc::*;
use dtc_compiler::lower;
use dtc_tests::generate::random::{Limits, datatype};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ptr::{null, null_mut};

fn transfer() -> dtc_transfer {
    // SAFETY: integers, and a pointer that may be null.
    let mut transfer: dtc_transfer = unsafe { std::mem::zeroed() };
    transfer.size = size_of::<dtc_transfer>() as i64;
    transfer
}

#[test]
fn fragments_in_any_order_are_those_of_the_map() {
    let engine = Engine::new();
    let mut rng = SmallRng::seed_from_u64(11);
    for _ in 0..300 {
        let described = datatype(&mut rng, &Limits::DISJOINT);
        let (layout, extent) = (lower(&described), described.facts().extent());
        let count = if extent == 0 { 1 } else { rng.random_range(0..4i64) };
        let map: Vec<i64> =
            (0..count).flat_map(|each| layout.displacements().map(move |at| at + each * extent)).collect();
        let mut seen = map.clone();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() < map.len() {
            // Neighbours that interleave onto each other: nothing to unpack to.
            continue;
        }
        let (low, high) = (map.iter().min().copied().unwrap_or(0), map.iter().max().map_or(0, |high| high + 1));
        let origin = (-low).max(0) as usize;
        let memory: Vec<u8> = (0..origin + high.max(0) as usize).map(|_| rng.random()).collect();
        let expected: Vec<u8> = map.iter().map(|&at| memory[(at + origin as i64) as usize]).collect();

        let made = engine.describe(&described);
        let mut borders = vec![0, map.len()];
        borders.extend((0..4).map(|_| rng.random_range(0..=map.len())));
        borders.sort_unstable();
        let mut fragments: Vec<(usize, usize)> = borders.windows(2).map(|pair| (pair[0], pair[1])).collect();
        fragments.reverse();
        let mut restored = vec![0x5a_u8; memory.len()];
        for (begin, end) in fragments {
            let mut packed = vec![0u8; end - begin];
            assert_eq!(made.pack(&memory, origin, count, begin as i64, &mut packed), end - begin);
            assert_eq!(packed, expected[begin..end]);
            assert_eq!(made.unpack(&packed, &mut restored, origin, count, begin as i64), end - begin);
        }
        let mut wanted = vec![0x5a_u8; memory.len()];
        map.iter().map(|&at| (at + origin as i64) as usize).for_each(|at| wanted[at] = memory[at]);
        assert_eq!(restored, wanted);
    }
}

#[test]
fn started_calls_are_done_at_once_on_the_host() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let column = engine.create(DTC_COMBINER_VECTOR, &[3, 1, 2], &[], &[&int], None).unwrap();
    let memory = [1i32, 2, 3, 4, 5];
    let (mut packed, mut restored) = ([0i32; 3], [0i32; 5]);
    let known = dtc_transfer { memory: DTC_MEMORY_HOST, packed: DTC_MEMORY_HOST, ..transfer() };
    for transfer in [null(), &raw const known] {
        let (mut request, mut done, mut flag) = (null_mut(), 0, 0);
        // SAFETY: a live type and buffers as long as it.
        unsafe {
            ok(dtc_type_commit(column.0, 0));
            let source = memory.as_ptr().cast();
            let target = packed.as_mut_ptr().cast();
            ok(dtc_pack_start(column.0, source, 1, 0, target, 12, &mut done, transfer, &mut request));
            assert!(request.is_null());
            ok(dtc_test(&mut request, &mut flag));
            ok(dtc_wait(&mut request));
            assert_eq!((done, flag, packed), (12, 1, [1, 3, 5]));
            let target = restored.as_mut_ptr().cast();
            let source = packed.as_ptr().cast();
            ok(dtc_unpack_start(column.0, target, 1, 0, source, 12, &mut done, transfer, &mut request));
            assert!(request.is_null());
            assert_eq!((done, restored), (12, [1, 0, 3, 0, 5]));
            fails(
                dtc_unpack_start(column.0, target, 1, 0, source, 12, &mut done, transfer, null_mut()),
                DTC_ERROR_ARGUMENT,
                "request",
            );
        }
    }
    // SAFETY: null pointers, and a handle of another kind, are refused.
    unsafe {
        let (mut flag, mut wrong) = (0, column.0.cast::<dtc_request>());
        fails(dtc_test(null_mut(), &mut flag), DTC_ERROR_ARGUMENT, "request");
        fails(dtc_test(&mut null_mut(), null_mut()), DTC_ERROR_ARGUMENT, "done");
        fails(dtc_wait(null_mut()), DTC_ERROR_ARGUMENT, "request");
        fails(dtc_test(&mut wrong, &mut flag), DTC_ERROR_HANDLE, "dtc_request");
        fails(dtc_wait(&mut wrong), DTC_ERROR_HANDLE, "dtc_request");
    }
}

#[test]
fn calls_that_are_wrong_are_refused_and_move_nothing() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let memory = [7i32; 4];
    let mut packed = [0x5au8; 16];
    let mut call = |count, offset, max, transfer: *const dtc_transfer| {
        let (source, target) = (memory.as_ptr().cast(), packed.as_mut_ptr().cast());
        // SAFETY: what is in range lies in the buffers; the rest is refused.
        unsafe { dtc_pack(int.0, source, count, offset, target, max, null_mut(), transfer) }
    };
    fails(call(1, 0, 4, null()), DTC_ERROR_COMMIT, "committed");
    // SAFETY: a live type.
    ok(unsafe { dtc_type_commit(int.0, 0) });
    fails(call(-1, 0, 4, null()), DTC_ERROR_ARGUMENT, "count");
    fails(call(1, -1, 4, null()), DTC_ERROR_ARGUMENT, "offset");
    fails(call(1, 0, -4, null()), DTC_ERROR_ARGUMENT, "max");
    fails(call(1, 5, 4, null()), DTC_ERROR_RANGE, "offset");
    fails(call(i64::MAX, 0, 4, null()), DTC_ERROR_RANGE, "count");
    let wrong = dtc_transfer { memory: 9, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_ARGUMENT, "dtc_transfer.memory");
    let wrong = dtc_transfer { packed: -1, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_ARGUMENT, "dtc_transfer.packed");
    let wrong = dtc_transfer { packed: DTC_MEMORY_DEVICE, packed_device: -1, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_ARGUMENT, "dtc_transfer.packed_device");
    let wrong = dtc_transfer { flags: 8, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_ARGUMENT, "dtc_transfer.flags");
    let wrong = dtc_transfer { flags: DTC_TRANSFER_ENQUEUE, stream_device: -1, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_ARGUMENT, "dtc_transfer.stream_device");
    let wrong = dtc_transfer { flags: DTC_TRANSFER_ENQUEUE, stream_device: 99, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_DEVICE, "GPU");
    let wrong = dtc_transfer { multiprocessors: -2, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_ARGUMENT, "dtc_transfer.multiprocessors");
    let wrong = dtc_transfer { size: 0, ..transfer() };
    fails(call(1, 0, 4, &wrong), DTC_ERROR_ARGUMENT, "dtc_transfer.size");
    ok(call(4, 16, 4, null()));
    ok(call(0, 0, 4, null()));
    assert_eq!(packed, [0x5a; 16]);
    // SAFETY: null sides are refused, unless there is nothing to move.
    unsafe {
        let source = memory.as_ptr().cast();
        fails(dtc_pack(int.0, source, 1, 0, null_mut(), 4, null_mut(), null()), DTC_ERROR_ARGUMENT, "packed");
        fails(
            dtc_pack(int.0, null(), 1, 0, packed.as_mut_ptr().cast(), 4, null_mut(), null()),
            DTC_ERROR_MEMORY,
            "memory",
        );
        ok(dtc_pack(int.0, null(), 0, 0, null_mut(), 0, null_mut(), null()));
    }
}

#[test]
fn messages_belong_to_threads() {
    let engine = Engine::new();
    let mut made = null_mut();
    // SAFETY: an engine and a place.
    fails(unsafe { dtc_type_basic(engine.0, 99, 1, &mut made) }, DTC_ERROR_ARGUMENT, "kind");
    let other = std::thread::spawn(common::message).join().expect("the thread");
    assert_eq!(other, "");
    assert!(common::message().contains("99"));
}

#[test]
fn costs_grow_with_bytes_and_pieces() {
    let engine = Engine::new();
    let double = engine.named("MPI_DOUBLE");
    let ask = |columns: i64, count, transfer: *const dtc_transfer| {
        let made = engine.create(DTC_COMBINER_VECTOR, &[1000, 1, columns], &[], &[&double], None).unwrap();
        // SAFETY: integers alone.
        let mut expense: dtc_expense = unsafe { std::mem::zeroed() };
        expense.size = size_of::<dtc_expense>() as i64;
        // SAFETY: a live type, and structs with their sizes.
        unsafe {
            ok(dtc_type_commit(made.0, 0));
            (dtc_cost(made.0, count, transfer, &mut expense), expense)
        }
    };
    let (status, whole) = ask(1, 10, null());
    ok(status);
    assert_eq!((whole.bytes, whole.pieces), (80_000, 10));
    let (_, strided) = ask(4, 10, null());
    assert_eq!((strided.bytes, strided.pieces), (80_000, 10_000));
    let (_, sparse) = ask(4096, 10, null());
    assert!(0 < whole.pack_nanoseconds && whole.pack_nanoseconds < strided.pack_nanoseconds);
    assert!(strided.pack_nanoseconds < sparse.pack_nanoseconds && sparse.unpack_nanoseconds < 1_000_000);
    let (_, nothing) = ask(1, 0, null());
    assert_eq!((nothing.bytes, nothing.pieces), (0, 0));
    fails(ask(1, -1, null()).0, DTC_ERROR_ARGUMENT, "count");
    let elsewhere = dtc_transfer { memory: DTC_MEMORY_DEVICE, memory_device: 99, ..transfer() };
    fails(ask(1, 1, &elsewhere).0, DTC_ERROR_DEVICE, "GPU");
    let wrong = dtc_transfer { memory: 77, ..transfer() };
    fails(ask(1, 1, &wrong).0, DTC_ERROR_ARGUMENT, "dtc_transfer.memory");
    // SAFETY: a null place is refused.
    unsafe {
        ok(dtc_type_commit(double.0, 0));
        fails(dtc_cost(double.0, 1, null(), null_mut()), DTC_ERROR_ARGUMENT, "dtc_expense");
    }
}

/// Without CUDA in the process, all memory is the host's, and none of another kind can be had.
#[test]
fn memory_is_that_of_the_host_where_there_is_no_cuda() {
    let engine = Engine::new();
    let (number, mut kind, mut device) = (7, -1, -1);
    for address in [(&raw const number).cast(), null()] {
        // SAFETY: places for both results, or none for the second.
        unsafe {
            ok(dtc_memory_kind(address, &mut kind, &mut device));
            assert_eq!((kind, device), (DTC_MEMORY_HOST, -1));
            ok(dtc_memory_kind(address, &mut kind, null_mut()));
            fails(dtc_memory_kind(address, null_mut(), null_mut()), DTC_ERROR_ARGUMENT, "kind");
        }
    }
    let (mut address, mut memory) = (null_mut(), null_mut());
    let mut allocate = |kind, device, bytes| {
        // SAFETY: a live engine, and places for both results.
        unsafe { dtc_memory_allocate(engine.0, kind, device, bytes, &mut address, &mut memory) }
    };
    fails(allocate(DTC_MEMORY_HOST, 0, 64), DTC_ERROR_ARGUMENT, "DTC_MEMORY_PINNED");
    fails(allocate(DTC_MEMORY_PINNED, 0, 0), DTC_ERROR_ARGUMENT, "bytes");
    fails(allocate(DTC_MEMORY_PINNED, -1, 64), DTC_ERROR_ARGUMENT, "device");
    fails(allocate(DTC_MEMORY_DEVICE, 99, 64), DTC_ERROR_DEVICE, "GPU");
    assert!(address.is_null() && memory.is_null());
    // SAFETY: null is refused.
    unsafe {
        let status = dtc_memory_allocate(engine.0, DTC_MEMORY_PINNED, 0, 64, null_mut(), &mut memory);
        fails(status, DTC_ERROR_ARGUMENT, "address");
        fails(dtc_memory_free(null_mut()), DTC_ERROR_HANDLE, "dtc_memory");
        let mut name = [0_u8; DTC_EXPORT_BYTES as usize];
        fails(dtc_memory_export(null(), name.as_mut_ptr().cast()), DTC_ERROR_HANDLE, "dtc_memory");
        let (mut offset, mut allocation, at) = (0, 0, (&raw const number).cast());
        let mut export = |device, bytes, handle| {
            dtc_memory_export_part(engine.0, device, at, bytes, handle, &mut offset, &mut allocation)
        };
        fails(export(0, 4, null_mut()), DTC_ERROR_ARGUMENT, "handle");
        fails(export(0, -1, name.as_mut_ptr().cast()), DTC_ERROR_ARGUMENT, "bytes");
        fails(export(99, 4, name.as_mut_ptr().cast()), DTC_ERROR_DEVICE, "GPU");
        let status = dtc_memory_import(engine.0, 0, null(), &mut address, &mut memory);
        fails(status, DTC_ERROR_ARGUMENT, "handle");
        let status = dtc_memory_import(engine.0, 99, name.as_ptr().cast(), &mut address, &mut memory);
        fails(status, DTC_ERROR_DEVICE, "GPU");
    }
}
