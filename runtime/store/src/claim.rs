//! Claims, so that ranks that start together on a node compile each kernel once.

use std::fs::{self, File};
use std::path::PathBuf;

/// Answer of [`Store::claim`](super::Store::claim).
///
/// ```
/// use dtc_store::{Claim, Config, Key, Store};
/// let store = Store::open(Config::none());
/// // A store without a directory locks nothing, so it grants every claim.
/// assert!(matches!(store.claim(&Key::of(&[b"source"])), Claim::Granted(_)));
/// ```
#[derive(Debug)]
pub enum Claim {
    /// The entry exists: its payload.
    Found(Vec<u8>),
    /// The caller compiles, puts the entry, and then drops the guard.
    Granted(ClaimGuard),
    /// Another thread or process is compiling the entry.
    Held,
}

/// The right to compile one entry, until it is dropped or its process dies.
#[derive(Debug)]
pub struct ClaimGuard {
    locked: Option<(File, PathBuf)>,
    process: u32,
}

impl ClaimGuard {
    pub(super) fn locked(file: File, path: PathBuf) -> ClaimGuard {
        ClaimGuard { locked: Some((file, path)), process: std::process::id() }
    }

    /// The guard of a store that cannot lock: every process compiles.
    pub(super) fn unlocked() -> ClaimGuard {
        ClaimGuard { locked: None, process: std::process::id() }
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let Some((file, path)) = self.locked.take() else { return };
        // A forked child's copy must not release the claim of its parent.
        if self.process != std::process::id() {
            return;
        }
        // The file is removed before the lock is released, so that the next process to open it finds the entry. A file
        // that stays has no lock. The lock is released explicitly, because a forked child may keep the file open for
        // longer.
        let _ = fs::remove_file(path);
        let _ = file.unlock();
    }
}
