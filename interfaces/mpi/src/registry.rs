//! Which processes of a job on this machine have this library, as each of them can tell without a message: one to a process that does not
//! have it would reach the program. They meet in a file of shared memory that is named after what the launcher has given them all, and decide
//! there once, together, whether they exchange directly.

use crate::report::now;
use crate::shared_file::{self, Mapping};
use once_cell::race::OnceBox;
use std::ffi::{CString, c_int};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

/// Most processes of a job.
const MOST_RANKS: usize = 1 << 20;

/// Nanoseconds within which those that began with a process enter themselves too.
const PATIENCE: i64 = 1_000_000_000;

/// What is decided: nothing yet, that processes exchange directly, or that they do not.
const UNDECIDED: i32 = 0;
const DIRECT: i32 = 1;
const NOT_DIRECT: i32 = 2;

/// The file begins with this, and has a slot for each process behind it.
#[repr(C)]
struct Header {
    decision: AtomicI32,
    size: AtomicI32,
}

/// What a process says of itself; `process` comes last, and is 0 until then.
#[repr(C)]
struct Slot {
    started: AtomicI64,
    process: AtomicI64,
}

/// The file, as this process sees it.
struct Registry {
    mapping: Mapping,
    path: CString,
    ranks: usize,
    /// Processes of the job on this machine.
    expected: usize,
    /// When this process entered itself.
    entered: i64,
}

// SAFETY: the mapping stays as it is, and what lies in it is atomic.
unsafe impl Sync for Registry {}

static REGISTRY: OnceBox<Registry> = OnceBox::new();

fn mix(hash: u64, text: &[u8]) -> u64 {
    const PRIME: u64 = 0x100_0000_01b3;
    text.iter().chain(&[0xff]).fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The process that made a socket; none if it tells nothing.
fn maker_of(socket: c_int) -> Option<i32> {
    let mut maker: MaybeUninit<libc::ucred> = MaybeUninit::uninit();
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: `maker` has room for `length` bytes, and is read only if it was written.
    unsafe {
        let told = libc::getsockopt(socket, level, option, maker.as_mut_ptr().cast(), &mut length) == 0;
        told.then(|| maker.assume_init().pid).filter(|process| *process > 0)
    }
}

/// A number in a variable of the environment.
fn number(variable: &str) -> Option<i64> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

/// What all processes of a job on a machine have in common, and those of no other job that runs; none if the launcher tells nothing.
fn job() -> Option<u64> {
    // Of Open MPI and others with PMIx, of Slurm, and of Hydra with TCP.
    const GIVEN: [&str; 6] =
        ["PMIX_NAMESPACE", "PMIX_SERVER_URI41", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMI_PORT"];
    let values = GIVEN.map(std::env::var_os);
    let known = values.iter().any(Option::is_some);
    let hash = values.iter().fold(0xcbf2_9ce4_8422_2325, |hash, value| {
        mix(hash, value.as_ref().map_or(b"".as_slice(), |value| value.as_bytes()))
    });
    // Hydra gives each process a socket to itself, which tells who made it.
    let socket = number("PMI_FD").and_then(|socket| c_int::try_from(socket).ok());
    match socket.and_then(maker_of) {
        Some(maker) => Some(mix(hash, maker.to_string().as_bytes())),
        None => known.then_some(hash),
    }
}

/// How many processes of the job run on this machine; all, if the launcher does not tell.
fn count_here(size: usize) -> usize {
    let told = ["MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"].into_iter().filter_map(number);
    told.filter_map(|count| usize::try_from(count).ok()).find(|count| (1..=size).contains(count)).unwrap_or(size)
}

/// When a process began, in the clock of the kernel; -1 if there is none of this number.
fn start_of(process: i64) -> i64 {
    let started = || {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The 22nd field; the second, in brackets, may have spaces.
        text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
    };
    started().unwrap_or(-1)
}

impl Registry {
    fn header(&self) -> &Header {
        // SAFETY: the mapping begins with one, of atomics, and any bytes are a value.
        unsafe { &*self.mapping.memory.cast() }
    }

    fn slots(&self) -> &[Slot] {
        // SAFETY: the mapping has room for them behind the header, of atomics, and any bytes are a value.
        unsafe { std::slice::from_raw_parts(self.mapping.memory.add(size_of::<Header>()).cast(), self.ranks) }
    }

    /// Enters this process; false if a file that an earlier job left behind says otherwise.
    fn enter(&self, rank: usize) -> bool {
        let size = self.ranks as i32;
        let before = self.header().size.compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed);
        let Some(slot) = self.slots().get(rank).filter(|_| before.is_ok() || before == Err(size)) else { return false };
        if slot.process.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let process = i64::from(std::process::id());
        slot.started.store(start_of(process), Ordering::Relaxed);
        slot.process.compare_exchange(0, process, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// How many have come.
    fn count(&self) -> usize {
        self.slots().iter().filter(|slot| slot.process.load(Ordering::Acquire) != 0).count()
    }

    /// Whether all have come, and none of them is gone.
    fn is_complete(&self) -> bool {
        let lives = |slot: &Slot| {
            let process = slot.process.load(Ordering::Acquire);
            process == 0 || start_of(process) == slot.started.load(Ordering::Relaxed)
        };
        self.count() == self.expected && self.slots().iter().all(lives)
    }

    /// Decides, unless another process has; what is decided.
    fn decide(&self, wanted: i32) -> i32 {
        let decision = &self.header().decision;
        match decision.compare_exchange(UNDECIDED, wanted, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => wanted,
            Err(decided) => decided,
        }
    }
}

/// Opens the file of a job of `size` processes.
fn open(size: usize) -> Option<Registry> {
    let job = job()?;
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    let path = CString::new(format!("/dev/shm/dtc-mpi-{user}-{job:016x}")).ok()?;
    let file = shared_file::open(&path, libc::O_CREAT);
    if file < 0 {
        return None;
    }
    if !shared_file::is_own(file) {
        // SAFETY: opened above.
        unsafe { libc::close(file) };
        return None;
    }
    let mapping = Mapping::new(file, size_of::<Header>() + size * size_of::<Slot>())?;
    Some(Registry { mapping, path, ranks: size, expected: count_here(size), entered: now() })
}

/// Enters this process, rank `rank` of a job of `size`, among those that have the library, if the launcher names the job.
pub fn register(rank: c_int, size: c_int) {
    let (Ok(rank), Ok(size)) = (usize::try_from(rank), usize::try_from(size)) else { return };
    if !(2..=MOST_RANKS).contains(&size) {
        return;
    }
    let Some(registry) = open(size) else { return };
    if !registry.enter(rank) {
        registry.header().decision.store(NOT_DIRECT, Ordering::Release);
    }
    // The last that comes takes the name away: a job that is killed leaves no file behind.
    if registry.count() == registry.expected {
        shared_file::unlink(&registry.path);
    }
    let _ = REGISTRY.set(Box::new(registry));
}

/// Whether the processes of the job on this machine exchange directly: all have said that they have the library. The first that asks may wait
/// for the others, until a second after it has entered itself; all are told the same.
pub fn exchanges_directly() -> bool {
    let Some(registry) = REGISTRY.get() else { return false };
    let decision = &registry.header().decision;
    if decision.load(Ordering::Acquire) == UNDECIDED {
        while registry.count() < registry.expected
            && now() < registry.entered + PATIENCE
            && decision.load(Ordering::Relaxed) == UNDECIDED
        {
            std::thread::yield_now();
        }
        registry.decide(if registry.is_complete() { DIRECT } else { NOT_DIRECT });
        shared_file::unlink(&registry.path);
    }
    decision.load(Ordering::Acquire) == DIRECT
}

/// Whether the process of a rank in the job has said so, and runs on this machine. It stays as it is once the above is true.
pub fn is_registered(rank: c_int) -> bool {
    let slot = usize::try_from(rank).ok().and_then(|rank| REGISTRY.get()?.slots().get(rank));
    slot.is_some_and(|slot| slot.process.load(Ordering::Acquire) != 0)
}

/// At the end.
pub fn unregister() {
    if let Some(registry) = REGISTRY.get() {
        shared_file::unlink(&registry.path);
    }
}
