//! The developers' benchmark on a GPU that is emulated on the CPU.

use clap::Parser;
use dtc_emulator::{Emulator, Run, is_full, write};
use serde_json::Value;
use std::path::Path;
use tempfile::tempdir;

fn emulator() -> &'static Emulator {
    Emulator::get(|| dtc_compiler::codegen::cuda::generic_source().expect("a text"))
}

fn emulated(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    emulator().run(env!("CARGO_BIN_EXE_dtc-bench"), folder, arguments, variables)
}

const ROWS: &str = r#"{"count": 3, "type": {"kind": "vector", "count": 50, "blocklength": 3, "stride": 7,
    "child": {"kind": "named", "name": "MPI_INT"}}}"#;

/// An index of cases: rows that are described, and runs and blocks that are drawn.
const CASES: &str = r#"{"cases": [
    {"name": "three rows", "file": "rows.json", "count": 3, "packed_bytes": 1800, "buffer_bytes": 5000,
     "shape": {"kind": "nest"}},
    {"name": "eight runs", "file": "lists/none.json", "count": 1, "packed_bytes": 0, "buffer_bytes": 0,
     "shape": {"kind": "runs", "runs": 8, "unit_bytes": 4, "most_units": 32, "seed": 7, "checksum": "CHECKSUM"}}]}"#;

#[test]
fn figures_are_lines_of_json() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "rows.json", ROWS);
    write(folder.path(), "byte.dtc", "vector 9 1 3 byte");
    let bench = ["--backend", "cuda", "--rounds", "2", "rows.json", "byte.dtc", "--json", "lines"];
    emulated(folder.path(), &bench, &[]).fine();
    let lines = std::fs::read_to_string(folder.path().join("lines")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2 * 2 * 3);
    for (line, peer) in lines.iter().zip(["dtc", "dtc generic", "memcpy"].iter().cycle()) {
        assert_eq!(line["peer"], *peer);
        assert!(line["cold_us"].as_f64() > Some(0.0) && line["warm_us"].as_f64() > Some(0.0), "{line}");
        assert!(line["variant"].is_string() && line["packed_bytes"].as_u64() > Some(0), "{line}");
    }
}

#[test]
fn first_calls_are_made_in_processes_of_their_own() {
    let folder = tempdir().expect("a folder");
    let bench = ["--backend", "cuda", "--part", "first", "--rounds", "2", "--json", "figures"];
    let text = emulated(folder.path(), &bench, &[]).fine();
    assert!(text.contains("medians of 2 processes") && text.contains("machine code of sm_90"), "{text}");
    let figures = std::fs::read_to_string(folder.path().join("figures")).expect("figures");
    let figures: Vec<Value> = figures.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases: Vec<&str> = figures.iter().filter_map(|figure| figure["case"].as_str()).collect();
    assert_eq!(
        cases,
        ["rows", "list", "record", "transposed", "machine code alone", "PTX alone", "NVRTC alone"],
        "{figures:?}"
    );
    for figure in &figures {
        let (packs, step) = (figure["code"].is_string(), |step: &str| figure[step].as_f64() > Some(0.0));
        assert_eq!(figure["starts"], 2);
        assert!(if packs { step("context_us") && step("first_us") } else { step("loaded_us") }, "{figure}");
    }
    emulated(folder.path(), &bench, &[("EMULATOR_WRONG", "1")]).fails(3, &["first call, rows", "the bytes of the CPU"]);
    let two = ["--backend", "cuda", "--part", "first", "--part", "latency"];
    emulated(folder.path(), &two, &[]).fails(2, &["--part first", "no other part"]);
}

#[test]
fn every_kernel_that_may_serve_is_measured() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "bytes.dtc", "vector 9 1 3 byte");
    let bench = ["--backend", "cuda", "--part", "families", "--rounds", "1", "bytes.dtc", "--json", "figures"];
    let text = emulated(folder.path(), &bench, &[]).fine();
    for part in ["words of 1 bytes", "packed words gathered", "packed words scattered", "of the fastest candidate"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let figures = std::fs::read_to_string(folder.path().join("figures")).expect("figures");
    // Words in nine shapes, groups, and what moves any bytes; and vectors of the pack.
    assert_eq!(figures.matches("\"candidate\"").count(), 2 * 11 + 1, "{figures}");
    assert_eq!(figures.matches("\"dtc\"").count(), 2, "{figures}");
    emulated(folder.path(), &bench, &[("EMULATOR_WRONG", "1")]).fails(3, &["bytes", "wrong bytes"]);
    emulated(folder.path(), &[&bench[..], &["--only", "rows"]].concat(), &[]).fails(2, &["--only", "rows"]);
    write(folder.path(), "bytes.dtc", "contiguous 9 byte");
    let text = emulated(folder.path(), &bench, &[]).fine();
    assert!(text.contains("unpack: no type has a kernel of its own"), "{text}");
}

#[test]
fn a_bench_times_calls() {
    let folder = tempdir().expect("a folder");
    let arguments = ["--backend", "cuda", "--rounds", "1", "--part", "latency", "--json", "lines"];
    let text = emulated(folder.path(), &arguments, &[]).fine();
    for part in ["smallest pack enqueued", "blocking unpack", "memcpy synchronised", "commit", "kernels, warm store"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let lines = std::fs::read_to_string(folder.path().join("lines")).unwrap();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["clock"] == "host" && line["warm_us"].as_f64() > Some(0.0), "{line}");
    }
    emulated(folder.path(), &arguments, &[("EMULATOR_WRONG", "1")]).fails(3, &["4 KiB, blocking pack"]);
}

#[test]
fn a_bench_reads_the_index() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "rows.json", ROWS);
    write(folder.path(), "cases.json", CASES);
    let bench = ["--backend", "cuda", "--rounds", "1", "--gpu-cases", "cases.json", "--part", "kernels"];
    // The list is drawn, and its checksum is part of the index.
    let refused = emulated(folder.path(), &bench, &[]);
    refused.fails(2, &["cases.json: $.cases[1].shape.checksum", "CHECKSUM"]);
    let found = refused.err.rsplit(' ').next().unwrap().trim();
    write(folder.path(), "cases.json", CASES.replace("CHECKSUM", found));
    let text = emulated(folder.path(), &bench, &[]).fine();
    assert!(text.contains("three rows") && text.contains("eight runs"), "{text}");
    let text = emulated(folder.path(), &[&bench[..], &["--only", "rows"]].concat(), &[]).fine();
    assert!(text.contains("three rows") && !text.contains("eight runs"), "{text}");
    emulated(folder.path(), &[&bench[..], &["--only", "columns"]].concat(), &[]).fails(2, &["--only", "columns"]);
    write(folder.path(), "cases.json", "{}");
    emulated(folder.path(), &bench, &[]).fails(2, &["cases.json: $.cases", "a list"]);
}

#[test]
fn layouts_of_a_class_are_drawn_again_by_their_seed() {
    let folder = tempdir().expect("a folder");
    let bench = ["--backend", "cuda", "--rounds", "1", "--part", "classes", "--packed-mib", "1", "--layouts", "1"];
    let first = emulated(folder.path(), &[&bench[..], &["--only", "strided"]].concat(), &[]).fine();
    let seed = first.split("of seed ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a seed");
    let again = [&bench[..], &["--only", "strided", "--seed", seed, "--json", "lines"]].concat();
    let again = emulated(folder.path(), &again, &[]).fine();
    let drawn = |text: &str| text.split("strided: ").nth(1).map(|rest| rest.split(" bytes").next().unwrap().to_owned());
    assert!(drawn(&first).is_some() && drawn(&first) == drawn(&again), "{first}\n{again}");
    let lines = std::fs::read_to_string(folder.path().join("lines")).unwrap();
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(line["seed"].to_string(), seed);
    assert!(line["least_us"].as_f64() > Some(0.0), "{line}");
}

/// The process that builds, with the compiler for kernels of the emulator.
const BUILDS: &str = "TEST_FOLDER_OF_A_BUNDLE";

#[derive(Parser)]
struct Build {
    #[command(flatten)]
    arguments: dtc_build::Arguments,
}

#[test]
fn functions_of_a_bundle_are_held_against_the_walker() {
    if let Some(folder) = std::env::var_os(BUILDS) {
        std::env::set_current_dir(folder).expect("a folder");
        let target = if cfg!(target_arch = "aarch64") { "aarch64,sm_90" } else { "x86-64,sm_90" };
        let built = ["build", "rows.json", "byte.dtc", "-o", "kernels", "--target", target];
        return dtc_build::run(&Build::parse_from(built).arguments).expect("a bundle");
    }
    let folder = tempdir().expect("a folder");
    write(folder.path(), "rows.json", ROWS);
    write(folder.path(), "byte.dtc", "vector 9 1 3 byte");
    let this = std::env::current_exe().expect("this program").display().to_string();
    let here = folder.path().display().to_string();
    let arguments = ["--exact", "functions_of_a_bundle_are_held_against_the_walker", "--nocapture"];
    emulator().run(&this, folder.path(), &arguments, &[(BUILDS, &here)]).fine();
    std::os::unix::fs::symlink(emulator().driver(), folder.path().join("libcuda.so.1")).expect("a link");
    let bench = ["--backend", "cuda", "--rounds", "1", "--part", "bundles", "--json", "lines", "rows.json", "byte.dtc"];
    emulated(folder.path(), &bench, &[]).fails(2, &["--part bundles", "--bundle"]);
    let bench = [&bench[..], &["--bundle", "kernels"]].concat();
    let text = emulated(folder.path(), &bench, &[("LD_LIBRARY_PATH", &here)]).fine();
    assert!(text.contains("2 of 2 types have kernels, all from the bundle"), "{text}");
    let lines = std::fs::read_to_string(folder.path().join("lines")).unwrap();
    assert_eq!(lines.lines().count(), 4);
    let wrong = [("LD_LIBRARY_PATH", here.as_str()), ("EMULATOR_WRONG", "1")];
    emulated(folder.path(), &bench, &wrong).fails(3, &["rows", "packed byte"]);
}

#[test]
fn drawn_types_are_measured_by_their_class() {
    let folder = tempdir().expect("a folder");
    // The emulator compiles the kernels of each type.
    let only = if is_full() { "00" } else { "004" };
    let bench =
        ["--backend", "cuda", "--rounds", "1", "--random", "40", "--seed", "3", "--only", only, "--json", "lines"];
    let text = emulated(folder.path(), &bench, &[]).fine();
    for part in ["share of the roofline", "share of the fastest candidate", "microseconds beyond a copy", "GB/s"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let lines = std::fs::read_to_string(folder.path().join("lines")).unwrap();
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert!(line["seed"] == 3 && line["type"].is_string() && line["peer"] == "dtc", "{line}");
    let wrong = emulated(folder.path(), &bench, &[("EMULATOR_WRONG", "1")]);
    wrong.fails(3, &["wrong bytes", "(seed 3)"]);
    let candidates = ["--part", "families", "--only", "004"];
    let text = emulated(folder.path(), &[&bench[..8], &candidates].concat(), &[]).fine();
    assert!(text.contains("microseconds beyond a copy") && text.contains("004_"), "{text}");
    let refused = [&bench[..], &["--part", "latency"]].concat();
    emulated(folder.path(), &refused, &[]).fails(2, &["--part", "--random"]);
}
