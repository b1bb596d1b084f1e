//! Opens shared libraries by name or path. Nothing is linked, so dtc starts on machines that have none of them.

use super::error::CudaError;
use dtc_host::Cause;
use dtc_host::environment;
use dtc_host::fork::Process;
use dtc_host::thread;
use libloading::os::unix::{Library as Opened, RTLD_LOCAL, RTLD_NOW};
use std::error::Error;
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The loader's message after the path of a missing file.
const ABSENT: &str = ": cannot open shared object file: No such file or directory";

/// Name of a library in messages, and how to get it.
pub(super) struct Kind {
    /// Name in messages.
    pub(super) name: &'static str,
    /// Environment variable that names a path, which is then the only candidate.
    pub(super) variable: &'static CStr,
    /// How to get it.
    pub(super) hint: &'static str,
}

/// A name or a path to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// A name that the loader looks up, or a path of the system.
    System(PathBuf),
    /// A path from the environment, in which another user may have written.
    Environment(PathBuf),
}

impl Candidate {
    /// The name or path.
    pub(super) fn path(&self) -> &Path {
        let (Candidate::System(path) | Candidate::Environment(path)) = self;
        path
    }

    /// Opens it, unless another user could have put a file there.
    fn open(&self) -> Result<Opened, String> {
        if let Candidate::Environment(path) = self {
            environment::check_file(path).map_err(|finding| match finding.cause {
                // The message is the loader's, though nothing is opened: another user could put a file there now.
                Cause::Absent => format!("{}{ABSENT}", path.display()),
                _ => finding.to_string(),
            })?;
        }
        open_path(self.path())
    }
}

/// An open library. It is never closed: the driver and NVRTC start threads and register handlers of their own.
pub(super) struct Library {
    opened: Opened,
    kind: &'static Kind,
    path: Option<PathBuf>,
    /// Whether its path came from the environment.
    named: bool,
}

impl Library {
    /// Opens the path in the environment variable, or else the first candidate that opens.
    pub(super) fn open(
        kind: &'static Kind,
        candidates: impl IntoIterator<Item = Candidate>,
    ) -> Result<Library, CudaError> {
        let mut tried = Vec::new();
        let open = |candidate: Candidate, tried: &mut Vec<String>| match candidate.open() {
            Ok(opened) => {
                Some(Library { opened, kind, path: None, named: matches!(candidate, Candidate::Environment(_)) })
            }
            Err(reason) => {
                tried.push(complaint(&candidate.path().display().to_string(), &reason));
                None
            }
        };
        let found = match environment::path(kind.variable) {
            Some(path) => open(Candidate::Environment(path), &mut tried),
            None => candidates.into_iter().find_map(|candidate| open(candidate, &mut tried)),
        };
        found.ok_or(CudaError::LibraryMissing { library: kind.name, tried, hint: kind.hint })
    }

    /// A function of the library.
    ///
    /// # Safety
    ///
    /// `T` must be the C function pointer type of the function's declaration.
    pub(super) unsafe fn symbol<T: Copy>(&mut self, symbol: &'static str) -> Result<T, CudaError> {
        // SAFETY: `T` is the type of the function (contract of this function), and the library is never closed.
        let found = unsafe { self.opened.get::<T>(symbol) };
        match found {
            Ok(found) => {
                let function = *found;
                if self.path.is_none() {
                    self.path = path_of(found.into_raw());
                }
                Ok(function)
            }
            Err(_) => Err(CudaError::SymbolMissing {
                library: self.kind.name,
                symbol,
                path: self.path.as_deref().unwrap_or(Path::new("it")).display().to_string(),
                hint: self.kind.hint,
            }),
        }
    }

    /// Path of the library, known once a symbol was found in it.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Opens a library in the same folder that this library will look up by its bare name, and keeps it open. A failure
    /// shows when this library looks it up.
    pub(super) fn preload_beside(&self, name: &str) {
        let Some(path) = self.path().and_then(Path::parent).map(|folder| folder.join(name)) else { return };
        let beside = if self.named { Candidate::Environment(path) } else { Candidate::System(path) };
        if beside.path().is_file()
            && let Ok(opened) = beside.open()
        {
            std::mem::forget(opened);
        }
    }

    /// Keeps the library open for the rest of the process.
    pub(super) fn keep(self) -> Option<PathBuf> {
        std::mem::forget(self.opened);
        self.path
    }
}

fn open_path(path: &Path) -> Result<Opened, String> {
    // SAFETY: opening runs the library's constructors, which is its purpose; the user or the system's loader chose the
    // library.
    let opened = unsafe { Opened::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    opened.map_err(|error| match error.source() {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    })
}

/// A path and why it does not open. The loader's message repeats the path; a missing file is reported by its path
/// alone.
fn complaint(path: &str, reason: &str) -> String {
    match reason.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")) {
        Some(_) if reason.ends_with(ABSENT) => path.to_owned(),
        Some(_) => reason.to_owned(),
        None => format!("{path}: {reason}"),
    }
}

/// Whether this process has already opened the library.
pub(super) fn is_open(path: &Path) -> bool {
    // SAFETY: `RTLD_NOLOAD` loads nothing, so no constructor runs.
    unsafe { Opened::open(Some(path), RTLD_NOW | libc::RTLD_NOLOAD) }.is_ok()
}

/// Generation of the process in which the loader's counter lock is known to work. In a forked child, a thread that
/// exists only in the parent may have held the lock at the fork, and the C library does not release it.
static WORKS_IN: AtomicU32 = AtomicU32::new(0);
/// Generation of the process in which a thread last tried the lock.
static TRIED_IN: AtomicU32 = AtomicU32::new(0);

/// Time that the trying thread has until the lock counts as blocked.
const PATIENCE: Duration = Duration::from_millis(2);

/// Number of libraries that this process has loaded, plus 1. Zero where the system does not count, and in a child where
/// a thread of the parent holds the lock. Much cheaper than [`is_open`], which looks into files.
pub(super) fn loads() -> u64 {
    let generation = Process::current().generation();
    let works = || WORKS_IN.load(Ordering::Acquire) == generation;
    if !works() && TRIED_IN.swap(generation, Ordering::Relaxed) != generation && thread::may_start_threads() {
        try_lock(generation);
    }
    if works() { counted() } else { 0 }
}

/// Takes the lock in a thread of its own, because it may wait for ever. Each process starts at most one such thread.
#[cold]
fn try_lock(generation: u32) {
    let caller = std::thread::current();
    thread::start_small(move || {
        counted();
        WORKS_IN.store(generation, Ordering::Release);
        caller.unpark();
    });
    let start = Instant::now();
    while WORKS_IN.load(Ordering::Acquire) != generation && start.elapsed() < PATIENCE {
        std::thread::park_timeout(PATIENCE);
    }
}

#[cfg(target_os = "linux")]
fn counted() -> u64 {
    unsafe extern "C" fn first(information: *mut libc::dl_phdr_info, size: usize, count: *mut c_void) -> c_int {
        if size >= std::mem::offset_of!(libc::dl_phdr_info, dlpi_subs) {
            // SAFETY: `size` shows that `information` holds the field, and `count` is the integer that `counted`
            // passes.
            unsafe { *count.cast::<u64>() = (*information).dlpi_adds + 1 };
        }
        1
    }
    let mut count = 0_u64;
    // SAFETY: `first` runs before the call returns and keeps neither pointer; `count` is live.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut count).cast()) };
    count
}

#[cfg(not(target_os = "linux"))]
fn counted() -> u64 {
    0
}

/// Path of the file that holds the code at an address.
fn path_of(address: *mut c_void) -> Option<PathBuf> {
    // SAFETY: all fields are integers and pointers, for which zero is valid.
    let mut information: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` accepts any address; the names it returns stay valid because the library is never closed.
    let known = unsafe { libc::dladdr(address, &mut information) } != 0;
    if !known || information.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` has found the library, whose name is NUL-terminated and lives as long as the library.
    let name = unsafe { CStr::from_ptr(information.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
