//! The declarations of driver and NVRTC beside those of the crate cudarc, which were generated from the headers of CUDA 12.8.

use super::*;
use cudarc::driver::sys;
use std::mem::offset_of;

/// The size of a function's result, then those of its arguments, in bytes.
pub(crate) trait Signature {
    fn sizes() -> Vec<usize>;
}

macro_rules! signatures {
    ($($($argument:ident)*;)*) => {$(
        impl<Result, $($argument),*> Signature for unsafe fn($($argument),*) -> Result {
            fn sizes() -> Vec<usize> {
                vec![size_of::<Result>(), $(size_of::<$argument>()),*]
            }
        }
        impl<Result, $($argument),*> Signature for unsafe extern "C" fn($($argument),*) -> Result {
            fn sizes() -> Vec<usize> {
                vec![size_of::<Result>(), $(size_of::<$argument>()),*]
            }
        }
    )*};
}

signatures! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
    A B C D E F G H I J;
    A B C D E F G H I J K;
}

pub(crate) fn sizes<S: Signature>(_: S) -> Vec<usize> {
    S::sizes()
}

#[test]
fn functions_have_the_arguments_of_the_header() {
    let pairs = Functions::beside_cudarc();
    assert!(pairs.len() > 55, "{} functions", pairs.len());
    for (name, own, cudarc) in pairs {
        assert_eq!(own, cudarc, "{name}");
    }
}

#[test]
fn functions_outside_of_the_table_have_the_arguments_of_the_header() {
    assert_eq!(GetVersion::sizes(), sizes(sys::cuDriverGetVersion as unsafe fn(_) -> _));
    assert_eq!(GetErrorText::sizes(), sizes(sys::cuGetErrorName as unsafe fn(_, _) -> _));
    assert_eq!(GetErrorText::sizes(), sizes(sys::cuGetErrorString as unsafe fn(_, _) -> _));
    // Since 12.0 the header has `cuGetProcAddress_v2` in its place, with one argument more at the end.
    let newer = sizes(sys::cuGetProcAddress_v2 as unsafe fn(_, _, _, _, _) -> _);
    assert_eq!(GetFunction::sizes(), newer[..5]);
    assert_eq!(FunctionLoad::sizes(), sizes(sys::cuFuncLoad as unsafe fn(_) -> _));
    assert_eq!(CopyBatch::sizes(), sizes(sys::cuMemcpyBatchAsync as unsafe fn(_, _, _, _, _, _, _, _, _) -> _));
}

#[test]
fn constants_are_those_of_the_header() {
    macro_rules! equal {
        ($($own:ident = $($cudarc:ident)::+;)*) => {$(
            assert_eq!($own as i64, sys::$($cudarc)::+ as i64, stringify!($own));
        )*};
    }
    equal! {
        SUCCESS = CUresult::CUDA_SUCCESS;
        NOT_INITIALIZED = CUresult::CUDA_ERROR_NOT_INITIALIZED;
        DEINITIALIZED = CUresult::CUDA_ERROR_DEINITIALIZED;
        NO_DEVICE = CUresult::CUDA_ERROR_NO_DEVICE;
        INVALID_IMAGE = CUresult::CUDA_ERROR_INVALID_IMAGE;
        NO_BINARY_FOR_GPU = CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU;
        INVALID_PTX = CUresult::CUDA_ERROR_INVALID_PTX;
        UNSUPPORTED_PTX_VERSION = CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
        NOT_READY = CUresult::CUDA_ERROR_NOT_READY;
        PEER_ACCESS_ALREADY_ENABLED = CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
        MULTIPROCESSOR_COUNT = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        INTEGRATED = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED;
        L2_CACHE_SIZE = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
        MAX_THREADS_PER_MULTIPROCESSOR = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
        ASYNC_ENGINE_COUNT = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT;
        COMPUTE_CAPABILITY_MAJOR = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        COMPUTE_CAPABILITY_MINOR = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
        MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
        PAGEABLE_MEMORY_ACCESS = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES =
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
        NUM_REGS = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
        JIT_ERROR_LOG_BUFFER = CUjit_option::CU_JIT_ERROR_LOG_BUFFER;
        JIT_ERROR_LOG_BUFFER_SIZE_BYTES = CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
        STREAM_NON_BLOCKING = CUstream_flags::CU_STREAM_NON_BLOCKING;
        EVENT_DEFAULT = CUevent_flags::CU_EVENT_DEFAULT;
        EVENT_DISABLE_TIMING = CUevent_flags::CU_EVENT_DISABLE_TIMING;
        HOST_ALLOC_PORTABLE = CU_MEMHOSTALLOC_PORTABLE;
        HOST_ALLOC_MAPPED = CU_MEMHOSTALLOC_DEVICEMAP;
        ATTACH_GLOBAL = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL;
        LIMIT_MAX_L2_FETCH_GRANULARITY = CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY;
        MEMORY_HOST = CUmemorytype::CU_MEMORYTYPE_HOST;
        MEMORY_DEVICE = CUmemorytype::CU_MEMORYTYPE_DEVICE;
        MEMORY_UNIFIED = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
        POINTER_MEMORY_TYPE = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        POINTER_DEVICE_POINTER = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
        POINTER_BUFFER_ID = CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID;
        POINTER_IS_MANAGED = CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED;
        POINTER_DEVICE_ORDINAL = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        POINTER_RANGE_START = CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
        POINTER_RANGE_SIZE = CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE;
        CAPTURE_NONE = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        CAPTURE_ACTIVE = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        CAPTURE_GLOBAL = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        CAPTURE_THREAD_LOCAL = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        CAPTURE_RELAXED = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        NODE_KERNEL = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
        NODE_MEMCPY = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY;
        NODE_MEMSET = CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET;
        USER_OBJECT_NO_DESTRUCTOR_SYNC = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
        GRAPH_USER_OBJECT_MOVE = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE;
        SOURCE_ACCESS_STREAM = CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        PREFER_OVERLAP_WITH_COMPUTE = CUmemcpyFlags::CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
    }
}

#[test]
fn structures_are_laid_out_as_in_the_header() {
    macro_rules! equal {
        ($own:ident = $cudarc:ident { $($field:ident = $other:ident),* $(,)? }) => {
            assert_eq!(
                (size_of::<$own>(), align_of::<$own>()),
                (size_of::<sys::$cudarc>(), align_of::<sys::$cudarc>()),
                stringify!($own)
            );
            $(assert_eq!(offset_of!($own, $field), offset_of!(sys::$cudarc, $other), stringify!($own: $field));)*
        };
    }
    equal! { Memcpy2D = CUDA_MEMCPY2D_st {
        source_x = srcXInBytes, source_y = srcY, source_memory = srcMemoryType, source_host = srcHost,
        source_device = srcDevice, source_array = srcArray, source_pitch = srcPitch, destination_x = dstXInBytes,
        destination_y = dstY, destination_memory = dstMemoryType, destination_host = dstHost,
        destination_device = dstDevice, destination_array = dstArray, destination_pitch = dstPitch,
        width = WidthInBytes, height = Height,
    } }
    equal! { Memcpy3D = CUDA_MEMCPY3D_st {
        source_x = srcXInBytes, source_y = srcY, source_z = srcZ, source_lod = srcLOD, source_memory = srcMemoryType,
        source_host = srcHost, source_device = srcDevice, source_array = srcArray, reserved0 = reserved0,
        source_pitch = srcPitch, source_height = srcHeight, destination_x = dstXInBytes, destination_y = dstY,
        destination_z = dstZ, destination_lod = dstLOD, destination_memory = dstMemoryType,
        destination_host = dstHost, destination_device = dstDevice, destination_array = dstArray,
        reserved1 = reserved1, destination_pitch = dstPitch, destination_height = dstHeight,
        width = WidthInBytes, height = Height, depth = Depth,
    } }
    equal! { MemoryLocation = CUmemLocation_st { kind = type_ } }
    assert_eq!(offset_of!(MemoryLocation, id), 4);
    equal! { MemcpyAttributes = CUmemcpyAttributes_st {
        source_access_order = srcAccessOrder, source_hint = srcLocHint, destination_hint = dstLocHint, flags = flags,
    } }
}
