//! Descriptions in JSON: what is read, what is refused and with which words.

mod common;

use common::documents::{ACCEPTED, INT, REFUSED, expand};
use common::{nest, on_a_small_stack, shape};
use dtc_compiler::datatype::json::{read, write};
use dtc_compiler::datatype::{Constructor, Distribution, GivenBounds};

#[test]
fn accepted_documents_are_read_and_survive_writing() {
    for template in ACCEPTED {
        let description = read(&expand(template)).unwrap_or_else(|error| panic!("{template}: {error}"));
        let again = write(&description.datatype);
        let again = read(&again).unwrap_or_else(|error| panic!("{template} as {again}: {error}"));
        assert_eq!(shape(&again.datatype), shape(&description.datatype), "{template}");
        assert_eq!(again.datatype.facts(), description.datatype.facts());
    }
}

#[test]
fn refused_documents_are_refused_with_place_and_reason() {
    for (template, place, expected, found) in REFUSED {
        let error = read(&expand(template)).err().unwrap_or_else(|| panic!("{template} was accepted"));
        assert!(error.place().starts_with(place), "{template}: {error}");
        assert!(error.expected().contains(expected), "{template}: {error}");
        assert!(error.found().contains(found), "{template}: {error}");
        assert!(error.line().is_some() && error.column().is_some());
    }
}

#[test]
fn arguments_arrive_in_their_places() {
    let description = read(&expand(ACCEPTED[12])).unwrap();
    let root = description.datatype;
    let Constructor::Darray { size, rank, gsizes, distributions, psizes, .. } = root.constructor() else {
        panic!("{root:?}");
    };
    assert_eq!((*size, *rank), (12, 5));
    assert_eq!((&gsizes[..], &psizes[..]), ([10, 20, 7, 5, 30].as_slice(), [2, 3, 1, 1, 2].as_slice()));
    assert_eq!(distributions[1], Distribution::Cyclic(Some(3)));
    assert_eq!(distributions[4], Distribution::Block(Some(20)));

    let description = read(&expand(ACCEPTED[15])).unwrap();
    let root = description.datatype;
    assert_eq!(root.given(), Some(GivenBounds { lb: -1, extent: -2 }));
    assert_eq!(root.facts().extent(), -2);

    let description = read(&expand(ACCEPTED[18])).unwrap();
    assert_eq!(description.story.as_deref(), Some("a number"));
    assert_eq!(description.source.as_deref(), Some("here"));
    assert_eq!((description.count, description.origin_bytes, description.buffer_bytes), (0, 4, Some(8)));
}

#[test]
fn a_cycle_is_printed_whole() {
    let document = r#"{"types": {"a": {"kind": "dup", "child": {"ref": "b"}}, "b": {"ref": "c"}, "c": {"ref": "a"}},
        "root": "a"}"#;
    let error = read(document).unwrap_err();
    let cycles = ["the cycle a -> b -> c -> a", "the cycle b -> c -> a -> b", "the cycle c -> a -> b -> c"];
    assert!(cycles.contains(&error.found()), "{error}");
}

#[test]
fn shared_nodes_are_one_node() {
    let document = expand(
        r#"{"types": {"both": {"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 64],
            "children": [{"ref": "row"}, {"kind": "dup", "child": {"ref": "row"}}]},
            "row": {"kind": "contiguous", "count": 4, "child": @}}, "root": "both"}"#,
    );
    let datatype = read(&document).unwrap().datatype;
    assert_eq!(datatype.nodes().len(), 4);
    let expected = r#"{"types": {
  "t1": {"kind": "contiguous", "count": 4, "child": {"kind": "named", "name": "MPI_INT"}},
  "root": {"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 64], "children": [{"ref": "t1"}, {"kind": "dup", "child": {"ref": "t1"}}]}
}, "root": "root"}"#;
    assert_eq!(write(&datatype), expected);
    assert_eq!(read(expected).unwrap().datatype.nodes().len(), 4);
}

#[test]
fn depth_costs_no_stack() {
    on_a_small_stack(|| {
        let deep = nest(10_000);
        let written = write(&deep);
        let read_again = read(&written).unwrap().datatype;
        assert_eq!(shape(&read_again), shape(&deep));

        // Through references, in both directions.
        let mut types = vec![format!("\"t0\": {INT}")];
        types.extend(
            (1..10_000).map(|n| format!("\"t{n}\": {{\"kind\": \"dup\", \"child\": {{\"ref\": \"t{}\"}}}}", n - 1)),
        );
        for _ in 0..2 {
            let document = format!("{{\"types\": {{{}}}, \"root\": \"t9999\"}}", types.join(","));
            assert_eq!(read(&document).unwrap().datatype.nodes().len(), 10_000);
            types.reverse();
        }
        types[0] = "\"t0\": {\"ref\": \"t9999\"}".to_owned();
        let document = format!("{{\"types\": {{{}}}, \"root\": \"t9999\"}}", types.join(","));
        assert!(read(&document).unwrap_err().found().contains("the cycle"));

        for hostile in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "{\"kind\":\"dup\",\"child\":".repeat(100_000)]
        {
            assert!(read(&hostile).is_err());
        }
        let deep_error = format!("{}1{}", "{\"kind\":\"dup\",\"child\":".repeat(10_000), "}".repeat(10_000));
        let error = read(&deep_error).unwrap_err();
        assert_eq!(error.column(), Some(10_000 * "{\"kind\":\"dup\",\"child\":".len() + 1));
        let ends = error.place().starts_with("$.child.child.") && error.place().ends_with(".child.child");
        assert!(ends && error.place().len() < 500, "a path of 10,000 steps is cut in the middle: {error}");
    });
}

#[test]
fn long_lists_are_read_in_linear_time() {
    let list = |step: i64| (0..1_000_000).map(|i| (i * step).to_string()).collect::<Vec<_>>().join(",");
    let ones = vec!["1"; 1_000_000].join(",");
    let document =
        format!("{{\"kind\":\"indexed\",\"blocklengths\":[{ones}],\"displacements\":[{}],\"child\":{INT}}}", list(-3));
    let start = std::time::Instant::now();
    let description = read(&document).unwrap();
    let reading = start.elapsed();
    let start = std::time::Instant::now();
    let written = write(&description.datatype);
    println!("a million blocks: read in {reading:?}, written in {:?}", start.elapsed());
    assert_eq!(description.datatype.facts().size, 4_000_000);
    assert_eq!(read(&written).unwrap().datatype.facts(), description.datatype.facts());
}
