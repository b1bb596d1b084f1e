//! One directory of entries.

use super::key::Key;
use super::record;
use super::system;
use dtc_host::{Cause, Finding, signals, trust};
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Largest file of an entry, in bytes. Machine code of a kernel has some hundred thousand.
pub(super) const ENTRY_LIMIT: u64 = 64 << 20;
/// Temporary files and claims older than this were left by a process that died.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Flags that refuse links and do not wait for the writer of a pipe.
const CAREFUL: libc::c_int = libc::O_NOFOLLOW | libc::O_NONBLOCK;

const ENTRY: &str = "kernel";
const CLAIM: &str = "claim";
const TEMPORARY: &str = "tmp";

/// The bytes of a trusted file of at most `limit` bytes in a trusted directory, if it is there.
pub(super) fn read_trusted(path: &Path, limit: u64) -> Result<Option<(File, Vec<u8>)>, Cause> {
    let file = match OpenOptions::new().read(true).custom_flags(CAREFUL).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| Cause::of_read(&error))?,
    };
    let metadata = file.metadata().map_err(|error| Cause::of_read(&error))?;
    if !metadata.is_file() {
        return Err(Cause::NotRegular);
    }
    trust::check(&metadata, false)?;
    let found = metadata.len();
    if found > limit {
        return Err(Cause::TooLarge { limit, found });
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(found as usize + 1).map_err(|error| Cause::System(error.to_string()))?;
    // The limit stops the reading of a file that grows meanwhile.
    (&file).take(found + 1).read_to_end(&mut bytes).map_err(|error| Cause::of_read(&error))?;
    Ok(Some((file, bytes)))
}

/// A trusted directory.
pub(super) struct Folder {
    /// Its path, without links.
    pub(super) path: PathBuf,
    /// Whether locks work, and wait only for processes of this node.
    pub(super) locks: bool,
}

/// A file of the store, as a listing shows it.
pub(super) struct Listed {
    pub(super) key: Key,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) used: SystemTime,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Entry,
    Claim,
    Temporary,
}

/// Result of an attempt to lock the claim of an entry.
pub(super) enum Lock {
    Taken(File),
    Held,
    /// The file system has no usable locks.
    Unavailable,
}

impl Folder {
    /// Checks a directory, and creates it if `create` is set.
    pub(super) fn open(path: &Path, create: bool) -> Result<Folder, Finding> {
        let path = trust::directory(path, create)?;
        let opened = File::open(&path).map_err(|error| Cause::of_read(&error).at(&path))?;
        Ok(Folder { locks: system::is_node_local(&opened), path })
    }

    fn entry(&self, key: &Key) -> PathBuf {
        self.path.join(format!("{key}.{ENTRY}"))
    }

    pub(super) fn claim(&self, key: &Key) -> PathBuf {
        self.path.join(format!("{key}.{CLAIM}"))
    }

    /// The payload of a key, if there is a trusted entry.
    pub(super) fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, Finding> {
        Ok(self.open_and_read(key)?.map(|(_, payload)| payload))
    }

    /// Reads an entry and marks it as used.
    pub(super) fn use_entry(&self, key: &Key) -> Result<Option<Vec<u8>>, Finding> {
        let Some((file, payload)) = self.open_and_read(key)? else { return Ok(None) };
        // The mark is the time of modification, which reading alone never changes. If it cannot be set, the entry ages.
        let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        Ok(Some(payload))
    }

    fn open_and_read(&self, key: &Key) -> Result<Option<(File, Vec<u8>)>, Finding> {
        let path = self.entry(key);
        let read = || {
            let Some((file, bytes)) = read_trusted(&path, ENTRY_LIMIT)? else { return Ok(None) };
            Ok(Some((file, record::payload(key, bytes)?)))
        };
        read().map_err(|cause: Cause| cause.at(&path))
    }

    /// Writes an entry to a temporary file and renames it, so that no reader ever sees a part of it.
    pub(super) fn write(&self, key: &Key, payload: &[u8]) -> Result<(), io::Error> {
        let (mut file, temporary) = self.temporary(key)?;
        // There is no fsync: an entry damaged by a crash fails its checksum and is compiled again.
        let written = signals::without_file_size_signal(|| {
            file.write_all(&record::header(key, payload)).and_then(|()| file.write_all(payload))
        });
        let written = written.and_then(|()| fs::rename(&temporary, self.entry(key)));
        if written.is_err() {
            // If the file stays, a later trim removes it as abandoned.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Creates a file that no other process has.
    fn temporary(&self, key: &Key) -> io::Result<(File, PathBuf)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        let mut attempts = 0;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = self.path.join(format!("{key}.{process}-{number}.{TEMPORARY}"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(CAREFUL).open(&path) {
                // Processes of two containers may have the same id.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempts < 100 => attempts += 1,
                opened => return Ok((opened?, path)),
            }
        }
    }

    /// Tries to lock the claim of a key. The system releases the locks of a process that dies.
    pub(super) fn try_lock(&self, key: &Key) -> Lock {
        if !self.locks {
            return Lock::Unavailable;
        }
        let path = self.claim(key);
        // A claim's file is removed before its lock is released. A process that had opened it before must open the new
        // file.
        for _ in 0..100 {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(CAREFUL);
            let Ok(file) = options.open(&path) else { return Lock::Unavailable };
            let Ok(opened) = file.metadata() else { return Lock::Unavailable };
            if !opened.is_file() || trust::check(&opened, false).is_err() {
                return Lock::Unavailable;
            }
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Lock::Held,
                Err(fs::TryLockError::Error(_)) => return Lock::Unavailable,
            }
            let current = fs::symlink_metadata(&path);
            if current.is_ok_and(|current| (current.dev(), current.ino()) == (opened.dev(), opened.ino())) {
                return Lock::Taken(file);
            }
        }
        Lock::Unavailable
    }

    /// All files of the store in this directory; other files are ignored.
    pub(super) fn list(&self) -> Result<Vec<Listed>, Finding> {
        let failed = |error: io::Error| Cause::of_read(&error).at(&self.path);
        let mut listed = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some((key, kind)) = name.to_str().and_then(parse) else { continue };
            // Another process has removed the file meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            listed.push(Listed { key, path: entry.path(), bytes: metadata.len(), used, kind });
        }
        Ok(listed)
    }

    /// Removes files of dead processes, and, while the directory exceeds the capacity, the least recently used entries.
    pub(super) fn trim(&self, capacity: u64, keep: &Key) -> Result<(), Finding> {
        let mut listed = self.list()?;
        let now = SystemTime::now();
        for file in listed.iter().filter(|file| file.kind != Kind::Entry) {
            if now.duration_since(file.used).is_ok_and(|age| age > ABANDONED) {
                self.remove(file);
            }
        }
        listed.retain(|file| file.kind == Kind::Entry);
        let mut total: u64 = listed.iter().map(|file| file.bytes).sum();
        if total <= capacity {
            return Ok(());
        }
        listed.sort_unstable_by_key(|file| file.used);
        // The target is below the capacity, so that the next entries fit without another removal.
        let target = capacity / 4 * 3;
        for file in listed.iter().filter(|file| file.key != *keep) {
            if total <= target {
                break;
            }
            if self.remove(file) {
                total -= file.bytes;
            }
        }
        Ok(())
    }

    /// Removes a file, unless it is a claim that is held.
    pub(super) fn remove(&self, file: &Listed) -> bool {
        if file.kind == Kind::Claim {
            let Lock::Taken(_lock) = self.try_lock(&file.key) else { return false };
            return fs::remove_file(&file.path).is_ok();
        }
        fs::remove_file(&file.path).is_ok()
    }
}

/// The key and kind in a file name of the store.
fn parse(name: &str) -> Option<(Key, Kind)> {
    let (stem, extension) = name.rsplit_once('.')?;
    Some(match extension {
        ENTRY => (Key::parse(stem)?, Kind::Entry),
        CLAIM => (Key::parse(stem)?, Kind::Claim),
        TEMPORARY => (Key::parse(stem.split_once('.')?.0)?, Kind::Temporary),
        _ => return None,
    })
}
