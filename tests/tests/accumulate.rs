//! Every reduction on types of every shape, element by element against the oracle.

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_runtime::{AccumulateError, Committed, Engine, MemoryMut, PackError, Range};
use dtc_tests::conformance::{Expectation, engines};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::generate::sequence::Sequence;
use dtc_tests::generate::split;
use dtc_tests::reduce;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Accumulates fragments of `count` elements into random memory, and compares all of it. Returns false without a check
/// if the memory is too large for a slice, or a byte is in the map twice.
fn check(what: &str, datatype: &Datatype, committed: &Committed, reduction: Reduction, count: u64, seed: u64) -> bool {
    let mut rng = SmallRng::seed_from_u64(seed);
    let expectation = Expectation::new(datatype, count);
    let start = expectation.low.min(0);
    if expectation.overlaps || expectation.high.max(0) - start > 1 << 22 {
        return false;
    }
    let unit = reduction.element().size() as usize;
    let guard = rng.random_range(0..64);
    let origin = guard + start.unsigned_abs() as usize;
    let index = |byte: &i64| (origin as i64 + byte) as usize;
    let mut memory = vec![0u8; origin + expectation.high.max(0) as usize + 64];
    rng.fill(&mut memory[..]);
    let elements = expectation.bytes.len() / unit;
    for fragment in 0..3 {
        for bytes in expectation.bytes.chunks_exact(unit) {
            for (byte, value) in bytes.iter().zip(reduce::draw(reduction, &mut rng)) {
                memory[index(byte)] = value;
            }
        }
        let from = if fragment == 0 { 0 } else { rng.random_range(0..=elements) };
        let to = if fragment == 0 { elements } else { rng.random_range(from..=elements) };
        let drawn: Vec<u8> = (from..to).flat_map(|_| reduce::draw(reduction, &mut rng)).collect();
        // Packed buffers have any alignment.
        let skew = rng.random_range(0..16);
        let packed = [vec![0u8; skew], drawn].concat();
        let packed = &packed[skew..];
        let before = memory.clone();
        let read = committed.accumulate(
            reduction,
            packed,
            Range::elements(count).fragment((from * unit) as u64, packed.len() as u64),
            MemoryMut::at(&mut memory, origin),
        );
        let what = || format!("{what}: {reduction}, count {count}, elements {from}..{to}\n{}", committed.layout());
        assert_eq!(read, Ok(packed.len()), "{}", what());
        let mut after = memory.clone();
        for (element, packed) in packed.chunks_exact(unit).enumerate() {
            let bytes = &expectation.bytes[(from + element) * unit..][..unit];
            let [old, new] = [&before, &memory].map(|memory| bytes.iter().map(|byte| memory[index(byte)]).collect());
            let (old, new): (Vec<u8>, Vec<u8>) = (old, new);
            let expected = reduce::accumulate(reduction, &old, packed);
            assert!(
                reduce::same(reduction, &new, &expected),
                "{}\nelement {}: {old:02x?} and {packed:02x?} became {new:02x?}, expected {expected:02x?}",
                what(),
                from + element,
            );
            bytes.iter().for_each(|byte| after[index(byte)] = before[index(byte)]);
        }
        assert!(after == before, "{}\na byte outside the fragment was written", what());
    }
    true
}

/// Types of one element: dense, strided, reversed, in long and in short rows, with more bytes than a piece.
fn shapes(types: &mut TypeBuilder, predefined: Predefined) -> Vec<Datatype> {
    let named = types.named(predefined);
    let extent = predefined.extent() as i64;
    let mut all = vec![
        named,
        types.contiguous(700, named).unwrap(),
        types.vector(60, 3, 5, named).unwrap(),
        types.vector(3, 600, 700, named).unwrap(),
        types.hvector(40, 1, -(extent + 3), named).unwrap(),
        types.indexed(&[1, 0, 400, 2], &[900, 3, 20, 0], named).unwrap(),
        types.subarray(&[9, 40, 50], &[3, 30, 10], &[1, 5, 3], dtc_compiler::datatype::Order::Fortran, named).unwrap(),
    ];
    let row = types.vector(7, 2, 3, named).unwrap();
    let parts = [(named, 1), (row, 30), (named, 500)];
    let displacements = [0, 3 * extent + 1, 700 * extent + 9];
    all.push(types.structure(&parts.map(|part| part.1), &displacements, &parts.map(|part| part.0)).unwrap());
    all.push(types.resized(-7, 2 * extent + 5, named).unwrap());
    all.into_iter().map(|root| types.finish(root).unwrap()).collect()
}

/// A predefined type that consists of the element.
fn predefined(element: Element) -> Predefined {
    match element {
        Element::Bf16 => Predefined::UINT16_T,
        _ => Predefined::all().find(|&each| Element::of(each) == Some(element)).unwrap(),
    }
}

#[test]
fn every_reduction_on_types_of_its_element() {
    let engines = engines();
    let mut seed = 0;
    for reduction in Reduction::all() {
        let mut types = TypeBuilder::new();
        for (shape, datatype) in shapes(&mut types, predefined(reduction.element())).iter().enumerate() {
            seed += 1;
            // Each shape meets both engines, with different reductions.
            let (name, engine) = &engines[seed as usize % 2];
            let committed = engine.commit(datatype);
            for count in [2, 0] {
                let what = format!("shape {shape} on engine {name}");
                assert!(check(&what, datatype, &committed, reduction, count, seed), "{what}: {reduction}");
            }
        }
    }
}

/// Types of bytes, whose elements are cut by gaps anywhere.
#[test]
fn every_reduction_on_any_sequence_of_bytes() {
    let engines = engines();
    let mut checked = BTreeMap::new();
    let reductions: Vec<Reduction> = Reduction::all().collect();
    for (seed, &reduction) in (0..).zip(reductions.iter().cycle().take(2000)) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut sequence = Sequence::draw(&mut rng, if seed % 10 == 0 { 40_000 } else { 2000 });
        let mut seen = std::collections::HashSet::new();
        sequence.bytes.retain(|byte| seen.insert(*byte));
        let unit = reduction.element().size() as usize;
        sequence.bytes.truncate(sequence.bytes.len() / unit * unit);
        let shift = sequence.bytes.iter().copied().min().unwrap_or(0) + 50;
        sequence.bytes.iter_mut().for_each(|byte| *byte -= shift);
        if sequence.bytes.is_empty() {
            continue;
        }
        let datatype = split::datatype_of(&sequence, &mut rng);
        let committed = engines[seed as usize % 2].1.commit(&datatype);
        if reduction.element().contradicts(&datatype.signature()) {
            let packed = vec![0u8; unit];
            let error = committed.accumulate(reduction, &packed, Range::elements(0), &mut [0u8; 0]);
            assert_eq!(error, Err(AccumulateError::Elements(reduction.element())));
            continue;
        }
        for count in [1, 2] {
            let done = check(&format!("sequence seed {seed}"), &datatype, &committed, reduction, count, seed);
            *checked.entry(reduction.to_string()).or_insert(0) += u32::from(done);
        }
    }
    let missing: Vec<String> =
        reductions.iter().map(Reduction::to_string).filter(|each| !checked.contains_key(each)).collect();
    assert!(missing.is_empty(), "no type for {missing:?}");
}

#[test]
fn the_corpus_and_random_types() {
    let engine = Engine::new();
    let corpus = corpus::all().into_iter().map(|case| (case.name.to_owned(), case.datatype));
    let random = (0..200).map(|seed| {
        let datatype = random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits::DISJOINT);
        (format!("random seed {seed}"), datatype)
    });
    let (mut checked, mut refused) = (0, 0);
    for (seed, (what, datatype)) in (0..).zip(corpus.chain(random)) {
        if datatype.facts().size > 1 << 16 {
            continue;
        }
        let committed = engine.commit(&datatype);
        for element in [Element::U8, Element::I32, Element::F64, Element::C128, Element::Byte] {
            let operation = if element == Element::Byte { Operation::BitwiseXor } else { Operation::Sum };
            let reduction = Reduction::new(operation, element).unwrap();
            let fits = datatype.facts().size.is_multiple_of(element.size());
            if fits && !element.contradicts(&datatype.signature()) {
                checked += u32::from(check(&what, &datatype, &committed, reduction, 2, seed));
            } else {
                refused += 1;
                let error = committed.accumulate(reduction, &[0u8; 0], Range::elements(0), &mut [0u8; 0]).unwrap_err();
                let size =
                    AccumulateError::Multiple { field: "size of the type", element, found: datatype.facts().size };
                assert_eq!(error, if fits { AccumulateError::Elements(element) } else { size }, "{what}");
            }
        }
    }
    assert!(checked > 200 && refused > 200, "{checked} checked, {refused} refused");
}

#[test]
fn what_is_refused() {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let doubles = types.vector(2, 1, 2, double).unwrap();
    let committed = Engine::new().commit(&types.finish(doubles).unwrap());
    let sum = |element| Reduction::new(Operation::Sum, element).unwrap();
    let mut memory = [0xa5_u8; 24];
    let mut accumulate = |element, packed: &[u8], offset, count| {
        let range = Range::elements(count).fragment(offset, packed.len() as u64);
        committed.accumulate(sum(element), packed, range, &mut memory).unwrap_err()
    };
    let multiple = |field, found| AccumulateError::Multiple { field, element: Element::F64, found };
    assert_eq!(accumulate(Element::F64, &[0; 8], 4, 1), multiple("offset", 4));
    assert_eq!(accumulate(Element::F64, &[0; 12], 0, 1), multiple("length", 12));
    assert_eq!(accumulate(Element::I64, &[0; 8], 0, 1), AccumulateError::Elements(Element::I64));
    let outside = AccumulateError::Unpack(PackError::Bounds { low: 0, high: 48, before: 0, after: 24 });
    assert_eq!(accumulate(Element::F64, &[0; 8], 0, 2), outside);
    assert_eq!(accumulate(Element::F64, &[0; 8], 24, 1), PackError::Offset { offset: 24, total: 16 }.into());
    assert_eq!(
        committed.accumulate(sum(Element::F64), &[0u8; 8], Range::elements(1), &mut memory),
        Err(PackError::Packed { expected: 16, found: 8 }.into())
    );
    assert_eq!(memory, [0xa5; 24]);
    // A packed buffer that is too long is used up to the last element.
    assert_eq!(
        committed.accumulate(sum(Element::F64), &[0u8; 99], Range::elements(1).bytes(8..), &mut [0u8; 24]),
        Ok(8)
    );
}

#[test]
fn ties_zeros_and_what_is_no_number() {
    let mut types = TypeBuilder::new();
    let float = types.named(Predefined::FLOAT);
    let floats = types.contiguous(5, float).unwrap();
    let floats = Engine::new().commit(&types.finish(floats).unwrap());
    let bytes = |values: [f32; 5]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
    let packed = bytes([0.0, -0.0, f32::NAN, 1.0, -2.0]);
    for (operation, expected) in [(Operation::Min, -2.0), (Operation::Max, 3.0)] {
        let mut memory = bytes([-0.0, 0.0, 1.0, f32::NAN, 3.0]);
        let reduction = Reduction::new(operation, Element::F32).unwrap();
        assert_eq!(floats.accumulate(reduction, &packed, Range::elements(1), &mut memory), Ok(20));
        assert_eq!(memory, bytes([-0.0, 0.0, 1.0, f32::NAN, expected]), "{reduction}");
    }
    let mut types = TypeBuilder::new();
    let pair = types.named(Predefined::SHORT_INT);
    let pairs = types.contiguous(3, pair).unwrap();
    let pairs = Engine::new().commit(&types.finish(pairs).unwrap());
    let pair = |value: i16, index: i32| [value.to_ne_bytes().to_vec(), index.to_ne_bytes().to_vec()].concat();
    let packed = [pair(5, 1), pair(4, 9), pair(6, 0)].concat();
    let mut memory = [0xee_u8; 24];
    pairs.unpack(&[pair(5, 2), pair(5, 2), pair(5, 2)].concat(), Range::elements(1), &mut memory).unwrap();
    let lowest = Reduction::new(Operation::MinLoc, Element::ShortInt).unwrap();
    assert_eq!(pairs.accumulate(lowest, &packed, Range::elements(1), &mut memory), Ok(18));
    let mut result = [0u8; 18];
    pairs.pack(&memory, Range::elements(1), &mut result).unwrap();
    assert_eq!(result[..], [pair(5, 1), pair(4, 9), pair(5, 2)].concat());
    assert!(memory.chunks(8).all(|pair| pair[2..4] == [0xee; 2]), "padding was written");
}

/// Displacements are addresses in two allocations, and the base is null.
#[test]
fn absolute_addresses() {
    let (mut one, mut other) = ([1i32; 700], [2i32; 3]);
    let [first, second] = [one.as_mut_ptr(), other.as_mut_ptr()].map(|pointer| pointer.expose_provenance() as i64);
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let both = types.hindexed(&[1, 699, 2], &[second + 8, first + 4, second], int).unwrap();
    let both = Engine::new().commit(&types.finish(both).unwrap());
    let packed: Vec<u8> = (0..702i32).flat_map(i32::to_ne_bytes).collect();
    let product = Reduction::new(Operation::Product, Element::I32).unwrap();
    // SAFETY: every displacement is the address of an int of the arrays, which nothing else uses during the call.
    let read = unsafe {
        both.at(std::ptr::null_mut::<u8>(), Range::elements(1).bytes(..2808)).accumulate(product, packed.as_ptr()).run()
    };
    assert_eq!(read, Ok(2808));
    assert!(one.iter().skip(1).eq(&(1..700).collect::<Vec<i32>>()));
    assert_eq!((one[0], other), (1, [1400, 1402, 0]));
    // SAFETY: the range is empty, so the call reads and writes nothing.
    let nothing = unsafe {
        both.at(std::ptr::null_mut::<u8>(), Range::elements(1).bytes(..0))
            .accumulate(product, std::ptr::null::<u8>())
            .run()
    };
    assert_eq!(nothing, Ok(0));
}
