//! Recordings: the types that programs committed and how often they used them, in a folder of files, one for each process.
//!
//! A file is text. A line is one of
//!
//! ```text
//! type HASH NOTATION;
//! used HASH PACKS PACKED-BYTES UNPACKS UNPACKED-BYTES LARGEST-CALL;
//! ```
//!
//! A line of uses adds to those before it. Each line is one write that appends: the lines of several writers do not mix, and a line
//! that was cut short is recognised by its missing `;` and left out.

use dtc_host::{Cause, Finding, environment, signals, trust};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the names of the files end in.
const EXTENSION: &str = "recorded";

/// Bytes that one process writes at most.
const WRITTEN_LIMIT: u64 = 64 << 20;

/// Notations that are kept of one hash: programs describe equal bytes differently, and damaged lines may come before a right one.
const NOTATIONS: usize = 64;

/// Largest file that is read, in bytes: what a process and its forked children write.
const FILE_LIMIT: u64 = 1 << 30;

/// How often a type was used.
///
/// ```
/// use dtc_store::RecordedUses;
/// let once = RecordedUses { packs: 1, packed_bytes: 96, largest: 96, ..RecordedUses::default() };
/// assert_eq!(once.packed_bytes, 96);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedUses {
    /// Calls that read elements: packs, and copies from them.
    pub packs: u64,
    /// Bytes that these moved.
    pub packed_bytes: u64,
    /// Calls that write elements: unpacks, accumulations, and copies to them.
    pub unpacks: u64,
    /// Bytes that these moved.
    pub unpacked_bytes: u64,
    /// Bytes of the call that moved most.
    pub largest: u64,
}

impl RecordedUses {
    fn add(&mut self, other: RecordedUses) {
        self.packs = self.packs.saturating_add(other.packs);
        self.packed_bytes = self.packed_bytes.saturating_add(other.packed_bytes);
        self.unpacks = self.unpacks.saturating_add(other.unpacks);
        self.unpacked_bytes = self.unpacked_bytes.saturating_add(other.unpacked_bytes);
        self.largest = self.largest.max(other.largest);
    }
}

/// The file that a process records into.
///
/// It is opened for each line: a program that closes all descriptors, as daemons do, does not find it among its own.
///
/// ```
/// use dtc_store::{Recording, RecordedUses, RecordingFile};
/// let folder = tempfile::tempdir()?;
/// let file = RecordingFile::in_folder(folder.path())?;
/// file.add_type("07f3", "vector 3 1 2 int");
/// file.add_uses("07f3", &RecordedUses { packs: 1, packed_bytes: 12, largest: 12, ..RecordedUses::default() });
/// let mut recording = Recording::default();
/// recording.add_file(file.path())?;
/// assert_eq!(recording.types["07f3"].notations, ["vector 3 1 2 int"]);
/// assert_eq!(recording.types["07f3"].uses.packs, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RecordingFile {
    path: PathBuf,
    written: AtomicU64,
}

impl RecordingFile {
    /// Prepares a file of this process in the folder that the variable `DTC_RECORD` names; `None` if it is not set, or the program has
    /// more rights than its user.
    ///
    /// ```no_run
    /// use dtc_store::RecordingFile;
    /// if let Some(Err(finding)) = RecordingFile::from_environment() {
    ///     println!("nothing is recorded: {finding}");
    /// }
    /// ```
    pub fn from_environment() -> Option<Result<RecordingFile, Finding>> {
        environment::path(c"DTC_RECORD").map(|folder| RecordingFile::in_folder(&folder))
    }

    /// Prepares a file of this process in a folder, which is made for this user alone if it is missing. The file appears with its
    /// first line.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or another user could change what is in it.
    pub fn in_folder(folder: &Path) -> Result<RecordingFile, Finding> {
        let folder = trust::directory(folder, true)?;
        // Processes of two machines, or of two containers, may have the same id.
        let random = RandomState::new().hash_one(std::process::id());
        let path = folder.join(format!("{}-{random:016x}.{EXTENSION}", std::process::id()));
        Ok(RecordingFile { path, written: AtomicU64::new(0) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a type: the hash that stands for it, and its notation, which is put on one line.
    pub fn add_type(&self, hash: &str, notation: &str) {
        let notation = notation.replace('\n', " ");
        self.append(format!("type {hash} {notation}"));
    }

    /// Writes uses of a type beyond those written before.
    pub fn add_uses(&self, hash: &str, uses: &RecordedUses) {
        let RecordedUses { packs, packed_bytes, unpacks, unpacked_bytes, largest } = uses;
        self.append(format!("used {hash} {packs} {packed_bytes} {unpacks} {unpacked_bytes} {largest}"));
    }

    /// Appends a line. What cannot be written is lost: a recording is no reason for a program to fail.
    fn append(&self, mut line: String) {
        // The line before may have been cut short by a full disk.
        line.insert(0, '\n');
        line.push_str(";\n");
        let bytes = line.len() as u64;
        if self.written.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > WRITTEN_LIMIT {
            return;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        if let Ok(mut file) = options.open(&self.path) {
            // Once, and not until all is written: a second write might come behind another's line.
            let _ = signals::without_file_size_signal(|| file.write(line.as_bytes()));
        }
    }
}

/// A type of a recording.
///
/// ```
/// let unused = dtc_store::RecordedType::default();
/// assert_eq!(unused.uses.packs, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedType {
    /// The type in the short notation, in the order of the lines: each notation once, 64 at most. Those of one hash describe the same
    /// bytes, unless a line is damaged, which only a reader that computes hashes can see. Empty if no line has the type.
    pub notations: Vec<String>,
    /// The uses by all processes.
    pub uses: RecordedUses,
}

/// What processes recorded.
///
/// See [`RecordingFile`] for an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The types by their hashes.
    pub types: BTreeMap<String, RecordedType>,
    /// Lines that were left out, since they are cut short or no lines of a recording.
    pub left_out: usize,
}

impl Recording {
    /// Whether a name is that of a file that a process recorded into.
    ///
    /// ```
    /// assert!(dtc_store::Recording::is_file_name("71-0123456789abcdef.recorded".as_ref()));
    /// assert!(!dtc_store::Recording::is_file_name("halo.json".as_ref()));
    /// ```
    pub fn is_file_name(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == EXTENSION)
    }

    /// Adds what a file says.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has more than 1 GiB.
    ///
    /// See [`RecordingFile`] for an example.
    pub fn add_file(&mut self, path: &Path) -> Result<(), Finding> {
        let failed = |error: std::io::Error| Cause::of_read(&error).at(path);
        let found = path.metadata().map_err(failed)?.len();
        if found > FILE_LIMIT {
            return Err(Cause::TooLarge { limit: FILE_LIMIT, found }.at(path));
        }
        self.add_lines(&fs::read(path).map_err(failed)?);
        Ok(())
    }

    /// Adds the lines of a file.
    pub(super) fn add_lines(&mut self, bytes: &[u8]) {
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            if std::str::from_utf8(line).ok().and_then(|line| self.add_line(line)).is_none() {
                self.left_out += 1;
            }
        }
    }

    /// Adds a line; `None` if it is none of a recording.
    fn add_line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.strip_suffix(';')?.split_once(' ')?;
        let (hash, rest) = rest.split_once(' ')?;
        if hash.is_empty() || !hash.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        match kind {
            "type" if !rest.is_empty() => {
                let known = &mut self.types.entry(hash.to_owned()).or_default().notations;
                if known.len() < NOTATIONS && !known.iter().any(|known| known == rest) {
                    known.push(rest.to_owned());
                }
            }
            "used" => {
                let mut numbers = [0; 5];
                let mut words = rest.split(' ');
                for number in &mut numbers {
                    *number = words.next()?.parse().ok()?;
                }
                if words.next().is_some() {
                    return None;
                }
                let [packs, packed_bytes, unpacks, unpacked_bytes, largest] = numbers;
                let uses = RecordedUses { packs, packed_bytes, unpacks, unpacked_bytes, largest };
                self.types.entry(hash.to_owned()).or_default().uses.add(uses);
            }
            _ => return None,
        }
        Some(())
    }
}
