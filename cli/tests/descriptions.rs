//! Bad descriptions and arguments: status 2, and a message with place, expected and found.

mod common;

use common::{dtc, write};
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::text;
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
fn a_type_is_an_argument_itself() {
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    assert!(dtc(here, &["explain", "vector 12 1 14 double"]).fine().contains("stream 12 x 112"));
    assert!(dtc(here, &["lower", "double"]).fine().contains("dense"));
    dtc(here, &["explain", "vector 12 1"]).fails(2, &["TYPE: ", "line 1"]);
    dtc(here, &["explain", "vector of.json"]).fails(2, &["vector of.json", "no such file"]);
}

/// What programs recorded, by file and by folder; the type that moved most is the first.
#[test]
fn recordings_are_explained() {
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    let hash = |notation: &str| Pipeline::new(text::parse(notation).expect("a type")).hash().to_string();
    let (rows, columns) = ("vector 3 1 2 int", "vector 100 1 32 double");
    let line = |notation: &str, bytes: u64| {
        let hash = hash(notation);
        format!("\ntype {hash} {notation};\n\nused {hash} 2 {bytes} 0 0 {};\n", bytes / 2)
    };
    write(here, "7.recorded", line(rows, 24) + &line(columns, 3200));
    for argument in ["7.recorded", "."] {
        let told = dtc(here, &["explain", argument]).fine();
        let (first, second) = (told.find(columns).expect(columns), told.find(rows).expect(rows));
        assert!(
            first < second && told.contains("2 packs of 3,200 bytes") && told.contains("--full explains"),
            "{told}"
        );
        assert!(!told.contains("words of the plan"), "{told}");
        let json = dtc(here, &["explain", argument, "--json"]).fine();
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json[0]["hash"], *hash(columns), "{json}");
        assert_eq!((&json[0]["uses"]["packed_bytes"], &json[0]["count"]), (&3200.into(), &2.into()), "{json}");
    }
    assert!(dtc(here, &["explain", "7.recorded", "--full"]).fine().contains("words of the plan"));
    write(here, "none.recorded", "\ntype 0a int;\n");
    dtc(here, &["explain", "none.recorded"]).fails(2, &["recorded type 0a", "a type with this hash"]);
    let benched = dtc(here, &["bench", "7.recorded", "--rounds", "1", "--min-time", "1"]).fine();
    assert!(benched.contains(&format!("type_{}", &hash(columns)[..12])), "{benched}");
}

/// A makefile has both files by one command, and a C and a C++ compiler take the header.
#[test]
fn plain_sources_have_headers() {
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    write(here, "columns.dtc", "vector 12 5 14 double");
    let both = ["emit", "columns.dtc", "--as", "c", "-o", "columns.c", "--header", "columns.h"];
    assert_eq!(dtc(here, &both).fine(), "");
    let program = "#include \"columns.h\"\nint main(void) { static char m[COLUMNS_EXTENT], p[COLUMNS_SIZE]; \
        columns_pack(m, p, 1); columns_unpack_fragment(p, m, 8, 16); return COLUMNS_TRUE_LB; }\n";
    write(here, "main.c", program);
    write(here, "main.cpp", program);
    let compiled = |compiler: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror"]).args(arguments).current_dir(here);
        assert!(command.status().expect(compiler).success(), "{arguments:?}");
    };
    compiled("cc", &["-std=c11", "-c", "columns.c"]);
    compiled("cc", &["-std=c11", "main.c", "columns.o", "-o", "c"]);
    compiled("c++", &["main.cpp", "columns.o", "-o", "cpp"]);
    for program in ["./c", "./cpp"] {
        assert!(std::process::Command::new(here.join(program)).status().expect(program).success());
    }
    dtc(here, &["emit", "columns.dtc", "--as", "dot", "--header", "x.h"]).fails(2, &["--header", "--as c"]);
    let same = ["emit", "columns.dtc", "--as", "c", "-o", "x.h", "--header", "x.h"];
    dtc(here, &same).fails(2, &["--header", "another file than -o"]);
}

/// Several packed bytes for one byte of memory: within an element, and between the elements of a count.
#[test]
fn overlaps_are_told() {
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    write(here, "own.dtc", "hvector 3 2 4 int");
    write(here, "others.dtc", "resized 0 4 (contiguous 2 int)");
    write(here, "apart.dtc", "vector 3 1 2 int");
    write(here, "packed", [7; 24]);
    write(here, "memory", [0; 64]);
    let own =
        "an element has 24 packed bytes for 16 bytes of memory; which of the values an unpack leaves is not defined";
    let others = "elements overlap each other: 3 have 24 packed bytes for 16 bytes of memory";
    for (file, expected) in [("own.dtc", Some(own)), ("others.dtc", Some(others)), ("apart.dtc", None)] {
        let explained = dtc(here, &["explain", file]).fine();
        let told = explained.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(told.contains(expected.unwrap_or("overlap")), expected.is_some(), "{file}: {explained}");
        let json: serde_json::Value =
            serde_json::from_str(&dtc(here, &["explain", file, "--json"]).fine()).expect("JSON");
        assert_eq!(json["overlap"].is_null(), expected.is_none(), "{file}");
        for form in ["c", "cuda-header"] {
            let source = dtc(here, &["emit", file, "--as", form]).fine();
            assert_eq!(source.contains(" * Overlap: "), expected.is_some(), "{file}: {source}");
        }
    }
    let unpack = |file: &str, count: &str| {
        dtc(here, &["unpack", file, "--in", "packed", "--out", "memory", "--count", count]).fine()
    };
    assert!(unpack("own.dtc", "1").contains(&format!("note: {own}")));
    assert!(unpack("others.dtc", "3").contains(&format!("note: {others}")));
    write(here, "packed", [7; 12]);
    assert!(!unpack("apart.dtc", "1").contains("note"));
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
