//! Copies from type to type, byte by byte against the oracle.

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::{Committed, CopyError, Engine, Memory, MemoryMut, PackError, Range};
use dtc_tests::conformance::{Expectation, engines};
use dtc_tests::corpus;
use dtc_tests::generate::random::{self, Limits};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

struct Side<'a> {
    committed: &'a Committed,
    expectation: Expectation,
    memory: Vec<u8>,
    origin: usize,
}

impl<'a> Side<'a> {
    /// Random memory around a count of elements; `None` if a slice would be too large.
    fn new(committed: &'a Committed, datatype: &Datatype, count: u64, rng: &mut SmallRng) -> Option<Side<'a>> {
        let expectation = Expectation::new(datatype, count);
        let start = expectation.low.min(0);
        if expectation.high.max(0) - start > 1 << 22 {
            return None;
        }
        let origin = rng.random_range(0..64) + start.unsigned_abs() as usize;
        let mut memory = vec![0; origin + expectation.high.max(0) as usize + 64];
        rng.fill(&mut memory[..]);
        Some(Side { committed, expectation, memory, origin })
    }

    fn size(&self) -> usize {
        self.expectation.bytes.len()
    }

    fn index(&self, position: usize) -> usize {
        (self.origin as i64 + self.expectation.bytes[position]) as usize
    }
}

/// Copies some ranges, and compares all of the destination.
fn check(what: &str, source: &Side, destination: &mut Side, rng: &mut SmallRng) {
    for round in 0..4 {
        let whole = source.size().max(destination.size());
        let (from, to, bytes) = match round {
            0 => (0, 0, whole),
            _ => {
                let draw = |rng: &mut SmallRng, size: usize| rng.random_range(0..=size.min(size / 2 + 9));
                (draw(rng, source.size()), draw(rng, destination.size()), rng.random_range(0..=whole))
            }
        };
        let expected = bytes.min(source.size() - from).min(destination.size() - to);
        let before = destination.memory.clone();
        let mut after = before.clone();
        for at in 0..expected {
            after[destination.index(to + at)] = source.memory[source.index(from + at)];
        }
        let range = Range::elements(source.expectation.count).fragment(from as u64, bytes as u64);
        let to_range = Range::elements(destination.expectation.count).bytes(to as u64..);
        let (read, written) =
            (Memory::at(&source.memory, source.origin), MemoryMut::at(&mut destination.memory, destination.origin));
        let mut moved = source.committed.copy(read, range, destination.committed, to_range, written);
        let what = format!("{what}: {bytes} bytes from {from} to {to}");
        let wanted = bytes.min(source.size() - from);
        if wanted > expected {
            let (expected, found) = (wanted as u64, expected as u64);
            assert_eq!(moved, Err(CopyError::Length { expected, found }), "{what}");
            assert!(destination.memory == before, "{what}: a refused copy wrote something");
            let written = MemoryMut::at(&mut destination.memory, destination.origin);
            moved = source.committed.copy(read, range.at_most(found), destination.committed, to_range, written);
        }
        assert_eq!(moved, Ok(expected), "{what}");
        let layouts = || format!("{}\n{}", source.committed.layout(), destination.committed.layout());
        assert!(destination.memory == after, "{what}\n{}", layouts());
    }
}

/// Copies between any two types of the corpus, random types, and the larger types of each shape.
#[test]
fn any_type_to_any_type() {
    let mut types: Vec<(String, Datatype)> =
        corpus::all().into_iter().map(|case| (case.name.to_owned(), case.datatype)).collect();
    types.extend((0..150).map(|seed| {
        let datatype = random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits::DISJOINT);
        (format!("random seed {seed}"), datatype)
    }));
    for (rows, length, stride) in [(3000, 1, 2), (40, 700, 900), (3, 9000, 9001), (1, 30_000, 1), (700, 3, -5)] {
        let name = format!("{rows} rows of {length} ints");
        let build = |types: &mut TypeBuilder| {
            let int = types.named(Predefined::INT);
            types.vector(rows, length, stride, int)
        };
        types.push((name, corpus::datatype(build)));
    }
    types.retain(|(_, datatype)| datatype.facts().size < 1 << 18);
    let engines = engines();
    let committed: Vec<[Committed; 2]> =
        types.iter().map(|(_, datatype)| [0, 1].map(|engine: usize| engines[engine].1.commit(datatype))).collect();
    let (mut rng, mut checked) = (SmallRng::seed_from_u64(1), 0);
    for round in 0..2500 {
        let [from, to] = [0, 1].map(|_| rng.random_range(0..types.len()));
        // The large types also meet each other.
        let from = if round % 5 == 0 { types.len() - 1 - round / 5 % 5 } else { from };
        let to = if round % 10 == 0 { types.len() - 1 - round / 50 % 5 } else { to };
        let count = |rng: &mut SmallRng, at: usize| {
            let most = (1 << 17) / types[at].1.facts().size.max(1);
            if rng.random_bool(0.1) { 0 } else { rng.random_range(1..=most.clamp(1, 9)) }
        };
        let (source_count, destination_count) = (count(&mut rng, from), count(&mut rng, to));
        let source = Side::new(&committed[from][round % 2], &types[from].1, source_count, &mut rng);
        let destination = Side::new(&committed[to][round / 2 % 2], &types[to].1, destination_count, &mut rng);
        if let (Some(source), Some(mut destination)) = (source, destination)
            && !destination.expectation.overlaps
        {
            check(&format!("{} to {}", types[from].0, types[to].0), &source, &mut destination, &mut rng);
            checked += 1;
        }
    }
    assert!(checked > 1500, "{checked} pairs");
}

#[test]
fn what_is_refused() {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let int = Engine::new().commit(&types.finish(int).unwrap());
    let mut memory = [0xa5u8; 4];
    let mut copy = |source: (&[u8], u64), destination: (u64, u64)| {
        let (count, offset) = destination;
        let (range, to_range) = (Range::elements(1).bytes(source.1..), Range::elements(count).bytes(offset..));
        int.copy(source.0, range, &int, to_range, &mut memory).unwrap_err()
    };
    let bounds = |after| PackError::Bounds { low: 0, high: 4, before: 0, after };
    assert_eq!(copy((&[0; 3], 0), (1, 0)), CopyError::Source(bounds(3)));
    assert_eq!(copy((&[0; 4], 5), (1, 0)), CopyError::Source(PackError::Offset { offset: 5, total: 4 }));
    let outside = PackError::Bounds { low: 0, high: 8, before: 0, after: 4 };
    assert_eq!(copy((&[0; 4], 0), (2, 0)), CopyError::Destination(outside));
    assert_eq!(copy((&[0; 4], 0), (1, 9)), CopyError::Destination(PackError::Offset { offset: 9, total: 4 }));
    assert_eq!(memory, [0xa5; 4]);
}
