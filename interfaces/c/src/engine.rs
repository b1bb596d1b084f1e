//! Engines: settings, and the hooks of the caller.

use crate::arguments::{self, Context, Growing};
use crate::handle::{self, Handle, Tag};
use crate::memory;
use crate::status::{DTC_ERROR_ARGUMENT, DTC_ERROR_VERSION, Failure, Outcome, answer};
use dtc_runtime::cuda::StagingAllocator;
use dtc_runtime::store::Config;
use dtc_runtime::{Engine, Policy};
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The version of this interface. Another number is another interface; functions and fields at the end of structs are
/// added without a new number.
pub const DTC_ABI_VERSION: c_int = 0;

/// Kernels are compiled in the background, from commit on.
pub const DTC_POLICY_BACKGROUND: i32 = 0;
/// Kernels are compiled at commit, which waits.
pub const DTC_POLICY_EAGER: i32 = 1;
/// Kernels are compiled in the background, after `lazy_uses` packs and unpacks.
pub const DTC_POLICY_LAZY: i32 = 2;
/// Kernels are never compiled.
pub const DTC_POLICY_OFF: i32 = 3;

/// The library starts one thread of low priority when a type first needs it.
pub const DTC_THREAD_BACKGROUND: i32 = 0;
/// The library starts no thread: `dtc_compile_pending` does the background work.
pub const DTC_THREAD_NONE: i32 = 1;

/// The library does without something, for instance a damaged file of its cache.
pub const DTC_LOG_WARNING: c_int = 1;

/// Receives what the library would otherwise not say: a level (`DTC_LOG_...`) and a message that is valid during the call.
/// Any thread may call it, also the library's own, and several at once. It must not call the library.
pub type dtc_log_function = Option<unsafe extern "C" fn(context: *mut c_void, level: c_int, message: *const c_char)>;

/// Allocates `bytes` bytes of host memory for transfers of a GPU. They are aligned to 64, nothing else uses them, and they were
/// allocated or registered with CUDA, portable and mapped. Null if there is no such memory: the transfer fails with
/// `DTC_ERROR_DEVICE`. Memory is kept and used again, so calls are few. Any thread may call it, also the library's own, and several
/// at once. It must not call the library.
pub type dtc_allocate_function =
    Option<unsafe extern "C" fn(context: *mut c_void, device: i32, bytes: i64) -> *mut c_void>;

/// Frees what `allocate` returned for as many bytes of the same GPU, when nothing uses it any more; with the last type of the
/// engine at the latest. CUDA may be gone by then. It is called like `allocate`.
pub type dtc_free_function =
    Option<unsafe extern "C" fn(context: *mut c_void, device: i32, memory: *mut c_void, bytes: i64)>;

/// The allocator of a caller.
struct Staging {
    allocate: unsafe extern "C" fn(*mut c_void, i32, i64) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, i32, *mut c_void, i64),
    context: Context,
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the allocator of the caller")
    }
}

// SAFETY: `allocate` returns null or memory of at least `bytes` bytes, aligned to 64, that nothing else uses until
// `free` (contract of `dtc_allocate_function`); both may be called from any thread.
unsafe impl StagingAllocator for Staging {
    fn allocate(&self, device: u32, bytes: usize) -> *mut u8 {
        // SAFETY: any thread may call `allocate`, with the context that came with it, until the last type of the engine
        // is released (contract of `dtc_init`), and the engine drops this allocator by then.
        unsafe { (self.allocate)(self.context.0, device as i32, bytes as i64) }.cast()
    }

    unsafe fn free(&self, device: u32, memory: *mut u8, bytes: usize) {
        // SAFETY: any thread may call `free`, with the context that came with it, until the last type of the engine is
        // released (contract of `dtc_init`); `memory` came from `allocate` with this device and length, and is freed
        // once (contract of this function).
        unsafe { (self.free)(self.context.0, device as i32, memory.cast(), bytes as i64) }
    }
}

/// Settings of an engine. `DTC_CONFIG_INIT` sets `size` and `abi_version`, and every other field to 0, its default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dtc_config {
    /// `sizeof(dtc_config)`.
    pub size: i64,
    /// `DTC_ABI_VERSION`.
    pub abi_version: i32,
    /// When machine code is made: `DTC_POLICY_...`.
    pub policy: i32,
    /// Uses of a type before its kernel is compiled, with `DTC_POLICY_LAZY`.
    pub lazy_uses: i64,
    /// Types that nobody holds and the cache keeps; 0 for 1,024.
    pub cached_types: i64,
    /// Bytes that the cache keeps for them; 0 for 64 MiB.
    pub cached_bytes: i64,
    /// Whether the library may start a thread: `DTC_THREAD_...`.
    pub thread: i32,
    /// 0; anything else is refused, so that a later library can give it a meaning.
    pub reserved: i32,
    /// The directory for compiled GPU code; null for what the environment says (`DTC_CACHE_DIR`), "off" for none.
    pub store_directory: *const c_char,
    /// Receives warnings; null for none.
    pub log: dtc_log_function,
    /// Handed to `log`.
    pub log_context: *mut c_void,
    /// Allocates the pinned host memory that transfers go through; null for CUDA. With `free` or not at all.
    pub allocate: dtc_allocate_function,
    /// Frees it.
    pub free: dtc_free_function,
    /// Handed to `allocate` and `free`.
    pub memory_context: *mut c_void,
}

// SAFETY: `repr(C)`, begins with an `i64`, and any bytes are a value: integers, pointers, and a function pointer that the
// caller answers for.
unsafe impl Growing for dtc_config {
    const DEFAULT: dtc_config = dtc_config {
        size: size_of::<dtc_config>() as i64,
        abi_version: DTC_ABI_VERSION,
        policy: DTC_POLICY_BACKGROUND,
        lazy_uses: 0,
        cached_types: 0,
        cached_bytes: 0,
        thread: DTC_THREAD_BACKGROUND,
        reserved: 0,
        store_directory: std::ptr::null(),
        log: None,
        log_context: std::ptr::null_mut(),
        allocate: None,
        free: None,
        memory_context: std::ptr::null_mut(),
    };
    const NAME: &'static str = "dtc_config";
}

/// An engine: where types are made, and where equal ones meet. Any thread may use it.
pub struct dtc_engine(());

impl Handle for dtc_engine {
    type Inside = Engine;
    const TAG: Tag = Tag::ENGINE;
    const NAME: &'static str = "dtc_engine";
}

/// The version of the library that is loaded: `DTC_ABI_VERSION` of its header.
#[unsafe(no_mangle)]
pub extern "C" fn dtc_abi_version() -> c_int {
    DTC_ABI_VERSION
}

/// Makes an engine. CUDA is neither loaded nor initialised before a call has memory of a device, or names one.
///
/// `config`: the settings; null for the defaults.
/// `engine`: receives the engine, which ends with `dtc_finalize`.
///
/// `DTC_ERROR_VERSION`: `config->abi_version` is not that of this library.
/// `DTC_ERROR_ARGUMENT`: `engine` is null, or a field of `config` is out of range.
///
/// # Safety
///
/// `config` is null or leads to `config->size` bytes, and `store_directory` to a text that ends; the hooks stay callable, by
/// any thread, until the last type of the engine is released. `engine` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_init(config: *const dtc_config, engine: *mut *mut dtc_engine) -> c_int {
    answer(|| {
        arguments::check_pointer("engine", engine)?;
        let _claim = memory::for_a_call()?;
        // SAFETY: `config` is null or readable for the size that it begins with, its texts end with a byte 0, and its
        // hooks stay callable (contract of this function).
        let made = unsafe { build(&arguments::read(config)?)? };
        // SAFETY: `engine` is aligned and not null (checked above), so it is writable (contract of this function).
        unsafe { arguments::give("engine", engine, handle::share(made)) }
    })
}

/// # Safety
///
/// As for [`dtc_init`].
unsafe fn build(config: &dtc_config) -> Outcome<Engine> {
    let place = |field: &str| format!("dtc_config.{field}");
    if config.abi_version != DTC_ABI_VERSION {
        let found = config.abi_version;
        let message = format!("dtc_config.abi_version: expected {DTC_ABI_VERSION}, found {found}");
        return Err(Failure::new(DTC_ERROR_VERSION, message));
    }
    let at_most = |field: &str, value: i64, most: u64| {
        let found = || Failure::argument(&place(field), format_args!("0 to {most}"), value);
        u64::try_from(value).ok().filter(|&value| value <= most).ok_or_else(found)
    };
    let policy = match config.policy {
        DTC_POLICY_BACKGROUND => Policy::Background,
        DTC_POLICY_EAGER => Policy::Eager,
        DTC_POLICY_LAZY => Policy::Lazy(at_most("lazy_uses", config.lazy_uses, u32::MAX.into())? as u32),
        DTC_POLICY_OFF => Policy::Off,
        unknown => return Err(Failure::argument(&place("policy"), "one of DTC_POLICY_", unknown)),
    };
    let background = match config.thread {
        DTC_THREAD_BACKGROUND => true,
        DTC_THREAD_NONE => false,
        unknown => return Err(Failure::argument(&place("thread"), "one of DTC_THREAD_", unknown)),
    };
    if config.reserved != 0 {
        return Err(Failure::argument(&place("reserved"), 0, config.reserved));
    }
    let most = isize::MAX as u64;
    let types = at_most("cached_types", config.cached_types, most)? as usize;
    let bytes = at_most("cached_bytes", config.cached_bytes, most)? as usize;
    let mut store = match config.store_directory.is_null() {
        true => Config::from_environment(),
        false => {
            // SAFETY: `store_directory` is not null, so it is a text that ends with a byte 0 (contract of this
            // function); it is not used after this call.
            let directory = unsafe { CStr::from_ptr(config.store_directory) };
            let directory = directory
                .to_str()
                .map_err(|_| Failure::argument(&place("store_directory"), "text in UTF-8", "other bytes"))?;
            if directory == "off" {
                Config::from_environment().without_directories()
            } else {
                Config::from_environment().directory(directory)
            }
        }
    };
    if let Some(log) = config.log {
        let context = Context(config.log_context);
        let warn = move |text: String| {
            let context = context;
            let message = CString::new(text.replace('\0', " ")).unwrap_or_default();
            // SAFETY: any thread may call `log`, with the context that came with it, until the last type of the engine
            // is released (contract of this function); the message lives until the call returns.
            unsafe { log(context.0, DTC_LOG_WARNING, message.as_ptr()) };
        };
        dtc_runtime::unknown_level().into_iter().for_each(warn);
        store = store.on_finding(move |finding| warn(finding.to_string()));
    }
    let staging: Option<Arc<dyn StagingAllocator>> = match (config.allocate, config.free) {
        (Some(allocate), Some(free)) => {
            Some(Arc::new(Staging { allocate, free, context: Context(config.memory_context) }))
        }
        (None, None) => None,
        _ => return Err(Failure::argument(&place("free"), "both allocate and free, or none", "one of them")),
    };
    let guard = |entries, work: &mut dyn FnMut()| memory::for_entries(entries).map(|_claim| work()).is_ok();
    let builder = Engine::builder().policy(policy).background_thread(background).store(store).guard(guard);
    let builder = match (types, bytes) {
        (0, 0) => builder,
        _ => builder.cache_caps(if types == 0 { 1024 } else { types }, if bytes == 0 { 64 << 20 } else { bytes }),
    };
    let builder = match staging {
        Some(staging) => builder.staging(staging),
        None => builder,
    };
    Ok(builder.build())
}

/// Ends an engine, and the thread that compiles for it. Its types stay usable until they are released, with the kernels that they have. Calls of CUDA
/// that fail because CUDA is gone already are ignored.
///
/// `DTC_ERROR_HANDLE`: not an engine.
///
/// # Safety
///
/// `engine` is null or came from `dtc_init`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_finalize(engine: *mut dtc_engine) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or came from `dtc_init` (contract of this function).
        unsafe { handle::borrow(engine)? }.end_background();
        // SAFETY: as above, and the caller gives its reference up.
        unsafe { handle::release(engine) }
    })
}

/// Loads a bundle: the directory that `dtc build` made, or the file `kernels.dtc` in it. Types that are first used from then on have
/// its kernels at once, and nothing is compiled for them. Bundles are searched in the order in which they were loaded, after those
/// that the variable `DTC_BUNDLES` lists. Under `DTC_POLICY_OFF` none is used.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: the path is null, or the bundle is absent or damaged, made by another version of dtc, or not safe from other
/// users. Nothing has changed.
///
/// # Safety
///
/// `engine` is null or an engine; `path` is null or a text that ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_load_bundle(engine: *const dtc_engine, path: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        arguments::check_pointer("path", path)?;
        let _claim = memory::for_a_call()?;
        // SAFETY: `path` is not null (checked above), so it is a text that ends with a byte 0 (contract of this function); it is
        // not used after this call.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        engine.load_bundle(path).map_err(|finding| Failure::new(DTC_ERROR_ARGUMENT, format!("path: {finding}")))
    })
}

/// Compiles kernels that wait, until none is left or the time is up: for hosts that forbid threads (`DTC_THREAD_NONE`), in this
/// thread, which needs 256 KiB of stack then.
///
/// `microseconds`: the time. The kernel under way is finished.
/// `waiting`: receives how many still wait, 0 in a forked child; may be null.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: the time is negative.
///
/// # Safety
///
/// `engine` is null or an engine; `waiting` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_compile_pending(engine: *const dtc_engine, microseconds: i64, waiting: *mut i64) -> c_int {
    answer(|| {
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        let budget = Duration::from_micros(arguments::length("microseconds", microseconds)?);
        let _claim = memory::for_a_kernel(0)?;
        let left = engine.compile_pending(budget);
        // SAFETY: `waiting` is null or writable (contract of this function).
        unsafe { arguments::offer("waiting", waiting, left as i64) }
    })
}
