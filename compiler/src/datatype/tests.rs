//! Ids are of use to the builder alone that handed them out, and to its datatypes.

use super::{Constructor, Datatype, Distribution, GivenBounds, Order, Predefined, TypeBuilder};

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
            Constructor::Indexed { blocklengths: one.clone(), displacements: list.clone() },
            Constructor::Hindexed { blocklengths: one.clone(), displacements_bytes: list.clone() },
            Constructor::IndexedBlock { blocklength: 1, displacements: list.clone() },
            Constructor::HindexedBlock { blocklength: 1, displacements_bytes: list.clone() },
            Constructor::Struct { blocklengths: one.clone(), displacements_bytes: list.clone() },
            Constructor::Subarray { sizes: one.clone(), subsizes: one.clone(), starts: vec![0], order: Order::C },
            Constructor::Darray { size: 1, rank: 0, gsizes: list, distributions, psizes: one, order: Order::C },
            Constructor::Resized { lb: 0, extent: 1 },
            Constructor::Dup,
        ];
        for constructor in constructors {
            let error = types.construct(&constructor, &[foreign]).unwrap_err();
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
fn ids_of_other_datatypes_are_refused() {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let before = types.finish(int).unwrap();
    let pair = types.contiguous(2, int).unwrap();
    let after = types.finish(pair).unwrap();
    let other = datatype_of_a_double();
    // A datatype knows the ids of its builder, up to when it was finished.
    assert_eq!(after.node(int).unwrap().facts, *before.facts());
    assert_eq!(after.children(pair).unwrap(), [before.root()]);
    for (datatype, id) in [(&before, pair), (&before, other.root()), (&after, other.root()), (&other, int)] {
        assert_eq!(
            datatype.node(id).unwrap_err().to_string(),
            "id: expected an id of this datatype, found an id of another one"
        );
        assert!(datatype.children(id).is_err());
    }
}

fn datatype_of_a_double() -> Datatype {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    types.finish(double).unwrap()
}
