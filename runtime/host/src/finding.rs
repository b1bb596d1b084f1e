//! Findings: files and directories that are not used, and why.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A warning about a file or directory that is not used.
///
/// ```
/// use dtc_host::{Cause, Finding};
/// let finding = Finding { path: "/var/tmp/dtc-7".into(), cause: Cause::Owner(8) };
/// assert_eq!(finding.to_string(), "/var/tmp/dtc-7: expected this user or root as its owner, found user 8");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {cause}", path.display())]
pub struct Finding {
    /// The file or directory.
    pub path: PathBuf,
    /// Reason why it is not used.
    pub cause: Cause,
}

/// Reason why a file or directory is not used.
///
/// ```
/// use dtc_host::Cause;
/// assert_eq!(Cause::Writable(0o666).to_string(), "expected that no other user may write it, found mode 666");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Cause {
    /// The directory does not exist.
    #[error("expected a directory, found none")]
    Absent,
    /// It is not a directory.
    #[error("expected a directory, found something else")]
    NotDirectory,
    /// It is not a regular file.
    #[error("expected a regular file, found something else")]
    NotRegular,
    /// It is a symbolic link, or its links form a cycle.
    #[error("expected no symbolic link, found one")]
    SymbolicLink,
    /// Another user owns it: the user id.
    #[error("expected this user or root as its owner, found user {0}")]
    Owner(u32),
    /// Another user could change it: its mode.
    #[error("expected that no other user may write it, found mode {0:o}")]
    Writable(u32),
    /// The entry has too many bytes.
    #[error("expected at most {limit} bytes, found {found}")]
    TooLarge {
        /// Most bytes of an entry.
        limit: u64,
        /// Its bytes.
        found: u64,
    },
    /// The file is too short or too long.
    #[error("expected {expected} bytes, found {found}")]
    Length {
        /// Length according to its header.
        expected: u64,
        /// Actual length.
        found: u64,
    },
    /// The file does not begin like an entry.
    #[error("expected an entry of the store, found other bytes")]
    Magic,
    /// The file has another version of the format.
    #[error("expected format {expected}, found {found}")]
    Version {
        /// Format that this version of dtc writes.
        expected: u32,
        /// Format of the file.
        found: u32,
    },
    /// The file holds the entry of another key.
    #[error("expected the entry of this name, found another's")]
    Key,
    /// The checksum does not fit: bytes have changed since they were written.
    #[error("expected the bytes that were written, found others")]
    Checksum,
    /// There is no bundle.
    #[error("expected a bundle, found none")]
    Missing,
    /// The file does not begin like a bundle.
    #[error("expected a bundle, found other bytes")]
    NoBundle,
    /// The index of a bundle does not fit its bytes.
    #[error("expected entries in the order of their keys up to the end, found another index")]
    Index,
    /// Another version of dtc made the bundle.
    #[error("expected kernels of dtc {expected}, found those of dtc {found}")]
    Maker {
        /// The version that runs.
        expected: String,
        /// The version that made it.
        found: String,
    },
    /// The directory cannot be written.
    #[error("expected to write, found {0}")]
    ReadOnly(String),
    /// The disk, or the user's quota, is full.
    #[error("expected room, found {0}")]
    Full(String),
    /// Any other error of the system.
    #[error("expected the system to allow it, found {0}")]
    System(String),
}

impl Cause {
    /// The cause of a failed read.
    pub fn of_read(error: &io::Error) -> Cause {
        match error.raw_os_error() {
            Some(libc::ELOOP) => Cause::SymbolicLink,
            Some(libc::ENOTDIR) => Cause::NotDirectory,
            _ => Cause::System(error.to_string()),
        }
    }

    /// The cause of a failed write.
    pub fn of_write(error: &io::Error) -> Cause {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => Cause::ReadOnly(error.to_string()),
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Cause::Full(error.to_string()),
            _ => Cause::of_read(error),
        }
    }

    /// The finding of this cause at a path.
    pub fn at(self, path: &Path) -> Finding {
        Finding { path: path.to_owned(), cause: self }
    }

    /// A bit for each kind of cause; a store records in them what it has reported.
    pub fn bit(&self) -> u32 {
        1 << match self {
            Cause::Absent => 0,
            Cause::NotDirectory => 1,
            Cause::NotRegular => 2,
            Cause::SymbolicLink => 3,
            Cause::Owner(_) => 4,
            Cause::Writable(_) => 5,
            Cause::TooLarge { .. } => 6,
            Cause::Length { .. } => 7,
            Cause::Magic => 8,
            Cause::Version { .. } => 9,
            Cause::Key => 10,
            Cause::Checksum => 11,
            Cause::ReadOnly(_) => 12,
            Cause::Full(_) => 13,
            Cause::System(_) => 14,
            Cause::Missing => 15,
            Cause::NoBundle => 16,
            Cause::Index => 17,
            Cause::Maker { .. } => 18,
        }
    }
}
