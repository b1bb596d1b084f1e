//! Reads any text as a type with index tables: what is accepted is printed and read again, lowered, and walked with tables of few entries
//! beside the blocks of the same call. Its plain source is written or refused.
#![no_main]

use dtc_compiler::codegen::source;
use dtc_compiler::datatype::{TableKind, TabledDatatype, json};
use dtc_compiler::tabled::{Entries, TabledLayout};
use libfuzzer_sys::fuzz_target;

/// Packed bytes of a call that is walked, at most.
const LIMIT: u64 = 1 << 12;

/// Entries of a table, at most.
const ENTRIES: u64 = 3;

fuzz_target!(|input: (u8, u64, u16, u16, &str)| {
    let (kind, drawn, first, end, text) = input;
    let read = if kind % 2 == 0 { text.parse().ok() } else { json::read_tabled(text).map(|read| read.datatype).ok() };
    let Some(datatype): Option<TabledDatatype> = read else { return };
    let layout = TabledLayout::new(&datatype);
    let printed: TabledDatatype = datatype.to_string().parse().expect("what was printed is read");
    let written = json::read_tabled(&json::write_tabled(&datatype)).expect("what was written is read").datatype;
    for again in [printed, written] {
        assert_eq!(again.facts(), datatype.facts());
        assert_eq!(again.tables(), datatype.tables());
        assert_eq!(TabledLayout::new(&again).digest(), layout.digest());
    }
    if let Ok(text) = source::tabled_c("fuzzed", &datatype) {
        assert!(text.contains("fuzzed_pack"));
    }
    calls(&layout, drawn, first.into(), end.into());
});

/// Walks a call with drawn tables, and compares the blocks of a range of its packed bytes.
fn calls(layout: &TabledLayout, drawn: u64, first: u64, end: u64) {
    let mut state = drawn;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below.max(1)
    };
    let tables: Vec<Vec<i64>> = layout
        .tables()
        .iter()
        .map(|facts| {
            let entry = |next: &mut dyn FnMut(u64) -> u64| match facts.kind {
                _ if next(4) == 0 => {
                    if matches!(facts.kind, TableKind::Places(_)) {
                        -1
                    } else {
                        0
                    }
                }
                TableKind::Places(places) => next(places) as i64,
                TableKind::Addresses(alignment) => (next(100) * alignment) as i64,
            };
            (0..next(facts.most.min(ENTRIES) + 1)).map(|_| entry(&mut next)).collect()
        })
        .collect();
    let entries: Vec<Entries<'_>> = tables.iter().map(|table| Entries::Wide(table)).collect();
    let lengths: Vec<u64> = tables.iter().map(|table| table.len() as u64).collect();
    let size = layout.size(&lengths).expect("as many tables, no longer than they may be");
    if size > LIMIT {
        return;
    }
    // Each packed byte with its place, in packed order.
    let mut expected = Vec::new();
    for piece in layout.walk(&entries) {
        let bytes = (0..piece.bytes).map(|at| (piece.position + at, piece.place.wrapping_add(at), piece.absolute));
        expected.extend(bytes.filter(|&(position, ..)| (first..end).contains(&position)));
    }
    let mut found = Vec::new();
    for block in layout.blocks(&entries, first, end) {
        for copy in block.copies() {
            let places = layout.fixed_layouts()[block.fixed].displacements();
            let places = places.map(|at| copy.place.wrapping_add_signed(at));
            let bytes = (copy.position..).zip(places).map(|(position, place)| (position, place, copy.absolute));
            found.extend(bytes.filter(|&(position, ..)| (first..end).contains(&position)));
        }
    }
    assert_eq!(found, expected);
}
