//! Handles, structures and constants of the CUDA driver, as its header `cuda.h` declares them.

use std::ffi::{c_int, c_uint, c_void};

/// An address in the unified address space.
pub type DevicePointer = u64;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub *mut c_void);

        impl $name {
            /// No handle. For streams: the legacy default stream.
            pub const NULL: $name = $name(std::ptr::null_mut());
        }

        // SAFETY: a handle is an opaque number that this crate never dereferences; the driver accepts it from any
        // thread.
        unsafe impl Send for $name {}
        // SAFETY: a shared handle can only be copied; the driver locks the object behind it.
        unsafe impl Sync for $name {}
    )*};
}

handles! {
    /// CUcontext.
    ContextHandle;
    /// CUmodule.
    ModuleHandle;
    /// CUfunction.
    FunctionHandle;
    /// CUstream.
    StreamHandle;
    /// CUevent.
    EventHandle;
    /// CUgraph.
    GraphHandle;
    /// CUgraphNode.
    GraphNodeHandle;
    /// CUgraphExec.
    GraphExecHandle;
    /// CUuserObject.
    UserObjectHandle;
}

// CUresult
pub const SUCCESS: c_int = 0;
pub const NOT_INITIALIZED: c_int = 3;
pub const DEINITIALIZED: c_int = 4;
pub const NO_DEVICE: c_int = 100;
pub const INVALID_IMAGE: c_int = 200;
pub const NO_BINARY_FOR_GPU: c_int = 209;
pub const INVALID_PTX: c_int = 218;
pub const UNSUPPORTED_PTX_VERSION: c_int = 222;
pub const NOT_READY: c_int = 600;
pub const PEER_ACCESS_ALREADY_ENABLED: c_int = 704;

// CUdevice_attribute
pub const MULTIPROCESSOR_COUNT: c_int = 16;
pub const INTEGRATED: c_int = 18;
pub const L2_CACHE_SIZE: c_int = 38;
pub const MAX_THREADS_PER_MULTIPROCESSOR: c_int = 39;
pub const ASYNC_ENGINE_COUNT: c_int = 40;
pub const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
pub const COMPUTE_CAPABILITY_MINOR: c_int = 76;
pub const MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: c_int = 81;
pub const PAGEABLE_MEMORY_ACCESS: c_int = 88;
pub const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
pub const PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES: c_int = 100;

// CUfunction_attribute
pub const NUM_REGS: c_int = 4;

// CUjit_option
pub const JIT_ERROR_LOG_BUFFER: c_int = 5;
pub const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;

// Flags of streams, events, host memory and managed memory
pub const STREAM_NON_BLOCKING: c_uint = 1;
pub const EVENT_DEFAULT: c_uint = 0;
pub const EVENT_DISABLE_TIMING: c_uint = 2;
pub const HOST_ALLOC_PORTABLE: c_uint = 1;
pub const HOST_ALLOC_MAPPED: c_uint = 2;
pub const ATTACH_GLOBAL: c_uint = 1;

// CUlimit
pub const LIMIT_MAX_L2_FETCH_GRANULARITY: c_int = 5;

// CUmemorytype
pub const MEMORY_HOST: c_uint = 1;
pub const MEMORY_DEVICE: c_uint = 2;
pub const MEMORY_UNIFIED: c_uint = 4;

// CUpointer_attribute
pub const POINTER_MEMORY_TYPE: c_int = 2;
pub const POINTER_DEVICE_POINTER: c_int = 3;
pub const POINTER_BUFFER_ID: c_int = 7;
pub const POINTER_IS_MANAGED: c_int = 8;
pub const POINTER_DEVICE_ORDINAL: c_int = 9;
pub const POINTER_RANGE_START: c_int = 11;
pub const POINTER_RANGE_SIZE: c_int = 12;

// CUstreamCaptureStatus
pub const CAPTURE_NONE: c_int = 0;
pub const CAPTURE_ACTIVE: c_int = 1;

// CUstreamCaptureMode
pub const CAPTURE_GLOBAL: c_int = 0;
pub const CAPTURE_THREAD_LOCAL: c_int = 1;
pub const CAPTURE_RELAXED: c_int = 2;

// CUgraphNodeType
pub const NODE_KERNEL: c_int = 0;
pub const NODE_MEMCPY: c_int = 1;
pub const NODE_MEMSET: c_int = 2;

// Flags of user objects
pub const USER_OBJECT_NO_DESTRUCTOR_SYNC: c_uint = 1;
pub const GRAPH_USER_OBJECT_MOVE: c_uint = 1;

// CUmemcpySrcAccessOrder and flags of CUmemcpyAttributes
pub const SOURCE_ACCESS_STREAM: c_int = 1;
pub const PREFER_OVERLAP_WITH_COMPUTE: c_uint = 1;

/// CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.
pub const IPC_ENABLE_PEER_ACCESS: c_uint = 1;

/// CUipcMemHandle. The driver takes it by value.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct IpcHandle(pub [u8; 64]);

/// CUDA_MEMCPY2D.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy2D {
    pub source_x: usize,
    pub source_y: usize,
    pub source_memory: c_uint,
    pub source_host: *const c_void,
    pub source_device: DevicePointer,
    pub source_array: *mut c_void,
    pub source_pitch: usize,
    pub destination_x: usize,
    pub destination_y: usize,
    pub destination_memory: c_uint,
    pub destination_host: *mut c_void,
    pub destination_device: DevicePointer,
    pub destination_array: *mut c_void,
    pub destination_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// CUDA_MEMCPY3D.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy3D {
    pub source_x: usize,
    pub source_y: usize,
    pub source_z: usize,
    pub source_lod: usize,
    pub source_memory: c_uint,
    pub source_host: *const c_void,
    pub source_device: DevicePointer,
    pub source_array: *mut c_void,
    pub reserved0: *mut c_void,
    pub source_pitch: usize,
    pub source_height: usize,
    pub destination_x: usize,
    pub destination_y: usize,
    pub destination_z: usize,
    pub destination_lod: usize,
    pub destination_memory: c_uint,
    pub destination_host: *mut c_void,
    pub destination_device: DevicePointer,
    pub destination_array: *mut c_void,
    pub reserved1: *mut c_void,
    pub destination_pitch: usize,
    pub destination_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// CUmemLocation; `kind` zero gives no hint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryLocation {
    pub kind: c_int,
    pub id: c_int,
}

/// CUmemcpyAttributes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemcpyAttributes {
    pub source_access_order: c_int,
    pub source_hint: MemoryLocation,
    pub destination_hint: MemoryLocation,
    pub flags: c_uint,
}
