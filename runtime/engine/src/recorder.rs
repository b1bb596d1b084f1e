//! Records the types that a program commits, and their uses, where `DTC_RECORD` names a folder: for `dtc build`.
//!
//! A type is written when it is committed. Its uses are counted in memory; they are written when the number of its calls is a power
//! of two, and at the exit of the process. So a program that is killed has left at least half of them.
//!
//! Nothing here waits: a child that was forked at any moment goes on recording, into the file of its parent, where lines of both add
//! up.

use dtc_compiler::datatype::{Constructor, Datatype, TabledDatatype};
use dtc_compiler::layout::TypeHash;
use dtc_compiler::plan::Direction;
use dtc_host::{Finding, fork};
use dtc_store::{RecordedUses, RecordingFile};
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Chains of the table of types. A thousand types have one link each.
const CHAINS: usize = 1024;

/// Types that a process records at most; threads that add types at once may exceed it by one each.
const MOST_TYPES: usize = 1 << 16;

/// Nodes and list entries of the largest type that is recorded: its notation has some megabytes.
const MOST_ENTRIES: u64 = 1 << 18;

/// The recorder of the process; nothing inside if it has none.
static RECORDER: OnceBox<Result<Recorder, Option<Finding>>> = OnceBox::new();

/// Sets the counts of a forked child to zero: its parent writes those from before the fork.
static FORKED: fork::Handler = fork::Handler::new(in_child);

/// Uses of a type that were not written yet.
pub(crate) struct Uses {
    /// The hash of the type; the digest of one with index tables, which is longer.
    hash: Box<[u8]>,
    calls: AtomicU64,
    packs: AtomicU64,
    packed_bytes: AtomicU64,
    unpacks: AtomicU64,
    unpacked_bytes: AtomicU64,
    largest: AtomicU64,
    /// The next type of the chain.
    next: OnceBox<Uses>,
}

impl Uses {
    fn of(hash: &[u8]) -> Uses {
        let [calls, packs, packed_bytes, unpacks, unpacked_bytes, largest] = [const { AtomicU64::new(0) }; 6];
        Uses { hash: hash.into(), calls, packs, packed_bytes, unpacks, unpacked_bytes, largest, next: OnceBox::new() }
    }
}

/// The file of the process, and the types in it. Types are only added, at the ends of their chains, so no lock is needed.
pub(crate) struct Recorder {
    file: RecordingFile,
    chains: Box<[OnceBox<Uses>]>,
    types: AtomicUsize,
}

/// The recorder of the process, if `DTC_RECORD` names a folder that can be used.
pub(crate) fn recorder() -> Option<&'static Recorder> {
    opened().as_ref().ok()
}

/// Where this process records the types that it commits: the file, whose folder the variable `DTC_RECORD` names. `None` where it
/// records nothing, since the variable is not set, or the program has more rights than its user.
///
/// # Errors
///
/// The folder cannot be made, or another user could change what is in it. Nothing is recorded then.
///
/// ```
/// match dtc_runtime::recording_file() {
///     Some(Ok(file)) => println!("recording into {}", file.display()),
///     Some(Err(finding)) => println!("not recording: {finding}"),
///     None => println!("not recording"),
/// }
/// ```
pub fn recording_file() -> Option<Result<std::path::PathBuf, Finding>> {
    match opened() {
        Ok(recorder) => Some(Ok(recorder.file.path().to_owned())),
        Err(Some(finding)) => Some(Err(finding.clone())),
        Err(None) => None,
    }
}

/// Whether this process records the types that it commits.
///
/// ```
/// assert_eq!(dtc_runtime::is_recording(), matches!(dtc_runtime::recording_file(), Some(Ok(_))));
/// ```
pub fn is_recording() -> bool {
    recorder().is_some()
}

fn opened() -> &'static Result<Recorder, Option<Finding>> {
    RECORDER.get_or_init(|| Box::new(Recorder::open()))
}

impl Recorder {
    fn open() -> Result<Recorder, Option<Finding>> {
        let file = RecordingFile::from_environment().ok_or(None)??;
        FORKED.arm();
        // SAFETY: `at_exit` has no preconditions, and it stays mapped: it is part of the program, or of a library that is never
        // unloaded. If two threads come here, the second call of it finds nothing to write.
        unsafe { libc::atexit(at_exit) };
        let chains = (0..CHAINS).map(|_| OnceBox::new()).collect();
        Ok(Recorder { file, chains, types: AtomicUsize::new(0) })
    }

    /// The counters of a type, which is written if it is not known yet. `None` for predefined types, which need no kernel, those
    /// without bytes, too large ones, and those beyond the most.
    pub(crate) fn uses_of(&self, hash: TypeHash, datatype: &Datatype) -> Option<&Uses> {
        self.uses(hash.as_bytes(), || is_recorded(datatype), || datatype.to_string())
    }

    /// The same of a type with index tables.
    pub(crate) fn uses_of_tabled(&self, digest: &[u8; 32], datatype: &TabledDatatype) -> Option<&Uses> {
        let is_recorded = || datatype.facts().size > 0 && datatype.most_entries() <= MOST_ENTRIES;
        self.uses(digest, is_recorded, || datatype.to_string())
    }

    fn uses(&self, hash: &[u8], is_recorded: impl Fn() -> bool, notation: impl FnOnce() -> String) -> Option<&Uses> {
        let mut link = &self.chains[chain_of(hash)];
        loop {
            match link.get() {
                Some(uses) if *uses.hash == *hash => return Some(uses),
                Some(uses) => link = &uses.next,
                None if !is_recorded() => return None,
                None if self.types.load(Ordering::Relaxed) >= MOST_TYPES => return None,
                // If another thread has just added a type to the chain, the next iteration looks at it.
                None if link.set(Box::new(Uses::of(hash))).is_err() => {}
                None => {
                    self.types.fetch_add(1, Ordering::Relaxed);
                    self.file.add_type(&digits(hash), &notation());
                    return link.get();
                }
            }
        }
    }

    /// Counts a call, and writes the uses if the number of calls is a power of two.
    #[cold]
    pub(crate) fn count(&self, uses: &Uses, direction: Direction, bytes: u64) {
        let (calls, moved) = match direction {
            Direction::Pack => (&uses.packs, &uses.packed_bytes),
            Direction::Unpack => (&uses.unpacks, &uses.unpacked_bytes),
        };
        calls.fetch_add(1, Ordering::Relaxed);
        moved.fetch_add(bytes, Ordering::Relaxed);
        uses.largest.fetch_max(bytes, Ordering::Relaxed);
        if (uses.calls.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two() {
            self.write(uses);
        }
    }

    /// Writes the uses of a type since they were written last.
    fn write(&self, uses: &Uses) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let taken = RecordedUses {
            packs: take(&uses.packs),
            packed_bytes: take(&uses.packed_bytes),
            unpacks: take(&uses.unpacks),
            unpacked_bytes: take(&uses.unpacked_bytes),
            largest: uses.largest.load(Ordering::Relaxed),
        };
        if taken.packs + taken.unpacks > 0 {
            self.file.add_uses(&digits(&uses.hash), &taken);
        }
    }

    /// All types.
    fn each(&self, mut visit: impl FnMut(&Uses)) {
        for chain in &self.chains {
            let mut link = chain;
            while let Some(uses) = link.get() {
                visit(uses);
                link = &uses.next;
            }
        }
    }
}

fn chain_of(hash: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([hash[0], hash[1]])) % CHAINS
}

/// A hash as lines have it.
fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_recorded(datatype: &Datatype) -> bool {
    let predefined = matches!(datatype.constructor(), Constructor::Named(_));
    !predefined && datatype.facts().size > 0 && datatype.most_entries() <= MOST_ENTRIES
}

extern "C" fn at_exit() {
    if let Some(Ok(recorder)) = RECORDER.get() {
        recorder.each(|uses| recorder.write(uses));
    }
}

/// Touches atomics alone.
extern "C" fn in_child() {
    if let Some(Ok(recorder)) = RECORDER.get() {
        recorder.each(|uses| {
            for count in [&uses.calls, &uses.packs, &uses.packed_bytes, &uses.unpacks, &uses.unpacked_bytes] {
                count.store(0, Ordering::Relaxed);
            }
        });
    }
}
