//! Compiled GPU code on disk, so that it is compiled once per machine and not once per process.
//!
//! A [`Store`] looks into directories that an administrator has filled and only then into one that it writes itself. It
//! never fails: whatever is damaged, forged, unreadable or full is a [`Finding`] for the hook of its [`Config`], and an
//! entry that is not found. What it gives was written by this user or root and is whole.
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

mod claim;
mod config;
mod folder;
mod key;
mod record;
mod system;
#[cfg(test)]
mod tests;

pub use claim::{Claim, ClaimGuard};
pub use config::Config;
pub use dtc_host::{Cause, Finding};
pub use key::Key;

use config::Hook;
use folder::{ENTRY_LIMIT, Folder, Kind, Lock};
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
    /// Where it lies: without links if it is used, as it was configured otherwise.
    pub path: PathBuf,
    /// Whether it is the one that is written.
    pub writable: bool,
    /// Why it is not used.
    pub finding: Option<Finding>,
}

/// An entry of a store, as it is listed: nobody has looked inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it was compiled from.
    pub key: Key,
    /// Its file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was written or found last.
    pub used: SystemTime,
}

/// What a look into every entry has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Entries that would be used.
    pub sound: usize,
    /// Everything that would not, directories included.
    pub findings: Vec<Finding>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// How many entries.
    pub entries: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Files that could not be removed.
    pub left: usize,
}

/// The store.
pub struct Store {
    sites: Vec<Folder>,
    local: Option<Folder>,
    configured: Option<PathBuf>,
    directories: Vec<Directory>,
    capacity: u64,
    hook: Hook,
    /// A bit for each cause that was told. No lock: a child forked at any moment can go on.
    told: AtomicU32,
}

impl Store {
    /// Opens a store. Directories that cannot be used or believed are left out.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// let store = Store::open(Config::none().directory("/dev/null/dtc"));
    /// assert!(store.directories()[0].finding.is_some());
    /// ```
    pub fn open(config: Config) -> Store {
        let Config { sites, directory, capacity, hook, no_locks } = config;
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

    /// Hands a warning to the hook, each kind of cause once.
    fn tell(&self, finding: &Finding) {
        let bit = finding.cause.bit();
        if self.told.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            (self.hook)(finding);
        }
    }

    /// The entry of a key, from the first directory that has a sound one.
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

    /// Keeps an entry, in the place of one that may be there; says whether it could.
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
            // Old directories under the system's temporary one are swept away while long jobs run.
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

    /// Asks for the right to compile an entry; never waits. Where nothing can be locked, as on network file systems,
    /// it is always granted.
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
        // Under the lock: who held it before has put the entry before letting go.
        self.get(key).map_or_else(|| Claim::Granted(guard), Claim::Found)
    }

    /// Like [`Store::claim`], but while another process compiles the entry, waits for so long: for threads that nobody
    /// waits for. A caller that is told [`Claim::Held`] in the end compiles without a claim.
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
            // Asking again, because a lock can be waited for, but not for a bounded time.
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// The directories, in the order in which they are looked into, also those that are not used.
    ///
    /// ```
    /// use dtc_store::{Config, Store};
    /// assert!(Store::open(Config::none()).directories().is_empty());
    /// ```
    pub fn directories(&self) -> &[Directory] {
        &self.directories
    }

    /// How many bytes the directory that is written may hold.
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

    /// All entries, directory by directory, by their keys.
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

    /// Reads every entry as [`Store::get`] would. All findings are returned, none goes to the hook.
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
                    // Removed since it was listed.
                    Ok(None) => {}
                    Err(finding) => verification.findings.push(finding),
                }
            }
        }
        verification
    }

    /// Removes all entries of the directory that is written, and what dead processes left there; nothing else.
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
                // A claim that is held is in use, not left.
                Kind::Claim => {}
                _ if removed => {}
                _ => cleared.left += 1,
            }
        }
        cleared
    }
}
