//! Standard input and output, pipes, links, and runs that are interrupted.

use crate::common::{data, dtc, write};
use crate::{BOX, places};
use std::fs::{File, read, read_dir};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Runs `dtc` with bytes on standard input; what it printed, as bytes.
fn piped(folder: &Path, arguments: &[&str], input: &[u8]) -> (i32, Vec<u8>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dtc"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_dash_is_standard_input_and_output() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    let memory = data(384);
    write(folder, "memory", &memory);
    let right: Vec<u8> = places().map(|place| memory[place]).collect();
    let fine = |arguments: &[&str], input: &[u8]| {
        let (status, out, err) = piped(folder, arguments, input);
        assert_eq!((status, err.as_str()), (0, ""), "{arguments:?}");
        out
    };
    assert_eq!(fine(&["pack", "box.dtc", "--in", "-", "--out", "-"], &memory), right);
    assert_eq!(fine(&["pack", "box.dtc", "--in", "memory", "--out", "-"], &[]), right);
    // What comes behind the elements is left alone.
    assert_eq!(fine(&["pack", "box.dtc", "--in", "-", "--out", "-"], &[&memory[..], &[7; 100]].concat()), right);
    assert_eq!(fine(&["pack", "-", "--in", "memory", "--out", "-"], BOX.as_bytes()), right);
    let json = br#" {"kind": "contiguous", "count": 2, "child": {"kind": "named", "name": "MPI_DOUBLE"}}"#;
    assert_eq!(fine(&["pack", "-", "--in", "memory", "--out", "-"], json), memory[..16]);
    let layout = dtc(folder, &["emit", "box.dtc", "--as", "layout"]).fine();
    assert_eq!(fine(&["emit", "-", "--as", "layout", "-o", "-"], BOX.as_bytes()), layout.as_bytes());
    let table = fine(&["bench", "-", "--rounds", "1", "--min-time", "1"], BOX.as_bytes());
    assert!(String::from_utf8(table).unwrap().contains("\n type "));
    write(folder, "other", vec![0xee; 384]);
    fine(&["unpack", "box.dtc", "--in", "-", "--out", "other"], &right);
    let mut expected = vec![0xee; 384];
    places().for_each(|place| expected[place] = memory[place]);
    assert_eq!(read(folder.join("other")).unwrap(), expected);
    // An input that is cut, or too long, changes nothing.
    for input in [&right[..95], &[&right[..], &[1]].concat()] {
        let (status, _, err) = piped(folder, &["unpack", "box.dtc", "--in", "-", "--out", "other"], input);
        assert!(status == 3 && err.contains("standard input: expected 96 packed bytes"), "{err}");
    }
    assert_eq!(read(folder.join("other")).unwrap(), expected);
    let (status, _, err) = piped(folder, &["pack", "box.dtc", "--in", "-", "--out", "-"], &memory[..100]);
    assert!(status == 3 && err.starts_with("dtc: standard input: expected"), "{err}");
    assert!(!folder.join("-").exists());
}

/// Makes a named pipe.
fn pipe(folder: &Path, name: &str) {
    assert!(Command::new("mkfifo").arg(folder.join(name)).status().unwrap().success());
}

#[test]
fn pipes_are_read_and_written() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    pipe(folder, "in");
    pipe(folder, "out");
    let memory = data(384);
    let right: Vec<u8> = places().map(|place| memory[place]).collect();
    let (source, sink) = (folder.join("in"), folder.join("out"));
    let (from, writer) = (memory.clone(), source.clone());
    let writer = thread::spawn(move || File::options().write(true).open(writer).unwrap().write_all(&from).unwrap());
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        File::open(sink).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    });
    dtc(folder, &["pack", "box.dtc", "--in", "in", "--out", "out"]).fine();
    writer.join().unwrap();
    assert_eq!(reader.join().unwrap(), right);
    write(folder, "other", vec![0xee; 384]);
    let writer = thread::spawn(move || File::options().write(true).open(source).unwrap().write_all(&right).unwrap());
    dtc(folder, &["unpack", "box.dtc", "--in", "in", "--out", "other"]).fine();
    writer.join().unwrap();
    // What cannot be, is refused before a pipe is opened.
    write(folder, "packed", data(96));
    dtc(folder, &["unpack", "box.dtc", "--in", "packed", "--out", "out"]).fails(3, &["out", "a pipe"]);
    dtc(folder, &["pack", "box.dtc", "--in", "in", "--out", "in"]).fails(2, &["--out", "--in"]);
    dtc(folder, &["pack", "absent", "--in", "in", "--out", "out"]).fails(2, &["absent"]);
    let _listener = UnixListener::bind(folder.join("socket")).unwrap();
    dtc(folder, &["pack", "box.dtc", "--in", "socket", "--out", "new"]).fails(3, &["socket", "a socket"]);
    dtc(folder, &["pack", "box.dtc", "--in", "packed", "--out", "socket", "--count", "0"]).fails(3, &["a socket"]);
    dtc(folder, &["pack", "box.dtc", "--in", "/dev/zero", "--out", "/dev/null"]).fine();
    assert!(!folder.join("new").exists());
}

#[test]
fn links_are_written_through() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    write(folder, "box.dtc", BOX);
    write(folder, "memory", data(384));
    std::fs::create_dir(folder.join("far")).unwrap();
    symlink("far/file", folder.join("link")).unwrap();
    for _ in 0..2 {
        dtc(folder, &["pack", "box.dtc", "--in", "memory", "--out", "link"]).fine();
        assert!(folder.join("link").is_symlink());
        assert_eq!(read(folder.join("far/file")).unwrap().len(), 96);
    }
    symlink("absent/file", folder.join("nowhere")).unwrap();
    dtc(folder, &["pack", "box.dtc", "--in", "memory", "--out", "nowhere"]).fails(3, &["nowhere"]);
    assert!(folder.join("nowhere").is_symlink());
}

/// Waits until a process has written bytes to a file other than its standard streams.
fn wait_for_output(child: &mut Child) {
    let start = Instant::now();
    let files = format!("/proc/{}/fd", child.id());
    loop {
        let entries = read_dir(&files).into_iter().flatten().filter_map(Result::ok);
        let written = |path: &Path| {
            let target =
                std::fs::read_link(path).is_ok_and(|target| target.to_string_lossy().contains("/dtc-interrupted"));
            target && path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 1 << 20)
        };
        if entries.map(|entry| entry.path()).any(|path| written(&path)) {
            return;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was interrupted");
        assert!(start.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn interrupted_runs_leave_nothing() {
    let folder = tempfile::Builder::new().prefix("dtc-interrupted").tempdir().unwrap();
    let folder = folder.path();
    // The same bytes again and again: a small input, and an output that is never done.
    write(folder, "t.dtc", "resized 0 0 contiguous 131072 double");
    write(folder, "in", data(1 << 20));
    write(folder, "kept", "precious");
    let names = || {
        let mut names: Vec<_> = read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for (signal, number) in [("HUP", 1), ("INT", 2), ("TERM", 15), ("KILL", 9), ("BUS", 7)] {
        for output in ["kept", "new"] {
            write(folder, "in", data(1 << 20));
            let before = names();
            // Jobs in the background of a script ignore INT, and programs under nohup HUP.
            let mut child = Command::new("env")
                .args(["--default-signal", env!("CARGO_BIN_EXE_dtc")])
                .args(["pack", "t.dtc", "--in", "in", "--out", output, "--count", "4096"])
                .current_dir(folder)
                .spawn()
                .unwrap();
            wait_for_output(&mut child);
            if signal == "BUS" {
                // Who reads a page that the file has no longer gets this one.
                File::options().write(true).open(folder.join("in")).unwrap().set_len(8).unwrap();
            } else {
                let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
                assert!(kill.unwrap().success());
            }
            assert_eq!(child.wait().unwrap().signal(), Some(number), "{signal}");
            assert_eq!(names(), before, "{signal}");
            assert_eq!(read(folder.join("kept")).unwrap(), b"precious");
        }
    }
    // A run that fails leaves nothing either.
    write(folder, "in", data(1 << 20));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 4096; exec \"$0\" pack t.dtc --in in --out kept --count 64"]);
    let run = limited.arg(env!("CARGO_BIN_EXE_dtc")).current_dir(folder).output().unwrap();
    assert_ne!(run.status.code(), Some(0));
    assert_eq!(names().len(), 3);
    assert_eq!(read(folder.join("kept")).unwrap(), b"precious");
}
