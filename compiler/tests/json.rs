//! Descriptions in JSON: what is read, what is refused and with which words, and that the schema agrees.

mod common;

use common::{nest, on_a_small_stack, shape};
use dtc_compiler::datatype::json::{read, write};
use dtc_compiler::datatype::{Constructor, Distribution, GivenBounds};

const INT: &str = r#"{"kind": "named", "name": "MPI_INT"}"#;

/// `@` stands for a predefined type.
fn text(template: &str) -> String {
    template.replace('@', INT)
}

const ACCEPTED: &[&str] = &[
    "@",
    r#"{"kind": "contiguous", "count": 3, "child": @}"#,
    r#"{"kind": "vector", "count": 3, "blocklength": 2, "stride": -4, "child": @}"#,
    r#"{"kind": "hvector", "count": 3, "blocklength": 2, "stride_bytes": 9, "child": @}"#,
    r#"{"kind": "indexed", "blocklengths": [1, 0, 2], "displacements": [5, 1, -3], "child": @}"#,
    r#"{"kind": "hindexed", "blocklengths": [], "displacements_bytes": [], "child": @}"#,
    r#"{"kind": "indexed_block", "blocklength": 2, "displacements": [5, 1], "child": @}"#,
    r#"{"kind": "hindexed_block", "blocklength": 2, "displacements_bytes": [70368744177664], "child": @}"#,
    r#"{"kind": "struct", "blocklengths": [1, 2], "displacements_bytes": [0, 8], "children": [@, @]}"#,
    r#"{"kind": "struct", "blocklengths": [], "displacements_bytes": [], "children": []}"#,
    r#"{"kind": "subarray", "sizes": [10, 8], "subsizes": [3, 2], "starts": [1, 4], "order": "C", "child": @}"#,
    r#"{"kind": "subarray", "sizes": [9], "subsizes": [3], "starts": [1], "order": "Fortran", "child": @}"#,
    r#"{"kind": "darray", "size": 12, "rank": 5, "gsizes": [10, 20, 7, 5, 30], "psizes": [2, 3, 1, 1, 2],
        "distributions": ["block", {"cyclic": 3}, "none", "cyclic", {"block": 20}], "order": "C", "child": @}"#,
    r#"{"kind": "resized", "lb": -4, "extent": 0, "child": @}"#,
    r#"{"kind": "dup", "child": @}"#,
    r#"{"kind": "dup", "child": @, "facts": {"lb": -1, "extent": -2}}"#,
    r#"{"kind": "named", "name": "MPI_2INT", "facts": {"lb": 0, "extent": 12}}"#,
    r#"{"type": @}"#,
    r#"{"type": @, "story": "a number", "source": "here", "count": 0, "origin_bytes": 4, "buffer_bytes": 8}"#,
    r#"{"types": {"a": @}, "root": "a"}"#,
    r#"{"root": "a", "types": {"a": {"kind": "dup", "child": {"ref": "b c"}}, "b c": {"ref": "d"}, "d": @}}"#,
    r#"{"types": {"a": @, "unused": {"kind": "dup", "child": {"ref": "a"}}}, "root": "a", "count": 2}"#,
    r#"{"name": "case", "app": 1, "params": {"x": [1.5, null]}, "tree": @, "count": 7, "size_bytes": 4, "lb": 0}"#,
    "\u{feff} \r\n{\"\\u006bind\": \"named\", \"name\": \"MPI_\\u0049NT\"}\n",
];

/// Text, place, a part of what was expected, a part of what was found.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("", "$", "well-formed JSON", "end of file"),
    ("@ @", "$", "well-formed JSON", "already contains one root element"),
    ("[]", "$", "an object that describes a type", "a list"),
    ("null", "$", "an object", "null"),
    ("{}", "$", "one of the keys kind, type, types, tree", "an empty object"),
    (r#"{"cases": []}"#, "$", "one of the keys", "only cases"),
    (r#"{"ref": "a"}"#, "$", "one of the keys", "only ref"),
    (r#"{"kind": "vectr"}"#, "$.kind", "perhaps vector", "vectr"),
    (r#"{"kind": "quilt"}"#, "$.kind", "named, contiguous, vector", "quilt"),
    (r#"{"kind": 3}"#, "$.kind", "the name of a kind", "3"),
    (r#"{"kind": "named", "name": "MPI_DUOBLE"}"#, "$.name", "perhaps MPI_DOUBLE", "MPI_DUOBLE"),
    (r#"{"kind": "named", "name": ["MPI_INT"]}"#, "$.name", "the name of a predefined type", "a list"),
    (r#"{"kind": "named"}"#, "$", "the key name", "only kind"),
    (r#"{"kind": "dup", "child": 4}"#, "$.child", "an object that describes a type", "4"),
    (r#"{"kind": "dup", "child": {}}"#, "$.child", "the key kind or ref", "an empty object"),
    (r#"{"kind": "dup", "children": [@]}"#, "$.children", "one of kind, child, facts", "the key children"),
    (r#"{"kind": "contiguous", "count": -1, "child": @}"#, "$.count", "at least 0", "-1"),
    (r#"{"kind": "contiguous", "count": 1.5, "child": @}"#, "$.count", "an integer of 64 bits", "1.5"),
    (r#"{"kind": "contiguous", "count": 1e3, "child": @}"#, "$.count", "an integer of 64 bits", "1e3"),
    (
        r#"{"kind": "contiguous", "count": 9223372036854775808, "child": @}"#,
        "$.count",
        "64 bits",
        "9223372036854775808",
    ),
    (r#"{"kind": "contiguous", "count": "3", "child": @}"#, "$.count", "an integer of 64 bits", "the text"),
    (r#"{"kind": "contiguous", "count": 3, "count": 3, "child": @}"#, "$.count", "every key once", "again"),
    (r#"{"kind": "contiguous", "count": 3, "child": @, "kind": "dup"}"#, "$.kind", "every key once", "again"),
    (r#"{"kind": "contiguous", "count": 9223372036854775807, "child": @}"#, "$", "fit 64 bits", "an overflow"),
    (
        r#"{"kind": "vector", "count": 1, "blocklength": 1, "strid": 1, "child": @}"#,
        "$.strid",
        "perhaps stride",
        "strid",
    ),
    (
        r#"{"kind": "indexed", "blocklengths": [1, -2], "displacements": [0, 4], "child": @}"#,
        "$.blocklengths[1]",
        "at least 0",
        "-2",
    ),
    (
        r#"{"kind": "indexed", "blocklengths": [1, 2], "displacements": [0], "child": @}"#,
        "$.displacements",
        "2 entries",
        "1",
    ),
    (
        r#"{"kind": "indexed", "blocklengths": [1, null], "displacements": [0, 1], "child": @}"#,
        "$.blocklengths[1]",
        "an integer",
        "null",
    ),
    (
        r#"{"kind": "indexed", "blocklengths": 1, "displacements": [0], "child": @}"#,
        "$.blocklengths",
        "a list of integers",
        "1",
    ),
    (
        r#"{"kind": "struct", "blocklengths": [1], "displacements_bytes": [0], "children": @}"#,
        "$.children",
        "a list of types",
        "an object",
    ),
    (
        r#"{"kind": "struct", "blocklengths": [1], "displacements_bytes": [0], "children": [@, @]}"#,
        "$.children",
        "1 entries",
        "2",
    ),
    (
        r#"{"kind": "struct", "blocklengths": [1, 1], "displacements_bytes": [0, 4], "children": [@, {"kind": "dup", "child": 1}]}"#,
        "$.children[1].child",
        "an object",
        "1",
    ),
    (
        r#"{"kind": "subarray", "sizes": [4], "subsizes": [3], "starts": [2], "order": "C", "child": @}"#,
        "$.starts[0]",
        "0 to 1",
        "2",
    ),
    (
        r#"{"kind": "subarray", "sizes": [4], "subsizes": [3], "starts": [0], "order": "c", "child": @}"#,
        "$.order",
        "\"C\" or \"Fortran\"",
        "c",
    ),
    (
        r#"{"kind": "darray", "size": 2, "rank": 0, "gsizes": [4], "distributions": ["blocks"], "psizes": [2], "order": "C", "child": @}"#,
        "$.distributions[0]",
        "\"block\"",
        "blocks",
    ),
    (
        r#"{"kind": "darray", "size": 2, "rank": 0, "gsizes": [4], "distributions": [{"block": 1, "cyclic": 1}], "psizes": [2], "order": "C", "child": @}"#,
        "$.distributions[0]",
        "\"block\"",
        "only block, cyclic",
    ),
    (
        r#"{"kind": "darray", "size": 2, "rank": 0, "gsizes": [4], "distributions": [{"block": 1}], "psizes": [2], "order": "C", "child": @}"#,
        "$.distributions[0]",
        "blocks that cover 4 elements",
        "1",
    ),
    (
        r#"{"kind": "darray", "size": 2, "rank": 2, "gsizes": [4], "distributions": ["block"], "psizes": [2], "order": "C", "child": @}"#,
        "$.rank",
        "a rank below 2",
        "2",
    ),
    (r#"{"kind": "dup", "child": @, "facts": {"lb": 1}}"#, "$.facts", "the key extent", "only lb"),
    (r#"{"kind": "dup", "child": @, "facts": [0, 1]}"#, "$.facts", "an object with lb and extent", "a list"),
    (
        r#"{"kind": "dup", "child": @, "facts": {"lb": 1, "extent": 9223372036854775807}}"#,
        "$.facts",
        "fits 64 bits",
        "lb 1",
    ),
    (r#"{"type": @, "count": -1}"#, "$.count", "at least 0", "-1"),
    (r#"{"type": @, "story": 1}"#, "$.story", "a text", "1"),
    (r#"{"type": @, "kind": "dup"}"#, "$.type", "one of kind, child, facts", "the key type"),
    (r#"{"type": @, "stroy": "x"}"#, "$.stroy", "perhaps story", "stroy"),
    (r#"{"type": {"ref": "a"}}"#, "$.type.ref", "there are no named types", "the text \"a\""),
    (r#"{"types": {"a": @}}"#, "$", "the key root", "only types"),
    (r#"{"types": {}, "root": "a"}"#, "$.root", "there are no named types", "a"),
    (r#"{"types": [], "root": "a"}"#, "$.types", "an object with a type under each name", "a list"),
    (r#"{"types": {"face": @, "edge": @}, "root": "fcae"}"#, "$.root", "perhaps face", "fcae"),
    (r#"{"types": {"surface": @}, "root": "surfase"}"#, "$.root", "perhaps surface", "surfase"),
    (r#"{"types": {"a": @, "a": @}, "root": "a"}"#, "$.types.a", "every key once", "again"),
    (
        r#"{"types": {"a": {"kind": "dup", "child": {"ref": "b"}}}, "root": "a"}"#,
        "$.types.a.child.ref",
        "name of a type",
        "b",
    ),
    (r#"{"types": {"a": {"ref": "a"}}, "root": "a"}"#, "$.types.a", "do not contain themselves", "a -> a"),
    (
        r#"{"types": {"x": {"ref": "a"}, "a": {"kind": "dup", "child": {"ref": "b"}}, "b": {"ref": "a"}}, "root": "x"}"#,
        "$.types",
        "do not contain themselves",
        " -> a",
    ),
    (r#"{"types": {"a b": {"kind": "dup", "child": 1}}, "root": "a b"}"#, "$.types[\"a b\"].child", "an object", "1"),
    (
        r#"{"types": {"a": {"ref": "a", "facts": {"lb": 0, "extent": 1}}}, "root": "a"}"#,
        "$.types.a.facts",
        "ref",
        "the key facts",
    ),
    (r#"{"tree": @, "tree": @}"#, "$.tree", "every key once", "again"),
    (r#"{"tree": @, "name": 1, "name": 2}"#, "$.name", "every key once", "again"),
];

#[test]
fn accepted_documents_are_read_and_survive_writing() {
    for template in ACCEPTED {
        let description = read(&text(template)).unwrap_or_else(|error| panic!("{template}: {error}"));
        let again = write(&description.datatype);
        let again = read(&again).unwrap_or_else(|error| panic!("{template} as {again}: {error}"));
        assert_eq!(shape(&again.datatype), shape(&description.datatype), "{template}");
        assert_eq!(again.datatype.facts(), description.datatype.facts());
    }
}

#[test]
fn refused_documents_are_refused_with_place_and_reason() {
    for (template, place, expected, found) in REFUSED {
        let error = read(&text(template)).err().unwrap_or_else(|| panic!("{template} was accepted"));
        assert!(error.place().starts_with(place), "{template}: {error}");
        assert!(error.expected().contains(expected), "{template}: {error}");
        assert!(error.found().contains(found), "{template}: {error}");
        assert!(error.line().is_some() && error.column().is_some());
    }
}

#[test]
fn arguments_arrive_in_their_places() {
    let description = read(&text(ACCEPTED[12])).unwrap();
    let root = description.datatype.node(description.datatype.root());
    let Constructor::Darray { size, rank, gsizes, distributions, psizes, .. } = &root.constructor else {
        panic!("{root:?}");
    };
    assert_eq!((*size, *rank), (12, 5));
    assert_eq!((gsizes.as_slice(), psizes.as_slice()), ([10, 20, 7, 5, 30].as_slice(), [2, 3, 1, 1, 2].as_slice()));
    assert_eq!(distributions[1], Distribution::Cyclic(Some(3)));
    assert_eq!(distributions[4], Distribution::Block(Some(20)));

    let description = read(&text(ACCEPTED[15])).unwrap();
    let root = description.datatype.node(description.datatype.root());
    assert_eq!(root.given, Some(GivenBounds { lb: -1, extent: -2 }));
    assert_eq!(root.facts.extent(), -2);

    let description = read(&text(ACCEPTED[18])).unwrap();
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
    let document = text(
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
        assert_eq!(read(&deep_error).unwrap_err().place(), format!("${}", ".child".repeat(10_000)));
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
