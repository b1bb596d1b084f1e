use super::*;
use dtc_compiler::layout::Layout;
use dtc_compiler::{canonicalise, lower};
use dtc_measure::bench::calls;

fn drawn(cases: impl Iterator<Item = Result<Case, Failure>>) -> Vec<Case> {
    cases.map(|case| case.map_err(|error| error.to_string()).unwrap()).collect()
}

#[test]
fn a_seed_draws_the_same_layouts_of_about_the_size() {
    for seed in 0..40 {
        let all = |only| drawn(of_classes(seed, 1 << 16, 2, only));
        let first = all("");
        assert_eq!(first.len(), 2 * CLASSES.len());
        for (one, other) in first.iter().zip(all("")) {
            let layout = canonicalise(&lower(&one.datatype)).layout;
            assert_eq!(layout.type_hash(), lower(&other.datatype).type_hash(), "{}", one.name);
            let packed = layout.size() * one.count;
            assert!((1 << 15..=1 << 17).contains(&packed), "{}: {packed}", one.name);
            assert!(layout.true_lb() >= 0, "{}", one.name);
        }
        let records: Vec<String> = all("records").into_iter().map(|case| case.name).collect();
        let expected = first.iter().filter(|case| case.name.split(':').next().unwrap().contains("records"));
        assert_eq!(records, expected.map(|case| case.name.clone()).collect::<Vec<_>>());
    }
}

#[test]
fn a_seed_draws_the_same_types() {
    let all = drawn(random(7, 60, ""));
    for (one, other) in all.iter().zip(drawn(random(7, 60, ""))) {
        assert_eq!((&one.name, one.count), (&other.name, other.count));
        assert_eq!(lower(&one.datatype).type_hash(), lower(&other.datatype).type_hash(), "{}", one.name);
    }
    // A type depends on its number and on nothing before it.
    let some = drawn(random(7, 70, "05"));
    let expected: Vec<&Case> = all.iter().filter(|case| case.name.contains("05")).collect();
    assert_eq!(
        some[..expected.len()].iter().map(|case| &case.name).collect::<Vec<_>>(),
        expected.iter().map(|case| &case.name).collect::<Vec<_>>()
    );
    assert_eq!(lower(&some[0].datatype).type_hash(), lower(&expected[0].datatype).type_hash());
    assert_ne!(lower(&drawn(random(8, 1, ""))[0].datatype).type_hash(), lower(&all[0].datatype).type_hash());
}

/// Whether no byte of memory belongs to the elements twice: an unpack of such a type has no meaning.
fn is_disjoint(layout: &Layout, count: u64) -> bool {
    let mut pieces: Vec<(i128, i128)> = (0..count)
        .flat_map(|element| {
            let base = i128::from(element) * i128::from(layout.extent());
            layout.walk().map(move |piece| (base + i128::from(piece.offset), i128::from(piece.bytes())))
        })
        .collect();
    pieces.sort_unstable();
    pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
}

/// Constructors on the longest way from a type to an element.
fn depth(datatype: &Datatype) -> usize {
    let nodes = datatype.nodes();
    let mut depths: Vec<usize> = Vec::new();
    for node in nodes.iter() {
        let below = node.children().iter().map(|child| depths[nodes.place(child)] + 1).max();
        depths.push(below.unwrap_or(0));
    }
    depths.pop().unwrap_or(0)
}

#[test]
fn every_shape_occurs_and_every_type_is_one_that_peers_take() {
    let mut seen: Vec<(String, u64, usize)> = Vec::new();
    for case in random(1, 200, "") {
        let case = case.map_err(|error| error.to_string()).unwrap();
        let facts = case.datatype.facts();
        let packed = facts.size * case.count;
        assert!((SMALLEST / 2..=LARGEST + LARGEST / 4).contains(&packed), "{}: {packed}", case.name);
        let span = i128::from(facts.true_ub - facts.true_lb) + i128::from(case.count - 1) * i128::from(facts.extent());
        assert!(span <= 2 * i128::from(WIDEST), "{}: {span}", case.name);
        assert!(calls::text(&case.datatype).is_some(), "{}: MPI counts in an int", case.name);
        assert!(case.datatype.nodes().len() <= 256, "{}: a loop is written for it", case.name);
        let layout = lower(&case.datatype);
        // The others differ from these in size alone.
        if packed <= 1 << 20 {
            assert!(is_disjoint(&layout, case.count), "{}: {}", case.name, case.datatype);
        }
        seen.push((case.name[4..].to_owned(), packed, depth(&case.datatype)));
    }
    for shape in CLASSES.iter().chain(&COMPOSED) {
        let name = shape.name.replace(' ', "_");
        assert!(seen.iter().any(|(seen, ..)| *seen == name), "{name} occurs");
    }
    // Sizes of each magnitude, and many depths.
    for magnitude in 6..26 {
        let of = seen.iter().filter(|(_, packed, _)| packed.ilog2() == magnitude).count();
        assert!((2..=25).contains(&of), "{of} types of 2^{magnitude} bytes");
    }
    let composed = |levels: usize| seen.iter().filter(|(.., depth)| *depth >= levels).count();
    assert!(
        composed(2) >= 150 && composed(4) >= 40 && seen.iter().all(|(.., depth)| *depth <= 9),
        "{}, {}",
        composed(2),
        composed(4)
    );
}

#[test]
fn elements_of_nests_do_not_overlap() {
    for seed in 0..40 {
        for case in drawn(random(seed, 60, "nest")) {
            let layout = lower(&case.datatype);
            if layout.size() * case.count <= 1 << 18 {
                assert!(is_disjoint(&layout, case.count), "seed {seed}: {}: {}", case.name, case.datatype);
            }
        }
    }
}
