//! Which kind of memory lies at an address, and memory of a kind.

use crate::arguments;
use crate::engine::dtc_engine;
use crate::handle::{self, Handle, Tag};
use crate::status::{Failure, Outcome, answer};
use crate::transfer::{DTC_MEMORY_DEVICE, DTC_MEMORY_HOST, DTC_MEMORY_MANAGED, DTC_MEMORY_PINNED, ordinal};
use dtc_runtime::cuda::{DeviceBuffer, Exported, ImportedBuffer, MemoryKind, PinnedBuffer, is_in_use};
use std::ffi::{c_int, c_void};

/// Length of what names memory of a GPU to other processes.
pub const DTC_EXPORT_BYTES: i32 = 64;

/// Memory that the library allocated, or imported.
pub struct dtc_memory(());

/// Frees it when it is dropped.
pub(crate) enum Allocation {
    #[expect(dead_code, reason = "held to be dropped")]
    Pinned(PinnedBuffer),
    Device(DeviceBuffer),
    #[expect(dead_code, reason = "held to be dropped")]
    Imported(ImportedBuffer),
}

impl Handle for dtc_memory {
    type Inside = Allocation;
    const TAG: Tag = Tag::MEMORY;
    const NAME: &'static str = "dtc_memory";
}

/// Tells which kind of memory lies at an address, which is not read. While the process does not use CUDA, all memory is the host's, and
/// this neither loads nor initialises CUDA; otherwise it is one question to the driver.
///
/// `address`: any address.
/// `kind`: receives `DTC_MEMORY_HOST`, `DTC_MEMORY_PINNED`, `DTC_MEMORY_MANAGED` or `DTC_MEMORY_DEVICE`.
/// `device`: receives the GPU for `DTC_MEMORY_DEVICE`, -1 while the process does not use CUDA, so that no other address needs to be asked
/// about now, else 0; may be null.
///
/// `DTC_ERROR_ARGUMENT`: `kind` is null.
/// `DTC_ERROR_DEVICE`: CUDA failed.
///
/// # Safety
///
/// `kind` and `device` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_memory_kind(address: *const c_void, kind: *mut i32, device: *mut i32) -> c_int {
    answer(|| {
        let kind_there = if is_in_use() { Some(MemoryKind::of(address.cast())?) } else { None };
        let (number, gpu) = match kind_there {
            None => (DTC_MEMORY_HOST, -1),
            Some(MemoryKind::Pageable) => (DTC_MEMORY_HOST, 0),
            Some(MemoryKind::Pinned) => (DTC_MEMORY_PINNED, 0),
            Some(MemoryKind::Managed) => (DTC_MEMORY_MANAGED, 0),
            Some(MemoryKind::Device(gpu)) => (DTC_MEMORY_DEVICE, gpu as i32),
        };
        // SAFETY: `kind` and `device` are null or writable (contract of this function).
        unsafe {
            arguments::give("kind", kind, number)?;
            arguments::offer("device", device, gpu)
        }
    })
}

/// Allocates memory for packed bytes. It takes up to milliseconds: use it again.
///
/// `kind`: `DTC_MEMORY_PINNED`, for memory of the host that every GPU reaches, aligned to a page; or `DTC_MEMORY_DEVICE`, aligned to 256.
/// `device`: the GPU of the memory. That of pinned memory is the one that has it registered; any may use it.
/// `bytes`: its length, at least 1.
/// `address`: receives its address.
/// `memory`: receives what frees it, by `dtc_memory_free`.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: another kind, a number out of range, or a null pointer.
/// `DTC_ERROR_DEVICE`: CUDA is missing or failed, or there is no memory left.
///
/// # Safety
///
/// `engine` is null or an engine; `address` and `memory` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_memory_allocate(
    engine: *const dtc_engine,
    kind: i32,
    device: i32,
    bytes: i64,
    address: *mut *mut c_void,
    memory: *mut *mut dtc_memory,
) -> c_int {
    answer(|| {
        arguments::check_pointer("address", address)?;
        arguments::check_pointer("memory", memory)?;
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        let length = usize::try_from(bytes).ok().filter(|&length| length > 0);
        let length = length.ok_or_else(|| Failure::argument("bytes", "at least 1", bytes))?;
        if ![DTC_MEMORY_PINNED, DTC_MEMORY_DEVICE].contains(&kind) {
            return Err(Failure::argument("kind", "DTC_MEMORY_PINNED or DTC_MEMORY_DEVICE", kind));
        }
        let gpu = engine.gpu(ordinal("device", device)?)?;
        let (at, made) = if kind == DTC_MEMORY_PINNED {
            let made = PinnedBuffer::new(gpu.device(), length)?;
            (made.as_ptr().cast(), Allocation::Pinned(made))
        } else {
            let made = DeviceBuffer::new(gpu.device(), length)?;
            (std::ptr::with_exposed_provenance_mut(made.address() as usize), Allocation::Device(made))
        };
        // SAFETY: `address` and `memory` are aligned and not null (checked above), so they are writable (contract of this
        // function).
        unsafe { give(address, at, memory, made) }
    })
}

/// # Safety
///
/// `address` and `memory` are writable.
unsafe fn give(address: *mut *mut c_void, at: *mut c_void, memory: *mut *mut dtc_memory, made: Allocation) -> Outcome {
    // SAFETY: both are writable (contract of this function).
    unsafe {
        arguments::give("address", address, at)?;
        arguments::give("memory", memory, handle::share(made))
    }
}

/// Names memory of a GPU to other processes of this machine, which import it. It must be freed after they have closed it.
///
/// `memory`: what `dtc_memory_allocate` returned for `DTC_MEMORY_DEVICE`.
/// `handle`: receives `DTC_EXPORT_BYTES` bytes.
///
/// `DTC_ERROR_HANDLE`: not such memory.
/// `DTC_ERROR_ARGUMENT`: memory of another kind, or `handle` is null.
/// `DTC_ERROR_DEVICE`: CUDA failed.
///
/// # Safety
///
/// `memory` is null or came from `dtc_memory_allocate`; `handle` is null or has as many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_memory_export(memory: *const dtc_memory, handle: *mut c_void) -> c_int {
    answer(|| {
        // SAFETY: `memory` is null or such a handle, which the caller keeps during the call (contract of this function).
        let Allocation::Device(buffer) = (unsafe { handle::borrow(memory)? }) else {
            return Err(Failure::argument("memory", "memory of a GPU", "other memory"));
        };
        arguments::check_pointer("handle", handle)?;
        let name = buffer.export()?;
        // SAFETY: `handle` is not null (checked above), so it has `DTC_EXPORT_BYTES` writable bytes, of any alignment
        // (contract of this function).
        unsafe { arguments::give("handle", handle.cast::<[u8; DTC_EXPORT_BYTES as usize]>(), name) }
    })
}

/// Names memory of a GPU that anything in this process allocated to other processes of this machine, which import it. Memory of pools, of virtual
/// addresses and managed memory have no such name. It must be freed after they have closed it: CUDA says that anything else is undefined.
///
/// `device`: the GPU of the memory.
/// `address`, `bytes`: bytes of one allocation.
/// `handle`: receives `DTC_EXPORT_BYTES` bytes, which name the whole allocation.
/// `offset`: receives how many bytes of the allocation come before the address.
/// `allocation`: receives a number that no other allocation of this process has, at any time.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: the bytes are not all in one allocation of the GPU, their number is negative, or a pointer is null.
/// `DTC_ERROR_DEVICE`: CUDA is missing or failed, or the memory has no such name.
///
/// # Safety
///
/// `engine` is null or an engine; `handle` is null or has as many writable bytes; `offset` and `allocation` are null or writable. The address is not
/// followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_memory_export_part(
    engine: *const dtc_engine,
    device: i32,
    address: *const c_void,
    bytes: i64,
    handle: *mut c_void,
    offset: *mut i64,
    allocation: *mut i64,
) -> c_int {
    answer(|| {
        arguments::check_pointer("handle", handle)?;
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        let length = u64::try_from(bytes).map_err(|_| Failure::argument("bytes", "at least 0", bytes))?;
        let gpu = engine.gpu(ordinal("device", device)?)?;
        let exported = Exported::of(gpu.device(), address.addr() as u64, length)?;
        let exported =
            exported.ok_or_else(|| Failure::argument("address", "bytes of one allocation of the GPU", "others"))?;
        // SAFETY: `handle` is not null (checked above), so it has `DTC_EXPORT_BYTES` writable bytes, of any alignment; the others are null or
        // writable (contract of this function).
        unsafe {
            arguments::give("offset", offset, exported.offset as i64)?;
            arguments::give("allocation", allocation, exported.allocation as i64)?;
            arguments::give("handle", handle.cast::<[u8; DTC_EXPORT_BYTES as usize]>(), exported.handle)
        }
    })
}

/// Opens memory of a GPU that another process of this machine has exported. It takes up to milliseconds: use it again.
///
/// `device`: the GPU of this process that uses it.
/// `handle`: the `DTC_EXPORT_BYTES` bytes that `dtc_memory_export` or `dtc_memory_export_part` wrote there.
/// `address`: receives its address for that GPU: of the first byte of the allocation.
/// `memory`: receives what closes it, by `dtc_memory_free`.
///
/// `DTC_ERROR_HANDLE`: not an engine.
/// `DTC_ERROR_ARGUMENT`: a null pointer.
/// `DTC_ERROR_DEVICE`: CUDA is missing or failed; or the memory is out of reach, or of this process.
///
/// # Safety
///
/// `engine` is null or an engine; `handle` is null or leads to as many bytes; `address` and `memory` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_memory_import(
    engine: *const dtc_engine,
    device: i32,
    handle: *const c_void,
    address: *mut *mut c_void,
    memory: *mut *mut dtc_memory,
) -> c_int {
    answer(|| {
        arguments::check_pointer("handle", handle)?;
        arguments::check_pointer("address", address)?;
        arguments::check_pointer("memory", memory)?;
        // SAFETY: `engine` is null or a live engine, which the caller keeps during the call (contract of this
        // function).
        let engine = unsafe { handle::borrow(engine)? };
        // SAFETY: `handle` is not null (checked above), so it leads to `DTC_EXPORT_BYTES` bytes, of any alignment
        // (contract of this function).
        let name = unsafe { handle.cast::<[u8; DTC_EXPORT_BYTES as usize]>().read() };
        let gpu = engine.gpu(ordinal("device", device)?)?;
        let made = ImportedBuffer::open(gpu.device(), name)?;
        let at = std::ptr::with_exposed_provenance_mut(made.address() as usize);
        // SAFETY: `address` and `memory` are aligned and not null (checked above), so they are writable (contract of this
        // function).
        unsafe { give(address, at, memory, Allocation::Imported(made)) }
    })
}

/// Frees memory that `dtc_memory_allocate` returned, or closes what `dtc_memory_import` did. That of a GPU waits for all work there. CUDA may
/// be gone already.
///
/// `DTC_ERROR_HANDLE`: not such memory.
///
/// # Safety
///
/// `memory` is null or came from either, and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtc_memory_free(memory: *mut dtc_memory) -> c_int {
    // SAFETY: `memory` is null or such a handle, and the caller gives its reference up (contract of this function).
    answer(|| unsafe { handle::release(memory) })
}
