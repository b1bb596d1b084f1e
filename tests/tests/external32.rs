//! `external32` on types of every shape, element by element against the oracle.

use dtc_compiler::datatype::{Datatype, Order, Predefined, TypeBuilder, TypeId};
use dtc_runtime::{Committed, Engine, ExternalError, Memory, MemoryMut, PackError, Range};
use dtc_tests::conformance::{Expectation, engines};
use dtc_tests::corpus;
use dtc_tests::external32;
use dtc_tests::generate::random::{self, Limits};
#[cfg(target_arch = "x86_64")]
use dtc_tests::type_map::Entry;
use dtc_tests::type_map::TypeMap;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Packs and unpacks fragments of `count` elements, and compares every byte, also those that must not change. Returns
/// false without a check if the memory is too large for a slice, or a byte is in the map twice.
fn check(what: &str, datatype: &Datatype, committed: &Committed, count: u64, seed: u64) -> bool {
    let mut rng = SmallRng::seed_from_u64(seed);
    let expectation = Expectation::new(datatype, count);
    let start = expectation.low.min(0);
    if expectation.overlaps || expectation.high.max(0) - start > 1 << 22 {
        return false;
    }
    let entries = TypeMap::new(datatype).entries().repeat(count as usize);
    // Of every element: its bytes in memory, and the end of its bytes in `external32`.
    let (mut values, mut stream, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for entry in &entries {
        let value = external32::draw(entry, &mut rng);
        stream.extend(external32::external(entry, &value));
        assert_eq!(
            external32::memory(entry, &external32::external(entry, &value)),
            value,
            "the oracle itself: {entry:?}"
        );
        ends.push(stream.len());
        values.push(value);
    }
    assert_eq!(committed.packed_external_size(count), Ok(stream.len()), "{what}");
    let origin = rng.random_range(0..64) + start.unsigned_abs() as usize;
    let index = |byte: &i64| (origin as i64 + byte) as usize;
    let mut memory = vec![0u8; origin + expectation.high.max(0) as usize + 64];
    rng.fill(&mut memory[..]);
    let poisoned = memory.clone();
    let packed: Vec<u8> = values.concat();
    for (byte, value) in expectation.bytes.iter().zip(&packed) {
        memory[index(byte)] = *value;
    }
    let what = |from: usize, to: usize| format!("{what}: count {count}, bytes {from}..{to}\n{}", committed.layout());

    let mut borders: Vec<usize> = (0..5).map(|_| rng.random_range(0..=stream.len())).collect();
    borders.extend([0, stream.len()]);
    borders.sort_unstable();
    let mut ranges: Vec<(usize, usize)> = borders.windows(2).map(|pair| (pair[0], pair[1])).collect();
    for &(from, to) in ranges.iter().chain(&[(0, stream.len())]) {
        let mut written = vec![0xa5_u8; to - from + 32];
        let result = committed.pack_external(
            Memory::at(&memory, origin),
            Range::elements(count).bytes(from as u64..to as u64),
            &mut written[16..][..to - from],
        );
        assert_eq!(result, Ok(to - from), "{}", what(from, to));
        let guards = (&written[..16], &written[16 + to - from..]);
        assert_eq!(guards, (&[0xa5; 16][..], &[0xa5; 16][..]), "{}", what(from, to));
        assert!(written[16..][..to - from] == stream[from..to], "{}", what(from, to));
    }

    ranges.shuffle(&mut rng);
    let mut target = poisoned.clone();
    for &(from, to) in &ranges {
        let before = target.clone();
        let result = committed.unpack_external(
            &stream[from..to],
            Range::elements(count).bytes(from as u64..to as u64),
            MemoryMut::at(&mut target, origin),
        );
        assert_eq!(result, Ok(to - from), "{}", what(from, to));
        // Whole elements must be right; elements that are cut may have any value until the rest comes.
        let mut after = before.clone();
        let mut bytes = expectation.bytes.iter().zip(&packed);
        let mut begin = 0;
        for (&end, value) in ends.iter().zip(&values) {
            for (byte, value) in bytes.by_ref().take(value.len()) {
                if from <= begin && end <= to {
                    after[index(byte)] = *value;
                } else if begin < to && from < end {
                    after[index(byte)] = target[index(byte)];
                }
            }
            begin = end;
        }
        assert!(target == after, "{}", what(from, to));
    }
    let mut whole = poisoned;
    for (byte, value) in expectation.bytes.iter().zip(&packed) {
        whole[index(byte)] = *value;
    }
    assert!(target == whole, "in parts, in any order: {}", what(0, stream.len()));
    true
}

/// Types built from one: long runs, short runs, and mixed with others.
fn shapes(types: &mut TypeBuilder, named: TypeId) -> Vec<TypeId> {
    let extent = types.facts(named).unwrap().extent();
    let [character, long] = [Predefined::CHAR, Predefined::LONG].map(|each| types.named(each));
    let record = types.structure(&[1, 3, 2], &[0, extent, 4 * extent + 1], &[character, named, long]).unwrap();
    vec![
        types.contiguous(700, named).unwrap(),
        types.vector(60, 3, 5, named).unwrap(),
        types.hvector(40, 1, -(extent + 3), named).unwrap(),
        types.indexed(&[1, 0, 400, 2], &[900, 3, 20, 0], named).unwrap(),
        types.subarray(&[9, 40, 5], &[3, 30, 2], &[1, 5, 3], Order::Fortran, named).unwrap(),
        types.vector(9, 40, 50, record).unwrap(),
        types.structure(&[2, 1, 600], &[0, 300 * extent, 500 * extent], &[record, named, named]).unwrap(),
        named,
    ]
}

#[test]
fn every_predefined_type() {
    let engines = engines();
    for (seed, predefined) in (0..).zip(Predefined::all()) {
        let mut types = TypeBuilder::new();
        let named = types.named(predefined);
        for (shape, root) in shapes(&mut types, named).into_iter().enumerate() {
            let datatype = types.finish(root).unwrap();
            let what = format!("{} in shape {shape}", predefined.name());
            // Each shape meets both engines, with different types.
            let committed = engines[(seed as usize + shape) % 2].1.commit(&datatype);
            assert!(check(&what, &datatype, &committed, 2, seed), "{what}");
        }
    }
}

#[test]
fn the_corpus_and_random_types() {
    let engines = engines();
    let corpus = corpus::all().into_iter().map(|case| (case.name.to_owned(), case.datatype));
    let random = (0..1500).map(|seed| {
        let datatype = random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits::DISJOINT);
        (format!("random seed {seed}"), datatype)
    });
    let mut checked = 0;
    for (seed, (what, datatype)) in (0..).zip(corpus.chain(random)) {
        if datatype.facts().size > 1 << 17 {
            continue;
        }
        let committed = engines[seed as usize % 2].1.commit(&datatype);
        for count in [1, 3, 0] {
            checked += u32::from(check(&what, &datatype, &committed, count, seed));
        }
    }
    assert!(checked > 3000, "{checked} checked");
}

fn committed(build: impl FnOnce(&mut TypeBuilder) -> TypeId) -> Committed {
    let mut types = TypeBuilder::new();
    let root = build(&mut types);
    Engine::new().commit(&types.finish(root).unwrap())
}

#[test]
fn sizes_are_those_of_the_table() {
    for predefined in Predefined::all() {
        let name = predefined.name().strip_prefix("MPI_").unwrap();
        let &(_, size) = external32::SIZES.iter().find(|(known, _)| *known == name).unwrap();
        assert_eq!(committed(|types| types.named(predefined)).packed_external_size(1), Ok(size as usize), "{name}");
    }
    assert_eq!(external32::SIZES.len(), Predefined::all().count());
    assert_eq!(committed(|types| types.structure(&[], &[], &[]).unwrap()).packed_external_size(9), Ok(0));
    let long = committed(|types| types.named(Predefined::LONG));
    let most = i64::MAX as u64 / 8;
    assert_eq!(long.packed_external_size(most + 1), Err(PackError::Count { count: most + 1, most }));
}

/// Values written by hand from the formats of the standard.
#[test]
fn known_values() {
    let known: &[(Predefined, &[u8], &[u8])] = &[
        (Predefined::CHAR, b"\xe9", &[0xe9]),
        (Predefined::SHORT, &(-2i16).to_ne_bytes(), &[0xff, 0xfe]),
        (Predefined::INT, &0x0102_0304i32.to_ne_bytes(), &[1, 2, 3, 4]),
        (Predefined::LONG, &i64::from(i32::MIN).to_ne_bytes(), &[0x80, 0, 0, 0]),
        (Predefined::UNSIGNED_LONG, &u64::from(u32::MAX).to_ne_bytes(), &[0xff; 4]),
        (Predefined::LONG_LONG, &0x0102_0304_0506_0708i64.to_ne_bytes(), &[1, 2, 3, 4, 5, 6, 7, 8]),
        (Predefined::WCHAR, &0x20acu32.to_ne_bytes(), &[0x20, 0xac]),
        (Predefined::WCHAR, &0xffffu32.to_ne_bytes(), &[0xff, 0xff]),
        (Predefined::FLOAT, &(-0.15625f32).to_ne_bytes(), &[0xbe, 0x20, 0, 0]),
        (Predefined::DOUBLE, &1.0f64.to_ne_bytes(), &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
        (Predefined::LOGICAL, &1i32.to_ne_bytes(), &[0, 0, 0, 1]),
        (Predefined::COMPLEX8, &[1.0f32, 2.0].map(f32::to_ne_bytes).concat(), &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]),
        (Predefined::INTEGER16, &1i128.to_ne_bytes(), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ];
    for &(predefined, memory, external) in known {
        let type_ = committed(|types| types.named(predefined));
        let mut packed = vec![0xa5_u8; external.len()];
        assert_eq!(
            type_.pack_external(memory, Range::elements(1), &mut packed),
            Ok(external.len()),
            "{}",
            predefined.name()
        );
        assert_eq!(packed, external, "{}", predefined.name());
        let mut unpacked = vec![0xa5_u8; memory.len()];
        assert_eq!(type_.unpack_external(external, Range::elements(1), &mut unpacked), Ok(external.len()));
        assert_eq!(unpacked, memory, "{}", predefined.name());
    }
    // A pair has no padding in `external32`.
    let pair = committed(|types| types.named(Predefined::SHORT_INT));
    let memory = [&1i16.to_ne_bytes()[..], &[0xee; 2], &2i32.to_ne_bytes()].concat();
    let mut packed = [0u8; 6];
    assert_eq!(pair.pack_external(&memory, Range::elements(1), &mut packed), Ok(6));
    assert_eq!(packed, [0, 1, 0, 0, 0, 2]);
}

/// Doubles of x86 with 64 bits of mantissa: 1/3, and binary128 values that do not fit.
#[test]
#[cfg(target_arch = "x86_64")]
fn long_doubles() {
    let type_ = committed(|types| types.named(Predefined::LONG_DOUBLE));
    let third = [0xab_u8, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xfd, 0x3f, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee];
    let mut packed = [0u8; 16];
    assert_eq!(type_.pack_external(&third, Range::elements(1), &mut packed), Ok(16));
    assert_eq!(packed, [0x3f, 0xfd, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x56, 0, 0, 0, 0, 0, 0]);
    let mut rng = SmallRng::seed_from_u64(1);
    let entry = Entry { displacement: 0, kind: dtc_compiler::layout::Kind::F80, predefined: Predefined::LONG_DOUBLE };
    for round in 0..10_000 {
        let mut external: [u8; 16] = rng.random();
        // Half of the values are near ties.
        if round % 2 == 0 {
            external[10..].fill([0, 0xff][round / 2 % 2]);
            external[9] = [0x00, 0x7f, 0x80, 0xff, 0x40, 0xc0, 0x3f][rng.random_range(0..7)];
        }
        if external[0] & 0x7f == 0x7f && external[1] == 0xff {
            continue;
        }
        if round % 5 == 0 {
            (external[0], external[1]) = (external[0] & 0x80, 0);
        }
        let mut memory = [0xa5_u8; 16];
        assert_eq!(type_.unpack_external(&external, Range::elements(1), &mut memory), Ok(16));
        assert_eq!(memory[..], external32::memory(&entry, &external), "{external:02x?}");
        // A value unpacked in two parts, in either order, is rounded towards zero.
        let cut = rng.random_range(1..16);
        let parts = [(0, &external[..cut]), (cut, &external[cut..])];
        let mut kept = external;
        kept[9] &= 0xfe;
        kept[10..].fill(0);
        for order in [[0, 1], [1, 0]] {
            let mut memory: [u8; 16] = rng.random();
            for part in order.map(|part| parts[part]) {
                type_
                    .unpack_external(
                        part.1,
                        Range::elements(1).fragment(part.0 as u64, part.1.len() as u64),
                        &mut memory,
                    )
                    .unwrap();
            }
            assert_eq!(memory[..], external32::memory(&entry, &kept), "{external:02x?} cut at {cut}");
        }
    }
}

#[test]
fn what_does_not_fit_is_named_and_cut() {
    let long = committed(|types| types.named(Predefined::LONG));
    let memory: Vec<u8> = [-1i64, 1 << 31, i64::MIN, 5].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let mut packed = [0xa5_u8; 16];
    let error = ExternalError::Value { element: Predefined::LONG, position: 4, found: 1 << 31 };
    assert_eq!(long.pack_external(&memory, Range::elements(4), &mut packed), Err(error));
    assert_eq!(packed, [0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(long.pack_external(&memory, Range::elements(4).bytes(12..), &mut packed), Ok(4));
    // A value that the range cuts at either end.
    let error = |position, found| ExternalError::Value { element: Predefined::LONG, position, found };
    assert_eq!(long.pack_external(&memory, Range::elements(4).bytes(6..8), &mut packed[..2]), Err(error(4, 1 << 31)));
    assert_eq!(long.pack_external(&memory, Range::elements(4).bytes(7..8), &mut packed[..1]), Err(error(4, 1 << 31)));
    assert_eq!(
        long.pack_external(&memory, Range::elements(4).bytes(8..9), &mut packed[..1]),
        Err(error(8, i64::MIN.into()))
    );

    let mixed = committed(|types| {
        let elements = [Predefined::INT, Predefined::UNSIGNED_LONG, Predefined::WCHAR].map(|each| types.named(each));
        let record = types.structure(&[1, 1, 1], &[0, 8, 16], &elements).unwrap();
        types.contiguous(2, record).unwrap()
    });
    let record = |long: u64, wide: u32| [&[0; 8][..], &long.to_ne_bytes(), &wide.to_ne_bytes(), &[0; 4]].concat();
    let pack = |first: (u64, u32), second: (u64, u32)| {
        let memory = [record(first.0, first.1), record(second.0, second.1)].concat();
        mixed.pack_external(&memory, Range::elements(1), &mut [0; 20])
    };
    let (long, wide) = (u64::from(u32::MAX), 0xffff);
    assert_eq!(pack((long, wide), (long, wide)), Ok(20));
    let error = |element, position, found| Err(ExternalError::Value { element, position, found });
    assert_eq!(pack((long, wide), (long + 1, 1 << 16)), error(Predefined::UNSIGNED_LONG, 14, 1 << 32));
    assert_eq!(pack((long, 0x1f600), (u64::MAX, wide)), error(Predefined::WCHAR, 8, 0x1f600));
}

#[test]
fn what_is_refused() {
    let longs = committed(|types| {
        let long = types.named(Predefined::LONG);
        types.vector(2, 1, 2, long).unwrap()
    });
    let mut packed = [0xa5_u8; 8];
    let mut pack = |memory: &[u8], origin, count, offset| {
        longs.pack_external(Memory::at(memory, origin), Range::elements(count).bytes(offset..), &mut packed)
    };
    let bounds = PackError::Bounds { low: 0, high: 24, before: 0, after: 23 };
    assert_eq!(pack(&[0; 23], 0, 1, 0), Err(bounds.into()));
    assert_eq!(pack(&[0; 24], 0, 1, 9), Err(PackError::Offset { offset: 9, total: 8 }.into()));
    assert_eq!(pack(&[0; 24], 25, 1, 0), Err(PackError::Origin { origin: 25, length: 24 }.into()));
    assert_eq!(pack(&[0; 24], 0, 1, 8), Ok(0));
    assert_eq!(packed, [0xa5; 8]);
    let mut memory = [0xa5_u8; 23];
    assert_eq!(longs.unpack_external(&[0; 8], Range::elements(1), &mut memory), Err(bounds));
    assert_eq!(
        longs.unpack_external(&[0; 8], Range::elements(1).bytes(9..), &mut [0u8; 24]),
        Err(PackError::Offset { offset: 9, total: 8 })
    );
    assert_eq!(memory, [0xa5; 23]);
    let short = PackError::Packed { expected: 5, found: 4 };
    assert_eq!(longs.pack_external(&[0; 24], Range::elements(1).bytes(3..), &mut packed[..4]), Err(short.into()));
    assert_eq!(longs.unpack_external(&packed[..4], Range::elements(1).bytes(3..), &mut [0u8; 24]), Err(short));
    assert_eq!(packed, [0xa5; 8]);
    // Bytes after the last element are ignored.
    assert_eq!(longs.unpack_external(&[0u8; 99], Range::elements(1).bytes(3..), &mut [0u8; 24]), Ok(5));
}

/// 10^13 values, and 10,000 levels, at once from any byte on.
#[test]
fn huge_counts_and_depths() {
    let many = committed(|types| {
        let (long, character) = (types.named(Predefined::LONG), types.named(Predefined::CHAR));
        let record = types.structure(&[1, 1], &[0, 8], &[long, character]).unwrap();
        let same = types.resized(0, 0, record).unwrap();
        let same = types.contiguous(1 << 20, same).unwrap();
        types.contiguous(1 << 23, same).unwrap()
    });
    assert_eq!(many.packed_external_size(1), Ok(5 << 43));
    let memory = [&0x0102_0304i64.to_ne_bytes()[..], b"!"].concat();
    let mut packed = [0u8; 12];
    assert_eq!(many.pack_external(&memory, Range::elements(1).fragment((5 << 42) + 1, 12), &mut packed), Ok(12));
    assert_eq!(&packed, b"\x02\x03\x04!\x01\x02\x03\x04!\x01\x02\x03");

    let deep = committed(|types| {
        let (short, byte) = (types.named(Predefined::SHORT), types.named(Predefined::BYTE));
        (0..10_000).fold(short, |inner, level| {
            types.structure(&[1, 1, 1], &[0, 2, 2 + level * 3 + 2], &[short, inner, byte]).unwrap()
        })
    });
    let memory: Vec<u8> = (0..30_002).map(|at| at as u8).collect();
    let (mut native, mut packed) = (vec![0u8; 30_002], vec![0u8; 30_002]);
    assert_eq!(deep.pack(&memory, Range::elements(1), &mut native), Ok(30_002));
    assert_eq!(deep.pack_external(&memory, Range::elements(1), &mut packed), Ok(30_002));
    native[..20_002].chunks_exact_mut(2).for_each(<[u8]>::reverse);
    assert!(native == packed);
    let mut middle = [0u8; 100];
    assert_eq!(deep.pack_external(&memory, Range::elements(1).fragment(19_951, 100), &mut middle), Ok(100));
    assert_eq!(middle, packed[19_951..][..100]);
}

/// Displacements are addresses in two allocations, and the base is null.
#[test]
fn absolute_addresses() {
    let (mut one, mut other) = ([1i32; 700], [2i32; 3]);
    let [first, second] = [one.as_mut_ptr(), other.as_mut_ptr()].map(|pointer| pointer.expose_provenance() as i64);
    let both = committed(|types| {
        let int = types.named(Predefined::INT);
        types.hindexed(&[1, 699, 2], &[second + 8, first + 4, second], int).unwrap()
    });
    let packed: Vec<u8> = (0..702i32).flat_map(i32::to_be_bytes).collect();
    // SAFETY: every displacement is the address of an int of the arrays, which nothing else uses during the call.
    let read =
        unsafe { both.at(std::ptr::null_mut::<u8>(), Range::elements(1)).unpack_external(packed.as_ptr()).run() };
    assert_eq!(read, Ok(2808));
    assert!(one.iter().skip(1).copied().eq(1..700));
    assert_eq!((one[0], other), (1, [700, 701, 0]));
    let mut middle = [0u8; 6];
    // SAFETY: every displacement is the address of an int of the arrays, which are only read, and `packed` has 6 bytes.
    let written = unsafe {
        both.at(std::ptr::null::<u8>(), Range::elements(1).fragment(5, 6)).pack_external(middle.as_mut_ptr()).run()
    };
    assert_eq!((written, middle), (Ok(6), [0, 0, 1, 0, 0, 0]));
}
