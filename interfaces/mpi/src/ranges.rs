//! Ranges for the timelines of profilers. A profiler that wants them names a library in `NVTX_INJECTION64_PATH`; the library is given a table
//! of functions to fill in, as NVTX 3 lays it out (`nvtxDetail/nvtxTypes.h` in NVIDIA's header-only NVTX).

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Tables that a profiler may ask for.
const TABLE_OF_CALLBACKS: u32 = 1;
const TABLE_OF_VERSION: u32 = 3;

/// Functions of each module; the first of each is none. The modules: none, the core, those that name things of CUDA and OpenCL, domains, and
/// synchronisation.
const LENGTHS: [c_uint; 7] = [0, 16, 9, 15, 7, 16, 7];

/// The module with the functions below.
const CORE: usize = 1;

/// Places in the table of the core.
const RANGE_PUSH: usize = 9;
const RANGE_POP: usize = 11;

/// Length of the longest module.
const FUNCTIONS: usize = 16;

/// Functions that the profiler writes.
struct Module {
    functions: [AtomicPtr<c_void>; FUNCTIONS],
    places: [AtomicPtr<AtomicPtr<c_void>>; FUNCTIONS],
}

impl Module {
    const fn new() -> Module {
        Module {
            functions: [const { AtomicPtr::new(null_mut()) }; FUNCTIONS],
            places: [const { AtomicPtr::new(null_mut()) }; FUNCTIONS],
        }
    }

    /// Points the places at the functions.
    fn open(&self) {
        for (place, function) in self.places.iter().zip(&self.functions) {
            place.store(std::ptr::from_ref(function).cast_mut(), Ordering::Relaxed);
        }
    }

    fn function(&self, at: usize) -> *mut c_void {
        self.functions.get(at).map_or(null_mut(), |function| function.load(Ordering::Acquire))
    }
}

static MODULE_OF_THE_CORE: Module = Module::new();
/// Functions of other modules are never called.
static OTHER_MODULES: Module = Module::new();

/// Hands out the places of a module.
unsafe extern "C" fn get_functions(module: c_int, places: *mut *const c_void, length: *mut c_uint) -> c_int {
    let Ok(module) = usize::try_from(module) else { return 0 };
    let Some(functions) = LENGTHS.get(module).filter(|length| **length > 0) else { return 0 };
    let of = if module == CORE { &MODULE_OF_THE_CORE } else { &OTHER_MODULES };
    // SAFETY: the profiler gives room for both.
    unsafe {
        places.write(of.places.as_ptr().cast());
        length.write(*functions);
    }
    1
}

unsafe extern "C" fn set_version(_version: u32) {}

#[repr(C)]
struct Callbacks {
    size: usize,
    get: unsafe extern "C" fn(c_int, *mut *const c_void, *mut c_uint) -> c_int,
}

#[repr(C)]
struct Version {
    size: usize,
    version: u32,
    reserved: u32,
    set: unsafe extern "C" fn(u32),
}

unsafe extern "C" fn get_table(table: u32) -> *const c_void {
    static CALLBACKS: Callbacks = Callbacks { size: size_of::<Callbacks>(), get: get_functions };
    static VERSION: Version = Version { size: size_of::<Version>(), version: 3, reserved: 0, set: set_version };
    match table {
        TABLE_OF_CALLBACKS => (&raw const CALLBACKS).cast(),
        TABLE_OF_VERSION => (&raw const VERSION).cast(),
        _ => null(),
    }
}

/// Loads the library of a profiler; whether it wants ranges.
fn load() -> bool {
    let path = std::env::var_os("NVTX_INJECTION64_PATH").filter(|path| !path.is_empty());
    let Some(path) = path.and_then(|path| CString::new(path.as_bytes()).ok()) else { return false };
    // SAFETY: the text ends; who sets the variable wants this library in the process.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return false;
    }
    // SAFETY: a library that is open; the text ends.
    let initialize = unsafe { libc::dlsym(library, c"InitializeInjectionNvtx2".as_ptr()) };
    if initialize.is_null() {
        return false;
    }
    MODULE_OF_THE_CORE.open();
    OTHER_MODULES.open();
    type GetTable = unsafe extern "C" fn(u32) -> *const c_void;
    // SAFETY: NVTX gives the function of this name this type.
    let initialize: unsafe extern "C" fn(GetTable) -> c_int = unsafe { std::mem::transmute(initialize) };
    // SAFETY: the tables are static.
    let wanted = unsafe { initialize(get_table) } != 0;
    let core = &MODULE_OF_THE_CORE;
    wanted && !core.function(RANGE_PUSH).is_null() && !core.function(RANGE_POP).is_null()
}

/// Whether a profiler wants ranges. Loads its library at the first call; threads that come meanwhile have none.
fn wanted() -> bool {
    const UNKNOWN: u8 = 0;
    const LOADING: u8 = 1;
    const WANTED: u8 = 2;
    const UNWANTED: u8 = 3;
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
    let state = STATE.load(Ordering::Acquire);
    if state != UNKNOWN {
        return state == WANTED;
    }
    if STATE.compare_exchange(UNKNOWN, LOADING, Ordering::Acquire, Ordering::Acquire).is_err() {
        return false;
    }
    let wanted = load();
    STATE.store(if wanted { WANTED } else { UNWANTED }, Ordering::Release);
    wanted
}

/// A range of this thread, until it is dropped.
pub struct Range(bool);

impl Range {
    /// Begins a range, if a profiler wants it. `name` is asked for only then.
    pub fn begin(name: impl FnOnce() -> String) -> Range {
        let wanted = wanted();
        if let Some(name) = wanted.then(|| CString::new(name()).ok()).flatten() {
            push(&name);
        }
        Range(wanted)
    }
}

fn push(name: &CStr) {
    let function = MODULE_OF_THE_CORE.function(RANGE_PUSH);
    // SAFETY: not null where ranges are wanted; nvtxRangePushA has this type.
    let push: unsafe extern "C" fn(*const c_char) -> c_int = unsafe { std::mem::transmute(function) };
    // SAFETY: the text ends.
    unsafe { push(name.as_ptr()) };
}

impl Drop for Range {
    fn drop(&mut self) {
        if !self.0 {
            return;
        }
        let function = MODULE_OF_THE_CORE.function(RANGE_POP);
        // SAFETY: not null where ranges are wanted; nvtxRangePop has this type.
        let pop: unsafe extern "C" fn() -> c_int = unsafe { std::mem::transmute(function) };
        // SAFETY: a range of this thread was begun.
        unsafe { pop() };
    }
}
