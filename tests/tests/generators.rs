//! The generators are correct: written types mean the drawn sequence, and every constructor occurs.

use dtc_tests::generate::algebra::{Expression, Huge};
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::generate::sequence::Sequence;
use dtc_tests::generate::split;
use dtc_tests::generate::writer::count_constructors;
use dtc_tests::type_map::TypeMap;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, HashSet};

const CONSTRUCTORS: usize = 13;

#[test]
fn written_types_have_the_map_that_was_drawn() {
    let mut counts = BTreeMap::new();
    for seed in 0..20_000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let sequence = Sequence::draw(&mut rng, 600);
        let datatype = split::datatype_of(&sequence, &mut rng);
        count_constructors(&datatype, &mut counts);
        let map = TypeMap::new(&datatype);
        assert!(map.bytes() == sequence.bytes, "seed {seed}: the map of {datatype:?} is not {sequence:?}");
        let bounds = map.bounds();
        assert_eq!((bounds.lb, bounds.extent()), (sequence.lb, sequence.extent), "seed {seed}");
    }
    println!("constructors written: {counts:?}");
    assert_eq!(counts.len(), CONSTRUCTORS, "{counts:?}");
    assert!(counts.values().all(|&count| count > 1000), "{counts:?}");
}

#[test]
fn partners_differ_from_their_sequence() {
    for seed in 0..5_000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let sequence = Sequence::draw(&mut rng, 300);
        for (what, partner) in sequence.partners(&mut rng) {
            assert_ne!(partner, sequence, "seed {seed}: {what}");
            let mut sorted = [sequence.bytes.clone(), partner.bytes.clone()];
            sorted.iter_mut().for_each(|bytes| bytes.sort_unstable());
            assert_eq!(sorted[0] == sorted[1], ["another pack order", "another extent"].contains(&what), "{what}");
        }
    }
}

/// The bytes of an expression with small counts.
fn enumerate(expression: &Expression, at: i64, bytes: &mut Vec<i64>) {
    match expression {
        Expression::Run(length) => bytes.extend(at..at + length),
        Expression::Repeat(count, stride, body) => {
            (0..*count).for_each(|copy| enumerate(body, at + copy * stride, bytes));
        }
        Expression::Concat(pieces) => pieces.iter().for_each(|(offset, piece)| enumerate(piece, at + offset, bytes)),
    }
}

/// The same structure with every count at most 5, so that it can be enumerated.
fn shrunk(expression: &Expression) -> Expression {
    match expression {
        Expression::Run(length) => Expression::Run(*length),
        Expression::Repeat(count, stride, body) => Expression::Repeat(2 + count % 4, *stride, Box::new(shrunk(body))),
        Expression::Concat(pieces) => {
            Expression::Concat(pieces.iter().map(|(at, piece)| (*at, shrunk(piece))).collect())
        }
    }
}

#[test]
fn algebra_preserves_the_sequence() {
    let mut longest = 0;
    for seed in 0..2_000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let huge = Huge::draw(&mut rng);
        // At full size, only the number of bytes and the bounds can be compared.
        let (one, other) = (huge.datatype(&mut rng), huge.datatype(&mut rng));
        assert_eq!(one.facts().size, other.facts().size, "seed {seed}");
        assert_eq!((one.facts().lb, one.facts().extent()), (huge.lb, huge.extent), "seed {seed}");
        longest = longest.max(one.facts().size);

        let small = Huge { expression: shrunk(&huge.expression), ..huge };
        let mut bytes = Vec::new();
        enumerate(&small.expression, 0, &mut bytes);
        let datatype = small.datatype(&mut rng);
        assert!(TypeMap::new(&datatype).bytes() == bytes, "seed {seed}: {small:?}");
        let altered = small.altered(&mut rng);
        let mut other = Vec::new();
        enumerate(&altered.expression, 0, &mut other);
        assert_ne!(bytes, other, "seed {seed}: {altered:?}");
    }
    assert!(longest > 1 << 40, "the largest sequence has {longest} bytes");
}

#[test]
fn random_types_cover_everything_and_agree_on_facts() {
    let mut counts = BTreeMap::new();
    let (mut empty, mut negative, mut shared) = (0, 0, 0);
    for seed in 0..10_000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = random::datatype(&mut rng, &Limits::ANYWHERE);
        count_constructors(&datatype, &mut counts);
        let (bounds, facts) = (TypeMap::new(&datatype).bounds(), datatype.facts());
        let found = (facts.size, facts.lb, facts.ub, facts.true_lb, facts.true_ub, facts.alignment);
        let expected = (bounds.size, bounds.lb, bounds.ub, bounds.true_lb, bounds.true_ub, bounds.alignment);
        assert_eq!(found, expected, "seed {seed}: {datatype:?}");
        empty += u32::from(bounds.size == 0);
        negative += u32::from(bounds.extent() < 0);
        let nodes = datatype.nodes();
        let edges: Vec<_> = nodes.iter().flat_map(|node| node.children()).map(|child| nodes.place(child)).collect();
        shared += u32::from(edges.iter().collect::<HashSet<_>>().len() < edges.len());
    }
    println!("constructors: {counts:?}; {empty} empty, {negative} of negative extent, {shared} with shared children");
    assert_eq!(counts.len(), CONSTRUCTORS, "{counts:?}");
    assert!(empty > 100 && negative > 100 && shared > 100, "{empty}, {negative}, {shared}");
}

#[test]
fn disjoint_types_do_not_overlap() {
    let mut nontrivial = 0;
    for seed in 0..2_000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = random::datatype(&mut rng, &Limits::DISJOINT);
        let bytes = TypeMap::new(&datatype).bytes();
        assert_eq!(bytes.iter().collect::<HashSet<_>>().len(), bytes.len(), "seed {seed}");
        nontrivial += u32::from(datatype.nodes().len() > 3 && bytes.len() > 16);
    }
    assert!(nontrivial > 500, "only {nontrivial} types are worth the name");
}
