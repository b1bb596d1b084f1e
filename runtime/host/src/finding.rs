//! What the store warns of.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A warning: a file or directory that the store does without.
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
    /// What is wrong with it.
    pub cause: Cause,
}

/// Why the store does without a file or directory.
///
/// ```
/// use dtc_host::Cause;
/// assert_eq!(Cause::Writable(0o666).to_string(), "expected that no other user may write it, found mode 666");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Cause {
    /// There is no such directory.
    #[error("expected a directory, found none")]
    Absent,
    /// Something else has the place of a directory.
    #[error("expected a directory, found something else")]
    NotDirectory,
    /// Something else has the place of a file.
    #[error("expected a regular file, found something else")]
    NotRegular,
    /// A symbolic link has the place of a file, or links lead in a circle.
    #[error("expected no symbolic link, found one")]
    SymbolicLink,
    /// Another user could have put there what is there.
    #[error("expected this user or root as its owner, found user {0}")]
    Owner(u32),
    /// Another user could change it; this is its mode.
    #[error("expected that no other user may write it, found mode {0:o}")]
    Writable(u32),
    /// More bytes than an entry may have.
    #[error("expected at most {limit} bytes, found {found}")]
    TooLarge {
        /// The most that an entry may have.
        limit: u64,
        /// What it has.
        found: u64,
    },
    /// Bytes are missing, or too many.
    #[error("expected {expected} bytes, found {found}")]
    Length {
        /// What its header says.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// The file does not begin like an entry.
    #[error("expected an entry of the store, found other bytes")]
    Magic,
    /// Another version of the file format.
    #[error("expected format {expected}, found {found}")]
    Version {
        /// The format that this version of dtc writes.
        expected: u32,
        /// The file's.
        found: u32,
    },
    /// The entry of another key under this name.
    #[error("expected the entry of this name, found another's")]
    Key,
    /// Its bytes are not those that were written.
    #[error("expected the bytes that were written, found others")]
    Checksum,
    /// The directory takes no files.
    #[error("expected to write, found {0}")]
    ReadOnly(String),
    /// The disk, or the user's share of it, is full.
    #[error("expected room, found {0}")]
    Full(String),
    /// Any other answer of the system.
    #[error("expected the system to allow it, found {0}")]
    System(String),
}

impl Cause {
    /// What it means that the system refuses to read.
    pub fn of_read(error: &io::Error) -> Cause {
        match error.raw_os_error() {
            Some(libc::ELOOP) => Cause::SymbolicLink,
            Some(libc::ENOTDIR) => Cause::NotDirectory,
            _ => Cause::System(error.to_string()),
        }
    }

    /// What it means that the system refuses to write.
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

    /// A bit for each kind of cause, by which a store remembers what it has warned of.
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
        }
    }
}
