//! Descriptions that are made to be expensive: `lower`, `explain`, `view` and the sources of `emit` take at most a second and 256 MiB, and
//! a page of `view` has at most 2 MB.
//!
//! `DTC_HOSTILE=10000 cargo test --release -p dtc-cli --test hostile` draws as many, and `DTC_HOSTILE=4711..4712` those of some seeds.

mod common;
#[path = "../../tests/src/generate/hostile.rs"]
mod generate;

use common::write;
use generate::Hostile;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Debug builds take this many times as long as the release builds that the budget is for, and share the machine with other tests.
const SLOWER: u32 = if cfg!(debug_assertions) { 20 } else { 4 };

/// Address space of a command, in KiB: 256 MiB, and as much for the program itself and its stacks.
const ADDRESSES: u64 = 512 << 10;

/// Bytes of a page of `dtc view`, at most.
const LARGEST_PAGE: usize = 2_000_000;

/// Descriptions that are drawn where no variable says how many: each is given to every command.
const DRAWN: u64 = 40;

const COMMANDS: [&[&str]; 12] = [
    &["lower"],
    &["explain"],
    &["explain", "--json"],
    &["explain", "--gpu", "--full"],
    &["view", "-o", "-"],
    &["view", "-o", "-", "--svg"],
    &["emit", "--as", "cuda"],
    &["emit", "--as", "c"],
    &["emit", "--as", "cuda-header"],
    &["emit", "--as", "mpi-c"],
    &["emit", "--as", "clif"],
    &["emit", "--as", "llvm"],
];

/// Runs a command with limits; what is wrong about it. A refusal has a message.
fn run(folder: &Path, arguments: &[&str], file: &str) -> Option<String> {
    let limited = format!("ulimit -v {ADDRESSES}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_dtc")]).args(arguments).arg(file).current_dir(folder);
    let start = Instant::now();
    let output = command.env("DTC_CUDA_DRIVER", "/missing/libcuda.so").output().expect("a shell");
    let time = start.elapsed();
    let message = String::from_utf8_lossy(&output.stderr);
    let refused = output.status.code() == Some(2) && message.contains("expected") && message.contains("found");
    let within = time <= Duration::from_secs(1) * SLOWER;
    let bytes = output.stdout.len();
    let small = arguments[0] != "view" || bytes <= LARGEST_PAGE;
    ((!output.status.success() && !refused) || !within || !small)
        .then(|| format!("{arguments:?}: {}, {time:.1?}, {bytes} bytes: {message}", output.status))
}

fn seeds() -> Range<u64> {
    let said = std::env::var("DTC_HOSTILE").unwrap_or_else(|_| DRAWN.to_string());
    let number = |text: &str| text.trim().parse().expect("DTC_HOSTILE: expected a number or a range of numbers");
    said.split_once("..").map_or_else(|| 0..number(&said), |(from, to)| number(from)..number(to))
}

#[test]
fn hostile_descriptions_are_explained_and_printed_within_budgets() {
    let folder = tempdir().expect("a folder");
    let (mut wrong, seeds) = (Vec::new(), seeds());
    for seed in seeds.clone() {
        let Hostile { datatype, json, count } = generate::description(&mut SmallRng::seed_from_u64(seed));
        let text = match json.strip_prefix("{\"types\"") {
            Some(rest) => format!("{{\"count\": {count}, \"types\"{rest}"),
            None => format!("{{\"count\": {count}, \"type\": {json}}}"),
        };
        write(folder.path(), "type.json", text);
        let (_, tabled) = generate::tabled_description(&mut SmallRng::seed_from_u64(seed));
        let shared = tabled.starts_with("{\"types\"");
        write(folder.path(), "tabled.json", if shared { tabled } else { format!("{{\"type\": {tabled}}}") });
        let failed = |arguments: &&[&str]| run(folder.path(), arguments, "type.json");
        let tabled_failed = |arguments: &&[&str]| run(folder.path(), arguments, "tabled.json");
        wrong.extend(
            COMMANDS
                .iter()
                .filter_map(failed)
                .map(|failure| format!("seed {seed}, {count} elements of {} bytes: {failure}", datatype.facts().size)),
        );
        let tabled = COMMANDS.iter().filter_map(tabled_failed);
        wrong.extend(tabled.map(|failure| format!("seed {seed}, with index tables: {failure}")));
    }
    assert!(wrong.is_empty(), "{} failures, seeds {seeds:?}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn deep_types_with_index_tables_are_explained_or_refused_within_budgets() {
    let folder = tempdir().expect("a folder");
    let nested = |outer: &str, closed: &str, times: usize| {
        format!("{}table 0 2 1 0 byte{}", outer.repeat(times), closed.repeat(times))
    };
    for (outer, closed) in [
        ("table 0 2 1 0 (", ")"),
        ("contiguous 1 (resized 0 4 (", "))"),
        ("struct [1@0 byte, 1@8 (", ")]"),
        ("struct [1@0 (resized 0 8 (table 0 2 1 0 byte)), 1@8 (", ")]"),
    ] {
        for times in [250, 5_000, 100_000] {
            write(folder.path(), "deep.dtc", nested(outer, closed, times));
            let failures: Vec<String> =
                COMMANDS.iter().filter_map(|&arguments| run(folder.path(), arguments, "deep.dtc")).collect();
            assert!(failures.is_empty(), "{times} times {outer}: {failures:?}");
        }
    }
}

#[test]
fn overlapping_types_of_public_reports_are_explained_at_once() {
    let folder = tempdir().expect("a folder");
    write(folder.path(), "one.dtc", "hvector 10000000000 1 0 byte");
    write(folder.path(), "two.dtc", "hvector 10000000000 1 0 (vector 2 1 2 byte)");
    for file in ["one.dtc", "two.dtc"] {
        let failures: Vec<String> =
            COMMANDS.iter().filter_map(|&arguments| run(folder.path(), arguments, file)).collect();
        assert!(failures.is_empty(), "{file}: {failures:?}");
    }
}
