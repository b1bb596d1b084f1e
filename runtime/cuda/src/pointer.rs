//! Kinds of memory that an address can lead to.

use super::abi::*;
use super::driver::Driver;
use super::error::CudaError;
use std::ffi::{c_int, c_uint, c_void};
use std::fmt;

/// Kinds of memory that CUDA tells apart.
///
/// ```
/// use dtc_cuda::MemoryKind;
/// assert_eq!(MemoryKind::Device(1).to_string(), "memory of GPU 1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Host memory that CUDA does not know.
    Pageable,
    /// Host memory that was allocated or registered with CUDA.
    Pinned,
    /// Managed memory, whose pages migrate.
    Managed,
    /// Memory of the device with this ordinal.
    Device(u32),
}

impl MemoryKind {
    /// The kind of memory at an address. Asks the driver once. If nothing in the process uses CUDA, all memory is
    /// pageable, and this neither loads nor initialises CUDA.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// ```
    /// use dtc_cuda::MemoryKind;
    /// assert_eq!(MemoryKind::of([0u8; 4].as_ptr())?, MemoryKind::Pageable);
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn of(address: *const u8) -> Result<MemoryKind, CudaError> {
        Ok(classify(address)?.kind)
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryKind::Pageable => f.write_str("pageable memory"),
            MemoryKind::Pinned => f.write_str("pinned memory"),
            MemoryKind::Managed => f.write_str("managed memory"),
            MemoryKind::Device(ordinal) => write!(f, "memory of GPU {ordinal}"),
        }
    }
}

/// Attributes of an address, as the driver reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerInfo {
    /// The kind of memory.
    pub kind: MemoryKind,
    /// Address of the byte for kernels of the current context. Zero if they cannot use it, if no context is current, or
    /// if CUDA does not know the memory.
    pub device_address: u64,
    /// Number of the allocation, unique in the process for ever; zero if CUDA does not know the memory.
    pub buffer_id: u64,
    /// First address of the allocation; zero if CUDA does not know the memory.
    pub range_start: u64,
    /// Bytes of the allocation; zero if CUDA does not know the memory.
    pub range_bytes: u64,
}

/// Whether anything in this process uses CUDA. If not, all memory is pageable. This neither loads nor initialises CUDA.
///
/// ```
/// use dtc_cuda::{MemoryKind, is_in_use};
/// if !is_in_use() {
///     assert_eq!(MemoryKind::of([0u8; 4].as_ptr())?, MemoryKind::Pageable);
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub fn is_in_use() -> bool {
    Driver::if_loaded().is_some()
}

impl PointerInfo {
    const PAGEABLE: PointerInfo =
        PointerInfo { kind: MemoryKind::Pageable, device_address: 0, buffer_id: 0, range_start: 0, range_bytes: 0 };
}

/// Asks the driver once about an address, which is not dereferenced. All memory is pageable if CUDA is not loaded, not
/// initialised, or unusable after a fork; this neither loads nor initialises it.
pub fn classify(pointer: *const u8) -> Result<PointerInfo, CudaError> {
    let Some(driver) = Driver::if_loaded() else { return Ok(PointerInfo::PAGEABLE) };
    const ATTRIBUTES: [c_int; 7] = [
        POINTER_MEMORY_TYPE,
        POINTER_IS_MANAGED,
        POINTER_DEVICE_ORDINAL,
        POINTER_DEVICE_POINTER,
        POINTER_BUFFER_ID,
        POINTER_RANGE_START,
        POINTER_RANGE_SIZE,
    ];
    let (mut memory, mut managed, mut ordinal): (c_uint, c_uint, c_int) = (0, 0, 0);
    let (mut device_address, mut buffer_id, mut range_start, mut range_bytes) = (0_u64, 0_u64, 0_u64, 0_usize);
    let mut values: [*mut c_void; 7] = [
        (&raw mut memory).cast(),
        (&raw mut managed).cast(),
        (&raw mut ordinal).cast(),
        (&raw mut device_address).cast(),
        (&raw mut buffer_id).cast(),
        (&raw mut range_start).cast(),
        (&raw mut range_bytes).cast(),
    ];
    // SAFETY: `values` holds a live local of the declared type for each attribute; the driver does not dereference
    // `pointer`.
    let code = unsafe {
        (driver.functions.pointer_get_attributes)(
            ATTRIBUTES.len() as c_uint,
            ATTRIBUTES.as_ptr(),
            values.as_mut_ptr(),
            pointer.addr() as DevicePointer,
        )
    };
    if matches!(code, NOT_INITIALIZED | DEINITIALIZED) {
        return Ok(PointerInfo::PAGEABLE);
    }
    driver.check("cuPointerGetAttributes", code)?;
    let kind = match memory {
        _ if managed != 0 => MemoryKind::Managed,
        MEMORY_HOST => MemoryKind::Pinned,
        MEMORY_DEVICE => match u32::try_from(ordinal) {
            Ok(ordinal) => MemoryKind::Device(ordinal),
            Err(_) => return Ok(PointerInfo::PAGEABLE),
        },
        _ => return Ok(PointerInfo::PAGEABLE),
    };
    Ok(PointerInfo { kind, device_address, buffer_id, range_start, range_bytes: range_bytes as u64 })
}

/// The ordinal of the device whose memory is at an address; `None` for host and managed memory. While nothing in the
/// process has initialised CUDA, all memory is the host's.
///
/// # Errors
///
/// CUDA refuses.
///
/// ```
/// use dtc_cuda::device_of;
/// let number = 7;
/// assert_eq!(device_of((&raw const number).cast())?, None);
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub fn device_of(pointer: *const u8) -> Result<Option<u32>, CudaError> {
    Ok(match classify(pointer)?.kind {
        MemoryKind::Device(ordinal) => Some(ordinal),
        _ => None,
    })
}
