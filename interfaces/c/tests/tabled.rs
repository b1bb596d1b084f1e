//! Types with index tables: host memory against the reference walker, and what is refused.

mod common;

use common::{Engine, fails, ok};
use dtc::*;
use dtc_compiler::tabled::{Entries, TabledLayout};
use dtc_tests::generate::tabled::{Tabled, tabled};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ffi::CString;
use std::ptr::{null, null_mut};

fn create(engine: &Engine, description: &str) -> *mut dtc_tabled_type {
    let (text, mut made) = (CString::new(description).expect("a text"), null_mut());
    // SAFETY: an engine, a text and a place.
    ok(unsafe { dtc_tabled_create(engine.0, text.as_ptr(), &mut made) });
    made
}

fn table(entries: &[i64]) -> dtc_index_table {
    let (length, memory) = (entries.len() as i64, DTC_MEMORY_HOST);
    dtc_index_table { entries: entries.as_ptr().cast(), length, width: 8, memory, memory_device: 0, reserved: 0 }
}

fn elements(
    made: *const dtc_tabled_type,
    memory: *mut u8,
    tables: &[dtc_index_table],
    offset: i64,
) -> dtc_tabled_elements {
    let (memory, table_count) = (memory.cast(), tables.len() as i64);
    let (flags, report) = (DTC_TABLED_SKIP, null_mut());
    dtc_tabled_elements { r#type: made, memory, tables: tables.as_ptr(), table_count, offset, flags, report }
}

#[test]
fn drawn_types_move_what_the_reference_says() {
    let engine = Engine::new();
    for seed in 0..300 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let Tabled { datatype, tables } = tabled(&mut rng, true);
        let layout = TabledLayout::new(&datatype);
        let entries: Vec<Entries<'_>> = tables.iter().map(|table| Entries::Wide(table)).collect();
        let description =
            if seed % 2 == 0 { datatype.to_string() } else { dtc_compiler::datatype::json::write_tabled(&datatype) };
        let made = create(&engine, &description);
        let lengths: Vec<i64> = tables.iter().map(|table| table.len() as i64).collect();
        let mut total = 0;
        // SAFETY: a type, its lengths and a place.
        ok(unsafe { dtc_tabled_size(made, lengths.as_ptr(), lengths.len() as i64, &mut total) });
        let mut memory = vec![0; datatype.facts().true_ub as usize];
        rng.fill(&mut memory[..]);
        let first = rng.random_range(0..=total);
        let bytes = rng.random_range(0..=total - first);
        let passed: Vec<dtc_index_table> = tables.iter().map(|entries| table(entries)).collect();
        let (mut packed, mut done) = (vec![0xa5; bytes as usize], -1);
        let source = elements(made, memory.as_mut_ptr(), &passed, first);
        // SAFETY: the memory has all places, and `packed` as many bytes as are asked for.
        ok(unsafe { dtc_tabled_pack(&source, packed.as_mut_ptr().cast(), bytes, &mut done, null()) });
        assert_eq!(done, bytes, "seed {seed}");
        let mut expected = vec![0xa5; bytes as usize];
        let mut back = vec![0x5a; memory.len()];
        for piece in layout.walk(&entries) {
            let (from, to) =
                (piece.position.max(first as u64), (piece.position + piece.bytes).min((first + bytes) as u64));
            if from < to {
                let (at, place) = ((from - first as u64) as usize, (piece.place + from - piece.position) as usize);
                let bytes = (to - from) as usize;
                expected[at..at + bytes].copy_from_slice(&memory[place..place + bytes]);
                back[place..place + bytes].copy_from_slice(&memory[place..place + bytes]);
            }
        }
        assert_eq!(packed, expected, "seed {seed}: {datatype} with {tables:?}");
        let mut found = vec![0x5a; memory.len()];
        let destination = elements(made, found.as_mut_ptr(), &passed, first);
        // SAFETY: as before.
        ok(unsafe { dtc_tabled_unpack(packed.as_ptr().cast(), bytes, &destination, &mut done, null()) });
        assert!(found == back, "seed {seed}: {datatype} with {tables:?}");
        // SAFETY: a type that is not used any more.
        ok(unsafe { dtc_tabled_release(made) });
    }
}

#[test]
fn a_copy_needs_no_packed_bytes() {
    let engine = Engine::new();
    let made = create(&engine, "table 0 4 4 8 (contiguous 8 byte)");
    let (mut memory, mut target) = ((0..32).collect::<Vec<u8>>(), vec![0xa5; 32]);
    let (from, to) = ([table(&[3, 1])], [table(&[0, 2])]);
    let (source, destination) =
        (elements(made, memory.as_mut_ptr(), &from, 0), elements(made, target.as_mut_ptr(), &to, 0));
    let mut done = 0;
    // SAFETY: both sides have all places.
    ok(unsafe { dtc_tabled_copy(&source, &destination, i64::MAX, &mut done, null()) });
    assert_eq!(done, 16);
    assert_eq!(target[..8], memory[24..]);
    assert_eq!(target[16..24], memory[8..16]);
    assert_eq!(target[8..16], [0xa5; 8]);
    // SAFETY: a type that is not used any more.
    ok(unsafe { dtc_tabled_release(made) });
}

/// The kernel of a GPU notes faults; the host refuses them.
#[test]
fn a_report_is_left_alone_by_the_host() {
    let engine = Engine::new();
    let made = create(&engine, "table 0 4 4 8 (contiguous 8 byte)");
    let (mut memory, mut target, mut packed) = ((0..32).collect::<Vec<u8>>(), [0xa5u8; 32], [0u8; 16]);
    let (right, wrong, to) = ([table(&[3, -1])], [table(&[3, 4])], [table(&[0, 2])]);
    let mut report = dtc_index_fault { table: 0, index: 7, entry: 9 };
    let place: *mut dtc_index_fault = &mut report;
    let mut source = |tables| dtc_tabled_elements { report: place, ..elements(made, memory.as_mut_ptr(), tables, 0) };
    let (mut right, wrong) = (source(&right), source(&wrong));
    let (destination, mut done) = (elements(made, target.as_mut_ptr(), &to, 0), 0);
    // SAFETY: the memory has all places, and `packed` room for both entries.
    unsafe {
        ok(dtc_tabled_pack(&right, packed.as_mut_ptr().cast(), 16, &mut done, null()));
        ok(dtc_tabled_copy(&right, &destination, 16, &mut done, null()));
        let found = dtc_tabled_pack(&wrong, packed.as_mut_ptr().cast(), 16, &mut done, null());
        fails(found, DTC_ERROR_ARGUMENT, "table 0, entry 1: expected a place below 4, found 4");
        let twice = dtc_tabled_elements { report: place, ..destination };
        let found = dtc_tabled_copy(&right, &twice, 16, &mut done, null());
        fails(found, DTC_ERROR_ARGUMENT, "dtc_tabled_elements.report: expected null in the destination of a copy");
        right.report = null_mut();
        ok(dtc_tabled_unpack(packed.as_ptr().cast(), 16, &right, &mut done, null()));
        // SAFETY: a type that is not used any more.
        ok(dtc_tabled_release(made));
    }
    assert_eq!(packed[..8], [24, 25, 26, 27, 28, 29, 30, 31]);
    assert_eq!((report.table, report.index, report.entry), (0, 7, 9));
}

#[test]
fn wrong_calls_are_refused() {
    let engine = Engine::new();
    let mut none = null_mut();
    let create_fails = |text: &str, named: &str| {
        let text = CString::new(text).expect("a text");
        let mut made = null_mut();
        // SAFETY: an engine, a text and a place.
        fails(unsafe { dtc_tabled_create(engine.0, text.as_ptr(), &mut made) }, DTC_ERROR_TYPE, named);
    };
    create_fails("table 1 4 4 8 double", "tables 0 to 1, each used, found none of number 0");
    create_fails("table 0 4 4 8", "description");
    create_fails("{\"kind\": \"table\"}", "description");
    // SAFETY: an engine, no text and a place.
    fails(unsafe { dtc_tabled_create(engine.0, null(), &mut none) }, DTC_ERROR_ARGUMENT, "description");
    let made = create(&engine, "table 0 4 2 8 double");
    let (mut memory, mut packed) = ([0u8; 32], [0u8; 16]);
    let memory = memory.as_mut_ptr();
    let mut pack = |tables: &[dtc_index_table], change: &dyn Fn(&mut dtc_tabled_elements)| {
        let mut source = elements(made, memory, tables, 0);
        source.flags = 0;
        change(&mut source);
        // SAFETY: the memory has all places, and `packed` room for the longest table.
        unsafe { dtc_tabled_pack(&source, packed.as_mut_ptr().cast(), 16, null_mut(), null()) }
    };
    let nothing = |_: &mut dtc_tabled_elements| {};
    fails(pack(&[table(&[0, 4])], &nothing), DTC_ERROR_ARGUMENT, "table 0, entry 1: expected a place below 4, found 4");
    fails(pack(&[table(&[-1])], &nothing), DTC_ERROR_ARGUMENT, "table 0, entry 0");
    fails(pack(&[table(&[0, 1, 2])], &nothing), DTC_ERROR_ARGUMENT, "at most 2 entries, found 3");
    fails(pack(&[], &nothing), DTC_ERROR_ARGUMENT, "tables: expected 1");
    fails(pack(&[dtc_index_table { width: 2, ..table(&[0]) }], &nothing), DTC_ERROR_ARGUMENT, "width: expected 4 or 8");
    fails(pack(&[dtc_index_table { length: -1, ..table(&[0]) }], &nothing), DTC_ERROR_ARGUMENT, "length");
    fails(
        pack(&[dtc_index_table { memory: 9, ..table(&[0]) }], &nothing),
        DTC_ERROR_ARGUMENT,
        "dtc_index_table.memory",
    );
    fails(pack(&[dtc_index_table { reserved: 1, ..table(&[0]) }], &nothing), DTC_ERROR_ARGUMENT, "reserved");
    fails(pack(&[table(&[0])], &|source| source.flags = 2), DTC_ERROR_ARGUMENT, "flags");
    fails(pack(&[table(&[0])], &|source| source.offset = -1), DTC_ERROR_ARGUMENT, "offset");
    fails(pack(&[table(&[0])], &|source| source.offset = 9), DTC_ERROR_RANGE, "offset");
    fails(pack(&[table(&[0])], &|source| source.r#type = null()), DTC_ERROR_HANDLE, "dtc_tabled_type");
    let named = engine.named("MPI_INT");
    fails(pack(&[table(&[0])], &|source| source.r#type = named.0.cast()), DTC_ERROR_HANDLE, "dtc_tabled_type");
    // SAFETY: a null pointer is refused.
    fails(unsafe { dtc_tabled_pack(null(), null_mut(), 0, null_mut(), null()) }, DTC_ERROR_ARGUMENT, "source");
    // SAFETY: a type, and a device that no machine has.
    fails(unsafe { dtc_tabled_prepare(made, -1) }, DTC_ERROR_ARGUMENT, "device");
    // SAFETY: a type that is not used any more.
    ok(unsafe { dtc_tabled_release(made) });
}

/// A pack, an unpack and a copy by tables, and a pack without.
#[test]
fn a_batch_moves_all_of_its_calls() {
    let engine = Engine::new();
    let made = create(&engine, "table 0 4 4 8 (contiguous 8 byte)");
    let plain = engine.named("MPI_INT");
    // SAFETY: a live type.
    ok(unsafe { dtc_type_commit(plain.0, 0) });
    let (mut memory, mut unpacked, mut copied) = ((0..32).collect::<Vec<u8>>(), [0xa5u8; 32], [0xa5u8; 32]);
    let (mut packed, received, mut number) = ([0u8; 16], [7u8; 8], [0u8; 4]);
    let (first, second, third) = ([table(&[3, 1])], [table(&[2])], [table(&[0, -1])]);
    let source = elements(made, memory.as_mut_ptr(), &first, 0);
    let destination = elements(made, unpacked.as_mut_ptr(), &second, 0);
    let target = elements(made, copied.as_mut_ptr(), &third, 0);
    let call = |direction, elements: &dtc_tabled_elements, packed: *mut u8, bytes| {
        let (destination, packed) = (null(), packed.cast());
        dtc_tabled_call { elements, destination, packed, bytes, direction, reserved: 0 }
    };
    let copy = dtc_tabled_call { destination: &target, ..call(DTC_DIRECTION_COPY, &source, null_mut(), 16) };
    let calls = [
        call(DTC_DIRECTION_PACK, &source, packed.as_mut_ptr(), 16),
        call(DTC_DIRECTION_UNPACK, &destination, received.as_ptr().cast_mut(), 8),
        copy,
    ];
    let other = dtc_batch_call {
        r#type: plain.0,
        memory: memory.as_mut_ptr().wrapping_add(4).cast(),
        packed: number.as_mut_ptr().cast(),
        count: 1,
        offset: 0,
        max: 4,
        direction: DTC_DIRECTION_PACK,
        reserved: 0,
    };
    let run = |calls: &[dtc_tabled_call], done: &mut i64| {
        let length = calls.len() as i64;
        // SAFETY: each memory has all places, and each packed side as many bytes as its call names.
        unsafe { dtc_tabled_batch(engine.0, calls.as_ptr(), length, &other, 1, done, null()) }
    };
    let mut done = 0;
    ok(run(&calls, &mut done));
    assert_eq!(done, 16 + 8 + 16 + 4);
    assert_eq!((&packed[..8], &packed[8..], &number[..]), (&memory[24..], &memory[8..16], &memory[4..8]));
    assert_eq!((&unpacked[16..24], &unpacked[..16]), (&received[..], &[0xa5; 16][..]));
    assert_eq!((&copied[..8], &copied[8..]), (&memory[24..], &[0xa5; 24][..]));

    // What is wrong is named, and nothing moves.
    let wrong = [table(&[4])];
    let wrong = elements(made, memory.as_mut_ptr(), &wrong, 0);
    let before = packed;
    let unpack = calls[1];
    fails(
        run(&[unpack, call(DTC_DIRECTION_PACK, &wrong, packed.as_mut_ptr(), 8)], &mut done),
        DTC_ERROR_ARGUMENT,
        "transfer 1: table 0, entry 0: expected a place below 4, found 4",
    );
    assert_eq!(packed, before);
    for (call, named) in [
        (dtc_tabled_call { direction: 3, ..copy }, "dtc_tabled_call.direction"),
        (dtc_tabled_call { reserved: 1, ..copy }, "dtc_tabled_call.reserved"),
        (dtc_tabled_call { packed: packed.as_mut_ptr().cast(), ..copy }, "dtc_tabled_call.packed: expected null"),
        (dtc_tabled_call { packed: null_mut(), ..unpack }, "dtc_tabled_call.packed: expected an address"),
        (dtc_tabled_call { destination: &target, ..unpack }, "dtc_tabled_call.destination"),
        (dtc_tabled_call { elements: null(), ..unpack }, "dtc_tabled_call.elements"),
        (dtc_tabled_call { bytes: -1, ..unpack }, "bytes"),
    ] {
        fails(run(&[call], &mut done), DTC_ERROR_ARGUMENT, named);
    }
    let short = dtc_tabled_call { bytes: i64::MAX, destination: &destination, ..copy };
    fails(run(&[short], &mut done), DTC_ERROR_RANGE, "transfer 0: copy: expected 16 bytes");
    // SAFETY: a type that is not used any more.
    ok(unsafe { dtc_tabled_release(made) });
}

/// Sums where entries lead, of host memory.
#[test]
fn an_accumulation_adds_where_entries_lead() {
    let engine = Engine::new();
    let made = create(&engine, "table 0 4 4 16 (contiguous 2 double)");
    let (double, char) = (engine.named("MPI_DOUBLE"), engine.named("MPI_CHAR"));
    let (mut memory, packed) = ([1.0f64; 8], [10.0f64, 20.0, 30.0, 40.0, 50.0, 60.0]);
    let tables = [table(&[3, -1, 1])];
    let destination = elements(made, memory.as_mut_ptr().cast(), &tables, 8);
    let mut done = 0;
    let mut add = |basic: *const dtc_type, bytes: i64| {
        // SAFETY: the memory has all places, and `packed` as many bytes as are asked for.
        unsafe {
            let packed = packed.as_ptr().cast();
            dtc_tabled_accumulate(DTC_OPERATION_SUM, basic, packed, bytes, &destination, &mut done, null())
        }
    };
    fails(add(double.0, 12), DTC_ERROR_OPERATION, "length: expected a multiple of the 8 bytes of f64, found 12");
    fails(add(char.0, 8), DTC_ERROR_OPERATION, "");
    fails(add(null(), 8), DTC_ERROR_HANDLE, "");
    ok(add(double.0, i64::MAX));
    assert_eq!(done, 40);
    assert_eq!(memory, [1.0, 1.0, 41.0, 51.0, 1.0, 1.0, 1.0, 11.0]);
    // SAFETY: a type that is not used any more.
    ok(unsafe { dtc_tabled_release(made) });
}
