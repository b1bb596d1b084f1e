//! Kinds of memory that an address can lead to.

use super::abi::*;
use super::driver::Driver;
use super::error::CudaError;
use super::latest;
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
        let Some(driver) = Driver::if_loaded() else { return Ok(MemoryKind::Pageable) };
        let mut answer = Answer::default();
        let known = ask(driver, Answer::ATTRIBUTES, answer.values(), address)?;
        Ok(if known { answer.kind() } else { MemoryKind::Pageable })
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
#[inline]
pub fn is_in_use() -> bool {
    !latest::is_last() && Driver::if_loaded().is_some()
}

impl PointerInfo {
    const PAGEABLE: PointerInfo =
        PointerInfo { kind: MemoryKind::Pageable, device_address: 0, buffer_id: 0, range_start: 0, range_bytes: 0 };
}

/// What the driver says of the kind of memory.
#[derive(Default)]
struct Answer {
    memory: c_uint,
    managed: c_uint,
    ordinal: c_int,
}

impl Answer {
    const ATTRIBUTES: [c_int; 3] = [POINTER_MEMORY_TYPE, POINTER_IS_MANAGED, POINTER_DEVICE_ORDINAL];

    fn values(&mut self) -> [*mut c_void; 3] {
        [(&raw mut self.memory).cast(), (&raw mut self.managed).cast(), (&raw mut self.ordinal).cast()]
    }

    fn kind(&self) -> MemoryKind {
        match self.memory {
            _ if self.managed != 0 => MemoryKind::Managed,
            MEMORY_HOST => MemoryKind::Pinned,
            MEMORY_DEVICE => u32::try_from(self.ordinal).map_or(MemoryKind::Pageable, MemoryKind::Device),
            _ => MemoryKind::Pageable,
        }
    }
}

/// Asks the driver about an address, which is not dereferenced; `false` if CUDA is not initialised. Each value is that of a live
/// variable, of the type that is declared for its attribute.
fn ask<const N: usize>(
    driver: &Driver,
    attributes: [c_int; N],
    mut values: [*mut c_void; N],
    pointer: *const u8,
) -> Result<bool, CudaError> {
    // SAFETY: `values` holds a live variable of the declared type for each attribute (both callers take them of their own
    // variables); the driver does not dereference `pointer`.
    let code = unsafe {
        (driver.functions.pointer_get_attributes)(
            N as c_uint,
            attributes.as_ptr(),
            values.as_mut_ptr(),
            pointer.addr() as DevicePointer,
        )
    };
    if matches!(code, NOT_INITIALIZED | DEINITIALIZED) {
        return Ok(false);
    }
    driver.check("cuPointerGetAttributes", code)?;
    Ok(true)
}

/// Asks the driver once about an address, which is not dereferenced. All memory is pageable if CUDA is not loaded, not
/// initialised, or unusable after a fork; this neither loads nor initialises it.
pub fn classify(pointer: *const u8) -> Result<PointerInfo, CudaError> {
    let Some(driver) = Driver::if_loaded() else { return Ok(PointerInfo::PAGEABLE) };
    let [memory, managed, ordinal] = Answer::ATTRIBUTES;
    let (device, id, start, size) =
        (POINTER_DEVICE_POINTER, POINTER_BUFFER_ID, POINTER_RANGE_START, POINTER_RANGE_SIZE);
    let mut answer = Answer::default();
    let (mut device_address, mut buffer_id, mut range_start, mut range_bytes) = (0_u64, 0_u64, 0_u64, 0_usize);
    let [memory_value, managed_value, ordinal_value] = answer.values();
    let values = [
        memory_value,
        managed_value,
        ordinal_value,
        (&raw mut device_address).cast(),
        (&raw mut buffer_id).cast(),
        (&raw mut range_start).cast(),
        (&raw mut range_bytes).cast(),
    ];
    let known = ask(driver, [memory, managed, ordinal, device, id, start, size], values, pointer)?;
    match answer.kind() {
        kind if known && kind != MemoryKind::Pageable => {
            Ok(PointerInfo { kind, device_address, buffer_id, range_start, range_bytes: range_bytes as u64 })
        }
        _ => Ok(PointerInfo::PAGEABLE),
    }
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
