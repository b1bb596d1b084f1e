//! Every cause for which the store does without a file.
//!
//! Tests that need the rights of root, or a mount of their own, report on standard error that they are skipped.
#![expect(clippy::disallowed_types, reason = "tests fork no children among threads")]

mod races;
mod recording;

use super::{Cause, Claim, Config, Finding, Key, Store, record, system};
use dtc_host::trust;
use std::ffi::OsString;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// A store in a new directory that records its warnings.
struct Watched {
    folder: TempDir,
    store: Store,
    told: Arc<Mutex<Vec<Finding>>>,
}

fn watched(configure: impl FnOnce(Config, &Path) -> Config) -> Watched {
    let folder = tempfile::tempdir().expect("a folder");
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = told.clone();
    let config = configure(Config::none(), folder.path());
    let store = Store::open(config.on_finding(move |finding| notes.lock().unwrap().push(finding.clone())));
    Watched { folder, store, told }
}

fn local() -> Watched {
    watched(|config, folder| config.directory(folder.join("kernels")))
}

impl Watched {
    fn kernels(&self) -> PathBuf {
        self.folder.path().join("kernels")
    }

    fn causes(&self) -> Vec<Cause> {
        self.told.lock().unwrap().iter().map(|finding| finding.cause.clone()).collect()
    }
}

fn key(name: &str) -> Key {
    Key::of(&[name.as_bytes()])
}

fn file(folder: &Path, key: &Key) -> PathBuf {
    folder.join(format!("{key}.kernel"))
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode can be set");
}

/// Whether a test must be skipped for lack of rights; reports it.
fn skipped(test: &str, able: bool, needs: &str) -> bool {
    if !able {
        // Written past the harness, which hides the output of tests that pass.
        let _ = writeln!(std::io::stderr(), "skipped: store::{test}: needs {needs}");
    }
    !able
}

#[test]
fn entries_come_back() {
    let Watched { folder, store, .. } = local();
    for size in [0, 1, 100, 1 << 20] {
        let (key, payload) = (key(&size.to_string()), vec![7; size]);
        assert_eq!(store.get(&key), None);
        assert!(store.put(&key, &payload) && store.put(&key, &payload));
        assert_eq!(store.get(&key), Some(payload));
    }
    assert_eq!(store.list().len(), 4);
    assert_eq!((store.verify().sound, store.verify().findings), (4, Vec::new()));
    let kernels = folder.path().join("kernels");
    assert_eq!(fs::metadata(&kernels).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&kernels).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    fs::write(kernels.join("notes.txt"), "not ours").unwrap();
    assert_eq!((store.clear().entries, store.clear().entries), (4, 0));
    assert_eq!(fs::read_dir(&kernels).unwrap().count(), 1);
}

#[test]
fn sites_come_first_and_are_never_written() {
    let site = local();
    let (both, only) = (key("both"), key("only"));
    assert!(site.store.put(&both, b"site") && site.store.put(&only, b"site"));
    let own = watched(|config, folder| config.site(site.kernels()).directory(folder.join("kernels")));
    let before = SystemTime::now() - Duration::from_secs(1000);
    let shared = file(&site.kernels(), &only);
    File::open(&shared).unwrap().set_times(FileTimes::new().set_modified(before)).unwrap();
    assert_eq!(own.store.get(&only).as_deref(), Some(&b"site"[..]));
    assert!(matches!(own.store.claim(&only), Claim::Found(_)));
    assert_eq!(fs::metadata(&shared).unwrap().modified().unwrap(), before);
    assert!(own.store.put(&both, b"own"));
    assert_eq!(own.store.get(&both).as_deref(), Some(&b"site"[..]));
    assert_eq!(own.store.clear().entries, 1);
    // A damaged entry does not hide the sound one in another directory.
    fs::write(file(&site.kernels(), &both), "x").unwrap();
    mode(&file(&site.kernels(), &both), 0o600);
    own.store.put(&both, b"own");
    assert_eq!(own.store.get(&both).as_deref(), Some(&b"own"[..]));
    assert!(matches!(own.causes()[..], [Cause::Length { .. }]));
    assert_eq!(own.store.directories().iter().map(|directory| directory.writable).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn variables_choose_the_directories() {
    let read = |site: Option<&str>, directory: Option<&str>| {
        let config = Config::from_variables(site.map(OsString::from), directory.map(OsString::from));
        (config.sites, config.directory)
    };
    let default = read(None, None).1.expect("a directory of this user");
    assert!(default.ends_with(format!("dtc-{}", trust::user())));
    assert_eq!(read(Some("/a::/b"), Some("/c")), (vec!["/a".into(), "/b".into()], Some("/c".into())));
    assert_eq!(read(Some(""), Some("")), (Vec::new(), Some(default)));
    assert_eq!(read(Some("/a"), Some("off")), (Vec::new(), None));
    assert_eq!(read(Some("/a"), Some("Off")), (Vec::new(), None));
}

/// Damages the file of an entry. Expects one warning, no entry, and that the next one is kept.
#[track_caller]
fn spoiled(spoil: impl FnOnce(&Path), right: impl Fn(&Cause) -> bool) {
    let watched = local();
    let key = key("entry");
    assert!(watched.store.put(&key, b"machine code"));
    spoil(&file(&watched.kernels(), &key));
    assert_eq!((watched.store.get(&key), watched.store.get(&key)), (None, None));
    let causes = watched.causes();
    assert!(causes.len() == 1 && right(&causes[0]), "{causes:?}");
    assert_eq!(watched.store.verify().findings.len(), 1);
    let Claim::Granted(guard) = watched.store.claim(&key) else { panic!("it is to be compiled again") };
    assert!(watched.store.put(&key, b"machine code"));
    drop(guard);
    assert_eq!(watched.store.get(&key).as_deref(), Some(&b"machine code"[..]));
    assert_eq!(watched.causes().len(), 1);
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_entries() {
    let checksum = |cause: &Cause| *cause == Cause::Checksum;
    let length = |cause: &Cause| matches!(cause, Cause::Length { .. });
    spoiled(|path| change(path, |bytes| *bytes.last_mut().unwrap() ^= 1), checksum);
    spoiled(|path| change(path, |bytes| bytes[60] ^= 0x80), checksum);
    spoiled(|path| change(path, |bytes| bytes[0] ^= 1), |cause| *cause == Cause::Magic);
    spoiled(|path| change(path, |bytes| bytes[8] = 2), |cause| matches!(cause, Cause::Version { found: 2, .. }));
    spoiled(|path| change(path, |bytes| bytes.truncate(90)), length);
    spoiled(|path| change(path, Vec::clear), length);
    spoiled(|path| change(path, |bytes| bytes.push(0)), length);
    spoiled(|path| change(path, |bytes| bytes[48..56].fill(0xff)), length);
}

#[test]
fn no_flipped_bit_and_no_cut_is_overlooked() {
    let key = key("entry");
    let whole = [record::header(&key, b"machine code"), b"machine code".to_vec()].concat();
    assert_eq!(record::payload(&key, whole.clone()).as_deref(), Ok(&b"machine code"[..]));
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(record::payload(&key, bytes).is_err(), "bit {bit}");
    }
    for length in 0..whole.len() {
        assert!(record::payload(&key, whole[..length].to_vec()).is_err(), "length {length}");
    }
}

#[test]
fn poisoned_entries() {
    let other = local();
    other.store.put(&key("other"), b"other code");
    let source = file(&other.kernels(), &key("other"));
    spoiled(|path| fs::rename(&source, path).unwrap(), |cause| *cause == Cause::Key);
}

#[test]
fn too_large_entries() {
    let grow = |path: &Path| OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
    spoiled(grow, |cause| matches!(cause, Cause::TooLarge { found, .. } if *found == 1 << 40));
    let watched = watched(|config, folder| config.directory(folder).capacity(100));
    assert!(!watched.store.put(&key("entry"), &[0; 100]));
    assert!(matches!(watched.causes()[..], [Cause::TooLarge { limit: 100, .. }]));
}

#[test]
fn symbolic_links_and_pipes() {
    let link = |path: &Path| {
        let aside = path.with_extension("aside");
        fs::rename(path, &aside).unwrap();
        symlink(aside, path).unwrap();
    };
    spoiled(link, |cause| *cause == Cause::SymbolicLink);
    let pipe = |path: &Path| {
        fs::remove_file(path).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    spoiled(pipe, |cause| *cause == Cause::NotRegular);
}

#[test]
fn entries_that_others_may_write() {
    spoiled(|path| mode(path, 0o620), |cause| *cause == Cause::Writable(0o620));
    spoiled(|path| mode(path, 0o602), |cause| *cause == Cause::Writable(0o602));
}

#[test]
fn entries_of_other_users() {
    if skipped("entries_of_other_users", trust::user() == 0, "root") {
        return;
    }
    spoiled(|path| chown(path, Some(12345), None).unwrap(), |cause| *cause == Cause::Owner(12345));
}

#[test]
fn a_directory_in_the_place_of_an_entry() {
    let watched = local();
    let key = key("entry");
    fs::create_dir(file(&watched.kernels(), &key)).unwrap();
    assert_eq!((watched.store.get(&key), watched.store.put(&key, b"code")), (None, false));
    assert!(matches!(watched.causes()[..], [Cause::NotRegular, Cause::System(_)]));
    assert_eq!(watched.store.clear().left, 1);
    // No temporary file remains.
    assert_eq!(fs::read_dir(watched.kernels()).unwrap().count(), 1);
}

/// Prepares an unusable directory, and expects one warning and a store that keeps nothing.
#[track_caller]
fn unusable(prepare: impl Fn(&Path) -> PathBuf, right: impl Fn(&Cause) -> bool) {
    for writable in [true, false] {
        let watched = watched(|config, folder| {
            let path = prepare(folder);
            if writable { config.directory(path) } else { config.site(path) }
        });
        let key = key("entry");
        assert!(!watched.store.put(&key, b"code"));
        assert_eq!(watched.store.get(&key), None);
        assert!(matches!(watched.store.claim(&key), Claim::Granted(_)));
        assert_eq!((watched.store.list().len(), watched.store.clear().entries), (0, 0));
        let causes = watched.causes();
        assert!(causes.len() == 1 && right(&causes[0]), "{causes:?}");
        assert_eq!(watched.store.verify().findings.len(), 1);
        assert!(watched.store.directories()[0].finding.is_some());
    }
}

#[test]
fn directories_that_others_may_write() {
    let own = |bits: u32| {
        move |folder: &Path| {
            let path = folder.join(format!("kernels-{bits:o}"));
            fs::create_dir(&path).unwrap();
            mode(&path, bits);
            path
        }
    };
    unusable(own(0o770), |cause| *cause == Cause::Writable(0o770));
    // Other users could not replace files here, but could add some.
    unusable(own(0o1777), |cause| *cause == Cause::Writable(0o1777));
    let parent = |folder: &Path| {
        let path = folder.join("parent/kernels");
        fs::create_dir_all(&path).unwrap();
        mode(&folder.join("parent"), 0o777);
        mode(&path, 0o700);
        path
    };
    unusable(parent, |cause| *cause == Cause::Writable(0o777));
    // In a sticky directory, such as the system's for temporary files, other users cannot replace this one.
    let watched = watched(|config, folder| {
        fs::create_dir(folder.join("sticky")).unwrap();
        mode(&folder.join("sticky"), 0o1777);
        config.directory(folder.join("sticky/kernels"))
    });
    assert!(watched.store.put(&key("entry"), b"code"));
    assert_eq!(watched.causes(), []);
}

#[test]
fn directories_of_other_users() {
    if skipped("directories_of_other_users", trust::user() == 0, "root") {
        return;
    }
    let own = |folder: &Path| {
        let path = folder.join("kernels");
        fs::create_dir_all(&path).unwrap();
        chown(&path, Some(12345), None).unwrap();
        path
    };
    unusable(own, |cause| *cause == Cause::Owner(12345));
    unusable(|folder| own(folder).join("below"), |cause| matches!(cause, Cause::Owner(12345)));
    // A link in a sticky directory lets another user redirect the path.
    let led = |folder: &Path| {
        let link = folder.join("link");
        symlink(folder.join("target"), &link).unwrap();
        fs::create_dir(folder.join("target")).unwrap();
        std::os::unix::fs::lchown(&link, Some(12345), None).unwrap();
        link
    };
    unusable(led, |cause| *cause == Cause::Owner(12345));
}

#[test]
fn directories_that_are_none() {
    let file = |folder: &Path| {
        fs::write(folder.join("file"), "").unwrap();
        folder.join("file")
    };
    unusable(file, |cause| *cause == Cause::NotDirectory);
    unusable(|folder| file(folder).join("below"), |cause| *cause == Cause::NotDirectory);
    let circle = |folder: &Path| {
        symlink(folder.join("b"), folder.join("a")).unwrap();
        symlink("a", folder.join("b")).unwrap();
        folder.join("a/c")
    };
    unusable(circle, |cause| *cause == Cause::SymbolicLink);
    let missing = watched(|config, folder| config.site(folder.join("absent")));
    assert_eq!(missing.causes(), [Cause::Absent]);
}

#[test]
fn own_links_and_steps_back_are_followed() {
    let watched = watched(|config, folder| {
        fs::create_dir_all(folder.join("real/deep")).unwrap();
        symlink("real/deep", folder.join("link")).unwrap();
        config.directory(folder.join("link/../kernels/new"))
    });
    assert!(watched.store.put(&key("entry"), b"code"));
    // `..` is applied to the target of the link, as the system does.
    let place = watched.folder.path().join("real/kernels/new").canonicalize().unwrap();
    assert_eq!(watched.store.directories()[0].path, place);
    assert!(file(&place, &key("entry")).is_file());
}

/// Runs `act` in a thread with the file access rights of another user.
#[cfg(target_os = "linux")]
fn as_user(user: u32, act: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: `setfsuid` has no preconditions, and changes the file accesses of this thread alone, which ends
            // here.
            unsafe { libc::setfsuid(user) };
            act();
        });
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_read_only_directory() {
    if skipped("a_read_only_directory", trust::user() == 0, "root") {
        return;
    }
    let watched = local();
    let (kept, new) = (key("kept"), key("new"));
    watched.store.put(&kept, b"code");
    mode(watched.folder.path(), 0o755);
    mode(&watched.kernels(), 0o555);
    mode(&file(&watched.kernels(), &kept), 0o644);
    as_user(12345, || {
        assert_eq!(watched.store.get(&kept).as_deref(), Some(&b"code"[..]));
        assert!(matches!(watched.store.claim(&new), Claim::Granted(_)));
        assert!(!watched.store.put(&new, b"code") && !watched.store.put(&new, b"code"));
        assert_eq!(watched.store.clear().left, 1);
    });
    assert!(matches!(watched.causes()[..], [Cause::ReadOnly(_)]));
}

#[test]
#[cfg(target_os = "linux")]
fn an_unreadable_entry() {
    if skipped("an_unreadable_entry", trust::user() == 0, "root") {
        return;
    }
    let watched = local();
    watched.store.put(&key("entry"), b"code");
    mode(watched.folder.path(), 0o755);
    mode(&watched.kernels(), 0o755);
    as_user(12345, || assert_eq!(watched.store.get(&key("entry")), None));
    assert!(matches!(watched.causes()[..], [Cause::System(_)]));
}

/// Mounts a small disk that is visible to this thread alone.
#[cfg(target_os = "linux")]
fn small_disk(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("a path");
    let none = std::ptr::null();
    // SAFETY: `unshare` affects this thread alone, which ends soon; all strings end in a NUL byte.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0
            && libc::mount(c"tmpfs".as_ptr(), path.as_ptr(), c"tmpfs".as_ptr(), 0, c"size=64k,mode=700".as_ptr().cast())
                == 0
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk() {
    let act = || {
        let folder = tempfile::tempdir().expect("a folder");
        if skipped("a_full_disk", small_disk(folder.path()), "the right to mount") {
            return;
        }
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = told.clone();
        let hook = move |finding: &Finding| notes.lock().unwrap().push(finding.cause.clone());
        let store = Store::open(Config::none().directory(folder.path()).on_finding(hook));
        assert!(store.put(&key("small"), &[1; 1000]));
        assert!(!store.put(&key("large"), &[1; 100_000]) && !store.put(&key("other"), &[1; 100_000]));
        assert!(store.get(&key("small")).is_some() && store.get(&key("large")).is_none());
        assert!(matches!(told.lock().unwrap()[..], [Cause::Full(_)]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half written stays");
        // The folder can only be removed when nothing is mounted on it.
        let path = std::ffi::CString::new(folder.path().to_str().unwrap()).unwrap();
        // SAFETY: `path` ends in a NUL byte.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    };
    thread::spawn(act).join().expect("the disk behaves as expected");
}

#[test]
fn the_least_recently_used_go_first() {
    let capacity = 10 * (1000 + record::HEADER as u64);
    let watched = watched(|config, folder| config.directory(folder.join("kernels")).capacity(capacity));
    let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let now = SystemTime::now();
    for (age, name) in names.iter().rev().enumerate() {
        assert!(watched.store.put(&key(name), &[0; 1000]));
        let file = File::open(file(&watched.kernels(), &key(name))).unwrap();
        let used = now - Duration::from_secs(100 + 10 * age as u64);
        file.set_times(FileTimes::new().set_modified(used)).unwrap();
    }
    // "0" is the oldest by creation, and now the most recently used.
    assert!(watched.store.get(&key("0")).is_some());
    assert_eq!(watched.store.list().len(), 10);
    assert!(watched.store.put(&key("new"), &[0; 1000]));
    let left: Vec<&String> = names.iter().filter(|name| watched.store.get(&key(name)).is_some()).collect();
    // Trimming keeps three quarters: seven entries, with the new one.
    assert_eq!(left, ["0", "5", "6", "7", "8", "9"]);
    assert!(watched.store.get(&key("new")).is_some());
    assert_eq!(watched.causes(), []);
}

#[test]
fn what_dead_processes_leave_is_removed() {
    let watched = local();
    let old = SystemTime::now() - Duration::from_secs(7200);
    let leave = |name: String, time: SystemTime| {
        let path = watched.kernels().join(name);
        File::create(&path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
        path
    };
    let (dead, live) = (key("dead"), key("live"));
    let gone = [leave(format!("{dead}.1-0.tmp"), old), leave(format!("{dead}.claim"), old)];
    let stay = [leave(format!("{live}.1-0.tmp"), SystemTime::now()), leave("notes.tmp".to_owned(), old)];
    // A held claim is kept, however old.
    let Claim::Granted(_guard) = watched.store.claim(&key("held")) else { panic!("nobody else is here") };
    let held = leave(format!("{}.claim", key("held")), old);
    assert!(watched.store.put(&live, b"code"));
    assert!(gone.iter().all(|path| !path.exists()) && stay.iter().all(|path| path.exists()));
    assert!(held.exists() && matches!(watched.store.claim(&key("held")), Claim::Held));
}

#[test]
fn a_swept_directory_is_made_again() {
    let watched = local();
    fs::remove_dir_all(watched.kernels()).unwrap();
    assert!(watched.store.put(&key("entry"), b"code"));
    assert!(watched.store.get(&key("entry")).is_some());
}

#[test]
fn claims_are_released() {
    let watched = local();
    let key = key("entry");
    let Claim::Granted(guard) = watched.store.claim(&key) else { panic!("nobody else is here") };
    assert!(matches!(watched.store.claim_within(&key, Duration::from_millis(30)), Claim::Held));
    // The compilation failed, so the next process may try.
    drop(guard);
    let Claim::Granted(guard) = watched.store.claim(&key) else { panic!("nobody else is here") };
    thread::scope(|scope| {
        let waiting = scope.spawn(|| watched.store.claim_within(&key, Duration::from_secs(60)));
        thread::sleep(Duration::from_millis(20));
        assert!(watched.store.put(&key, b"code"));
        drop(guard);
        assert!(matches!(waiting.join().unwrap(), Claim::Found(code) if code == b"code"));
    });
    assert_eq!(fs::read_dir(watched.kernels()).unwrap().count(), 1);
}

#[test]
fn network_file_systems_are_never_locked() {
    let mut watched = watched(|mut config, folder| {
        config.no_locks = true;
        config.directory(folder.join("kernels"))
    });
    let key = key("entry");
    let Claim::Granted(_guard) = watched.store.claim(&key) else { panic!("there are no locks") };
    assert!(matches!(watched.store.claim(&key), Claim::Granted(_)));
    assert_eq!(fs::read_dir(watched.kernels()).unwrap().count(), 0);
    // The magic number is none of the known ones.
    watched.store = Store::open(Config::none());
    if let Ok(kernel) = File::open("/proc") {
        assert!(!system::is_node_local(&kernel));
    }
}
