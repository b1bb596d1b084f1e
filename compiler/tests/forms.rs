//! Random types survive every written form, and damaged texts give errors and never panics.

mod common;

use common::documents::{ACCEPTED, REFUSED, expand};
use common::shape;
use dtc_compiler::codegen::mpi_c;
use dtc_compiler::datatype::{
    Constructor, Datatype, Distribution, GivenBounds, Order, Predefined, TypeBuilder, TypeId, json, text,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::sync::Arc;

const NOTATIONS: &[&str] = &[
    "let row = contiguous 5 double; struct [1@0 row, 3@64 (vector 4 1 2 row), 0@-8 2int]",
    "given -4 24 (indexed [3@0, 1@-10] (hindexed [2@1] int)) # remark",
    "resized 0 9 (indexed_block 2 [0, 5] (hindexed_block 1 [20, 36] (dup (hvector 2 3 9 char))))",
    "darray fortran 5 of 6 [block(6) 10 over 2, cyclic(3) 20 over 3, none 7 over 1] (subarray c [3@1 of 10] float)",
];

/// What is put into texts: numbers at the edges, and words and signs of both forms.
const PIECES: &[&str] = &[
    "0",
    "-1",
    "2",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1.5",
    "1e9",
    "null",
    "true",
    "\"",
    "\\",
    "\\u00",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "(",
    ")",
    "@",
    ";",
    "-",
    "#",
    "\n",
    " ",
    "é",
    "\u{0}",
    "{}",
    "[]",
    "\"kind\"",
    "\"child\"",
    "\"ref\"",
    "\"facts\"",
    "\"count\"",
    "\"type\"",
    "\"types\"",
    "\"tree\"",
    "\"struct\"",
    "let",
    "given",
    "struct [",
    "of",
    "over",
    "dup",
    "int",
    "MPI_INT",
];

#[derive(Clone, Debug)]
enum Edit {
    Remove(Index, usize),
    Insert(Index, &'static str),
    Replace(Index, usize, &'static str),
    Repeat(Index, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        (any::<Index>(), 1..12usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        (any::<Index>(), select(PIECES)).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (any::<Index>(), 1..6usize, select(PIECES)).prop_map(|(at, length, piece)| Edit::Replace(at, length, piece)),
        (any::<Index>(), 1..40usize).prop_map(|(at, length)| Edit::Repeat(at, length)),
    ];
    prop::collection::vec(edit, 0..5)
}

fn damage(text: &str, edits: &[Edit]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for edit in edits {
        let (Edit::Remove(at, _) | Edit::Insert(at, _) | Edit::Replace(at, ..) | Edit::Repeat(at, _)) = edit;
        let at = at.index(letters.len() + 1);
        let to = |length: usize| (at + length).min(letters.len());
        match *edit {
            Edit::Remove(_, length) => drop(letters.drain(at..to(length))),
            Edit::Insert(_, piece) => drop(letters.splice(at..at, piece.chars())),
            Edit::Replace(_, length, piece) => drop(letters.splice(at..to(length), piece.chars())),
            Edit::Repeat(_, length) => {
                let again = letters[at..to(length)].to_vec();
                drop(letters.splice(at..at, again));
            }
        }
    }
    letters.into_iter().collect()
}

/// Every form of a type gives the type again.
fn check_forms(datatype: &Datatype) {
    let written = json::write(datatype);
    let again = json::read(&written).unwrap_or_else(|error| panic!("{written}: {error}")).datatype;
    assert_eq!(shape(&again), shape(datatype), "{written}");
    assert_eq!(again.facts(), datatype.facts(), "{written}");
    let printed = text::print(datatype);
    let again = text::parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
    assert_eq!(shape(&again), shape(datatype), "{printed}");
    assert_eq!(again.facts(), datatype.facts(), "{printed}");
    assert!(mpi_c::emit(datatype).contains("return t"));
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![20 => -20..100i64, 1 => any::<i64>(), 1 => select(&[i64::MIN, i64::MAX, 1 << 46, 1 << 31][..])]
}

/// A constructor that may well be refused, with the children it takes.
fn constructor() -> impl Strategy<Value = (Constructor, Vec<Index>, Option<GivenBounds>)> {
    let count = || prop_oneof![20 => 0..6i64, 1 => number()];
    let lists = || {
        prop::collection::vec((0..4i64, number()), 0..5).prop_map(|pairs| {
            let (lengths, displacements): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
            (Arc::from(lengths), Arc::from(displacements))
        })
    };
    let displacements = || prop::collection::vec(number(), 0..5);
    let order = || select(&[Order::C, Order::Fortran][..]);
    let boxes = prop::collection::vec((0..4i64, 0..4i64, 0..4i64), 0..4);
    let distribution = select(
        &[
            Distribution::Block(None),
            Distribution::Block(Some(5)),
            Distribution::Cyclic(None),
            Distribution::Cyclic(Some(2)),
        ][..],
    );
    let axes =
        prop::collection::vec((0..9i64, prop_oneof![(distribution, 1..4i64), Just((Distribution::None, 1))]), 0..4);
    let predefined = select(Predefined::all().collect::<Vec<_>>());
    let constructor = prop_oneof![
        predefined.prop_map(Constructor::Named),
        count().prop_map(|count| Constructor::Contiguous { count }),
        (count(), count(), number()).prop_map(|(count, blocklength, stride)| Constructor::Vector {
            count,
            blocklength,
            stride
        }),
        (count(), count(), number()).prop_map(|(count, blocklength, stride_bytes)| Constructor::Hvector {
            count,
            blocklength,
            stride_bytes
        }),
        lists().prop_map(|(blocklengths, displacements)| Constructor::Indexed { blocklengths, displacements }),
        lists().prop_map(|(blocklengths, displacements_bytes)| Constructor::Hindexed {
            blocklengths,
            displacements_bytes
        }),
        (count(), displacements()).prop_map(|(blocklength, displacements)| Constructor::IndexedBlock {
            blocklength,
            displacements: displacements.into()
        }),
        (count(), displacements()).prop_map(|(blocklength, displacements_bytes)| Constructor::HindexedBlock {
            blocklength,
            displacements_bytes: displacements_bytes.into()
        }),
        lists()
            .prop_map(|(blocklengths, displacements_bytes)| Constructor::Struct { blocklengths, displacements_bytes }),
        (boxes, order()).prop_map(|(boxes, order)| Constructor::Subarray {
            sizes: boxes.iter().map(|(before, inside, after)| before + inside + after).collect(),
            subsizes: boxes.iter().map(|&(_, inside, _)| inside).collect(),
            starts: boxes.iter().map(|&(before, ..)| before).collect(),
            order,
        }),
        (axes, order(), any::<Index>()).prop_map(|(axes, order, rank)| {
            let psizes: Vec<i64> = axes.iter().map(|&(_, (_, processes))| processes).collect();
            let size: i64 = psizes.iter().product();
            Constructor::Darray {
                size,
                rank: rank.index(size as usize) as i64,
                gsizes: axes.iter().map(|&(elements, _)| elements).collect(),
                distributions: axes.iter().map(|&(_, (distribution, _))| distribution).collect(),
                psizes: psizes.into(),
                order,
            }
        }),
        (number(), number()).prop_map(|(lb, extent)| Constructor::Resized { lb, extent }),
        Just(Constructor::Dup),
    ];
    let given = prop::option::weighted(0.1, (number(), number()).prop_map(|(lb, extent)| GivenBounds { lb, extent }));
    (constructor, prop::collection::vec(any::<Index>(), 5), given)
}

fn datatype() -> impl Strategy<Value = Datatype> {
    prop::collection::vec(constructor(), 1..12).prop_map(|constructors| {
        let mut types = TypeBuilder::new();
        let mut built: Vec<TypeId> = vec![types.named(Predefined::DOUBLE)];
        for (constructor, children, given) in constructors {
            let children: Vec<TypeId> = match &constructor {
                Constructor::Named(_) => Vec::new(),
                Constructor::Struct { blocklengths, .. } => {
                    children.iter().take(blocklengths.len()).map(|index| built[index.index(built.len())]).collect()
                }
                _ => vec![built[children[0].index(built.len())]],
            };
            if let Ok(id) = types.construct(constructor, &children) {
                // Bounds that are refused leave the type as it was.
                let _ = given.map(|given| types.give_bounds(id, given));
                built.push(id);
            }
        }
        let root = built[built.len() - 1];
        types.finish(root).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_form_gives_the_type_again(datatype in datatype()) {
        check_forms(&datatype);
    }

    #[test]
    fn damaged_descriptions_do_not_panic(which in any::<Index>(), edits in edits()) {
        let templates: Vec<&str> = ACCEPTED.iter().copied().chain(REFUSED.iter().map(|refused| refused.0)).collect();
        let document = damage(&expand(templates[which.index(templates.len())]), &edits);
        match json::read(&document) {
            Ok(description) => check_forms(&description.datatype),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn damaged_notations_do_not_panic(notation in select(NOTATIONS), edits in edits()) {
        match text::parse(&damage(notation, &edits)) {
            Ok(datatype) => check_forms(&datatype),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn noise_does_not_panic(noise in any::<String>()) {
        prop_assert!(json::read(&noise).is_err());
        let _ = text::parse(&noise);
    }
}
