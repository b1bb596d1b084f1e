//! Claims: ranks that start together on a node compile each kernel once.

use std::fs::{self, File};
use std::path::PathBuf;

/// The answer to [`Store::claim`](super::Store::claim).
///
/// ```
/// use dtc_store::{Claim, Config, Key, Store};
/// let store = Store::open(Config::none());
/// // Without a directory nobody can be in the way.
/// assert!(matches!(store.claim(&Key::of(&[b"source"])), Claim::Granted(_)));
/// ```
#[derive(Debug)]
pub enum Claim {
    /// The entry is there.
    Found(Vec<u8>),
    /// The caller compiles, puts the entry, and drops this.
    Granted(ClaimGuard),
    /// Another thread or process compiles it now.
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

    /// Where nothing can be locked, everybody compiles.
    pub(super) fn unlocked() -> ClaimGuard {
        ClaimGuard { locked: None, process: std::process::id() }
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let Some((file, path)) = self.locked.take() else { return };
        // The copy in a forked child must not release what its parent holds.
        if self.process != std::process::id() {
            return;
        }
        // The file first: who opens the next one finds the entry. Should it stay, it is a file without a lock. The
        // lock explicitly, because a forked child may have the file open for longer.
        let _ = fs::remove_file(path);
        let _ = file.unlock();
    }
}
