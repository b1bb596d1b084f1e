//! Bad descriptions and arguments: status 2, and a message with place, expected and found.

mod common;

use common::{dtc, write};
use tempfile::tempdir;

#[test]
fn faulty_descriptions_are_named() {
    let folder = tempdir().expect("a folder");
    let int = r#"{"kind": "named", "name": "MPI_INT"}"#;
    let cases = [
        ("kind", r#"{"kind": "vectro", "count": 1}"#.to_owned(), "$.kind"),
        (
            "lengths",
            format!(r#"{{"kind": "indexed", "blocklengths": [1, 2], "displacements": [0], "child": {int}}}"#),
            "$.",
        ),
        ("count", format!(r#"{{"kind": "contiguous", "count": -2, "child": {int}}}"#), "$.count"),
        (
            "overflow",
            format!(
                r#"{{"kind": "contiguous", "count": 9223372036854775807, "child":
                   {{"kind": "contiguous", "count": 9223372036854775807, "child": {int}}}}}"#
            ),
            "$",
        ),
        (
            "reference",
            r#"{"types": {"a": {"kind": "dup", "child": {"ref": "b"}}}, "root": "a"}"#.to_owned(),
            "$.types.a",
        ),
        (
            "cycle",
            r#"{"types": {"a": {"kind": "dup", "child": {"ref": "b"}}, "b": {"kind": "dup", "child": {"ref": "a"}}},
               "root": "a"}"#
                .to_owned(),
            "$.types",
        ),
        ("text", "not JSON".to_owned(), "$"),
    ];
    for (name, text, place) in cases {
        let file = format!("{name}.json");
        write(folder.path(), &file, text);
        for command in ["explain", "lower", "demo", "bench"] {
            dtc(folder.path(), &[command, &file]).fails(2, &[&file, place]);
        }
    }
    write(folder.path(), "short.dtc", "vector 12 1\n (contiguous 5 double)");
    dtc(folder.path(), &["lower", "short.dtc"]).fails(2, &["short.dtc", "line 2, column 2"]);
    dtc(folder.path(), &["lower", "absent.json"]).fails(2, &["absent.json", "no such file"]);
    dtc(folder.path(), &["lower", "."]).fails(2, &[".: expected a type description, found a directory"]);
    write(folder.path(), "notation.json", "vector 3 1 2 MPI_INT");
    dtc(folder.path(), &["lower", "notation.json"])
        .fails(2, &["short notation, which is read from files that end in .dtc"]);
    write(folder.path(), "document.dtc", r#"{"kind": "named", "name": "MPI_INT"}"#);
    dtc(folder.path(), &["lower", "document.dtc"]).fails(2, &["looks like JSON"]);
    dtc(folder.path(), &["lower", "short.dtc/t.json"]).fails(2, &["found a path through something"]);
}

#[test]
fn plain_sources_are_named_after_their_file() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "3d-face.dtc", "vector 12 5 14 double");
    write(folder.path(), "class.dtc", "contiguous 0 int");
    let source = dtc(folder.path(), &["emit", "3d-face.dtc", "--as", "c"]).fine();
    let hash = "Hash 9c9215e8ebb0c30be91f4dc6f9424333";
    assert!(source.contains("void type_3d_face_pack(const void *restrict memory") && source.contains(hash), "{source}");
    let header = dtc(folder.path(), &["emit", "3d-face.dtc", "--as", "cuda-header"]).fine();
    assert!(header.contains("struct type_3d_face {") && header.contains(hash), "{header}");
    assert!(dtc(folder.path(), &["emit", "class.dtc", "--as", "c"]).fine().contains("(void)memory;"));
    let part = |part: u32| format!("1@{} (hvector {} 1 {} int)", part * 90_000 + part % 7, 1000 + part, 8 + part % 5);
    let parts: Vec<String> = (0..20_000).map(part).collect();
    write(folder.path(), "large.dtc", format!("struct [{}]", parts.join(", ")));
    let expected = "plain source: expected at most 16384 nodes and parts of records, found ";
    dtc(folder.path(), &["emit", "large.dtc", "--as", "c"]).fails(2, &[expected]);
}

#[test]
fn faulty_arguments_are_status_2() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.dtc", "contiguous 4 int");
    write(folder.path(), "in", [0; 64]);
    for arguments in [
        &["fly"] as &[&str],
        &["emit", "t.dtc", "--as", "poem"],
        &["pack", "t.dtc", "--in", "in"],
        &["pack", "t.dtc", "--in", "in", "--out", "out", "--count", "-1"],
        &["pack", "t.dtc", "--in", "in", "--out", "out", "--threads", "0"],
        &["bench", "t.dtc", "--only", "nothing"],
    ] {
        assert_eq!(dtc(folder.path(), arguments).status, 2, "{arguments:?}");
    }
    for option in ["--count", "--origin", "--offset", "--max"] {
        let run = dtc(folder.path(), &["pack", "t.dtc", "--in", "in", "--out", "out", option, "-1"]);
        assert_eq!(run.status, 2, "{run:?}");
        for part in [option, "expected an integer from 0", "found -1"] {
            assert!(run.err.contains(part), "{part} in {run:?}");
        }
    }
    let short = ["pack", "t.dtc", "--in", "in", "--out", "out", "--count", "1000000"];
    dtc(folder.path(), &short).fails(3, &["in: expected at least 16,000,000 bytes", "found 64 bytes"]);
    let most = u64::MAX.to_string();
    dtc(folder.path(), &["pack", "t.dtc", "--in", "in", "--out", "out", "--count", &most]).fails(2, &["--count"]);
    dtc(folder.path(), &["pack", "t.dtc", "--in", "in", "--out", "out", "--offset", "17"]).fails(2, &["--offset"]);
    assert!(!folder.path().join("out").exists());
}
