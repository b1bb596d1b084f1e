//! Compiled GPU code on disk, so that it is compiled once per machine and not once per process; and [`Bundles`] of code that was
//! compiled ahead of time.
//!
//! A [`Store`] searches directories that an administrator has filled, and then one that it writes itself. It never
//! fails: a damaged, forged, unreadable or full file is a [`Finding`] for the hook of its [`Config`], and counts as a
//! missing entry. A payload that it returns is whole, and was written by this user or root.
//!
//! ```
//! use dtc_store::{Claim, Config, Key, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Store::open(Config::none().directory(folder.path().join("kernels")));
//! let key = Key::of(&[b"__global__ void pack() {}", b"sm_90", b"13.0"]);
//! if let Claim::Granted(_guard) = store.claim(&key) {
//!     store.put(&key, b"machine code");
//! }
//! assert_eq!(store.get(&key).as_deref(), Some(&b"machine code"[..]));
//! # Ok::<(), std::io::Error>(())
//! ```
#![warn(missing_debug_implementations)]

mod bundle;
mod claim;
mod config;
mod folder;
mod key;
mod record;
mod recording;
mod system;
#[cfg(test)]
mod tests;

pub use bundle::{Bundle, BundleEntry, Bundles};
pub use claim::{Claim, ClaimGuard};
pub use config::Config;
pub use dtc_host::{Cause, Finding};
pub use key::Key;
pub use recording::{RecordedType, RecordedUses, Recording, RecordingFile};

use config::Hook;
use folder::{ENTRY_LIMIT, Folder, Kind, Lock};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A directory of a store.
///
/// ```
/// use dtc_store::{Config, Store};
/// let store = Store::open(Config::none().site("/nonexistent"));
/// let directory = &store.directories()[0];
/// assert!(!directory.writable && directory.finding.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Its path: without links if it is used, otherwise as configured.
    pub path: PathBuf,
    /// Whether it is the directory that is written.
    pub writable: bool,
    /// Reason why it is not used.
    pub finding: Option<Finding>,
}

/// An entry of a store, as a listing shows it, without a look into the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// Path of its file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    /// Time when it was last written or found.
    pub used: SystemTime,
}

/// Result of reading every entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of usable entries.
    pub sound: usize,
    /// One finding for each unusable entry and directory.
    pub findings: Vec<Finding>,
}

/// Result of [`Store::clear`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Number of removed entries.
    pub entries: usize,
    /// Bytes of the removed entries.
    pub bytes: u64,
    /// Number of files that could not be removed.
    pub left: usize,
}

/// A store of compiled code.
pub struct Store {
    sites: Vec<Folder>,
    local: Option<Folder>,
    configured: Option<PathBuf>,
    directories: Vec<Directory>,
    capacity: u64,
    hook: Hook,
    /// A bit for each cause that was reported. It is not behind a lock, so that a child forked at any moment can go on.
    told: AtomicU32,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("directories", &self.directories)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a store. Untrusted and unusable directories are left out.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// let store = Store::open(Config::none().directory("/dev/null/dtc"));
    /// assert!(store.directories()[0].finding.is_some());
    /// ```
    pub fn open(config: Config) -> Store {
        let Config { sites, directory, capacity, hook, no_locks, bundles: _ } = config;
        let mut store = Store {
            sites: Vec::new(),
            local: None,
            configured: directory,
            directories: Vec::new(),
            capacity,
            hook,
            told: AtomicU32::new(0),
        };
        for path in sites {
            let folder = store.open_folder(path, false);
            store.sites.extend(folder);
        }
        if let Some(path) = store.configured.clone() {
            store.local = store.open_folder(path, true);
        }
        if let Some(local) = &mut store.local {
            local.locks &= !no_locks;
        }
        store
    }

    fn open_folder(&mut self, path: PathBuf, writable: bool) -> Option<Folder> {
        match Folder::open(&path, writable) {
            Ok(folder) => {
                self.directories.push(Directory { path: folder.path.clone(), writable, finding: None });
                Some(folder)
            }
            Err(finding) => {
                self.tell(&finding);
                self.directories.push(Directory { path, writable, finding: Some(finding) });
                None
            }
        }
    }

    /// Reports a finding to the hook, each kind of cause once.
    fn tell(&self, finding: &Finding) {
        let bit = finding.cause.bit();
        if self.told.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            (self.hook)(finding);
        }
    }

    /// The payload of a key, from the first directory that has a sound entry.
    ///
    /// ```
    /// use dtc_store::{Config, Key, Store};
    /// assert_eq!(Store::open(Config::none()).get(&Key::of(&[b"source"])), None);
    /// ```
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let found = |result: Result<Option<Vec<u8>>, Finding>| {
            result.unwrap_or_else(|finding| {
                self.tell(&finding);
                None
            })
        };
        let from_site = self.sites.iter().find_map(|folder| found(folder.read(key)));
        from_site.or_else(|| found(self.local.as_ref()?.use_entry(key)))
    }

    /// Writes an entry, in place of an existing one. Returns whether it was written.
    ///
    /// ```
    /// use dtc_store::{Config, Key, Store};
    /// let folder = tempfile::tempdir()?;
    /// let store = Store::open(Config::none().directory(folder.path()));
    /// assert!(store.put(&Key::of(&[b"source"]), b"code"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn put(&self, key: &Key, payload: &[u8]) -> bool {
        let Some(local) = &self.local else { return false };
        let limit = self.capacity.min(ENTRY_LIMIT);
        let bytes = payload.len() as u64 + record::HEADER as u64;
        if bytes > limit {
            self.tell(&Cause::TooLarge { limit, found: bytes }.at(&local.path));
            return false;
        }
        let mut written = local.write(key, payload);
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            // The system may have removed an old directory for temporary files during a long job.
            written = match self.configured.as_ref().map(|path| Folder::open(path, true)) {
                Some(Err(finding)) => {
                    self.tell(&finding);
                    return false;
                }
                _ => local.write(key, payload),
            };
        }
        if let Err(error) = written {
            self.tell(&Cause::of_write(&error).at(&local.path));
            return false;
        }
        if let Err(finding) = local.trim(self.capacity, key) {
            self.tell(&finding);
        }
        true
    }

    /// Claims the right to compile an entry; never waits. Where files cannot be locked, as on network file systems, it
    /// is always granted.
    ///
    /// ```
    /// use dtc_store::{Claim, Config, Key, Store};
    /// let folder = tempfile::tempdir()?;
    /// let store = Store::open(Config::none().directory(folder.path()));
    /// let key = Key::of(&[b"source"]);
    /// let Claim::Granted(guard) = store.claim(&key) else { panic!("nobody else is here") };
    /// # let network = matches!(store.claim(&key), Claim::Granted(_));
    /// assert!(network || matches!(store.claim(&key), Claim::Held));
    /// store.put(&key, b"code");
    /// drop(guard);
    /// assert!(matches!(store.claim(&key), Claim::Found(_)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn claim(&self, key: &Key) -> Claim {
        let lock = self.local.as_ref().map_or(Lock::Unavailable, |local| local.try_lock(key));
        let guard = match (lock, &self.local) {
            (Lock::Held, _) => return Claim::Held,
            (Lock::Taken(file), Some(local)) => ClaimGuard::locked(file, local.claim(key)),
            _ => ClaimGuard::unlocked(),
        };
        // The entry is read after locking: the previous holder put it before it released the claim.
        self.get(key).map_or_else(|| Claim::Granted(guard), Claim::Found)
    }

    /// Like [`Store::claim`], but waits up to `limit` while another process compiles the entry. Only background threads
    /// should call it. A caller that gets [`Claim::Held`] compiles without a claim.
    ///
    /// ```
    /// use dtc_store::{Claim, Config, Key, Store};
    /// use std::time::Duration;
    /// let store = Store::open(Config::none());
    /// assert!(matches!(store.claim_within(&Key::of(&[b"source"]), Duration::ZERO), Claim::Granted(_)));
    /// ```
    pub fn claim_within(&self, key: &Key, limit: Duration) -> Claim {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let claim = self.claim(key);
            let left = limit.saturating_sub(start.elapsed());
            if !matches!(claim, Claim::Held) || left.is_zero() {
                return claim;
            }
            // It polls, because waiting for a file lock has no time limit.
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// The directories in the order of search, also the unused ones.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// assert!(Store::open(Config::none()).directories().is_empty());
    /// ```
    pub fn directories(&self) -> &[Directory] {
        &self.directories
    }

    /// Bytes that the written directory may hold.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// assert_eq!(Store::open(Config::none().capacity(100)).capacity(), 100);
    /// ```
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    fn folders(&self) -> impl Iterator<Item = &Folder> {
        self.sites.iter().chain(&self.local)
    }

    /// All entries, by directory and then by key.
    ///
    /// ```
    /// use dtc_store::{Config, Key, Store};
    /// let folder = tempfile::tempdir()?;
    /// let store = Store::open(Config::none().directory(folder.path()));
    /// store.put(&Key::of(&[b"source"]), b"code");
    /// assert_eq!(store.list()[0].key, Key::of(&[b"source"]));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn list(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for folder in self.folders() {
            let mut listed = folder.list().unwrap_or_else(|finding| {
                self.tell(&finding);
                Vec::new()
            });
            listed.retain(|file| file.kind == Kind::Entry);
            listed.sort_unstable_by_key(|file| file.key);
            let entry =
                |file: folder::Listed| Entry { key: file.key, path: file.path, bytes: file.bytes, used: file.used };
            entries.extend(listed.into_iter().map(entry));
        }
        entries
    }

    /// Reads every entry as [`Store::get`] would. Returns all findings and reports none to the hook.
    ///
    /// ```
    /// use dtc_store::{Config, Key, Store};
    /// let folder = tempfile::tempdir()?;
    /// let store = Store::open(Config::none().directory(folder.path()));
    /// store.put(&Key::of(&[b"source"]), b"code");
    /// let verification = store.verify();
    /// assert_eq!((verification.sound, verification.findings.len()), (1, 0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn verify(&self) -> Verification {
        let unused = self.directories.iter().filter_map(|directory| directory.finding.clone());
        let mut verification = Verification { sound: 0, findings: unused.collect() };
        for folder in self.folders() {
            let listed = match folder.list() {
                Ok(listed) => listed,
                Err(finding) => {
                    verification.findings.push(finding);
                    continue;
                }
            };
            for file in listed.iter().filter(|file| file.kind == Kind::Entry) {
                match folder.read(&file.key) {
                    Ok(Some(_)) => verification.sound += 1,
                    // The file was removed after it was listed.
                    Ok(None) => {}
                    Err(finding) => verification.findings.push(finding),
                }
            }
        }
        verification
    }

    /// Removes all entries of the written directory, and files that dead processes left there; nothing else.
    ///
    /// ```
    /// use dtc_store::{Config, Key, Store};
    /// let folder = tempfile::tempdir()?;
    /// let store = Store::open(Config::none().directory(folder.path()));
    /// store.put(&Key::of(&[b"source"]), b"code");
    /// assert_eq!(store.clear().entries, 1);
    /// assert!(store.list().is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn clear(&self) -> Cleared {
        let mut cleared = Cleared::default();
        let Some(local) = &self.local else { return cleared };
        let listed = local.list().unwrap_or_else(|finding| {
            self.tell(&finding);
            Vec::new()
        });
        for file in listed {
            let removed = local.remove(&file);
            match file.kind {
                Kind::Entry if removed => {
                    cleared.entries += 1;
                    cleared.bytes += file.bytes;
                }
                // A claim that is held is in use, so it does not count as left.
                Kind::Claim => {}
                _ if removed => {}
                _ => cleared.left += 1,
            }
        }
        cleared
    }
}
