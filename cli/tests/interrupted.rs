//! Commands that end before their time, or would without end: what they leave, and what they say.
#![cfg(target_os = "linux")]

mod common;

use common::{Run, dtc, write};
use std::fs::read_dir;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Starts `dtc` with a folder of its own for temporary files, and with no signal ignored: jobs in the background of a script ignore INT.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal", env!("CARGO_BIN_EXE_dtc")])
        .args(arguments)
        .current_dir(folder)
        .env("TMPDIR", folder.join("temporary"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn is_empty(folder: &Path) -> bool {
    read_dir(folder).expect("a folder").next().is_none()
}

#[test]
fn an_interrupted_bench_leaves_nothing() {
    let folder = tempdir().expect("a folder");
    let (here, temporary) = (folder.path(), folder.path().join("temporary"));
    std::fs::create_dir(&temporary).expect("a folder");
    write(here, "rows.dtc", "vector 1000 3 7 int");
    let mut bench = command(here, &["bench", "rows.dtc", "--rounds", "1000", "--min-time", "100"]);
    for signal in ["INT", "TERM"] {
        let mut bench = bench.spawn().expect("the command");
        let start = Instant::now();
        while is_empty(&temporary) {
            assert!(start.elapsed() < Duration::from_secs(30), "no folder for loops");
            std::thread::sleep(Duration::from_millis(5));
        }
        let kill = Command::new("kill").args([format!("-{signal}"), bench.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        assert!(bench.wait().expect("its end").signal().is_some(), "{signal}");
        assert!(is_empty(&temporary), "{signal}");
    }
}

#[test]
fn an_interrupted_bench_keeps_the_figures_so_far() {
    let folder = tempdir().expect("a folder");
    let (here, temporary) = (folder.path(), folder.path().join("temporary"));
    std::fs::create_dir(&temporary).expect("a folder");
    let mut bench = command(here, &["bench", "vector 9 1 3 int", "vector 99 1 3 int", "--rounds", "40"]);
    let mut bench = bench.stdout(Stdio::piped()).spawn().expect("the command");
    let mut lines = BufReader::new(bench.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("GB/s") && line.contains("memcpy")), "no figures");
    let kill = Command::new("kill").args(["-TERM", &bench.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    assert!(bench.wait().expect("its end").signal().is_some());
    assert!(!lines.any(|line| line.starts_with("commit")) && is_empty(&temporary));
}

#[test]
fn what_a_killed_build_leaves_the_next_run_removes() {
    let folder = tempdir().expect("a folder");
    let (here, temporary) = (folder.path(), folder.path().join("temporary"));
    std::fs::create_dir(&temporary).expect("a folder");
    write(here, "rows.dtc", "vector 1000 3 7 int");
    let mut build = command(here, &["build", "rows.dtc", "-o", "out"]);
    // Some are killed while they link.
    let mut left = 0;
    for wait in 0..60 {
        let mut build = build.spawn().expect("the command");
        std::thread::sleep(Duration::from_millis(5 * wait));
        build.kill().expect("a signal");
        build.wait().expect("its end");
        left += usize::from(!is_empty(&temporary));
        if left > 2 {
            break;
        }
    }
    assert!(build.status().expect("the command").success());
    assert!(is_empty(&temporary), "{left}: {:?}", read_dir(&temporary).expect("a folder").collect::<Vec<_>>());
    let names: Vec<_> = read_dir(here).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

/// Runs `dtc` with at most this much address space.
fn limited(folder: &Path, kib: u64, arguments: &[&str]) -> Run {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {kib}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_dtc")]);
    Run::of(command.args(arguments).current_dir(folder))
}

#[test]
fn a_bench_of_a_type_without_end_is_refused() {
    let folder = tempdir().expect("a folder");
    let here = folder.path();
    write(here, "endless.dtc", "subarray c [4611686018427387904@0 of 4611686018427387904] byte");
    write(here, "large.dtc", "subarray c [1073741824@0 of 1073741824] byte");
    let refused = dtc(here, &["bench", "endless.dtc", "--rounds", "1"]);
    assert_eq!(refused.status, 3, "{refused:?}");
    for part in ["endless: buffer: expected", "found 4611686018427387904 bytes spanned"] {
        assert!(refused.err.contains(part), "{refused:?}");
    }
    for arguments in [&["bench", "large.dtc", "--rounds", "1"] as &[&str], &["demo", "large.dtc", "--backend", "cpu"]] {
        let refused = limited(here, 2 << 20, arguments);
        assert!(refused.status == 3 && refused.err.contains("bytes of memory, found less"), "{refused:?}");
    }
}

#[test]
fn a_demo_of_elements_without_end_takes_as_many_as_are_checked_soon() {
    let folder = tempdir().expect("a folder");
    write(
        folder.path(),
        "rows.json",
        r#"{"count": 9223372036854775807, "type": {"kind": "vector", "count": 2,
        "blocklength": 1, "stride": 2, "child": {"kind": "named", "name": "MPI_INT"}}}"#,
    );
    let text = dtc(folder.path(), &["demo", "rows.json", "--backend", "cpu"]).fine();
    assert!(text.contains("524288 elements instead of 9223372036854775807"), "{text}");
}
