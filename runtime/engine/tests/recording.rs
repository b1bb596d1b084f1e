//! Recordings of `DTC_RECORD`: every type that is committed, and every call, however the process ends. Each test runs in processes of
//! its own.

use dtc_compiler::Pipeline;
use dtc_compiler::datatype::text;
use dtc_runtime::store::{RecordedUses, Recording};
use dtc_runtime::{Committed, Endpoint, Engine, IndexTable, Policy, Range, TabledLayout, is_recording, recording_file};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Set in a process that records.
const RECORDING: &str = "DTC_TEST_RECORDING";

const ROWS: &str = "vector 3 1 2 int";
const RECORDS: &str = "contiguous 20 (resized 0 64 (struct [1@0 double, 1@12 int, 1@20 char]))";

fn is_child() -> bool {
    std::env::var_os(RECORDING).is_some()
}

/// Starts a process that runs one test alone and records into a folder.
fn start(test: &str, folder: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(RECORDING, "1").env("DTC_RECORD", folder);
    child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// What the processes of a folder have recorded, without a line that is cut short.
fn read(folder: &Path) -> Recording {
    let mut recording = Recording::default();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(Recording::is_file_name(&path));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        recording.add_file(&path).unwrap();
    }
    assert_eq!(recording.left_out, 0);
    recording
}

/// The uses of a type, whose notation the recording has.
fn uses(recording: &Recording, notation: &str) -> RecordedUses {
    let pipeline = Pipeline::new(text::parse(notation).unwrap());
    let recorded = &recording.types[&pipeline.hash().to_string()];
    assert_eq!(Pipeline::new(text::parse(&recorded.notations[0]).unwrap()).hash(), pipeline.hash());
    recorded.uses
}

fn commit(engine: &Engine, notation: &str) -> Committed {
    engine.commit(&text::parse(notation).unwrap())
}

/// Packs one element of [`ROWS`].
fn pack(rows: &Committed) {
    let mut packed = [0; 3];
    assert_eq!(rows.pack(&[1, 2, 3, 4, 5], Range::elements(1), &mut packed), Ok(12));
    assert_eq!(packed, [1, 3, 5]);
}

#[test]
fn all_calls_are_counted() {
    if is_child() {
        for policy in [Policy::Background, Policy::Eager, Policy::Off, Policy::Lazy(2)] {
            let engine = Engine::builder().policy(policy).build();
            let rows = commit(&engine, ROWS);
            // The same bytes, and another handle.
            let others = commit(&engine, "indexed_block 1 [0, 2, 4] int").clone();
            let (memory, mut packed) = ([7; 30], [0; 6]);
            // Beyond the calls from which on a type would have thunks.
            for _ in 0..1500 {
                pack(&rows);
            }
            // A type has an extent of 20 bytes: two have 24 packed bytes.
            assert_eq!(others.pack_parallel(&memory, Range::elements(2), &mut packed, 2), Ok(24));
            let elements = rows.at(memory.as_ptr(), Range::elements(2).bytes(4..));
            // SAFETY: both ends have room for two elements.
            unsafe {
                assert_eq!(elements.pack(packed.as_mut_ptr()).run().unwrap(), 20);
                assert_eq!(elements.pack(packed.as_mut_ptr()).start().unwrap().wait().unwrap(), 20);
            }
            let mut written = [0; 30];
            assert_eq!(rows.unpack(&packed, Range::elements(2), &mut written), Ok(24));
            assert_eq!(rows.copy(&memory, Range::elements(2), &others, Range::elements(2), &mut written), Ok(24));
            commit(&engine, RECORDS);
            // Predefined types are left out.
            commit(&engine, "double");
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    finish(start("all_calls_are_counted", folder.path()));
    let recording = read(folder.path());
    assert_eq!(recording.types.len(), 2);
    let packed_bytes = 4 * (1500 * 12 + 24 + 20 + 20 + 24);
    let expected = RecordedUses { packs: 4 * 1504, packed_bytes, unpacks: 4 * 2, unpacked_bytes: 4 * 48, largest: 24 };
    assert_eq!(uses(&recording, ROWS), expected);
    assert_eq!(uses(&recording, RECORDS), RecordedUses::default());
}

/// Types with index tables, by the digest that equal ones share, whatever the tables of their calls hold.
#[test]
fn calls_with_index_tables_are_counted() {
    const PAGES: &str = "table 0 4 3 16 (contiguous 2 double)";
    if is_child() {
        let engine = Engine::new();
        let pages = engine.commit_tabled(&PAGES.parse().unwrap());
        let equal = engine.commit_tabled(&"table 0 4 3 16 (contiguous 4 int)".parse().unwrap());
        engine.commit_tabled(&"table 0 4 3 8 int".parse().unwrap());
        let (memory, mut packed, mut other) = ([7u8; 64], [0u8; 48], [0u8; 64]);
        for entries in [&[0][..], &[3, 1], &[2, 1, 0]] {
            pages.pack(&memory, &[IndexTable::from(entries)], .., &mut packed).unwrap();
        }
        equal.unpack(&packed, 8.., &[IndexTable::from(&[1, 2])], &mut other).unwrap();
        let tables = [IndexTable::from(&[1, 2])];
        let ends = [memory.as_ptr(), other.as_ptr()].map(Endpoint::host);
        let [source, target] = [pages.at(ends[0], &tables), equal.at(ends[1], &tables)];
        // SAFETY: both memories have all places, and the packed bytes are those of two entries.
        unsafe {
            source.copy_to(target).run().unwrap();
            let packed = Endpoint::host(packed.as_mut_ptr());
            engine.run_tabled_batch(&[source.bytes(..8).pack(packed).into()]).unwrap();
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    finish(start("calls_with_index_tables_are_counted", folder.path()));
    let recording = read(folder.path());
    assert_eq!(recording.types.len(), 2);
    let recorded = &recording.types[&TabledLayout::new(&PAGES.parse().unwrap()).hash()];
    assert_eq!(recorded.notations, [PAGES]);
    let (packed_bytes, unpacked_bytes) = (16 + 32 + 48 + 32 + 8, 24 + 32);
    let expected = RecordedUses { packs: 5, packed_bytes, unpacks: 2, unpacked_bytes, largest: 48 };
    assert_eq!(recorded.uses, expected);
}

#[test]
fn a_killed_process_leaves_its_types_and_half_of_the_calls() {
    if is_child() {
        let rows = commit(&Engine::new(), ROWS);
        (0..1000).for_each(|_| pack(&rows));
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    let folder = tempfile::tempdir().unwrap();
    let output = start("a_killed_process_leaves_its_types_and_half_of_the_calls", folder.path()).wait_with_output();
    assert_eq!(output.unwrap().status.signal(), Some(libc::SIGKILL));
    let packs = uses(&read(folder.path()), ROWS).packs;
    assert!((500..=1000).contains(&packs), "{packs}");
}

#[test]
fn forked_children_add_their_own_calls() {
    if is_child() {
        let engine = Engine::new();
        let rows = commit(&engine, ROWS);
        (0..3).for_each(|_| pack(&rows));
        for _ in 0..4 {
            // SAFETY: the child calls the engine, which allows that, and ends by `exit`.
            match unsafe { libc::fork() } {
                0 => {
                    (0..5).for_each(|_| pack(&rows));
                    pack(&commit(&engine, ROWS));
                    commit(&engine, RECORDS);
                    // SAFETY: no other thread of this process is there.
                    unsafe { libc::exit(0) };
                }
                child => {
                    pack(&rows);
                    let mut status = 0;
                    // SAFETY: a child of this process, and a place.
                    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                    assert_eq!(status, 0);
                }
            }
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    finish(start("forked_children_add_their_own_calls", folder.path()));
    let recording = read(folder.path());
    assert_eq!(uses(&recording, ROWS).packs, 3 + 4 * (1 + 5 + 1));
    assert_eq!(uses(&recording, RECORDS).packs, 0);
}

#[test]
fn processes_and_threads_record_at_once() {
    const THREADS: u64 = 4;
    const TYPES: u64 = 100;
    let notation = |each: u64| format!("vector 3 1 {} int", each + 2);
    if is_child() {
        let engine = Engine::new();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for each in 0..TYPES {
                        let committed = commit(&engine, &notation(each));
                        for _ in 0..each {
                            committed.pack(&[0; 999], Range::elements(1), &mut [0; 3]).unwrap();
                        }
                    }
                });
            }
        });
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let children: Vec<_> =
        (0..6).map(|_| start("processes_and_threads_record_at_once", &folder.path().join("new/runs"))).collect();
    let processes = children.len() as u64;
    children.into_iter().for_each(finish);
    let recording = read(&folder.path().join("new/runs"));
    assert_eq!(recording.types.len() as u64, TYPES);
    for each in 0..TYPES {
        assert_eq!(uses(&recording, &notation(each)).packs, processes * THREADS * each);
    }
}

/// A recording that reaches the limit on the sizes of files ends, and the process goes on.
#[test]
fn a_limit_on_the_sizes_of_files_does_not_end_the_process() {
    const LIMIT: u64 = 60;
    if is_child() {
        let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
        // SAFETY: a structure to be read.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
        let engine = Engine::new();
        for each in 2..20 {
            pack(&commit(&engine, ROWS));
            commit(&engine, &format!("vector {each} 1 7 double"));
        }
        // SAFETY: fills a set of signals that is alive.
        unsafe {
            let mut set = std::mem::zeroed();
            assert_eq!(libc::sigpending(&mut set), 0);
            assert_eq!(libc::sigismember(&set, libc::SIGXFSZ), 0);
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set), 0);
            assert_eq!(libc::sigismember(&set, libc::SIGXFSZ), 0);
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["a_limit_on_the_sizes_of_files_does_not_end_the_process", "--exact", "--test-threads=1"]);
    let output = command.env(RECORDING, "1").env("DTC_RECORD", folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap()).collect();
    assert!(!files.is_empty() && files.iter().all(|file| file.len() <= LIMIT), "{files:?}");
}

#[test]
fn a_folder_that_others_may_write_is_not_used() {
    if is_child() {
        assert!(!is_recording());
        let finding = recording_file().unwrap().unwrap_err().to_string();
        assert!(finding.contains("expected that no other user may write it, found mode 777"), "{finding}");
        pack(&commit(&Engine::new(), ROWS));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    finish(start("a_folder_that_others_may_write_is_not_used", folder.path()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Neither a full disk nor a folder that went away is a reason to fail.
#[test]
fn a_folder_that_goes_away_is_no_failure() {
    if is_child() {
        let rows = commit(&Engine::new(), ROWS);
        let file = recording_file().unwrap().unwrap();
        assert!(file.is_file());
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
        (0..100).for_each(|_| pack(&rows));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    finish(start("a_folder_that_goes_away_is_no_failure", &folder.path().join("gone")));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_recorded_unasked() {
    assert!(!is_recording());
    assert!(recording_file().is_none());
}
