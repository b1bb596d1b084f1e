//! Types by every constructor, what is refused and how, and graphs of them.

mod common;

use common::{Engine, Type, config, empty_info, fails, ok};
use dtc::*;
use dtc_compiler::lower;
use dtc_tests::corpus;
use dtc_tests::generate::random::{Limits, datatype};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

/// The type that the calls make has the bounds and the bytes of the description.
fn compare(name: &str, engine: &Engine, described: &dtc_compiler::datatype::Datatype) {
    let info = engine.describe(described).info();
    let facts = described.facts();
    let expected = (facts.size as i64, facts.lb, facts.extent(), facts.true_lb, facts.true_extent());
    assert_eq!((info.packed_size, info.lb, info.extent, info.true_lb, info.true_extent), expected, "{name}");
    assert_eq!(info.basic_elements, described.signature().elements() as i64, "{name}");
    assert_eq!(info.hash, *lower(described).type_hash().as_bytes(), "{name}");
}

#[test]
fn the_corpus_is_the_same_through_the_interface() {
    let engine = Engine::new();
    for case in corpus::all() {
        compare(case.name, &engine, &case.datatype);
    }
}

#[test]
fn random_types_are_the_same_through_the_interface() {
    let engine = Engine::new();
    let mut rng = SmallRng::seed_from_u64(7);
    for round in 0..500 {
        compare(&format!("round {round}"), &engine, &datatype(&mut rng, &Limits::ANYWHERE));
    }
}

#[test]
fn queries_tell_of_pieces_and_kinds() {
    let engine = Engine::new();
    let double = engine.named("MPI_DOUBLE");
    let column = engine.create(DTC_COMBINER_VECTOR, &[3, 2, 5], &[], &[&double], None).unwrap();
    ok(unsafe_commit(&column, DTC_COMMIT_EAGER));
    let info = column.info();
    assert_eq!((info.blocks, info.shortest_block, info.longest_block), (3, 16, 16));
    assert_eq!((info.kind, info.kind_size, info.alignment), (DTC_KIND_FLOAT, 8, 8));
    assert_eq!((info.contiguous, info.canonical), (0, 1));
    let int = engine.named("MPI_INT");
    let mixed = engine.create(DTC_COMBINER_STRUCT, &[2, 1, 2], &[0, 8], &[&int, &double], None).unwrap();
    ok(unsafe_commit(&mixed, 0));
    let info = mixed.info();
    assert_eq!((info.kind, info.kind_size, info.shortest_block, info.longest_block), (DTC_KIND_MIXED, 0, 4, 16));
    let nothing = engine.create(DTC_COMBINER_CONTIGUOUS, &[0], &[], &[&int], None).unwrap();
    ok(unsafe_commit(&nothing, 0));
    let info = nothing.info();
    assert_eq!((info.packed_size, info.blocks, info.shortest_block, info.longest_block), (0, 0, 0, 0));
}

fn unsafe_commit(requested: &Type, hints: u64) -> c_int {
    // SAFETY: a live type.
    unsafe { dtc_type_commit(requested.0, hints) }
}

#[test]
fn basic_types_have_the_sizes_of_their_kinds() {
    let engine = Engine::new();
    let sizes: [(i32, &[i64]); 9] = [
        (DTC_KIND_BYTES, &[0, 1, 7]),
        (DTC_KIND_CHARACTER, &[1]),
        (DTC_KIND_SIGNED, &[1, 2, 4, 8, 16]),
        (DTC_KIND_UNSIGNED, &[1, 2, 4, 8]),
        (DTC_KIND_FLOAT, &[2, 4, 8, 16]),
        (DTC_KIND_COMPLEX, &[4, 8, 16, 32]),
        (DTC_KIND_LOGICAL, &[1, 2, 4, 8]),
        (DTC_KIND_EXTENDED, &[16]),
        (DTC_KIND_COMPLEX_EXTENDED, &[32]),
    ];
    for (kind, sizes) in sizes {
        for size in 0..=40 {
            let mut made = null_mut();
            // SAFETY: an engine and a place.
            let status = unsafe { dtc_type_basic(engine.0, kind, size, &mut made) };
            if kind != DTC_KIND_BYTES && !sizes.contains(&size) {
                fails(status, DTC_ERROR_ARGUMENT, "size");
                continue;
            }
            ok(status);
            let made = Type(made);
            ok(unsafe_commit(&made, 0));
            let info = made.info();
            assert_eq!((info.packed_size, info.extent), (size, size));
            if size > 0 {
                assert_eq!((info.kind, info.contiguous), (kind, 1));
            }
        }
    }
    let mut made = null_mut();
    // SAFETY: a live engine, and a place on the stack or null, which is refused.
    unsafe {
        fails(dtc_type_basic(engine.0, 99, 4, &mut made), DTC_ERROR_ARGUMENT, "kind");
        fails(dtc_type_basic(engine.0, DTC_KIND_SIGNED, -4, &mut made), DTC_ERROR_ARGUMENT, "size");
        fails(dtc_type_basic(engine.0, DTC_KIND_SIGNED, 4, null_mut()), DTC_ERROR_ARGUMENT, "type");
        fails(dtc_type_named(engine.0, c"MPI_NOTHING".as_ptr(), &mut made), DTC_ERROR_ARGUMENT, "MPI_NOTHING");
        fails(dtc_type_named(engine.0, null(), &mut made), DTC_ERROR_ARGUMENT, "name");
    }
    assert!(made.is_null());
}

#[test]
fn blocks_make_types() {
    let engine = Engine::new();
    let (int, short) = (engine.named("MPI_INT"), engine.named("MPI_SHORT"));
    let make = |blocks: &[dtc_block]| {
        let mut made = null_mut();
        // SAFETY: live types and a place.
        let status = unsafe { dtc_type_from_blocks(engine.0, blocks.as_ptr(), blocks.len() as i64, -4, 64, &mut made) };
        (status, made)
    };
    let block = |displacement, count, element: Option<&Type>| dtc_block {
        displacement,
        count,
        element: element.map_or(null(), |element| element.0.cast_const()),
    };
    for (blocks, size, kind) in [
        (vec![block(8, 2, Some(&int)), block(0, 1, Some(&int))], 12, DTC_KIND_SIGNED),
        (vec![block(8, 2, Some(&int)), block(0, 3, Some(&short))], 14, DTC_KIND_MIXED),
        (vec![block(8, 5, None), block(0, 3, None)], 8, DTC_KIND_BYTES),
        (vec![], 0, DTC_KIND_MIXED),
    ] {
        let (status, made) = make(&blocks);
        ok(status);
        let made = Type(made);
        ok(unsafe_commit(&made, 0));
        let info = made.info();
        assert_eq!((info.packed_size, info.lb, info.extent), (size, -4, 64));
        if kind != DTC_KIND_MIXED {
            assert_eq!(info.kind, kind);
        }
        if !blocks.is_empty() {
            let memory: Vec<u8> = (0..64).collect();
            let mut packed = [0];
            made.pack(&memory, 0, 1, 0, &mut packed);
            assert_eq!(packed, [8]);
        }
    }
    fails(make(&[block(0, -1, Some(&int))]).0, DTC_ERROR_TYPE, "blocklengths[0]");
    let mut made = null_mut();
    // SAFETY: a null list is refused, not read.
    unsafe {
        fails(dtc_type_from_blocks(engine.0, null(), 3, 0, 0, &mut made), DTC_ERROR_ARGUMENT, "blocks");
        fails(dtc_type_from_blocks(engine.0, null(), -3, 0, 0, &mut made), DTC_ERROR_ARGUMENT, "blocks");
    }
}

#[test]
fn contents_that_are_wrong_are_refused_by_name() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let refused = |combiner, integers: &[i64], addresses: &[i64], status, named: &str| {
        let found = engine.create(combiner, integers, addresses, &[&int], None).map(|_| ());
        fails(found.unwrap_err(), status, named);
    };
    refused(77, &[], &[], DTC_ERROR_ARGUMENT, "combiner");
    refused(DTC_COMBINER_VECTOR, &[3, 1], &[], DTC_ERROR_ARGUMENT, "vector.integers: expected 1 more for stride");
    let no_starts = "subarray.integers: expected 2 more for starts, found 1";
    refused(DTC_COMBINER_SUBARRAY, &[2, 4, 4, 2, 2, 0], &[], DTC_ERROR_ARGUMENT, no_starts);
    let no_order = "subarray.integers: expected 1 more for order, found 0";
    refused(DTC_COMBINER_SUBARRAY, &[1, 4, 2, 0], &[], DTC_ERROR_ARGUMENT, no_order);
    refused(DTC_COMBINER_VECTOR, &[3, 1, 2, 9], &[], DTC_ERROR_ARGUMENT, "vector.integers");
    refused(DTC_COMBINER_VECTOR, &[3, 1, 2], &[9], DTC_ERROR_ARGUMENT, "vector.addresses");
    refused(DTC_COMBINER_VECTOR, &[-3, 1, 2], &[], DTC_ERROR_TYPE, "vector.count");
    refused(DTC_COMBINER_HVECTOR, &[3, 1], &[], DTC_ERROR_ARGUMENT, "hvector.addresses");
    refused(DTC_COMBINER_INDEXED, &[i64::MAX, 1, 2], &[], DTC_ERROR_ARGUMENT, "indexed.integers");
    refused(DTC_COMBINER_INDEXED, &[-1, 1, 2], &[], DTC_ERROR_ARGUMENT, "indexed");
    refused(DTC_COMBINER_SUBARRAY, &[1, 4, 9, 0, DTC_ORDER_C], &[], DTC_ERROR_TYPE, "subarray.subsizes[0]");
    refused(DTC_COMBINER_SUBARRAY, &[1, 4, 2, 0, 5], &[], DTC_ERROR_ARGUMENT, "subarray.order");
    refused(DTC_COMBINER_DARRAY, &[1, 0, 1, 4, 9, -1, 1, 0], &[], DTC_ERROR_ARGUMENT, "darray.distributions[0]");
    refused(DTC_COMBINER_RESIZED, &[], &[i64::MAX, 1], DTC_ERROR_TYPE, "resized");
    refused(DTC_COMBINER_CONTIGUOUS, &[i64::MAX], &[], DTC_ERROR_TYPE, "64 bits");
    refused(DTC_COMBINER_STRUCT, &[2, 1, 1], &[0, 4], DTC_ERROR_TYPE, "struct.children");
    let facts = dtc_facts { size: size_of::<dtc_facts>() as i64, lb: 0, extent: 8, packed_size: 9 };
    fails(
        engine.create(DTC_COMBINER_DUP, &[], &[], &[&int], Some(facts)).map(|_| ()).unwrap_err(),
        DTC_ERROR_TYPE,
        "packed_size",
    );
    let facts = dtc_facts { lb: i64::MAX, packed_size: -1, ..facts };
    fails(
        engine.create(DTC_COMBINER_DUP, &[], &[], &[&int], Some(facts)).map(|_| ()).unwrap_err(),
        DTC_ERROR_TYPE,
        "facts",
    );
    let facts = dtc_facts { size: 3, ..facts };
    fails(
        engine.create(DTC_COMBINER_DUP, &[], &[], &[&int], Some(facts)).map(|_| ()).unwrap_err(),
        DTC_ERROR_ARGUMENT,
        "dtc_facts.size",
    );
}

#[test]
fn handles_that_are_wrong_are_refused() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let mut made = null_mut();
    let other: *const dtc_type = engine.0.cast_const().cast();
    let odd: *const dtc_type = int.0.cast_const().wrapping_byte_add(1);
    // SAFETY: handles that are null, misaligned, or of another kind are refused.
    unsafe {
        for wrong in [null(), other, odd] {
            let mut info = empty_info();
            fails(dtc_type_query(wrong, &mut info), DTC_ERROR_HANDLE, "dtc_type");
            fails(dtc_type_commit(wrong.cast_mut(), 0), DTC_ERROR_HANDLE, "dtc_type");
            fails(dtc_type_retain(wrong.cast_mut()), DTC_ERROR_HANDLE, "dtc_type");
            fails(dtc_type_release(wrong.cast_mut()), DTC_ERROR_HANDLE, "dtc_type");
            let children = [wrong];
            let numbers = [3];
            let status = dtc_type_create(
                engine.0,
                DTC_COMBINER_CONTIGUOUS,
                numbers.as_ptr(),
                1,
                null(),
                0,
                children.as_ptr(),
                1,
                null(),
                &mut made,
            );
            fails(status, DTC_ERROR_HANDLE, "dtc_type");
        }
        fails(dtc_finalize(int.0.cast()), DTC_ERROR_HANDLE, "dtc_engine");
        fails(dtc_finalize(null_mut()), DTC_ERROR_HANDLE, "null");
        fails(dtc_type_basic(null(), DTC_KIND_SIGNED, 4, &mut made), DTC_ERROR_HANDLE, "dtc_engine");
        let mut info = empty_info();
        fails(dtc_type_query(int.0, &mut info), DTC_ERROR_COMMIT, "committed");
        ok(dtc_type_commit(int.0, 0));
        fails(dtc_type_commit(int.0, 2), DTC_ERROR_ARGUMENT, "hints");
        fails(dtc_type_query(int.0, null_mut()), DTC_ERROR_ARGUMENT, "dtc_info");
        info.size = 8;
        fails(dtc_type_query(int.0, &mut info), DTC_ERROR_ARGUMENT, "dtc_info.size");
    }
    assert!(made.is_null());
}

#[test]
fn structs_of_other_lengths_are_read_and_filled_as_far_as_they_reach() {
    /// What a caller of a later version has.
    #[repr(C)]
    struct Longer {
        info: dtc_info,
        new: [i64; 2],
    }
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let mut longer = Longer { info: empty_info(), new: [7, 8] };
    longer.info.size = size_of::<Longer>() as i64;
    // SAFETY: a live type, and a struct as long as it says.
    unsafe {
        ok(dtc_type_commit(int.0, 0));
        ok(dtc_type_query(int.0, (&raw mut longer).cast()));
    }
    assert_eq!((longer.info.size, longer.info.packed_size, longer.new), (size_of::<Longer>() as i64, 4, [7, 8]));
}

#[test]
fn settings_that_are_wrong_are_refused() {
    let refused = |change: fn(&mut dtc_config), status, named: &str| {
        let mut settings = config();
        change(&mut settings);
        let mut engine = null_mut();
        // SAFETY: settings with their size, and a place.
        fails(unsafe { dtc_init(&settings, &mut engine) }, status, named);
        assert!(engine.is_null());
    };
    refused(|config| config.abi_version = 77, DTC_ERROR_VERSION, "abi_version");
    refused(|config| config.policy = 9, DTC_ERROR_ARGUMENT, "policy");
    refused(|config| config.thread = 2, DTC_ERROR_ARGUMENT, "thread");
    refused(|config| config.reserved = 1, DTC_ERROR_ARGUMENT, "dtc_config.reserved: expected 0, found 1");
    refused(|config| config.reserved = i32::MIN, DTC_ERROR_ARGUMENT, "dtc_config.reserved");
    refused(|config| config.cached_types = -1, DTC_ERROR_ARGUMENT, "cached_types");
    refused(|config| (config.policy, config.lazy_uses) = (DTC_POLICY_LAZY, 1 << 40), DTC_ERROR_ARGUMENT, "lazy_uses");
    unsafe extern "C" fn allocate(_context: *mut c_void, _device: i32, _bytes: i64) -> *mut c_void {
        null_mut()
    }
    refused(|config| config.allocate = Some(allocate), DTC_ERROR_ARGUMENT, "dtc_config.free");
    refused(|config| config.size = 1, DTC_ERROR_ARGUMENT, "dtc_config.size");
    // SAFETY: a null place is refused.
    fails(unsafe { dtc_init(null(), null_mut()) }, DTC_ERROR_ARGUMENT, "engine");
    assert_eq!(dtc_abi_version(), DTC_ABI_VERSION);
}

#[test]
fn hosts_without_threads_compile_in_their_own() {
    let settings = dtc_config { thread: DTC_THREAD_NONE, ..config() };
    let mut engine = null_mut();
    // SAFETY: settings with their size, a place, and live handles.
    unsafe {
        ok(dtc_init(&settings, &mut engine));
        let engine = Engine(engine);
        let (int, double) = (engine.named("MPI_INT"), engine.named("MPI_DOUBLE"));
        let record =
            engine.create(DTC_COMBINER_STRUCT, &[3, 1, 2, 1], &[0, 8, 28], &[&int, &double, &int], None).unwrap();
        ok(dtc_type_commit(record.0, 0));
        assert_eq!(record.info().compiled, 0);
        let mut waiting = -1;
        fails(dtc_compile_pending(engine.0, -1, &mut waiting), DTC_ERROR_ARGUMENT, "microseconds");
        ok(dtc_compile_pending(engine.0, 10_000_000, &mut waiting));
        assert_eq!((waiting, record.info().compiled), (0, 1));
    }
}

#[test]
fn types_outlive_their_children_and_their_engine() {
    let column = {
        let engine = Engine::new();
        let double = engine.named("MPI_DOUBLE");
        engine.create(DTC_COMBINER_VECTOR, &[3, 1, 2], &[], &[&double], None).unwrap()
    };
    ok(unsafe_commit(&column, 0));
    // SAFETY: a live type; the second reference keeps it.
    unsafe {
        ok(dtc_type_retain(column.0));
        ok(dtc_type_release(column.0));
    }
    assert_eq!(column.info().packed_size, 24);
}

#[test]
fn deep_chains_and_wide_graphs_are_no_trouble() {
    let engine = Engine::new();
    let mut chain = engine.named("MPI_BYTE");
    for _ in 0..20_000 {
        chain = engine.create(DTC_COMBINER_DUP, &[], &[], &[&chain], None).unwrap();
    }
    ok(unsafe_commit(&chain, 0));
    assert_eq!(chain.info().packed_size, 1);
    drop(chain);
    // Each type has the last twice: 2^40 paths through 41 nodes.
    let mut doubled = engine.named("MPI_BYTE");
    for level in 0..40 {
        let displacements = [0, 2 << level];
        doubled = engine.create(DTC_COMBINER_STRUCT, &[2, 1, 1], &displacements, &[&doubled, &doubled], None).unwrap();
    }
    ok(unsafe_commit(&doubled, 0));
    assert_eq!(doubled.info().packed_size, 1 << 40);
}

#[test]
fn types_are_explained_in_json() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let column = engine.create(DTC_COMBINER_VECTOR, &[3, 1, 2], &[], &[&int], None).unwrap();
    let mut needed = 0;
    // SAFETY: a live type, and buffers of the lengths that are given.
    unsafe {
        fails(dtc_explain(column.0, null_mut(), 0, &mut needed), DTC_ERROR_COMMIT, "committed");
        ok(dtc_type_commit(column.0, 0));
        ok(dtc_explain(column.0, null_mut(), 0, &mut needed));
        let mut text = vec![0xa5u8; needed as usize + 1];
        ok(dtc_explain(column.0, text.as_mut_ptr().cast(), needed, &mut needed));
        assert_eq!(text[needed as usize - 1..], [0, 0xa5]);
        let explained: serde_json::Value = serde_json::from_slice(&text[..needed as usize - 1]).expect("JSON");
        assert_eq!(explained["size"], 12);
        assert_eq!(explained["type"], "vector 3 1 2 int");
        let mut cut = [0xa5u8; 8];
        ok(dtc_explain(column.0, cut.as_mut_ptr().cast(), 7, null_mut()));
        assert_eq!((cut[..6].to_vec(), cut[6..].to_vec()), (text[..6].to_vec(), vec![0, 0xa5]));
        fails(dtc_explain(column.0, null_mut(), 9, &mut needed), DTC_ERROR_ARGUMENT, "buffer");
        fails(dtc_explain(column.0, null_mut(), -1, &mut needed), DTC_ERROR_ARGUMENT, "length");
    }
}

/// A length that no list can have is the caller's mistake, and named as that.
#[test]
fn impossible_lengths_are_no_lack_of_memory() {
    let engine = Engine::new();
    let int = engine.named("MPI_INT");
    let (mut made, numbers, children) = (null_mut(), [0_i64; 2], [int.0.cast_const()]);
    let (list, kept) = (numbers.as_ptr(), children.as_ptr());
    let create = |integers, addresses, types| {
        let mut made = null_mut();
        // SAFETY: an engine, lists that are refused before they are read, no facts, and a place.
        unsafe {
            dtc_type_create(
                engine.0,
                DTC_COMBINER_STRUCT,
                list,
                integers,
                list,
                addresses,
                kept,
                types,
                null(),
                &mut made,
            )
        }
    };
    let longest = "expected a length of 0 to 1152921504606846975, found 9223372036854775807";
    for (lengths, named) in
        [((i64::MAX, 1, 1), "integers"), ((1, i64::MAX, 1), "addresses"), ((1, 1, i64::MAX), "types")]
    {
        let status = create(lengths.0, lengths.1, lengths.2);
        fails(status, DTC_ERROR_ARGUMENT, &format!("{named}: {longest}"));
    }
    // SAFETY: an engine or a type, lists that are refused before they are read, and a place.
    unsafe {
        let status = dtc_type_struct(engine.0, i64::MAX, list, list, kept, &mut made);
        fails(status, DTC_ERROR_ARGUMENT, &format!("count: {longest}"));
        let status = dtc_type_indexed(i64::MAX, list, list, int.0, &mut made);
        fails(status, DTC_ERROR_ARGUMENT, &format!("count: {longest}"));
        let status = dtc_type_subarray(i64::MAX, list, list, list, DTC_ORDER_C, int.0, &mut made);
        fails(status, DTC_ERROR_ARGUMENT, &format!("ndims: {longest}"));
    }
}

/// What is built upon the library keeps its messages there.
#[test]
fn messages_of_others_are_kept() {
    // SAFETY: texts that end with a byte 0.
    unsafe {
        fails(
            dtc_fail(DTC_ERROR_TYPE, c"place: expected one, found two".as_ptr()),
            DTC_ERROR_TYPE,
            "place: expected one",
        );
        assert_eq!((dtc_fail(77, null()), common::message().as_str()), (77, ""));
    }
}
