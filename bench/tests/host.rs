//! The developers' benchmark on the CPU.

use dtc_emulator::{Run, write};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// A type whose kernel is worth having: unlike arrays in a loop.
const TYPE: &str = r#"{"story": "unlike rows", "count": 3, "type": {"kind": "struct", "blocklengths": [1, 2, 1],
    "displacements_bytes": [0, 24, 700], "children": [
        {"kind": "named", "name": "MPI_DOUBLE"},
        {"kind": "vector", "count": 9, "blocklength": 3, "stride": 7, "child": {"kind": "named", "name": "MPI_FLOAT"}},
        {"kind": "vector", "count": 5, "blocklength": 1, "stride": 3, "child": {"kind": "named", "name": "MPI_SHORT"}}]}}"#;

fn bench(folder: &Path, arguments: &[&str]) -> Run {
    Run::of(Command::new(env!("CARGO_BIN_EXE_dtc-bench")).args(arguments).current_dir(folder).stdin(Stdio::null()))
}

#[test]
fn figures_have_every_peer_and_case() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.json", TYPE);
    let cases = format!(
        r#"{{"cases": [{{"name": "one case", "tree": {}, "count": 2, "buffer_bytes": 4096,
            "send_origin_bytes": 64, "recv_origin_bytes": 8}}]}}"#,
        serde_json::from_str::<Value>(TYPE).unwrap()["type"]
    );
    write(folder.path(), "cases.json", cases);
    let arguments = [
        "t.json",
        "--cases",
        "cases.json",
        "--rounds",
        "2",
        "--min-time",
        "1",
        "--json",
        "figures",
        "--date",
        "2001-02-03",
    ];
    let text = bench(folder.path(), &arguments).fine();
    assert!(text.contains("one_case") && text.contains("median of the rounds"), "{text}");
    let figures = std::fs::read_to_string(folder.path().join("figures")).unwrap();
    let figures: Value = serde_json::from_str(&figures).unwrap();
    assert_eq!((&figures["date"], &figures["rounds"]), (&"2001-02-03".into(), &2.into()));
    assert!(figures["processor"].is_string() && figures["command"].is_array());
    for case in figures["cases"].as_array().unwrap() {
        for direction in ["pack", "unpack"] {
            assert!(case[direction]["medians"]["dtc"].as_f64() > Some(0.0), "{case}");
            assert!(case[direction]["memcpy_over_dtc"].as_f64() > Some(0.0), "{case}");
            assert!(case[direction]["loop_over_dtc"].as_f64() > Some(0.0), "the loop is built: {case}");
            assert!(case[direction]["spread"].as_f64() >= Some(0.0), "{case}");
        }
        assert_eq!(case["mismatches"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let folder = tempdir().expect("a folder");
    let input = File::open(write(folder.path(), "t.dtc", "vector 3 1 2 int")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc-bench"));
    command.args(["-", "--rounds", "1", "--min-time", "1", "--json", "-"]).stdin(input);
    let figures: Value = serde_json::from_str(&Run::of(&mut command).fine()).unwrap();
    assert_eq!((&figures["cases"][0]["name"], figures["date"].as_str().map(str::len)), (&"type".into(), Some(10)));
}

#[test]
fn mistakes_name_the_argument() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "t.dtc", "vector 3 1 2 int");
    write(folder.path(), "cases.json", "{}");
    for (status, arguments, parts) in [
        (2, &["t.dtc", "--json", "t.dtc"] as &[&str], &["--json", "TYPE.json"] as &[&str]),
        (2, &["--cases", "cases.json", "--json", "cases.json"], &["--json", "--cases"]),
        (2, &["--cases", "cases.json"], &["cases.json", "$.cases"]),
        (2, &["--cases", "absent"], &["absent"]),
        (2, &["--cases", "."], &[".", "a directory"]),
        (2, &["--cases", "-"], &["standard input"]),
        (2, &["--backend", "cuda", "--only", "nothing", "t.dtc"], &["--only", "nothing"]),
        (3, &["t.dtc", "--json", "absent/file"], &["absent/file"]),
    ] {
        bench(folder.path(), arguments).fails(status, parts);
    }
}

#[test]
fn drawn_types_are_measured_and_written() {
    let folder = tempdir().expect("a folder");
    let drawn = ["--random", "12", "--seed", "3"];
    let text = bench(folder.path(), &[&drawn[..], &["--types", "types"]].concat()).fine();
    assert!(text.contains("12 types of seed 3") && text.contains("12 types in types"), "{text}");
    let mut small = None;
    for entry in std::fs::read_dir(folder.path().join("types")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(document["count"].as_u64() > Some(0) && document["story"].is_string(), "{text}");
        if text.len() < 2_000 && document["count"].as_u64() < Some(50) {
            small = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        }
    }
    let small = small.expect("a small type");
    let only = ["--only", &small, "--rounds", "2", "--min-time", "1", "--json", "figures"];
    let text = bench(folder.path(), &[&drawn[..], &only].concat()).fine();
    for part in ["unpack", "below 4 KiB", "minimum", "a type whole", small.as_str()] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let figures: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("figures")).unwrap()).unwrap();
    let case = &figures["cases"][0];
    assert_eq!(
        (&figures["seed"], &case["name"], &case["mismatches"]),
        (&3.into(), &small.as_str().into(), &Value::Array(Vec::new()))
    );
    assert!(case["pack"]["peer_over_dtc"].as_f64() > Some(0.0), "the loop is a peer: {case}");
    assert!(case["type"].is_string() && case["count"].is_u64() && case["bare_commit"]["medians"]["dtc"].is_number());
    // What was written is the type that was measured.
    let file = format!("types/{small}.json");
    let again = bench(folder.path(), &[file.as_str(), "--rounds", "1", "--min-time", "1", "--json", "-"]).fine();
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["cases"][0]["packed_bytes"], case["packed_bytes"]);
    bench(folder.path(), &[&drawn[..], &["--only", "nothing"]].concat()).fails(2, &["--only", "nothing"]);
    for arguments in [&["--random", "2", "t.json"] as &[&str], &["--types", "types"], &["--random", "0"]] {
        let refused = bench(folder.path(), arguments);
        assert!(refused.status == 2 && refused.err.contains("--random"), "{refused:?}");
    }
}

#[test]
fn drawn_permutes_are_measured_beside_their_peer() {
    let folder = tempdir().expect("a folder");
    // The class of the least arrays.
    let drawn = ["--permutes", "7", "--seed", "5", "--only", "L2", "--rounds", "1", "--min-time", "1"];
    let text = bench(folder.path(), &[&drawn[..], &["--json", "figures"]].concat()).fine();
    assert!(text.contains("7 permutes of seed 5") && text.contains("geometric mean"), "{text}");
    let lines = std::fs::read_to_string(folder.path().join("figures")).unwrap();
    let figures: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Three of seven, both directions, three peers.
    assert_eq!(figures.len(), 18, "{lines}");
    for peer in ["dtc", "strided-perm", "memcpy"] {
        for direction in ["pack", "unpack"] {
            let of = figures.iter().filter(|figure| figure["peer"] == peer && figure["direction"] == direction);
            assert!(of.clone().all(|figure| figure["warm_us"].as_f64() > Some(0.0)), "{lines}");
            assert_eq!(of.count(), 3, "{lines}");
        }
    }
    bench(folder.path(), &["--permutes", "2", "--only", "nothing"]).fails(2, &["--only", "nothing"]);
    let refused = bench(folder.path(), &["--permutes", "2", "--random", "2"]);
    assert!(refused.status == 2 && refused.err.contains("--permutes"), "{refused:?}");
}
