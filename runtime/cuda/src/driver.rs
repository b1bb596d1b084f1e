//! The table of driver functions, resolved once per process.

use super::abi::*;
use super::error::{CudaError, Version};
use super::latest;
use super::library::{self, Candidate, Kind, Library};
use crate::fork;
use dtc_host::environment;
use dtc_host::exit;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
#[path = "tests/declarations.rs"]
pub(crate) mod declarations;

/// Oldest supported driver: the first with all functions of the table.
const NEEDED: Version = Version { major: 11, minor: 4 };

static KIND: Kind = Kind {
    name: "CUDA driver",
    variable: c"DTC_CUDA_DRIVER",
    hint: "install the NVIDIA driver, or name the path of its libcuda.so.1 in DTC_CUDA_DRIVER",
};

/// Names of the driver library. `libcuda.so` is left out: it is the name of the toolkit's link-time stub.
const CANDIDATES: [&str; 3] = ["libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1"];

macro_rules! functions {
    ($($field:ident = $symbol:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// Pointers to the functions of the driver, all resolved before the first is called.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        impl Functions {
            fn find(library: &mut Library) -> Result<Functions, CudaError> {
                // SAFETY: the field types of `Functions` are those of the declarations in `cuda.h`.
                Ok(unsafe { Functions { $($field: library.symbol(stringify!($symbol))?,)* } })
            }
        }

        #[cfg(test)]
        impl Functions {
            /// The name of every function, and its signature as declared here and by cudarc.
            fn beside_cudarc() -> Vec<(&'static str, Vec<usize>, Vec<usize>)> {
                macro_rules! any { ($name:ident) => { _ }; }
                use declarations::{Signature, sizes};
                vec![$((
                    stringify!($symbol),
                    <unsafe extern "C" fn($($type),*) -> c_int>::sizes(),
                    sizes(cudarc::driver::sys::$symbol as unsafe fn($(any!($argument)),*) -> _),
                )),*]
            }
        }

        #[allow(
            clippy::too_many_arguments,
            dead_code,
            reason = "the driver's own signatures; where a status is no failure, the field is called and not this"
        )]
        impl Driver {
            $(
                /// Calls the driver function and turns its status into a result.
                ///
                /// # Safety
                ///
                /// The preconditions in the driver's documentation: handles are alive, and pointers valid for the
                /// access.
                #[inline]
                pub(super) unsafe fn $field(&self, $($argument: $type),*) -> Result<(), CudaError> {
                    // SAFETY: handles and pointers fulfil the documented preconditions of the function (contract of
                    // this method).
                    self.check(stringify!($symbol), unsafe { (self.functions.$field)($($argument),*) })
                }
            )*
        }
    };
}

functions! {
    init = cuInit(flags: c_uint);
    device_get_count = cuDeviceGetCount(count: *mut c_int);
    device_get = cuDeviceGet(device: *mut c_int, ordinal: c_int);
    device_get_name = cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    device_get_uuid = cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    device_get_attribute = cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    device_total_memory = cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    device_can_access_peer = cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
    primary_context_retain = cuDevicePrimaryCtxRetain(context: *mut ContextHandle, device: c_int);
    primary_context_release = cuDevicePrimaryCtxRelease_v2(device: c_int);
    context_get_current = cuCtxGetCurrent(context: *mut ContextHandle);
    context_push_current = cuCtxPushCurrent_v2(context: ContextHandle);
    context_pop_current = cuCtxPopCurrent_v2(context: *mut ContextHandle);
    context_synchronize = cuCtxSynchronize();
    context_enable_peer_access = cuCtxEnablePeerAccess(peer: ContextHandle, flags: c_uint);
    module_load_data = cuModuleLoadDataEx(
        module: *mut ModuleHandle, image: *const c_void, options: c_uint, names: *mut c_int, values: *mut *mut c_void,
    );
    module_unload = cuModuleUnload(module: ModuleHandle);
    module_get_function = cuModuleGetFunction(function: *mut FunctionHandle, module: ModuleHandle, name: *const c_char);
    function_get_attribute = cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: FunctionHandle);
    launch_kernel = cuLaunchKernel(
        function: FunctionHandle, blocks_x: c_uint, blocks_y: c_uint, blocks_z: c_uint, threads_x: c_uint,
        threads_y: c_uint, threads_z: c_uint, dynamic_shared_bytes: c_uint, stream: StreamHandle,
        parameters: *mut *mut c_void, extra: *mut *mut c_void,
    );
    stream_create = cuStreamCreateWithPriority(stream: *mut StreamHandle, flags: c_uint, priority: c_int);
    stream_destroy = cuStreamDestroy_v2(stream: StreamHandle);
    stream_synchronize = cuStreamSynchronize(stream: StreamHandle);
    stream_query = cuStreamQuery(stream: StreamHandle);
    stream_wait_event = cuStreamWaitEvent(stream: StreamHandle, event: EventHandle, flags: c_uint);
    stream_is_capturing = cuStreamIsCapturing(stream: StreamHandle, status: *mut c_int);
    stream_get_capture_info = cuStreamGetCaptureInfo_v2(
        stream: StreamHandle, status: *mut c_int, id: *mut u64, graph: *mut GraphHandle,
        dependencies: *mut *const GraphNodeHandle, dependency_count: *mut usize,
    );
    stream_begin_capture = cuStreamBeginCapture_v2(stream: StreamHandle, mode: c_int);
    stream_end_capture = cuStreamEndCapture(stream: StreamHandle, graph: *mut GraphHandle);
    exchange_capture_mode = cuThreadExchangeStreamCaptureMode(mode: *mut c_int);
    graph_instantiate = cuGraphInstantiateWithFlags(executable: *mut GraphExecHandle, graph: GraphHandle, flags: u64);
    graph_launch = cuGraphLaunch(executable: GraphExecHandle, stream: StreamHandle);
    graph_get_nodes = cuGraphGetNodes(graph: GraphHandle, nodes: *mut GraphNodeHandle, count: *mut usize);
    graph_node_get_type = cuGraphNodeGetType(node: GraphNodeHandle, kind: *mut c_int);
    graph_destroy = cuGraphDestroy(graph: GraphHandle);
    graph_executable_destroy = cuGraphExecDestroy(executable: GraphExecHandle);
    user_object_create = cuUserObjectCreate(
        object: *mut UserObjectHandle, pointer: *mut c_void, destroy: unsafe extern "C" fn(*mut c_void), count: c_uint,
        flags: c_uint,
    );
    user_object_release = cuUserObjectRelease(object: UserObjectHandle, count: c_uint);
    graph_retain_user_object = cuGraphRetainUserObject(
        graph: GraphHandle, object: UserObjectHandle, count: c_uint, flags: c_uint,
    );
    event_create = cuEventCreate(event: *mut EventHandle, flags: c_uint);
    event_destroy = cuEventDestroy_v2(event: EventHandle);
    event_record = cuEventRecord(event: EventHandle, stream: StreamHandle);
    event_query = cuEventQuery(event: EventHandle);
    event_synchronize = cuEventSynchronize(event: EventHandle);
    event_elapsed_time = cuEventElapsedTime(milliseconds: *mut f32, start: EventHandle, end: EventHandle);
    memory_allocate = cuMemAlloc_v2(pointer: *mut DevicePointer, bytes: usize);
    memory_allocate_managed = cuMemAllocManaged(pointer: *mut DevicePointer, bytes: usize, flags: c_uint);
    memory_free = cuMemFree_v2(pointer: DevicePointer);
    ipc_get_handle = cuIpcGetMemHandle(handle: *mut IpcHandle, pointer: DevicePointer);
    ipc_open_handle = cuIpcOpenMemHandle_v2(pointer: *mut DevicePointer, handle: IpcHandle, flags: c_uint);
    ipc_close_handle = cuIpcCloseMemHandle(pointer: DevicePointer);
    context_set_limit = cuCtxSetLimit(limit: c_int, value: usize);
    memory_get_info = cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    memory_host_allocate = cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    memory_host_free = cuMemFreeHost(pointer: *mut c_void);
    memory_host_device_pointer = cuMemHostGetDevicePointer_v2(
        device: *mut DevicePointer, host: *mut c_void, flags: c_uint,
    );
    copy_to_device = cuMemcpyHtoD_v2(destination: DevicePointer, source: *const c_void, bytes: usize);
    copy_to_host = cuMemcpyDtoH_v2(destination: *mut c_void, source: DevicePointer, bytes: usize);
    copy_to_device_async = cuMemcpyHtoDAsync_v2(
        destination: DevicePointer, source: *const c_void, bytes: usize, stream: StreamHandle,
    );
    copy_to_host_async = cuMemcpyDtoHAsync_v2(
        destination: *mut c_void, source: DevicePointer, bytes: usize, stream: StreamHandle,
    );
    copy_on_device_async = cuMemcpyDtoDAsync_v2(
        destination: DevicePointer, source: DevicePointer, bytes: usize, stream: StreamHandle,
    );
    copy_async = cuMemcpyAsync(destination: DevicePointer, source: DevicePointer, bytes: usize, stream: StreamHandle);
    copy_2d_async = cuMemcpy2DAsync_v2(copy: *const Memcpy2D, stream: StreamHandle);
    copy_3d_async = cuMemcpy3DAsync_v2(copy: *const Memcpy3D, stream: StreamHandle);
    fill = cuMemsetD8_v2(destination: DevicePointer, value: u8, bytes: usize);
    fill_async = cuMemsetD8Async(destination: DevicePointer, value: u8, bytes: usize, stream: StreamHandle);
    pointer_get_attributes = cuPointerGetAttributes(
        count: c_uint, attributes: *const c_int, values: *mut *mut c_void, pointer: DevicePointer,
    );
}

type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetErrorText = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
type GetFunction = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64) -> c_int;
/// `cuFuncLoad`.
pub(super) type FunctionLoad = unsafe extern "C" fn(FunctionHandle) -> c_int;
/// `cuMemcpyBatchAsync`, as of CUDA 12.8.
pub(super) type CopyBatch = unsafe extern "C" fn(
    *mut DevicePointer,
    *mut DevicePointer,
    *mut usize,
    usize,
    *mut MemcpyAttributes,
    *mut usize,
    usize,
    *mut usize,
    StreamHandle,
) -> c_int;

/// The CUDA driver of this machine: a loaded library, independent of any device.
///
/// ```
/// use dtc_cuda::Driver;
/// match Driver::get() {
///     Ok(driver) => println!("CUDA {}", driver.version()),
///     Err(error) => println!("{error}"),
/// }
/// ```
pub struct Driver {
    pub(super) functions: Functions,
    /// Loads a function's code. `None` before CUDA 12.4.
    pub(super) function_load: Option<FunctionLoad>,
    /// Enqueues many copies in one call. `None` before CUDA 12.8.
    pub(super) copy_batch: Option<CopyBatch>,
    error_name: GetErrorText,
    error_text: GetErrorText,
    version: Version,
    path: Option<PathBuf>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("version", &self.version).field("path", &self.path).finish_non_exhaustive()
    }
}

static DRIVER: OnceLock<Result<Driver, CudaError>> = OnceLock::new();
static INITIALISED: OnceLock<Result<(), CudaError>> = OnceLock::new();

impl Driver {
    /// Loads the driver at the first call, by the path in the environment variable `DTC_CUDA_DRIVER` or by its usual
    /// names. It does not initialise CUDA: [`Device::get`](super::Device::get), `list` and `count` do.
    ///
    /// # Errors
    ///
    /// The library is missing, lacks functions, or is too old; the result is the same for the whole process.
    /// [`CudaError::Forked`] in a child that was forked after CUDA was initialised.
    ///
    /// ```
    /// use dtc_cuda::Driver;
    /// assert_eq!(Driver::get().err(), Driver::get().err());
    /// ```
    pub fn get() -> Result<&'static Driver, CudaError> {
        fork::DRIVER.check()?;
        // A child forked while a thread loads the driver could wait for that thread for ever, so the watch covers the
        // load.
        let loaded = match DRIVER.get() {
            Some(loaded) => loaded,
            None => fork::DRIVER.during(|| DRIVER.get_or_init(Driver::load)),
        };
        loaded.as_ref().map_err(CudaError::clone)
    }

    /// The driver, if it is usable and this process has loaded it already, also by other code. Loads no library.
    pub(super) fn if_loaded() -> Option<&'static Driver> {
        /// Value of [`library::loads`] at the last look that did not find the driver.
        static ABSENT_AT: AtomicU64 = AtomicU64::new(0);
        match DRIVER.get() {
            Some(Ok(driver)) => fork::DRIVER.check().ok().map(|()| driver),
            Some(Err(_)) => None,
            None => {
                let loads = library::loads();
                if loads != 0 && loads == ABSENT_AT.load(Ordering::Relaxed) {
                    return None;
                }
                // Before the look: a library that comes meanwhile is behind it. In a child that cannot count, the loader's lock may be
                // held for ever.
                let last = (loads != 0).then(latest::find);
                let named = environment::path(KIND.variable);
                if named.into_iter().chain(CANDIDATES.map(PathBuf::from)).any(|path| library::is_open(&path)) {
                    return Driver::get().ok();
                }
                ABSENT_AT.store(loads, Ordering::Relaxed);
                if let Some(last) = last {
                    last.remember();
                }
                None
            }
        }
    }

    /// The driver after `cuInit`, which is called once.
    pub(super) fn initialised() -> Result<&'static Driver, CudaError> {
        let driver = Driver::get()?;
        let result = match INITIALISED.get() {
            Some(result) => result,
            // The watch covers the call, as in `get`.
            None => fork::DRIVER.during(|| {
                INITIALISED.get_or_init(|| {
                    // SAFETY: `cuInit` has no preconditions and may be called repeatedly.
                    let code = unsafe { (driver.functions.init)(0) };
                    if code == SUCCESS {
                        // The watch never ends: no child can use a driver that its parent has initialised.
                        fork::DRIVER.enter();
                        exit::come_first();
                    }
                    match code {
                        NO_DEVICE => Err(CudaError::NoDevice { reason: driver.describe(code) }),
                        _ => driver.check("cuInit", code),
                    }
                })
            }),
        };
        if result.is_ok() {
            exit::watch_main_thread();
        }
        result.clone().map(|()| driver)
    }

    /// Newest CUDA release that the driver supports.
    ///
    /// ```
    /// use dtc_cuda::{Driver, Version};
    /// if let Ok(driver) = Driver::get() {
    ///     assert!(driver.version() >= Version { major: 11, minor: 4 });
    /// }
    /// ```
    pub fn version(&self) -> Version {
        self.version
    }

    /// Path of the library, if the loader reports it.
    ///
    /// ```
    /// use dtc_cuda::Driver;
    /// if let Some(path) = Driver::get().ok().and_then(Driver::path) {
    ///     println!("{}", path.display());
    /// }
    /// ```
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn load() -> Result<Driver, CudaError> {
        let mut library = Library::open(&KIND, CANDIDATES.map(|name| Candidate::System(PathBuf::from(name))))?;
        // The version is checked first, so that an old driver is reported as old and not as incomplete.
        // SAFETY: the type is that of the declaration in `cuda.h`.
        let (get_version, error_name, error_text) = unsafe {
            let get_version: GetVersion = library.symbol("cuDriverGetVersion")?;
            let error_name: GetErrorText = library.symbol("cuGetErrorName")?;
            let error_text: GetErrorText = library.symbol("cuGetErrorString")?;
            (get_version, error_name, error_text)
        };
        let mut code = 0;
        // SAFETY: the driver allows this call before `cuInit`, and `code` is a live integer.
        let status = unsafe { get_version(&mut code) };
        if status != SUCCESS {
            let name = describe(error_name, error_text, status);
            return Err(CudaError::Call { call: "cuDriverGetVersion", code: status, name });
        }
        let version = Version::from_code(code);
        if version < NEEDED {
            return Err(CudaError::DriverTooOld { found: version, needed: NEEDED });
        }
        let functions = Functions::find(&mut library)?;
        // SAFETY: the type is that of the declaration in `cuda.h`.
        let newer: Option<GetFunction> = unsafe { library.symbol("cuGetProcAddress") }.ok();
        let newer = |symbol: &CStr, since: Version| {
            let mut found = std::ptr::null_mut();
            let get = newer.filter(|_| version >= since)?;
            // SAFETY: `symbol` is NUL-terminated and `found` is a live pointer to fill.
            let status = unsafe { get(symbol.as_ptr(), &mut found, since.code(), 0) };
            (status == SUCCESS && !found.is_null()).then_some(found)
        };
        let function_load = newer(c"cuFuncLoad", Version { major: 12, minor: 4 });
        let copy_batch = newer(c"cuMemcpyBatchAsync", Version { major: 12, minor: 8 });
        Ok(Driver {
            functions,
            // SAFETY: `cuGetProcAddress` returned the function for version `since`, whose declaration is the target
            // type.
            function_load: function_load
                .map(|found| unsafe { std::mem::transmute::<*mut c_void, FunctionLoad>(found) }),
            // SAFETY: `cuGetProcAddress` returned the function for version `since`, whose declaration is the target
            // type.
            copy_batch: copy_batch.map(|found| unsafe { std::mem::transmute::<*mut c_void, CopyBatch>(found) }),
            error_name,
            error_text,
            version,
            path: library.keep(),
        })
    }

    /// Turns a status into a result.
    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<(), CudaError> {
        if code == SUCCESS { Ok(()) } else { Err(self.failure(call, code)) }
    }

    /// The error for a status that is a failure.
    #[cold]
    pub(super) fn failure(&self, call: &'static str, code: c_int) -> CudaError {
        CudaError::Call { call, code, name: self.describe(code) }
    }

    /// The name of a status, and the driver's description of it.
    pub(super) fn describe(&self, code: c_int) -> String {
        describe(self.error_name, self.error_text, code)
    }
}

fn describe(error_name: GetErrorText, error_text: GetErrorText, code: c_int) -> String {
    let text = |get: GetErrorText| {
        let mut text = std::ptr::null();
        // SAFETY: the driver accepts any code, and `text` is a live pointer to fill.
        let status = unsafe { get(code, &mut text) };
        if status != SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: `text` is not null, so it is one of the driver's NUL-terminated constants.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    match (text(error_name), text(error_text)) {
        (Some(name), Some(text)) => format!("{name}, {text}"),
        (Some(name), None) => name,
        _ => "an unknown status".to_owned(),
    }
}
