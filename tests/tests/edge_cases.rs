//! The edge cases of the semantics, by number, on every engine.
//!
//! Cases 26, 29, 30, 33 to 43, 45 and 46 need an MPI and are tested with one.

use dtc_compiler::datatype::{Datatype, DatatypeError, Distribution, Order, Predefined, TypeBuilder, TypeId};
use dtc_compiler::{canonicalise, lower};
use dtc_runtime::{Committed, Engine, Memory, MemoryMut, PackError, Range};
use dtc_tests::conformance::{EngineSubject, engines, run};
use dtc_tests::corpus::{self, datatype};
use dtc_tests::type_map::TypeMap;
use std::thread;
use std::time::{Duration, Instant};

const INT: Predefined = Predefined::INT;
const DOUBLE: Predefined = Predefined::DOUBLE;
const CHAR: Predefined = Predefined::CHAR;

/// Commits to every engine, and calls `check` with each.
fn on_engines(datatype: &Datatype, check: impl Fn(&Committed)) {
    for (_, engine) in engines() {
        check(&engine.commit(datatype));
    }
}

/// Integers as bytes in memory.
fn ints(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_ne_bytes).collect()
}

/// Packs `count` elements of a memory of integers whose element 0 is at index `origin`, and reads the result as
/// integers.
fn pack_ints(committed: &Committed, memory: &[i32], origin: usize, count: u64) -> Vec<i32> {
    let mut packed = vec![0u8; (committed.facts().size * count) as usize];
    let written =
        committed.pack(Memory::at(&ints(memory.iter().copied()), 4 * origin), Range::elements(count), &mut packed);
    assert_eq!(written, Ok(packed.len()));
    packed.chunks(4).map(|bytes| i32::from_ne_bytes(bytes.try_into().expect("4 bytes"))).collect()
}

/// The packed integers of a memory that holds 0, 1, 2, ...
fn packed_indices(datatype: &Datatype, origin: usize, count: u64) -> Vec<i32> {
    let memory: Vec<i32> = (0..1000).collect();
    let mut results: Vec<Vec<i32>> =
        engines().iter().map(|(_, engine)| pack_ints(&engine.commit(datatype), &memory, origin, count)).collect();
    let first = results.pop().expect("there are engines");
    assert!(results.iter().all(|other| *other == first), "engines disagree");
    first
}

/// Runs the types of the corpus that cover a case; there must be at least one.
fn run_corpus(number: u32) {
    let cases: Vec<_> = corpus::all().into_iter().filter(|case| case.edge_cases.contains(&number)).collect();
    assert!(!cases.is_empty(), "the corpus has no type for case {number}");
    for case in cases {
        for (name, engine) in engines() {
            let subject = EngineSubject::new(&engine, &format!("{} on engine {name}", case.name), &case.datatype);
            assert_eq!(run(&subject, &case.datatype, number.into()), Ok(()), "{}", case.name);
        }
    }
}

fn of(element: Predefined, build: impl FnOnce(&mut TypeBuilder, TypeId) -> Built) -> Datatype {
    datatype(|types| {
        let element = types.named(element);
        build(types, element)
    })
}

type Built = Result<TypeId, DatatypeError>;

#[test]
fn case_01_pack_order_follows_the_type_map() {
    let picked = of(INT, |t, int| t.indexed(&[1, 1, 1], &[4, 0, 2], int));
    assert_eq!(packed_indices(&picked, 0, 1), [4, 0, 2]);
    run_corpus(1);
}

#[test]
fn case_02_negative_vector_stride() {
    let reversed = of(INT, |t, int| t.vector(4, 1, -3, int));
    assert_eq!((reversed.facts().lb, reversed.facts().extent()), (-36, 40));
    assert_eq!(packed_indices(&reversed, 9, 1), [9, 6, 3, 0]);
    run_corpus(2);
}

#[test]
fn case_03_negative_displacements_and_bounds() {
    let negative = of(INT, |t, int| t.hindexed(&[1, 2], &[-100, -8], int));
    let facts = negative.facts();
    assert_eq!((facts.lb, facts.extent(), facts.true_lb, facts.true_extent()), (-100, 100, -100, 100));
    let moved = of(INT, |t, int| {
        let negative = t.hindexed(&[1], &[-8], int)?;
        t.resized(-12, 20, negative)
    });
    let facts = moved.facts();
    assert_eq!((facts.lb, facts.ub, facts.true_lb, facts.true_extent()), (-12, 8, -8, 4));
    run_corpus(3);
}

#[test]
fn case_04_stride_smaller_than_the_block() {
    let overlapping = of(INT, |t, int| t.vector(3, 4, 2, int));
    assert_eq!(packed_indices(&overlapping, 0, 1), [0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7]);
    run_corpus(4);
}

#[test]
fn case_05_stride_zero() {
    let same = of(INT, |t, int| t.vector(5, 1, 0, int));
    assert_eq!(packed_indices(&same, 7, 1), [7; 5]);
    run_corpus(5);
}

#[test]
fn case_06_zero_counts_and_blocklengths() {
    let nothing = of(INT, |t, int| t.vector(3, 0, 9, int));
    assert_eq!((nothing.facts().size, nothing.facts().extent()), (0, 0));
    on_engines(&nothing, |committed| {
        assert_eq!(committed.pack(&[0u8; 0], Range::elements(5), &mut [0; 3]), Ok(0));
        assert_eq!(committed.unpack(&[1u8, 2], Range::elements(5), &mut [0u8; 0]), Ok(0));
    });
    let far_block_is_empty = of(INT, |t, int| t.indexed(&[0, 1], &[1000, 2], int));
    assert_eq!((far_block_is_empty.facts().lb, far_block_is_empty.facts().ub), (8, 12));
    run_corpus(6);
}

#[test]
fn case_07_structs_of_nothing_and_resized_nothing() {
    let resized = of(INT, |t, int| {
        let nothing = t.structure(&[0], &[40], &[int])?;
        t.resized(-8, 64, nothing)
    });
    assert_eq!((resized.facts().size, resized.facts().lb, resized.facts().extent()), (0, -8, 64));
    run_corpus(7);
}

#[test]
fn case_08_no_bytes_a_billion_times() {
    let resized = of(INT, |t, int| {
        let nothing = t.contiguous(0, int)?;
        t.resized(0, 64, nothing)
    });
    on_engines(&resized, |committed| {
        let start = Instant::now();
        assert_eq!(committed.pack(&[0u8; 0], Range::elements(1_000_000_000), &mut [0; 9]), Ok(0));
        assert_eq!(committed.unpack(&[0u8; 9], Range::elements(1_000_000_000), &mut [0u8; 0]), Ok(0));
        assert!(start.elapsed() < Duration::from_secs(1), "a loop over the count");
    });
    run_corpus(8);
}

#[test]
fn case_09_blocks_merge_only_in_both_orders() {
    let in_order = of(INT, |t, int| t.indexed_block(1, &[0, 1, 2], int));
    let contiguous = of(INT, |t, int| t.contiguous(3, int));
    let out_of_order = of(INT, |t, int| t.indexed_block(1, &[1, 0], int));
    let pair = of(INT, |t, int| t.contiguous(2, int));
    let hash = |datatype: &Datatype| lower(datatype).type_hash();
    assert_eq!(hash(&in_order), hash(&contiguous));
    assert_ne!(hash(&out_of_order), hash(&pair));
    assert_eq!(packed_indices(&out_of_order, 0, 1), [1, 0]);
    run_corpus(9);
}

#[test]
fn case_10_counts_of_resized_types_use_the_extent() {
    let column = of(INT, |t, int| {
        let column = t.vector(3, 1, 4, int)?;
        t.resized(0, 4, column)
    });
    assert_eq!(packed_indices(&column, 0, 3), [0, 4, 8, 1, 5, 9, 2, 6, 10]);
    let backwards = of(INT, |t, int| t.resized(0, -8, int));
    assert_eq!(packed_indices(&backwards, 10, 4), [10, 8, 6, 4]);
    let still = of(INT, |t, int| t.resized(0, 0, int));
    assert_eq!(packed_indices(&still, 3, 4), [3; 4]);
    run_corpus(10);
}

#[test]
fn case_11_a_lower_bound_moves_no_bytes() {
    let moved = of(INT, |t, int| t.resized(-20, 12, int));
    assert_eq!(packed_indices(&moved, 1, 3), [1, 4, 7]);
    run_corpus(11);
}

#[test]
fn case_12_explicit_bounds_are_sticky() {
    let mixed = of(INT, |t, int| {
        let marked = t.resized(0, 12, int)?;
        t.structure(&[1, 1], &[0, 40], &[marked, int])
    });
    assert_eq!((mixed.facts().lb, mixed.facts().extent()), (0, 12));
    assert_eq!(packed_indices(&mixed, 0, 3), [0, 10, 3, 13, 6, 16]);
    // Markers whose upper bound is below the lower one are markers too.
    let negative = of(INT, |t, int| {
        let marked = t.resized(0, -8, int)?;
        t.structure(&[1], &[0], &[marked])
    });
    assert_eq!((negative.facts().lb, negative.facts().extent()), (0, -8));
    run_corpus(12);
}

#[test]
fn case_13_extents_are_padded_like_c_structs() {
    let pair = |first, second, at| {
        datatype(|t| {
            let children = [t.named(first), t.named(second)];
            t.structure(&[1, 1], &[0, at], &children)
        })
    };
    assert_eq!(pair(DOUBLE, CHAR, 8).facts().extent(), 16);
    assert_eq!(pair(CHAR, DOUBLE, 8).facts().extent(), 16);
    assert_eq!(pair(INT, CHAR, 4).facts().extent(), 8);
    assert_eq!(pair(CHAR, CHAR, 1).facts().extent(), 2);
    run_corpus(13);
}

#[test]
fn case_14_pair_types_have_holes() {
    let facts = |name| *of(Predefined::by_name(name).expect("predefined"), |_, pair| Ok(pair)).facts();
    assert_eq!((facts("MPI_DOUBLE_INT").size, facts("MPI_DOUBLE_INT").extent()), (12, 16));
    assert_eq!((facts("MPI_SHORT_INT").size, facts("MPI_SHORT_INT").extent()), (6, 8));
    assert_eq!((facts("MPI_LONG_DOUBLE_INT").size, facts("MPI_LONG_DOUBLE_INT").extent()), (20, 32));
    run_corpus(14);
}

#[test]
fn case_15_unpack_writes_only_bytes_of_the_map() {
    for case in corpus::all().iter().filter(|case| case.datatype.facts().true_ub < 1 << 20) {
        let bytes = TypeMap::new(&case.datatype).bytes();
        let low = bytes.iter().copied().min().unwrap_or(0).min(0);
        let high = bytes.iter().copied().max().map_or(0, |last| last + 1).max(0);
        on_engines(&case.datatype, |committed| {
            let mut memory = vec![0xa5_u8; (high - low) as usize];
            let packed = vec![0x11_u8; bytes.len()];
            assert_eq!(
                committed.unpack(&packed, Range::elements(1), MemoryMut::at(&mut memory, -low as usize)),
                Ok(bytes.len())
            );
            let mut expected = vec![0xa5_u8; memory.len()];
            bytes.iter().for_each(|byte| expected[(byte - low) as usize] = 0x11);
            assert_eq!(memory, expected, "{}", case.name);
        });
    }
}

#[test]
fn case_16_subarrays() {
    let part = |order| of(INT, move |t, int| t.subarray(&[3, 4], &[2, 1], &[1, 3], order, int));
    assert_eq!(packed_indices(&part(Order::C), 0, 1), [7, 11]);
    assert_eq!(packed_indices(&part(Order::Fortran), 0, 1), [10, 11]);
    assert_eq!(part(Order::C).facts().extent(), 48);
    let whole = of(INT, |t, int| t.subarray(&[3, 4], &[3, 4], &[0, 0], Order::Fortran, int));
    let contiguous = of(INT, |t, int| t.contiguous(12, int));
    assert_eq!(lower(&whole).type_hash(), lower(&contiguous).type_hash());
    run_corpus(16);
}

#[test]
fn case_17_the_parts_of_a_darray_make_up_the_array() {
    let distributions = [
        [Distribution::Block(None), Distribution::Cyclic(Some(2)), Distribution::Cyclic(None)],
        [Distribution::Cyclic(Some(3)), Distribution::Block(Some(4)), Distribution::Block(None)],
    ];
    for distributions in distributions {
        for order in [Order::C, Order::Fortran] {
            let mut owned: Vec<i32> = (0..12)
                .flat_map(|rank| {
                    let part = of(INT, |t, int| t.darray(12, rank, &[5, 7, 3], &distributions, &[2, 3, 2], order, int));
                    assert_eq!(part.facts().extent(), 4 * 5 * 7 * 3);
                    packed_indices(&part, 0, 1)
                })
                .collect();
            owned.sort_unstable();
            assert_eq!(owned, (0..5 * 7 * 3).collect::<Vec<i32>>());
        }
    }
    run_corpus(17);
}

#[test]
fn case_18_dup_means_the_same_and_children_may_go() {
    let engine = Engine::new();
    let vector = of(INT, |t, int| t.vector(3, 2, 4, int));
    let copy = of(INT, |t, int| {
        let vector = t.vector(3, 2, 4, int)?;
        t.dup(vector)
    });
    let original = engine.commit(&vector);
    let duplicate = engine.commit(&copy);
    assert_eq!(original.type_hash(), duplicate.type_hash());
    drop((original, vector, copy));
    assert_eq!(pack_ints(&duplicate, &(0..12).collect::<Vec<_>>(), 0, 1), [0, 1, 4, 5, 8, 9]);
    run_corpus(18);
}

#[test]
fn case_19_deep_nests_and_long_lists() {
    let deep = datatype(|t| {
        let mut id = t.named(INT);
        for level in 0..20_000 {
            id = if level % 2 == 0 { t.contiguous(1, id)? } else { t.structure(&[1], &[4], &[id])? };
        }
        Ok(id)
    });
    // A recursion over the levels would overflow this stack.
    let worker = thread::Builder::new().stack_size(256 << 10).spawn(move || {
        on_engines(&deep, |committed| {
            let memory: Vec<i32> = (0..10_001).collect();
            assert_eq!(pack_ints(committed, &memory, 0, 1), [10_000]);
        });
    });
    worker.expect("a thread").join().expect("deep types are packed");

    let displacements: Vec<i64> = (0..1_000_000).map(|at: i64| 2 * at + (at * at / 7) % 2).collect();
    let long = of(INT, |t, int| t.indexed_block(1, &displacements, int));
    on_engines(&long, |committed| {
        let memory: Vec<i32> = (0..2_000_002).collect();
        let expected: Vec<i32> = displacements.iter().map(|&at| at as i32).collect();
        assert_eq!(pack_ints(committed, &memory, 0, 1), expected);
    });
    run_corpus(19);
}

#[test]
fn case_20_many_types() {
    let (_, engine) = engines().into_iter().nth(1).expect("an engine that compiles");
    for at in 0..100_000i64 {
        // A few shapes come repeatedly, and new ones in between.
        let count = if at % 10 == 0 { 1 + at } else { 1 + at % 7 };
        let vector = of(INT, |t, int| t.vector(count, 1, 3, int));
        let committed = engine.commit(&vector);
        assert_eq!(committed.facts().size, 4 * count as u64);
    }
    assert!(engine.cached_types() < 20_000, "{} types are kept", engine.cached_types());
    let again = of(INT, |t, int| t.vector(5, 1, 3, int));
    let (one, other) = (engine.commit(&again), engine.commit(&again));
    assert!(std::ptr::eq(one.layout(), other.layout()), "equal types do not share");
}

#[test]
fn case_21_misaligned_bases_and_displacements() {
    let floats = of(Predefined::FLOAT, |t, float| t.hvector(64, 3, 20, float));
    on_engines(&floats, |committed| {
        let memory: Vec<u8> = (0..1400u32).map(|index| (index * 7) as u8).collect();
        for skew in 0..17 {
            let mut packed = vec![0u8; 64 * 12 + skew];
            assert_eq!(committed.pack(Memory::at(&memory, skew), Range::elements(1), &mut packed[skew..]), Ok(64 * 12));
            let expected = (0..64).flat_map(|row| memory[skew + row * 20..][..12].to_vec());
            assert!(packed[skew..].iter().copied().eq(expected), "base and packed bytes skewed by {skew}");
        }
    });
    run_corpus(21);
}

/// A type of doubles with the extent of the array of case 22.
fn boxed(build: impl FnOnce(&mut TypeBuilder, TypeId) -> Built) -> Datatype {
    of(DOUBLE, |t, double| {
        let part = build(t, double)?;
        t.resized(0, 8 * 6 * 7 * 8, part)
    })
}

#[test]
fn case_22_equivalent_constructions_are_one_type() {
    let engine = Engine::new();
    let (nz, ny, nx) = (6i64, 7i64, 8i64);
    // The box 2 x 3 x 4 at (1, 4, 2), in elements of 8 bytes.
    let start = 8 * ((7 + 4) * 8 + 2);
    let rows: Vec<i64> = (0..2).flat_map(|z| (0..3).map(move |y| start / 8 + z * ny * nx + y * nx)).collect();
    let bytes: Vec<i64> = rows.iter().map(|row| row * 8).collect();
    let forms = [
        boxed(|t, d| t.subarray(&[nz, ny, nx], &[2, 3, 4], &[1, 4, 2], Order::C, d)),
        boxed(|t, d| t.subarray(&[nx, ny, nz], &[4, 3, 2], &[2, 4, 1], Order::Fortran, d)),
        boxed(|t, d| {
            let plane = t.vector(3, 4, nx, d)?;
            let cube = t.hvector(2, 1, 8 * nx * ny, plane)?;
            t.hindexed(&[1], &[start], cube)
        }),
        boxed(|t, d| t.indexed(&[4; 6], &rows, d)),
        boxed(|t, d| t.hindexed_block(4, &bytes, d)),
        boxed(|t, d| {
            let row = t.contiguous(4, d)?;
            t.structure(&[1; 6], &bytes, &[row; 6])
        }),
    ];
    for form in &forms {
        let first = engine.commit(&forms[0]);
        let committed = engine.commit(form);
        assert_eq!(committed.type_hash(), first.type_hash());
        assert_eq!(canonicalise(&lower(form)).layout.to_string(), first.layout().to_string());
    }
    run_corpus(22);
}

#[test]
fn case_23_absolute_addresses_of_two_allocations() {
    run_corpus(23);
}

#[test]
fn case_24_counts() {
    let byte = of(Predefined::BYTE, |_, byte| Ok(byte));
    let count = i32::MAX as u64;
    on_engines(&byte, |committed| {
        assert_eq!(committed.pack(&[0u8; 0], Range::elements(0), &mut [1]), Ok(0));
        assert_eq!(committed.packed_size(count), Ok(count as usize));
        assert!(matches!(committed.packed_size(u64::MAX), Err(PackError::Count { .. })));
    });
    // A tiny type of extent 0, so that the count needs no memory.
    let still = of(Predefined::BYTE, |t, byte| t.resized(0, 0, byte));
    on_engines(&still, |committed| {
        let mut tail = [0u8; 8];
        assert_eq!(committed.pack(&[9u8], Range::elements(count).bytes(count - 5..), &mut tail), Ok(5));
        assert_eq!(tail, [9, 9, 9, 9, 9, 0, 0, 0]);
    });
    run_corpus(24);
}

#[test]
fn case_25_sizes_beyond_31_bits() {
    // 2^20 blocks of 4 KiB that share their memory: 4 GiB packed.
    let large = of(Predefined::BYTE, |t, byte| {
        let block = t.contiguous(4096, byte)?;
        let block = t.resized(0, 1, block)?;
        t.contiguous(1 << 20, block)
    });
    assert_eq!(large.facts().size, 1 << 32);
    let memory: Vec<u8> = (0..(1u32 << 20) + 4096).map(|index| (index ^ (index >> 8)) as u8).collect();
    on_engines(&large, |committed| {
        let mut packed = [0u8; 10_000];
        let offset = (1 << 32) - 9_999;
        assert_eq!(committed.pack(&memory, Range::elements(1).bytes(offset..), &mut packed), Ok(9_999));
        for at in 0..9_999u64 {
            let position = offset + at;
            assert_eq!(packed[at as usize], memory[(position / 4096 + position % 4096) as usize]);
        }
    });
}

#[test]
fn case_27_several_packs_in_one_buffer() {
    let column = of(INT, |t, int| t.vector(3, 1, 4, int));
    let row = of(INT, |t, int| t.contiguous(5, int));
    let dense = of(INT, |t, int| t.contiguous(3, int));
    let memory = ints(0..12);
    for (_, engine) in engines() {
        let (column, row, dense) = (engine.commit(&column), engine.commit(&row), engine.commit(&dense));
        let mut packed = vec![0u8; 32];
        let position = column.pack(&memory, Range::elements(1), &mut packed).expect("room");
        let end =
            position + row.pack(Memory::at(&memory, 4), Range::elements(1), &mut packed[position..]).expect("room");
        assert_eq!((position, end), (12, 32));
        assert_eq!(packed, ints([0, 4, 8, 1, 2, 3, 4, 5]));
        let mut other = vec![0u8; 12];
        assert_eq!(dense.unpack(&packed, Range::elements(1), &mut other), Ok(12));
        assert_eq!(other, ints([0, 4, 8]));
    }
}

#[test]
fn case_28_buffers_that_are_too_small() {
    let column = of(INT, |t, int| t.vector(3, 1, 4, int));
    on_engines(&column, |committed| {
        let mut packed = [0x5a_u8; 12];
        let outside = committed.pack(&ints(0..8), Range::elements(1), &mut packed);
        assert!(matches!(outside, Err(PackError::Bounds { .. })), "{outside:?}");
        assert_eq!(packed, [0x5a; 12], "a refused pack wrote something");
        let mut memory = ints([7; 8]);
        assert!(committed.unpack(&packed, Range::elements(1), &mut memory).is_err());
        assert_eq!(memory, ints([7; 8]), "a refused unpack wrote something");
        assert!(matches!(
            committed.pack(&ints(0..12), Range::elements(1).bytes(13..), &mut packed),
            Err(PackError::Offset { .. })
        ));
        assert!(matches!(
            committed.pack(Memory::at(&ints(0..12), 49), Range::elements(1), &mut packed),
            Err(PackError::Origin { .. })
        ));
        // A packed buffer that is too small gets nothing, unless the call is for a part; the next call continues there.
        let short = Err(PackError::Packed { expected: 12, found: 5 });
        assert_eq!(committed.pack(&ints(0..12), Range::elements(1), &mut packed[..5]), short);
        assert_eq!(committed.pack_parallel(&ints(0..12), Range::elements(1), &mut packed[..5], 2), short);
        assert_eq!(packed, [0x5a; 12], "a refused pack wrote something");
        let mut memory = ints([7; 12]);
        assert_eq!(committed.unpack(&packed[..5], Range::elements(1), &mut memory), short);
        assert_eq!(committed.unpack_parallel(&packed[..5], Range::elements(1), &mut memory, 2), short);
        assert_eq!(memory, ints([7; 12]), "a refused unpack wrote something");
        let short = Err(PackError::Packed { expected: 4, found: 3 });
        assert_eq!(committed.pack(&ints(0..12), Range::elements(1).bytes(8..), &mut packed[..3]), short);
        assert_eq!(committed.pack(&ints(0..12), Range::elements(1).at_most(5), &mut packed[..5]), Ok(5));
        assert_eq!(committed.packed_size(1), Ok(12));
    });
}

#[test]
fn case_31_pieces_cut_anywhere() {
    let column = of(DOUBLE, |t, double| t.vector(700, 1, 3, double));
    let memory: Vec<u8> = (0..700 * 24u32).map(|index| ((index * 31) >> 3) as u8).collect();
    on_engines(&column, |committed| {
        let mut whole = vec![0u8; 5600];
        assert_eq!(committed.pack(&memory, Range::elements(1), &mut whole), Ok(5600));
        for piece in [1, 7, 4096] {
            let mut packed = Vec::new();
            while packed.len() < 5600 {
                let mut buffer = vec![0u8; piece];
                let range = Range::elements(1).fragment(packed.len() as u64, piece as u64);
                let written = committed.pack(&memory, range, &mut buffer).expect("inside");
                packed.extend_from_slice(&buffer[..written]);
            }
            assert_eq!(packed, whole, "in pieces of {piece}");
        }
    });
}

#[test]
fn case_32_pieces_in_any_order() {
    let column = of(DOUBLE, |t, double| t.vector(100, 1, 2, double));
    let packed: Vec<u8> = (0..800u32).map(|index| (index * 13) as u8).collect();
    on_engines(&column, |committed| {
        let (mut once, mut pieces) = (vec![0u8; 1600], vec![0u8; 1600]);
        assert_eq!(committed.unpack(&packed, Range::elements(1), &mut once), Ok(800));
        // 113 is coprime to the number of pieces, so every piece comes once, out of order.
        for step in 0..115usize {
            let from = step * 113 % 115 * 7;
            let to = (from + 7).min(800);
            if from < 800 {
                assert_eq!(
                    committed.unpack(&packed[from..to], Range::elements(1).bytes(from as u64..to as u64), &mut pieces),
                    Ok(to - from)
                );
            }
        }
        assert_eq!(pieces, once);
    });
}

#[test]
fn case_44_threads_commit_and_pack_the_same_type() {
    for (_, engine) in engines().into_iter().chain([("background", Engine::new())]) {
        thread::scope(|scope| {
            for _ in 0..8 {
                let engine = engine.clone();
                scope.spawn(move || {
                    for round in 1..60 {
                        let vector = of(INT, |t, int| t.vector(round, 2, 5, int));
                        let memory: Vec<i32> = (0..5 * round as i32).collect();
                        let packed = pack_ints(&engine.commit(&vector), &memory, 0, 1);
                        let expected = (0..round as i32).flat_map(|block| [5 * block, 5 * block + 1]);
                        assert!(packed.into_iter().eq(expected), "round {round}");
                    }
                });
            }
        });
    }
}
