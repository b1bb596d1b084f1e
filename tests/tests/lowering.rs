//! Lowering and canonicalisation keep the meaning: the walk of every layout is the type map of the oracle.

use dtc_compiler::datatype::Datatype;
use dtc_compiler::layout::{Kind, Layout};
use dtc_compiler::{canonicalise, lower};
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::generate::sequence::Sequence;
use dtc_tests::generate::split;
use dtc_tests::type_map::{Bounds, TypeMap};
use dtc_tests::watch::each_seed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

/// Every element that the walker meets.
fn walked(layout: &Layout) -> Vec<(i64, Kind)> {
    let element = |offset, kind: Kind| move |at| (offset + at as i64 * kind.size() as i64, kind);
    layout.walk().flat_map(|piece| (0..piece.count).map(element(piece.offset, piece.kind))).collect()
}

fn bounds_of(layout: &Layout) -> (u64, i64, i64, i64, i64) {
    (layout.size(), layout.lb(), layout.extent(), layout.true_lb(), layout.true_ub())
}

/// What is wrong with a layout that should have these bytes and bounds; nothing, if all is well.
fn fault(layout: &Layout, bytes: &[i64], bounds: &Bounds) -> Option<String> {
    if let Err(error) = layout.verify() {
        return Some(format!("the verifier: {error}"));
    }
    let expected = (bounds.size, bounds.lb, bounds.extent(), bounds.true_lb, bounds.true_ub);
    if bounds_of(layout) != expected {
        return Some(format!("bounds {:?}, expected {expected:?}", bounds_of(layout)));
    }
    let found: Vec<i64> = layout.displacements().collect();
    let differs = |at: &usize| found.get(*at) != bytes.get(*at);
    let at = (0..found.len().max(bytes.len())).find(differs)?;
    Some(format!("packed byte {at} is at {:?}, expected {:?}", found.get(at), bytes.get(at)))
}

fn check(datatype: &Datatype, what: &dyn std::fmt::Display) {
    let map = TypeMap::new(datatype);
    let (bytes, bounds) = (map.bytes(), map.bounds());
    let facts = datatype.facts();
    let found = (facts.size, facts.lb, facts.ub, facts.true_lb, facts.true_ub);
    assert_eq!(found, (bounds.size, bounds.lb, bounds.ub, bounds.true_lb, bounds.true_ub), "{what}: {datatype:?}");
    let layout = lower(datatype);
    assert_eq!(fault(&layout, &bytes, &bounds), None, "{what}, lowered: {datatype:?}\n{layout}");
    let entries: Vec<(i64, Kind)> = map.entries().iter().map(|entry| (entry.displacement, entry.kind)).collect();
    assert_eq!(walked(&layout), entries, "{what}, elements: {datatype:?}\n{layout}");
    let canonical = canonicalise(&layout).layout;
    assert_eq!(fault(&canonical, &bytes, &bounds), None, "{what}, canonical: {layout}\n{canonical}");
    let again = canonicalise(&canonical).layout;
    assert_eq!(again.to_string(), canonical.to_string(), "{what}: canonicalisation is not idempotent");
}

#[test]
fn random_types_keep_their_meaning() {
    each_seed(0..20_000, LIMIT, |seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        check(&random::datatype(&mut rng, &Limits::ANYWHERE), &format_args!("seed {seed}"));
    });
}

#[test]
fn written_sequences_keep_their_meaning() {
    each_seed(0..10_000, LIMIT, |seed| {
        let mut rng = SmallRng::seed_from_u64(seed);
        let sequence = Sequence::draw(&mut rng, 500);
        check(&split::datatype_of(&sequence, &mut rng), &format_args!("seed {seed}"));
    });
}

#[test]
fn a_changed_expectation_is_noticed() {
    for seed in 0..2_000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let datatype = random::datatype(&mut rng, &Limits::SMALL);
        let map = TypeMap::new(&datatype);
        let (bytes, bounds) = (map.bytes(), map.bounds());
        let layout = canonicalise(&lower(&datatype)).layout;
        let mut longer = bytes.clone();
        longer.push(rng.random_range(-9..9));
        assert!(fault(&layout, &longer, &bounds).is_some(), "seed {seed}: one byte more");
        assert!(fault(&layout, &bytes, &Bounds { ub: bounds.ub + 1, ..bounds }).is_some(), "seed {seed}: extent");
        if !bytes.is_empty() {
            let at = rng.random_range(0..bytes.len());
            let mut moved = bytes.clone();
            moved[at] += 1;
            assert!(fault(&layout, &moved, &bounds).is_some(), "seed {seed}: one byte moved");
            assert!(fault(&layout, &bytes[1..], &bounds).is_some(), "seed {seed}: one byte less");
        }
    }
}

#[test]
fn the_corpus_keeps_its_meaning() {
    for case in dtc_tests::corpus::all() {
        check(&case.datatype, &case.name);
    }
}
