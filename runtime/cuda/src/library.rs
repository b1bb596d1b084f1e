//! Opening shared libraries by name or path. Nothing is linked, so that dtc starts on machines that have none of them.

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

/// What the loader says after the path of a file that is not there.
const ABSENT: &str = ": cannot open shared object file: No such file or directory";

/// What a library is called in messages, and how to get it.
pub(super) struct Kind {
    /// The name in messages.
    pub(super) name: &'static str,
    /// The environment variable that names a path, which is then the only one tried.
    pub(super) variable: &'static CStr,
    /// How to get it.
    pub(super) hint: &'static str,
}

/// A name or a path to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// A name that the loader looks up, or a path of the system's.
    System(PathBuf),
    /// A path that comes from the environment, which may have been written by anybody.
    Environment(PathBuf),
}

impl Candidate {
    /// The name or path.
    pub(super) fn path(&self) -> &Path {
        let (Candidate::System(path) | Candidate::Environment(path)) = self;
        path
    }

    /// Opens it, unless another user could have put there what is there.
    fn open(&self) -> Result<Opened, String> {
        if let Candidate::Environment(path) = self {
            environment::check_file(path).map_err(|finding| match finding.cause {
                // As the loader says it, though nothing is opened: another user may put a file there now.
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
    /// Opens the path of the environment variable, or else the first of the candidates that opens.
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
    /// `T` must be the type of a C function pointer that fits the function's declaration.
    pub(super) unsafe fn symbol<T: Copy>(&mut self, symbol: &'static str) -> Result<T, CudaError> {
        // SAFETY: the caller gives the type of the function; the library is never closed.
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

    /// Where the library lies, once a symbol was found in it.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Opens a library beside this one that it will look up by its bare name, and keeps it. Whether that worked shows later.
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
    // SAFETY: running the library's constructors is what opening it is for; the user chose it, or the system's loader.
    let opened = unsafe { Opened::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    opened.map_err(|error| match error.source() {
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    })
}

/// A path and why it does not open. The loader repeats the path, and that nothing is there goes without saying.
fn complaint(path: &str, reason: &str) -> String {
    match reason.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")) {
        Some(_) if reason.ends_with(ABSENT) => path.to_owned(),
        Some(_) => reason.to_owned(),
        None => format!("{path}: {reason}"),
    }
}

/// Whether this process has opened the library already.
pub(super) fn is_open(path: &Path) -> bool {
    // SAFETY: with this flag nothing is loaded, so no constructor runs.
    unsafe { Opened::open(Some(path), RTLD_NOW | libc::RTLD_NOLOAD) }.is_ok()
}

/// The process in which the lock works under which the loader counts, by its generation. In a child of it, a thread that the child
/// does not have may have held the lock at the fork: the C library does not release it.
static WORKS_IN: AtomicU32 = AtomicU32::new(0);
/// The process in which a thread was last started to try the lock, by its generation.
static TRIED_IN: AtomicU32 = AtomicU32::new(0);

/// Time that a thread has to show that the lock works before the slow way is taken.
const PATIENCE: Duration = Duration::from_millis(2);

/// How often this process has loaded a library, counted from 1. Zero where the system does not count, and in a child where a
/// thread of the parent holds the lock for ever. Much cheaper than [`is_open`], which looks into files.
pub(super) fn loads() -> u64 {
    let generation = Process::current().generation();
    let works = || WORKS_IN.load(Ordering::Acquire) == generation;
    if !works() && TRIED_IN.swap(generation, Ordering::Relaxed) != generation && thread::may_start_threads() {
        try_lock(generation);
    }
    if works() { counted() } else { 0 }
}

/// Has a thread take the lock in a child, since it may wait for ever; no later call starts another one.
#[cold]
fn try_lock(generation: u32) {
    let caller = std::thread::current();
    thread::start(move || {
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
            // SAFETY: the structure is long enough to hold the field, and `count` is the integer below.
            unsafe { *count.cast::<u64>() = (*information).dlpi_adds + 1 };
        }
        1
    }
    let mut count = 0_u64;
    // SAFETY: the callback keeps nothing and runs before the call returns.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut count).cast()) };
    count
}

#[cfg(not(target_os = "linux"))]
fn counted() -> u64 {
    0
}

/// The file that holds the code at an address.
fn path_of(address: *mut c_void) -> Option<PathBuf> {
    // SAFETY: all fields are integers and pointers, for which zero is a value.
    let mut information: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the result outlives the call because the library is never closed.
    let known = unsafe { libc::dladdr(address, &mut information) } != 0;
    if !known || information.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's names are NUL-terminated and live as long as the library.
    let name = unsafe { CStr::from_ptr(information.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
