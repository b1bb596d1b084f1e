//! Types with index tables on the host, compared with the reference walker.

use dtc_compiler::tabled::{Entries, TabledLayout, TabledPiece};
use dtc_runtime::{Engine, IndexTable, Memory, MemoryMut, TabledError};
use dtc_tests::generate::tabled::{Tabled, tabled};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Types that are drawn.
const TYPES: u64 = 600;

fn entries(tables: &[Vec<i64>]) -> Vec<Entries<'_>> {
    tables.iter().map(|table| Entries::Wide(table)).collect()
}

/// Pieces cut to a range of packed bytes.
fn within(pieces: &[TabledPiece], first: u64, end: u64) -> Vec<(u64, usize, usize)> {
    let mut cut = Vec::new();
    for piece in pieces {
        let (from, to) = (piece.position.max(first), (piece.position + piece.bytes).min(end));
        if from < to {
            let place = piece.place + (from - piece.position);
            cut.push((from - first, place as usize, (to - from) as usize));
        }
    }
    cut
}

#[test]
fn packs_and_unpacks_are_those_of_the_reference() {
    let engine = Engine::new();
    for seed in 0..TYPES {
        let mut rng = SmallRng::seed_from_u64(seed);
        let Tabled { datatype, tables } = tabled(&mut rng, false);
        let layout = TabledLayout::new(&datatype);
        let pieces = layout.walk(&entries(&tables));
        let committed = engine.commit_tabled(&datatype);
        let lengths: Vec<u64> = tables.iter().map(|table| table.len() as u64).collect();
        let total = committed.packed_size(&lengths).unwrap();
        assert_eq!(pieces.iter().map(|piece| piece.bytes).sum::<u64>(), total, "seed {seed}: {datatype}");
        let (first, end) = if rng.random_bool(0.5) {
            (0, total)
        } else {
            let first = rng.random_range(0..=total);
            (first, rng.random_range(first..=total))
        };
        let mut memory = vec![0u8; datatype.facts().true_ub as usize];
        rng.fill(&mut memory[..]);
        let mut packed = vec![0x5a; (end - first) as usize];
        let mut expected = packed.clone();
        for (at, place, bytes) in within(&pieces, first, end) {
            expected[at as usize..][..bytes].copy_from_slice(&memory[place..][..bytes]);
        }
        let narrow: Vec<Vec<i32>> =
            tables.iter().map(|table| table.iter().map(|&entry| entry as i32).collect()).collect();
        let wide = seed % 2 == 0;
        let of = |at: usize| if wide { IndexTable::from(&tables[at]) } else { IndexTable::from(&narrow[at]) };
        let passed: Vec<IndexTable<'_>> = (0..tables.len()).map(of).collect();
        let moved = committed.pack(Memory::at(&memory, 0), &passed, first..end, &mut packed).unwrap();
        assert_eq!(moved as u64, end - first, "seed {seed}");
        assert!(packed == expected, "seed {seed}: a pack of {first}..{end} of {datatype} with {tables:?}");

        let mut source = vec![0u8; packed.len()];
        rng.fill(&mut source[..]);
        let mut expected = memory.clone();
        for (at, place, bytes) in within(&pieces, first, end) {
            expected[place..][..bytes].copy_from_slice(&source[at as usize..][..bytes]);
        }
        committed.unpack(&source, first..end, &passed, MemoryMut::at(&mut memory, 0)).unwrap();
        assert!(memory == expected, "seed {seed}: an unpack of {first}..{end} of {datatype} with {tables:?}");
    }
}

#[test]
fn descriptions_round_trip() {
    for seed in 0..200 {
        let Tabled { datatype, tables } = tabled(&mut SmallRng::seed_from_u64(seed), true);
        let text = datatype.to_string();
        let json = dtc_compiler::datatype::json::write_tabled(&datatype);
        let again = [text.parse().unwrap(), dtc_compiler::datatype::json::read_tabled(&json).unwrap().datatype];
        let layout = TabledLayout::new(&datatype);
        for again in again {
            assert_eq!(again.to_string(), text);
            let other = TabledLayout::new(&again);
            assert_eq!(other.digest(), layout.digest(), "{text}");
            assert_eq!(other.walk(&entries(&tables)), layout.walk(&entries(&tables)));
        }
    }
}

/// Copies without bytes are not visited, however many they are.
#[test]
fn tables_without_entries_cost_nothing() {
    let datatype = "struct [1@0 (hvector 1152921504606846976 1 0 (table 0 8 4 8 byte)), 1@64 int]".parse().unwrap();
    let (layout, none) = (TabledLayout::new(&datatype), [Entries::Wide(&[])]);
    let pieces = layout.walk(&none);
    assert_eq!(pieces, [TabledPiece { position: 0, place: 64, absolute: false, bytes: 4 }]);
    assert_eq!(layout.blocks(&none, 0, 4).map(|block| block.copies().count()).sum::<usize>(), 1);
}

#[test]
fn structures_in_structures_are_one() {
    let digest = |text: &str| TabledLayout::new(&text.parse().unwrap()).digest();
    let flat = "struct [1@0 (table 0 4 2 8 int), 1@100 (table 0 4 2 16 int), 1@200 (table 0 4 2 8 int), 1@300 (table 0 4 2 16 int)]";
    let pair = "struct [1@0 (table 0 4 2 8 int), 1@100 (table 0 4 2 16 int)]";
    assert_eq!(digest(&format!("hindexed [1@0, 1@200] ({pair})")), digest(flat));
    assert_eq!(digest(&format!("struct [1@0 (dup ({pair})), 1@200 (contiguous 1 ({pair}))]")), digest(flat));
    // Equal copies above equal structures that were nested in another way.
    let above = |inner: &str| {
        digest(&format!("struct [1@0 (table 1 9 9 4096 ({inner})), 1@99999 (table 1 9 9 4096 ({flat}))]"))
    };
    assert_eq!(above(&format!("hindexed [1@0, 1@200] ({pair})")), above(flat));
}

/// The sides are read and written by one definition: blocks of a range are those of the walk.
#[test]
fn skipped_entries_touch_nothing() {
    let engine = Engine::new();
    for seed in 0..200 {
        let Tabled { datatype, tables } = tabled(&mut SmallRng::seed_from_u64(1000 + seed), true);
        let layout = TabledLayout::new(&datatype);
        let pieces = layout.walk(&entries(&tables));
        let committed = engine.commit_tabled(&datatype);
        let passed: Vec<IndexTable<'_>> = tables.iter().map(IndexTable::from).collect();
        let lengths: Vec<u64> = tables.iter().map(|table| table.len() as u64).collect();
        let mut packed = vec![0x5au8; committed.packed_size(&lengths).unwrap() as usize];
        let memory: Vec<u8> = (0..datatype.facts().true_ub as usize).map(|at| (at % 251) as u8).collect();
        let mut expected = packed.clone();
        for (at, place, bytes) in within(&pieces, 0, packed.len() as u64) {
            expected[at as usize..][..bytes].copy_from_slice(&memory[place..][..bytes]);
        }
        let refused = committed.pack(&memory, &passed, .., &mut packed);
        let some = tables.iter().enumerate().find_map(|(table, entries)| {
            let index = entries.iter().position(|&entry| entry < 0)?;
            Some((table, index as u64, entries[index]))
        });
        match some {
            Some((table, index, found)) => {
                let places = match layout.tables()[table].kind {
                    dtc_compiler::datatype::TableKind::Places(places) => places,
                    dtc_compiler::datatype::TableKind::Addresses(_) => 0,
                };
                assert_eq!(refused, Err(TabledError::Entry { table, index, places, found }));
            }
            None => assert_eq!(refused, Ok(packed.len())),
        }
        let end = dtc_runtime::Endpoint::host(packed.as_mut_ptr());
        let memory = dtc_runtime::Endpoint::host(memory.as_ptr());
        // SAFETY: the memory has all places, and the packed bytes are as many as the tables ask for.
        unsafe { committed.at(memory, &passed).skipping().pack(end).run().unwrap() };
        assert!(packed == expected, "seed {seed}: {datatype} with {tables:?}");
    }
}
