//! Ids are of use to the builder alone that handed them out, and nodes are listed in order.

use super::{Constructor, Distribution, GivenBounds, Order, Predefined, TypeBuilder};

#[test]
fn ids_of_other_builders_are_refused_everywhere() {
    let mut others = TypeBuilder::new();
    let foreign = others.named(Predefined::DOUBLE);
    // One builder has no type with that index, the other has one.
    for types in 0..2 {
        let mut types = (0..types).fold(TypeBuilder::new(), |mut builder, _| {
            builder.named(Predefined::SHORT);
            builder
        });
        let (list, one) = (vec![1], vec![1]);
        let distributions = vec![Distribution::None];
        let constructors = [
            Constructor::Contiguous { count: 1 },
            Constructor::Vector { count: 1, blocklength: 1, stride: 1 },
            Constructor::Hvector { count: 1, blocklength: 1, stride_bytes: 1 },
            Constructor::Indexed { blocklengths: one.clone().into(), displacements: list.clone().into() },
            Constructor::Hindexed { blocklengths: one.clone().into(), displacements_bytes: list.clone().into() },
            Constructor::IndexedBlock { blocklength: 1, displacements: list.clone().into() },
            Constructor::HindexedBlock { blocklength: 1, displacements_bytes: list.clone().into() },
            Constructor::Struct { blocklengths: one.clone().into(), displacements_bytes: list.clone().into() },
            Constructor::Subarray {
                sizes: one.clone().into(),
                subsizes: one.clone().into(),
                starts: vec![0].into(),
                order: Order::C,
            },
            Constructor::Darray {
                size: 1,
                rank: 0,
                gsizes: list.into(),
                distributions,
                psizes: one.into(),
                order: Order::C,
            },
            Constructor::Resized { lb: 0, extent: 1 },
            Constructor::Dup,
        ];
        for constructor in constructors {
            let error = types.construct(constructor.clone(), &[foreign]).unwrap_err();
            let argument = if constructor.name() == "struct" { "children[0]" } else { "child" };
            assert_eq!(error.place(), format!("{}.{argument}", constructor.name()));
            assert_eq!((error.expected(), error.found()), ("an id of this builder", "an id of another one"));
        }
        let places = [
            types.facts(foreign).map(|_| ()),
            types.give_bounds(foreign, GivenBounds { lb: 0, extent: 1 }),
            types.finish(foreign).map(|_| ()),
        ];
        let places = places.map(|result| result.unwrap_err().place().to_owned());
        assert_eq!(places, ["facts.id", "give_bounds.id", "finish.root"]);
    }
}

#[test]
fn nodes_are_listed_once_in_the_order_they_were_made() {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let rows = types.vector(2, 1, 3, int).unwrap();
    let late = types.dup(int).unwrap();
    // Each level has the one below twice: 2^60 paths lead to the bottom.
    let ladder = (0..60).fold(rows, |below, _| types.structure(&[1, 0, 0], &[0, 0, 0], &[below, late, below]).unwrap());
    let ladder = types.finish(ladder).unwrap();
    let nodes = ladder.nodes();
    assert_eq!(nodes.len(), 63);
    assert!(nodes.iter().enumerate().all(|(place, node)| nodes.place(node) == place));
    assert!(nodes[0].is(&nodes[1].children()[0]) && nodes[2].is(&nodes[3].children()[1]) && nodes[62].is(&ladder));
    assert_eq!(ladder.entries(), 3 + 60 * 4);
    assert_eq!(ladder.signature().elements(), 2);
}

#[test]
fn bounds_are_given_without_touching_what_was_finished() {
    let mut types = TypeBuilder::new();
    let pair = types.named(Predefined::DOUBLE_INT);
    let before = types.finish(pair).unwrap();
    types.give_bounds(pair, GivenBounds { lb: 0, extent: 24 }).unwrap();
    assert_eq!((before.facts().extent(), types.finish(pair).unwrap().facts().extent()), (16, 24));
}
