//! Runs every fuzz target: on its seeds, or for `DTC_FUZZ_SECONDS` seconds on inputs derived from them.

use std::path::Path;
use std::process::Command;

/// Runs a target on a folder of `seeds/`.
fn run(target: &str, seeds: &str) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(seeds);
    let found = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut fuzzer = Command::new(target);
    match std::env::var("DTC_FUZZ_SECONDS") {
        Ok(seconds) => {
            let corpus = tempfile::tempdir().expect("a folder for inputs");
            fuzzer
                .arg(format!("-max_total_time={seconds}"))
                .args(["-timeout=12", "-rss_limit_mb=4096", "-max_len=4096", "-verbosity=0", "-print_final_stats=1"])
                .arg(format!("-artifact_prefix={}/", found.display()))
                .args([corpus.path(), &seeds]);
            assert!(fuzzer.status().expect("a fuzzer").success(), "what {target} failed on is in {}", found.display());
        }
        Err(_) => {
            let files = std::fs::read_dir(&seeds).expect("seeds").map(|file| file.expect("a seed").path());
            assert!(fuzzer.args(files).status().expect("a fuzzer").success(), "{target} failed on {}", seeds.display());
        }
    }
}

#[test]
fn json() {
    run(env!("CARGO_BIN_EXE_json"), "json");
}

#[test]
fn text() {
    run(env!("CARGO_BIN_EXE_text"), "text");
}

#[test]
fn tabled() {
    run(env!("CARGO_BIN_EXE_tabled"), "tabled");
}

#[test]
fn wire() {
    run(env!("CARGO_BIN_EXE_wire"), "wire");
}

#[test]
fn fragments() {
    run(env!("CARGO_BIN_EXE_fragments"), "fragments");
}

#[test]
fn bundle() {
    run(env!("CARGO_BIN_EXE_bundle"), "bundle");
}

/// Flattened types are encoded layouts, so the seeds are those of layouts.
#[test]
fn unflatten() {
    run(env!("CARGO_BIN_EXE_unflatten"), "wire");
}
