//! Where the elements of a call lie, and what the MPI may be given of them.
//!
//! An MPI that knows nothing of CUDA reads and writes all memory with the processor: it is given memory of the host alone. One that is
//! CUDA-aware takes contiguous elements on a GPU itself. The library asks libdtc for the kind of memory, which asks no driver while the
//! process does not use CUDA.

use crate::abi::{Abi, MPI_SUCCESS};
use crate::plan::{self, DecodedType, PlanRef};
use crate::pmpi::pmpi;
use crate::staging::{self, BlockRef};
use crate::{find, settings};
use dtc::{DTC_MEMORY_DEVICE, DTC_MEMORY_HOST, DTC_MEMORY_UNKNOWN, DTC_OK, dtc_transfer};
use dtc_mpi_table::major_version;
use std::ffi::{c_int, c_void};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering};

/// Whether the MPI takes memory of GPUs.
static TAKES_DEVICES: AtomicBool = AtomicBool::new(false);

/// From where that is known, for the report.
static SOURCE: AtomicPtr<&str> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the MPI takes memory of GPUs.
pub fn takes_devices() -> bool {
    TAKES_DEVICES.load(Ordering::Relaxed)
}

/// From where that is known.
pub fn source_of_awareness() -> &'static str {
    let source = SOURCE.load(Ordering::Acquire);
    // SAFETY: null, or one of the static texts below.
    unsafe { source.as_ref() }.copied().unwrap_or("the MPI has no call that tells whether it is CUDA-aware")
}

/// Whether the MPI receives contiguous messages into elements of differing sizes.
static SENDS_MIXED: AtomicBool = AtomicBool::new(false);

/// Whether packed bytes of elements of differing sizes may be sent: the MPI receives them also in a process without this library.
pub fn sends_mixed() -> bool {
    SENDS_MIXED.load(Ordering::Relaxed)
}

/// Finds out by the version of the MPI. MPICH 4.0 on UCX cuts a contiguous message anywhere, and loses what it cuts inside of an element
/// when it unpacks. MPICH 5.0.2 and Open MPI do not; what is not known may.
pub fn find_defects() {
    let version = find::library_version();
    let sound = major_version(version, "MPICH Version:").is_some_and(|major| major >= 5);
    SENDS_MIXED.store(sound || version.contains("Open MPI"), Ordering::Relaxed);
}

/// Asks the MPI whether it is CUDA-aware, unless `DTC_MPI_GPU` says what it is to be given. The functions are extensions of Open MPI and
/// MPICH.
pub fn find_awareness() {
    /// `MPIX_GPU_SUPPORT_CUDA` of MPICH.
    const CUDA: c_int = 0;
    let (query, query_gpu) = (find::function(c"MPIX_Query_cuda_support"), find::function(c"MPIX_GPU_query_support"));
    let mut known: Option<(bool, &'static &'static str)> = None;
    if !query.is_null() {
        // SAFETY: the extension has this type.
        let query: unsafe extern "C" fn() -> c_int = unsafe { std::mem::transmute(query) };
        // SAFETY: as above.
        known = Some((unsafe { query() } == 1, &"MPIX_Query_cuda_support"));
    } else if !query_gpu.is_null() {
        let mut supported = 0;
        // SAFETY: the extension has this type.
        let query: unsafe extern "C" fn(c_int, *mut c_int) -> c_int = unsafe { std::mem::transmute(query_gpu) };
        // SAFETY: `supported` is writable.
        let told = unsafe { query(CUDA, &mut supported) } == MPI_SUCCESS;
        known = Some((told && supported != 0, &"MPIX_GPU_query_support"));
    }
    for (value, takes, source) in [("host", false, &"DTC_MPI_GPU=host"), ("device", true, &"DTC_MPI_GPU=device")] {
        if settings::is_set("DTC_MPI_GPU", value) {
            known = Some((takes, source));
        }
    }
    if let Some((takes, source)) = known {
        TAKES_DEVICES.store(takes, Ordering::Relaxed);
        SOURCE.store(std::ptr::from_ref(source).cast_mut(), Ordering::Release);
    }
}

/// `DTC_MEMORY_...`, and the GPU: -1 while the process does not use CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The kind of memory.
    pub kind: i32,
    /// The GPU.
    pub device: i32,
}

impl Place {
    /// Of a process that does not use CUDA.
    pub const WITHOUT_CUDA: Place = Place { kind: DTC_MEMORY_HOST, device: -1 };

    /// Of elements of absolute addresses, which may lie in several kinds of memory.
    pub const MIXED: Place = Place { kind: DTC_MEMORY_UNKNOWN, device: -1 };

    /// Whether it is memory of a GPU.
    pub fn is_device(self) -> bool {
        self.kind == DTC_MEMORY_DEVICE
    }

    /// Whether the process uses CUDA.
    pub fn uses_cuda(self) -> bool {
        self.device >= 0
    }
}

/// Whether the process may come to have memory of a GPU, by [`find_gpu`]; 2 before that is known.
static HAS_GPU: AtomicU8 = AtomicU8::new(2);

/// Whether the process does not use CUDA for certain, without a question to the loader.
#[inline(always)]
pub fn is_without_cuda_at_once() -> bool {
    match HAS_GPU.load(Ordering::Relaxed) {
        0 => true,
        1 => was_without_cuda(cycles()),
        _ => false,
    }
}

/// Whether the process may come to have memory of a GPU, as found at the first question.
#[inline]
pub fn has_gpu() -> bool {
    match HAS_GPU.load(Ordering::Relaxed) {
        0 => false,
        1 => true,
        _ => find_gpu(),
    }
}

/// Whether `DTC_CUDA_DRIVER` names a driver, a driver is loaded or has its device here, or some device of the machine is NVIDIA's. The driver may make
/// its own devices in `/dev` later, but no GPU.
#[cold]
fn find_gpu() -> bool {
    /// Of the driver, of WSL, and of NVIDIA's processors with a GPU that is not on a bus.
    const DEVICES: [&str; 4] = ["/dev/nvidiactl", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-ctrl-gpu"];
    let named = std::env::var_os("DTC_CUDA_DRIVER").is_some_and(|driver| !driver.is_empty());
    let exists = |path: &&str| std::path::Path::new(path).exists();
    let has = named || ask_place(null()).uses_cuda() || DEVICES.iter().any(exists) || has_device_of_nvidia();
    HAS_GPU.store(has.into(), Ordering::Relaxed);
    has
}

/// Whether a device of NVIDIA is on a bus of the machine; true if the system does not say.
fn has_device_of_nvidia() -> bool {
    const NVIDIA: &str = "0x10de";
    let Ok(devices) = std::fs::read_dir("/sys/bus/pci/devices") else { return true };
    let is_nvidia = |device: std::io::Result<std::fs::DirEntry>| {
        let vendor = device.and_then(|device| std::fs::read_to_string(device.path().join("vendor")));
        vendor.map_or(true, |vendor| vendor.trim() == NVIDIA)
    };
    devices.into_iter().any(is_nvidia)
}

/// Cycles of the time stamp counter for which the answer holds that the process does not use CUDA: 7 to 20 us. From there to the first memory of a
/// GPU, the driver has to be loaded and to begin, which takes it milliseconds. The loader, who is asked otherwise, takes 20 ns.
const ANSWER_HOLDS: u64 = 1 << 15;

/// When a thread last began to ask, and was told so. The counters of all processors are one clock.
static WITHOUT_CUDA_AT: AtomicU64 = AtomicU64::new(0);

/// The time stamp counter; 0 on processors without one.
#[inline(always)]
fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every processor has it.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Whether the answer holds still.
#[inline(always)]
fn was_without_cuda(now: u64) -> bool {
    cfg!(target_arch = "x86_64") && now.wrapping_sub(WITHOUT_CUDA_AT.load(Ordering::Relaxed)) < ANSWER_HOLDS
}

/// Where an address lies. On a machine without a GPU, nothing is asked.
#[inline]
pub fn place_of(address: *const c_void) -> Place {
    if has_gpu() { place_beside_gpu(address) } else { Place::WITHOUT_CUDA }
}

#[inline(never)]
fn place_beside_gpu(address: *const c_void) -> Place {
    let now = cycles();
    if was_without_cuda(now) {
        return Place::WITHOUT_CUDA;
    }
    let place = ask_place(address);
    if !place.uses_cuda() {
        WITHOUT_CUDA_AT.store(now, Ordering::Relaxed);
    }
    place
}

#[cold]
#[inline(never)]
fn ask_place(address: *const c_void) -> Place {
    let mut place = Place { kind: 0, device: 0 };
    // SAFETY: any address may be asked about; both places are writable.
    if unsafe { dtc::dtc_memory_kind(address, &mut place.kind, &mut place.device) } != DTC_OK {
        place = Place { kind: DTC_MEMORY_HOST, device: 0 };
    }
    place
}

/// An address a number of bytes from another one, which may be that of no object: `MPI_BOTTOM`, or in front of one.
pub fn offset(memory: *const c_void, bytes: i64) -> *mut c_void {
    memory.cast_mut().wrapping_byte_offset(bytes as isize)
}

/// How elements lie: packed bytes, and from the lowest byte to behind the highest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Packed bytes.
    pub bytes: i64,
    /// The lowest displacement of a byte.
    pub low: i64,
    /// Bytes from there on.
    pub length: i64,
}

/// Packed bytes of one element, as the MPI tells.
pub fn size_of<A: Abi>(datatype: A::Handle) -> Option<i64> {
    let mut size = 0;
    // SAFETY: a datatype of the program, and `size` is writable.
    let told = unsafe { (pmpi::<A>().type_size_x)(datatype, &mut size) } == MPI_SUCCESS;
    (told && size >= 0).then_some(size)
}

/// Lower bound and extent of a datatype, as the MPI tells, in bytes.
pub fn extent_of<A: Abi>(datatype: A::Handle) -> Option<(i64, i64)> {
    let (mut lb, mut extent) = (0, 0);
    // SAFETY: a datatype of the program, and both are writable.
    let told = unsafe { (pmpi::<A>().type_get_extent_x)(datatype, &mut lb, &mut extent) } == MPI_SUCCESS;
    told.then_some((lb, extent))
}

/// True lower bound and true extent of a datatype, as the MPI tells, in bytes.
pub fn true_extent_of<A: Abi>(datatype: A::Handle) -> Option<(i64, i64)> {
    let (mut lb, mut extent) = (0, 0);
    // SAFETY: a datatype of the program, and both are writable.
    let told = unsafe { (pmpi::<A>().type_get_true_extent_x)(datatype, &mut lb, &mut extent) } == MPI_SUCCESS;
    told.then_some((lb, extent))
}

/// The lowest displacement of a byte of a datatype.
pub fn true_lb_of<A: Abi>(datatype: A::Handle, known: Option<&DecodedType>) -> i64 {
    known.map_or_else(|| true_extent_of::<A>(datatype).map_or(0, |bounds| bounds.0), |known| known.true_lb)
}

/// Asks the MPI; none if the numbers do not fit.
pub fn span_of<A: Abi>(elements: i64, datatype: A::Handle) -> Option<Span> {
    let size = size_of::<A>(datatype)?;
    let (_, extent) = extent_of::<A>(datatype)?;
    let (true_lb, true_extent) = true_extent_of::<A>(datatype)?;
    let reach = (elements - 1).checked_mul(extent)?;
    Some(Span {
        bytes: elements.checked_mul(size)?,
        low: true_lb.checked_add(reach.min(0))?,
        length: true_extent.checked_add(reach.checked_abs()?)?,
    })
}

/// Whether elements lie in one piece without gaps.
pub fn is_contiguous(known: Option<&DecodedType>, span: &Span) -> bool {
    known.is_none_or(|known| known.whole) && span.length == span.bytes
}

/// Whether dtc can pack them.
pub fn is_decoded(known: Option<&DecodedType>, span: &Span) -> bool {
    is_contiguous(known, span) || known.is_some_and(|known| known.r#type.is_some())
}

/// How elements on a GPU go through staging memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The MPI moves them, where they are.
    Passed,
    /// Packed, as bytes.
    Packed,
    /// All bytes from the lowest to the highest, as elements of the program's datatype.
    Raw,
}

/// What a call does with elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Sends them.
    Send,
    /// Receives them.
    Receive,
    /// Both: a collective in place.
    Both,
}

impl Direction {
    /// Whether elements are sent.
    pub fn sends(self) -> bool {
        self != Direction::Receive
    }

    /// Whether elements are received.
    pub fn receives(self) -> bool {
        self != Direction::Send
    }
}

/// Whether elements of a datatype may be sent as packed bytes: not those of differing sizes, if the MPI may fail to receive them.
pub fn sends_packed(known: &DecodedType) -> bool {
    sends_mixed() || known.uniform
}

/// The form of elements on a GPU. Packed bytes are not sent of elements of differing sizes where the MPI may fail to receive them ([`find_defects`]), nor of more than an
/// `int` counts, nor of datatypes that dtc cannot decode; contiguous elements are packed already.
pub fn form_of(known: Option<&DecodedType>, span: &Span, direction: Direction) -> Form {
    let contiguous = is_contiguous(known, span);
    let mixed = |known: &DecodedType| !contiguous && sends_packed(known);
    let sent = !direction.sends() || sends_mixed() || known.is_some_and(mixed);
    let packed = is_decoded(known, span) && sent && span.bytes <= i64::from(i32::MAX);
    match (takes_devices(), packed) {
        (true, true) if !contiguous => Form::Packed,
        (true, _) => Form::Passed,
        (false, true) if !(contiguous && direction.sends()) => Form::Packed,
        (false, _) => Form::Raw,
    }
}

/// What dtc moves between elements and staging memory: elements of `plan` at `memory`.
#[derive(Clone)]
pub struct Moved {
    /// The plan of the elements, or of bytes.
    pub plan: PlanRef,
    /// Where they are.
    pub memory: *mut c_void,
    /// How many there are.
    pub elements: i64,
    /// Their packed bytes.
    pub bytes: i64,
}

impl Moved {
    /// Of elements in a form; none before the library has begun.
    pub fn of(form: Form, plan: Option<&PlanRef>, span: &Span, memory: *const c_void, elements: i64) -> Option<Moved> {
        let known = plan.map(|plan| &**plan);
        if let Some(plan) = plan.filter(|_| form == Form::Packed && !is_contiguous(known, span)) {
            return Some(Moved { plan: plan.clone(), memory: memory.cast_mut(), elements, bytes: span.bytes });
        }
        let plan = plan::bytes()?.clone();
        Some(Moved { plan, memory: offset(memory, span.low), elements: span.length, bytes: span.length })
    }

    /// Whether they are moved as bytes.
    pub fn is_of_bytes(&self) -> bool {
        plan::bytes().is_some_and(|bytes| self.plan.is(bytes))
    }
}

/// Where both ends of a call of dtc lie. The elements of absolute addresses may lie in several places.
pub fn transfer_of(memory: *const c_void, place: Place, block: &BlockRef) -> dtc_transfer {
    let mut transfer = dtc_transfer::default();
    let device = |kind, device| if kind == DTC_MEMORY_DEVICE { device } else { 0 };
    if !memory.is_null() {
        transfer.memory = place.kind;
        transfer.memory_device = device(place.kind, place.device);
    }
    transfer.packed = block.kind();
    transfer.packed_device = device(block.kind(), block.device());
    transfer
}

/// Staging memory for elements of a GPU: there, or pinned memory of the host, or any if no more can be pinned, or if `device` is -1.
pub fn take_for_device(device: i32, bytes: i64) -> Option<BlockRef> {
    if device < 0 {
        return staging::take(staging::HOST, 0, bytes);
    }
    if takes_devices() {
        return staging::take(staging::DEVICE, device, bytes);
    }
    staging::take(staging::PINNED, device, bytes).or_else(|| staging::take(staging::HOST, 0, bytes))
}

/// Most packed bytes of a message that a CUDA-aware MPI is given in pinned memory. It would bring them to the host itself, by a copy that takes as
/// long as the kernel that packs, and back.
const MOST_PINNED: i64 = 16 << 10;

/// Whether a message of any length goes through pinned memory: Open MPI 5.0 moves 0.7 GB/s between two places of a GPU in one process.
fn is_slow_on_device<A: Abi>(peer: c_int, communicator: A::Handle) -> bool {
    let mut own = 0;
    // SAFETY: a communicator of the program, and `own` is writable.
    A::IS_OPEN_MPI && unsafe { (pmpi::<A>().comm_rank)(communicator, &mut own) } == MPI_SUCCESS && peer == own
}

/// The same for a message to a process, or from it.
pub fn take_for_message<A: Abi>(device: i32, bytes: i64, peer: c_int, communicator: A::Handle) -> Option<BlockRef> {
    let may = takes_devices() && device >= 0;
    let prefers_pinned = may && (bytes <= MOST_PINNED || is_slow_on_device::<A>(peer, communicator));
    let pinned = if prefers_pinned { staging::take(staging::PINNED, device, bytes) } else { None };
    pinned.or_else(|| take_for_device(device, bytes))
}

/// An error of this library: a GPU failed, or there is no memory. The error handler decides.
pub fn fail<A: Abi>(code: c_int) -> c_int {
    // SAFETY: a communicator of the MPI.
    unsafe { (pmpi::<A>().comm_call_errhandler)(A::handles().comm_self, code) };
    code
}
