//! The MPIs that the benchmark measures beside, which read the types that they pack.

use dtc_emulator::{Run, write};
use serde_json::Value;
use std::process::{Command, Stdio};
use tempfile::tempdir;

/// Every constructor. Each child is of another size, so that no argument can stand for another.
const TYPES: [(&str, &str); 9] = [
    ("vectors", "vector 5 2 3 (hvector 3 1 40 (contiguous 3 double))"),
    ("lists", "indexed [3@0, 1@10, 2@4] (indexed_block 2 [0, 5, 9] int)"),
    ("bytes", "hindexed [3@0, 1@4000] (hindexed_block 2 [0, 20, 36] int)"),
    ("fields", "struct [1@0 (contiguous 3 double), 2@32 short, 1@40 (resized 0 32 (vector 2 1 3 int))]"),
    ("box", "subarray c [3@1 of 10, 2@4 of 8] (dup float)"),
    ("fortran_box", "subarray fortran [3@1 of 10, 2@4 of 8, 1@2 of 3] double"),
    ("dealt", "darray fortran 5 of 6 [block 10 over 2, cyclic(3) 20 over 3, none 7 over 1] float"),
    ("dealt_by_rows", "darray c 2 of 4 [cyclic 9 over 2, block(5) 10 over 2] int"),
    ("given", "contiguous 3 (given 0 24 (struct [1@0 double, 1@16 int]))"),
];

#[test]
#[ignore = "installs MPICH and Open MPI"]
fn mpis_pack_the_bytes_of_every_constructor() {
    let folder = tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc-bench"));
    for (name, notation) in TYPES {
        write(folder.path(), &format!("{name}.dtc"), notation);
        command.arg(format!("{name}.dtc"));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");
    command.args([
        "--peers",
        "peers",
        "--peers-script",
        script,
        "--rounds",
        "1",
        "--min-time",
        "1",
        "--json",
        "figures",
    ]);
    Run::of(command.current_dir(folder.path()).stdin(Stdio::null())).fine();
    let figures: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("figures")).unwrap()).unwrap();
    let version = |kind: &str| figures["peer_versions"][kind].as_str().unwrap_or("none").to_owned();
    assert!(version("mpich").starts_with("MPICH Version: "), "{}", version("mpich"));
    assert!(version("openmpi").starts_with("Open MPI v"), "{}", version("openmpi"));
    for case in figures["cases"].as_array().unwrap() {
        assert_eq!((&case["mismatches"], &case["notes"]), (&Value::Array(Vec::new()), &Value::Array(Vec::new())));
        for call in ["pack", "unpack", "commit"] {
            for kind in ["mpich", "openmpi"] {
                assert!(case[call]["medians"][kind].as_f64() > Some(0.0), "{kind} {call}: {case}");
            }
        }
    }

    // Drawn types, in the same processes one after the other.
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtc-bench"));
    command.args(["--random", "30", "--seed", "7", "--only", "01", "--rounds", "1", "--min-time", "1"]);
    let text = Run::of(command.args(["--peers", "peers"]).current_dir(folder.path()).stdin(Stdio::null())).fine();
    assert!(text.contains("mpich: MPICH") && text.contains("commit and plan"), "{text}");
}
