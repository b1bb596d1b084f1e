//! Pages and pictures of types: what `dtc view` writes.

mod common;

use common::{dtc, is_full, write};
use dtc_compiler::Pipeline;
use dtc_compiler::datatype::text;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Bytes of a page, at most.
const LARGEST: usize = 2_000_000;

/// Seconds that a page takes in a release build; debug builds take many times as long.
const SLOWEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

/// The page of a type, and the data in it.
fn page(folder: &Path, notation: &str) -> (String, Value) {
    let start = Instant::now();
    assert_eq!(dtc(folder, &["view", notation, "-o", "page.html"]).fine(), "");
    assert!(start.elapsed() <= SLOWEST, "{notation:.60}: {:?}", start.elapsed());
    let page = fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(page.len() <= LARGEST, "{notation:.60}: {} bytes", page.len());
    let (_, data) = page.split_once("id=\"view\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("an end");
    let data = serde_json::from_str(data).expect("JSON");
    (page, data)
}

/// The displacement of every byte in packed order, as the regions of a page have it.
fn displacements(data: &Value) -> Vec<i64> {
    let mut found = Vec::new();
    add(data, &data["memory"]["root"], 0, &mut found);
    found
}

fn add(data: &Value, entry: &Value, base: i64, found: &mut Vec<i64>) {
    let at = base + entry["memory"].as_i64().expect("an offset");
    let Some(number) = entry.get("region").and_then(Value::as_u64) else {
        found.extend(at..at + entry["bytes"].as_i64().expect("bytes"));
        return;
    };
    let content = &data["memory"]["regions"][number as usize]["content"];
    if let Some(copies) = content.get("copies") {
        let [count, stride] = ["count", "stride"].map(|key| copies[key].as_i64().expect("a number"));
        (0..count).for_each(|copy| add(data, &copies["first"], at + copy * stride, found));
        return;
    }
    let entries = &content["entries"];
    let listed = entries["listed"].as_array().expect("a list");
    assert_eq!(entries["of"], listed.len());
    listed.iter().for_each(|entry| add(data, entry, at, found));
}

#[test]
fn pages_have_the_bytes_of_the_reference_walker() {
    let folder = tempdir().expect("a folder");
    for notation in [
        "vector 5 1 2 short",
        "struct [2@0 int, 1@16 (vector 3 1 2 double), 3@64 char]",
        "hvector 3000 1 -40 (indexed [1@0, 3@5, 2@1] short)",
        "indexed_block 2 [0, 50, 7, 31, 90] int",
    ] {
        let (page, data) = page(folder.path(), notation);
        let pipeline = Pipeline::new(text::parse(notation).expect(notation));
        assert!(pipeline.lowered().displacements().eq(displacements(&data)), "{notation}");
        assert_eq!(data["notation"], notation);
        assert_eq!(
            data["stages"].as_array().and_then(|all| all.last()).map(|last| &last["text"]),
            Some(&pipeline.layout().to_string().into())
        );
        // It loads nothing.
        assert!(!page.contains("src=") && !page.contains("http://www.w3.org/1999"), "{notation}");
        assert_eq!(page.matches("http").count(), 1, "the name of SVG alone");
    }
}

#[test]
fn several_elements_are_drawn() {
    let folder = tempdir().expect("a folder");
    let json = r#"{"count": 3, "type": {"kind": "resized", "lb": 0, "extent": 20, "child": {"kind": "named", "name": "MPI_SHORT"}}}"#;
    write(folder.path(), "short.json", json);
    let (_, data) = page(folder.path(), "short.json");
    assert_eq!(displacements(&data), [0, 1, 20, 21, 40, 41]);
    assert_eq!(data["name"], "short");
}

#[test]
fn large_types_have_small_pages() {
    let folder = tempdir().expect("a folder");
    let (_, data) = page(folder.path(), "subarray c [512@256 of 1024, 512@0 of 1024, 512@100 of 1024] double");
    assert_eq!(data["memory"]["root"]["bytes"], 1u64 << 30);
    assert_eq!(data["memory"]["regions"].as_array().map(Vec::len), Some(2));
    let members: Vec<String> =
        (0..1000).map(|at| format!("{}@{} {}", 1 + at % 3, at * 40, ["int", "double", "char"][at % 7 % 3])).collect();
    let (_, data) = page(folder.path(), &format!("struct [{}]", members.join(", ")));
    assert_eq!(data["memory"]["regions"][0]["content"]["entries"]["of"], 1000);
    let offsets: Vec<String> = (0..20_000u64).map(|at| (at * at % 1_000_003 * 9).to_string()).collect();
    write(folder.path(), "list.dtc", format!("indexed_block 1 [{}] (vector 40 1 3 int)", offsets.join(", ")));
    let (_, data) = page(folder.path(), "list.dtc");
    let notes = data["notes"].to_string();
    assert!(notes.contains("of 20,000 listed places are drawn") && notes.contains("long description"), "{notes}");
}

#[test]
fn tables_have_examples() {
    let folder = tempdir().expect("a folder");
    let (_, data) = page(folder.path(), "hvector 2 1 512 (table 0 8 4 64 (contiguous 8 double))");
    assert_eq!(data["tables"][0]["entries"], serde_json::json!([5, 2, -1, 4]));
    assert_eq!(data["memory"]["origins"].as_array().map(Vec::len), Some(6));
    let places: Vec<i64> = displacements(&data).into_iter().step_by(64).collect();
    assert_eq!(places, [320, 128, 256, 832, 640, 768]);
}

#[test]
fn pages_and_pictures_are_the_same_every_time() {
    let folder = tempdir().expect("a folder");
    for notation in ["vector 12 1 14 double", "table 0 8 4 64 double"] {
        for more in [&[][..], &["--svg"]] {
            let write = |file: &str| {
                dtc(folder.path(), &[&["view", notation, "-o", file], more].concat()).fine();
                fs::read(folder.path().join(file)).expect(file)
            };
            assert!(write("one") == write("other"), "{notation} {more:?}");
            let standard = dtc(folder.path(), &[&["view", notation, "-o", "-"], more].concat()).fine();
            assert!(standard.into_bytes() == write("one"), "{notation} {more:?}");
        }
    }
}

#[test]
fn the_picture_of_the_guide_is_what_the_command_draws() {
    let folder = tempdir().expect("a folder");
    dtc(folder.path(), &["view", "subarray c [4@1 of 6, 5@2 of 8] double", "--svg", "-o", "found.svg"]).fine();
    let found = fs::read_to_string(folder.path().join("found.svg")).expect("a picture");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("docs/pictures/view.svg");
    if std::env::var_os("DTC_BLESS").is_some() {
        fs::write(&path, &found).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{}: expected this, found another; DTC_BLESS=1 writes it anew:\n{found}",
        path.display()
    );
    assert!(!found.contains("<script") && found.starts_with("<svg"));
}

#[test]
fn mistakes_are_those_of_explain() {
    let folder = tempdir().expect("a folder");
    for wrong in ["absent.json", "vector 12 1 double", "struct ["] {
        let message = |command: &[&str]| {
            let run = dtc(folder.path(), command);
            assert_eq!(run.status, 2, "{command:?}");
            run.err
        };
        assert_eq!(message(&["view", wrong, "-o", "page.html"]), message(&["explain", wrong]));
        assert!(!folder.path().join("page.html").exists());
    }
    write(folder.path(), "type.dtc", "int");
    dtc(folder.path(), &["view", "type.dtc", "-o", "type.dtc"]).fails(2, &["another file than TYPE.json"]);
    dtc(folder.path(), &["view", ".", "-o", "page.html"]).fails(2, &["the description of one type", "a recording"]);
    dtc(folder.path(), &["view", "type.dtc", "-o", "absent/page.html"])
        .fails(3, &["absent/page.html", "a file to write"]);
}

#[test]
fn examples_have_pages() {
    let folder = tempdir().expect("a folder");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("ir-examples");
    let mut files: Vec<_> =
        fs::read_dir(examples).expect("examples").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let step = if is_full() { 1 } else { 6 };
    for file in files.iter().step_by(step) {
        let (_, data) = page(folder.path(), file.to_str().expect("a name"));
        assert!(data["facts"].as_array().is_some_and(|facts| facts.len() >= 6), "{}", file.display());
        dtc(folder.path(), &["view", file.to_str().expect("a name"), "--svg", "-o", "picture.svg"]).fine();
    }
}
