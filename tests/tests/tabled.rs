//! Types with index tables on the host, compared with the reference walker.

use dtc_compiler::tabled::{Entries, TabledLayout, TabledPiece};
use dtc_runtime::operation::{Element, Operation, Reduction};
use dtc_runtime::{Endpoint, Engine, IndexTable, Memory, MemoryMut, Range, TabledError};
use dtc_tests::generate::tabled::{Tabled, tabled};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

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

/// Each granule, sector and whole sector once, by the bytes of the reference; pieces are what two lists of the same length would copy.
#[test]
fn rooflines_are_those_of_the_bytes() {
    let engine = Engine::new();
    for seed in 0..300 {
        let mut rng = SmallRng::seed_from_u64(2000 + seed);
        let Tabled { datatype, tables } = tabled(&mut rng, true);
        let address = 4096 + rng.random_range(0..100);
        let pieces = TabledLayout::new(&datatype).walk(&entries(&tables));
        let bytes: BTreeSet<u64> =
            pieces.iter().flat_map(|piece| (piece.place..piece.place + piece.bytes).map(|at| at + address)).collect();
        let units = |of: u64| {
            let mut covered: BTreeMap<u64, u64> = BTreeMap::new();
            bytes.iter().for_each(|at| *covered.entry(at / of).or_default() += 1);
            covered
        };
        let sectors = units(32);
        let breaks = pieces.windows(2).filter(|pair| {
            (pair[0].position + pair[0].bytes, pair[0].place + pair[0].bytes) != (pair[1].position, pair[1].place)
        });
        let breaks = breaks.count() as u64;
        let passed: Vec<IndexTable<'_>> = tables.iter().map(IndexTable::from).collect();
        let found = engine.commit_tabled(&datatype).roofline(&passed, address).unwrap().expect("few runs");
        let what = format!("seed {seed}: {datatype} with {tables:?}");
        assert_eq!(found.bytes, pieces.iter().map(|piece| piece.bytes).sum::<u64>(), "{what}");
        assert_eq!(found.pieces, if pieces.is_empty() { 0 } else { 1 + breaks }, "{what}");
        let footprint = found.roofline.footprint();
        assert_eq!(footprint.granules, units(64).len() as u64, "{what}");
        assert_eq!(footprint.sectors, sectors.len() as u64, "{what}");
        assert_eq!(footprint.full_sectors, sectors.values().filter(|&&bytes| bytes == 32).count() as u64, "{what}");
    }
}

/// Packs, unpacks and copies of a batch in host memory, and a pack of a type without tables.
#[test]
fn batches_move_what_their_transfers_do() {
    let engine = Engine::new();
    let plain = engine.commit(&"vector 3 1 2 int".parse().unwrap());
    for seed in 0..40 {
        let mut rng = SmallRng::seed_from_u64(3000 + seed);
        let drawn: Vec<Tabled> = (0..4).map(|_| tabled(&mut rng, true)).collect();
        let committed: Vec<_> = drawn.iter().map(|drawn| engine.commit_tabled(&drawn.datatype)).collect();
        let tables: Vec<Vec<IndexTable<'_>>> =
            drawn.iter().map(|drawn| drawn.tables.iter().map(IndexTable::from).collect()).collect();
        let memories: Vec<Vec<u8>> = drawn
            .iter()
            .map(|drawn| (0..drawn.datatype.facts().true_ub.max(24)).map(|_| rng.random()).collect())
            .collect();
        let size = |at: usize| {
            let lengths: Vec<u64> = tables[at].iter().map(IndexTable::len).collect();
            committed[at].packed_size(&lengths).unwrap()
        };
        let copied = size(2).min(size(3));
        // One side of each in turn: by the batch, and one by one.
        let moved = |batched: bool| {
            let mut memories = memories.clone();
            let mut packed = [vec![7u8; size(0) as usize], vec![9u8; size(1) as usize], vec![0u8; 12]];
            let [first, second, third, fourth] = &mut memories[..] else { unreachable!("four are drawn") };
            let at = |side: &mut Vec<u8>| Endpoint::host(side.as_mut_ptr());
            let [one, two, three] = packed.each_mut().map(at);
            let transfers = [
                committed[0].at(at(first), &tables[0]).skipping().pack(one).into(),
                committed[1].at(at(second), &tables[1]).skipping().unpack(two).into(),
                committed[2]
                    .at(at(third), &tables[2])
                    .bytes(..copied)
                    .skipping()
                    .copy_to(committed[3].at(at(fourth), &tables[3]).bytes(..copied).skipping())
                    .into(),
                plain.at(at(first), Range::elements(1)).pack(three).into(),
            ];
            // SAFETY: the memories have all places, and the packed bytes are as many as the tables ask for.
            let bytes = unsafe {
                if batched {
                    engine.run_tabled_batch(&transfers).unwrap()
                } else {
                    transfers.iter().map(|transfer| engine.run_tabled_batch(&[*transfer]).unwrap()).sum()
                }
            };
            assert_eq!(bytes, size(0) + size(1) + copied + 12, "seed {seed}");
            (memories, packed)
        };
        assert!(moved(true) == moved(false), "seed {seed}");
        let (memories_after, [packed, ..]) = moved(true);
        for (position, place, bytes) in within(&committed[0].layout().walk(&entries(&drawn[0].tables)), 0, u64::MAX) {
            assert_eq!(packed[position as usize..][..bytes], memories[0][place..][..bytes], "seed {seed}");
        }
        assert!(memories_after[0] == memories[0] && memories_after[2] == memories[2], "seed {seed}");
    }
}

/// Each element that the reference leads to becomes itself plus the packed one.
#[test]
fn accumulations_are_those_of_the_reference() {
    let engine = Engine::new();
    let mut made = 0;
    for seed in 0..TYPES {
        let mut rng = SmallRng::seed_from_u64(4000 + seed);
        let Tabled { datatype, tables } = tabled(&mut rng, true);
        let element = [Element::U8, Element::I16, Element::I32, Element::F64][seed as usize % 4];
        let unit = element.size();
        let layout = TabledLayout::new(&datatype);
        let committed = engine.commit_tabled(&datatype);
        let sum = Reduction::new(Operation::Sum, element).unwrap();
        let passed: Vec<IndexTable<'_>> = tables.iter().map(IndexTable::from).collect();
        let lengths: Vec<u64> = passed.iter().map(IndexTable::len).collect();
        let total = committed.packed_size(&lengths).unwrap();
        let first = rng.random_range(0..=total / unit) * unit;
        let end = first + rng.random_range(0..=(total - first) / unit) * unit;
        let whole = layout.fixed_layouts().iter().all(|fixed| fixed.size().is_multiple_of(unit)) && end <= total;
        let number = |bytes: &[u8]| match element {
            Element::F64 => f64::from_ne_bytes(bytes.try_into().unwrap()) as i64,
            _ => bytes.iter().rev().fold(0, |number, &byte| number << 8 | i64::from(byte)),
        };
        let bytes_of = |number: i64| match element {
            Element::F64 => (number as f64).to_ne_bytes().to_vec(),
            _ => number.to_le_bytes()[..unit as usize].to_vec(),
        };
        // Every byte of the memory belongs to a number, wherever that begins: bytes of small numbers.
        let mut memory: Vec<u8> = if element == Element::F64 {
            vec![0; datatype.facts().true_ub as usize]
        } else {
            (0..datatype.facts().true_ub).map(|_| rng.random()).collect()
        };
        let packed: Vec<u8> = (0..(end - first) / unit).flat_map(|at| bytes_of(at as i64 % 100)).collect();
        let mut expected = memory.clone();
        // Bytes of an element may be apart.
        let places: Vec<(u64, usize)> = within(&layout.walk(&entries(&tables)), first, end)
            .into_iter()
            .flat_map(|(at, place, bytes)| (0..bytes).map(move |byte| (at + byte as u64, place + byte)))
            .collect();
        for element in places.chunk_by(|one, other| one.0 / unit == other.0 / unit) {
            let bytes: Vec<u8> = element.iter().map(|&(_, place)| memory[place]).collect();
            let theirs = &packed[(element[0].0 / unit * unit) as usize..][..unit as usize];
            if bytes.len() as u64 == unit {
                let result = bytes_of(number(&bytes).wrapping_add(number(theirs)));
                element.iter().zip(result).for_each(|(&(_, place), byte)| expected[place] = byte);
            }
        }
        let end_of = Endpoint::host(memory.as_mut_ptr());
        let elements = committed.at(end_of, &passed).bytes(first..end).skipping();
        // SAFETY: the memory has all places, and the packed bytes are as many as the range.
        let done = unsafe { elements.accumulate(sum, Endpoint::host(packed.as_ptr())).run() };
        let what = format!("seed {seed}: {first}..{end} of {datatype} with {tables:?}");
        match done {
            Ok(bytes) => {
                assert!(whole, "{what}");
                assert_eq!(bytes, end - first, "{what}");
                assert!(memory == expected, "{what}");
                made += 1;
            }
            Err(error) => assert!(!whole && matches!(error, TabledError::Accumulate(_)), "{what}: {error}"),
        }
    }
    assert!(made > TYPES / 4, "{made}");
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
        let end = Endpoint::host(packed.as_mut_ptr());
        let memory = Endpoint::host(memory.as_ptr());
        // SAFETY: the memory has all places, and the packed bytes are as many as the tables ask for.
        unsafe { committed.at(memory, &passed).skipping().pack(end).run().unwrap() };
        assert!(packed == expected, "seed {seed}: {datatype} with {tables:?}");
    }
}
