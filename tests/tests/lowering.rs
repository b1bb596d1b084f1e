//! Lowering and canonicalisation keep the meaning: the walk of every layout is the type map of the oracle, and bounds
//! are those of the MPIs.

use dtc_compiler::datatype::{Constructor, Datatype, text};
use dtc_compiler::layout::positions::Segment;
use dtc_compiler::layout::{Kind, Layout};
use dtc_compiler::{canonicalise, lower};
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::generate::sequence::Sequence;
use dtc_tests::generate::split;
use dtc_tests::mpi::{self, Mpi};
use dtc_tests::type_map::{Bounds, TypeMap};
use dtc_tests::watch::each_seed;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

#[path = "lowering/beside_mpis.rs"]
mod beside_mpis;

const LIMIT: Duration = Duration::from_secs(10);

/// All elements of the walk.
fn walked(layout: &Layout) -> Vec<(i64, Kind)> {
    let element = |offset, kind: Kind| move |at| (offset + at as i64 * kind.size() as i64, kind);
    layout.walk().flat_map(|piece| (0..piece.count).map(element(piece.offset, piece.kind))).collect()
}

fn bounds_of(layout: &Layout) -> (u64, i64, i64, i64, i64) {
    (layout.size(), layout.lb(), layout.extent(), layout.true_lb(), layout.true_ub())
}

/// The first difference of a layout from these bytes and bounds, if there is one.
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
    let runs: Vec<Segment> = datatype.runs().collect();
    let in_runs = runs.iter().flat_map(|run| run.offset..run.offset + run.bytes as i64);
    assert!(in_runs.eq(bytes.iter().copied()), "{what}, runs: {canonical}\n{runs:?}");
    let ends_before = |pair: &[Segment]| pair[0].offset + pair[0].bytes as i64 != pair[1].offset;
    assert!(runs.windows(2).all(ends_before), "{what}, runs that are not merged: {canonical}\n{runs:?}");
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

/// Two structs whose packed bytes once differed from every MPI's: bounds of parts were those of their elements.
#[test]
fn parts_end_where_their_padding_ends() {
    for (notation, ub) in [
        ("struct [2@4 short_int, 1@24 double_int]", 44),
        ("struct [1@4 char, 1@8 (struct [1@0 double, 1@8 char])]", 28),
    ] {
        let datatype = text::parse(notation).unwrap();
        assert_eq!((datatype.facts().lb, datatype.facts().ub), (4, ub), "{notation}");
        assert_eq!(TypeMap::new(&datatype).bounds().ub, ub, "{notation}");
        for mpi in Mpi::ALL {
            assert_eq!(
                mpi::bounds::of(mpi, &datatype)[datatype.nodes().place(&datatype)].ub,
                ub,
                "{mpi:?}: {notation}"
            );
        }
    }
}

/// Where both MPIs agree on a type and its parts, dtc agrees too. Elsewhere the reason is one of the differences in
/// `docs/reference/bounds.md`. `./test mpi` compares the models with the libraries.
#[test]
fn bounds_are_those_of_both_mpis_where_they_agree() {
    let mut differences = BTreeMap::new();
    for seed in 0..20_000 {
        let datatype = random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits::SMALL);
        let [mpich, open_mpi] = Mpi::ALL.map(|mpi| mpi::bounds::of(mpi, &datatype));
        // Nodes on which both MPIs and dtc agree, and so do all nodes below.
        let mut alike = vec![false; mpich.len()];
        let nodes = datatype.nodes();
        for (at, node) in nodes.iter().enumerate() {
            let (children, facts) = (node.children(), node.facts());
            if !children.iter().all(|child| alike[nodes.place(child)]) {
                continue;
            }
            let ours = (facts.lb, facts.ub);
            let [theirs, others] = [&mpich, &open_mpi].map(|all| (all[at].lb, all[at].ub));
            if theirs == others {
                assert_eq!(ours, theirs, "seed {seed}: {datatype}");
            }
            let marked = children.iter().any(|child| child.facts().explicit);
            // Even with bounds 0 and 0, types without bytes may have markers in Open MPI and an alignment in MPICH.
            let is_nothing = facts.explicit || !marked && mpich[at].alignment == 1;
            alike[at] = ours == theirs && ours == others && (facts.size > 0 || is_nothing);
            let padded_by = |ub: i64| (1..facts.alignment as i64).contains(&(facts.ub - ub));
            let reason = match node.constructor() {
                _ if ours == theirs => "same",
                _ if facts.size == 0 => "MPICH: strides of blocks of length 0",
                Constructor::Struct { .. } if marked => "MPICH: all parts of a struct count",
                _ if facts.lb == theirs.0 && padded_by(theirs.1) => "MPICH: not padded",
                _ => panic!("seed {seed}: {ours:?}, MPICH {theirs:?}: {datatype}"),
            };
            *differences.entry(reason).or_insert(0) += 1;
            let reason = match others.1.checked_sub(facts.ub) {
                _ if ours == others => "same",
                _ if facts.size == 0 => "Open MPI: parts without bytes count",
                Some(more) if facts.lb == others.0 && more > 0 && !marked => "Open MPI: padded after each part",
                _ => panic!("seed {seed}: {ours:?}, Open MPI {others:?}: {datatype}"),
            };
            *differences.entry(reason).or_insert(0) += 1;
        }
    }
    println!("{differences:?}");
    assert_eq!(differences.len(), 6, "{differences:?}");
}

#[test]
fn runs_of_endless_types_come_one_by_one() {
    let first = |text: &str| -> Vec<(i64, u64)> {
        let datatype: Datatype = text.parse().unwrap();
        datatype.runs().take(3).map(|run| (run.offset, run.bytes)).collect()
    };
    let many = i64::MAX / 2;
    assert_eq!(first(&format!("vector {many} 1 2 byte")), [(0, 1), (2, 1), (4, 1)]);
    assert_eq!(first(&format!("hvector {many} 1 0 byte")), [(0, 1), (0, 1), (0, 1)]);
    assert_eq!(first(&format!("contiguous {many} byte")), [(0, many as u64)]);
    let ends_touch = format!("hvector {} 1 8 (struct [1@0 int, 1@6 short])", many / 8);
    assert_eq!(first(&ends_touch), [(0, 4), (6, 6), (14, 6)]);
    assert_eq!(first("contiguous 0 byte"), []);
}
