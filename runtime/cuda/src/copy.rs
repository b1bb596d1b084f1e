//! Copies and fills on raw addresses, enqueued on CUDA streams. None allocates; all may be captured, as far as CUDA
//! captures their kinds of memory.

use super::abi::*;
use super::error::CudaError;
use super::stream::Stream;

/// Enqueues a copy within a device.
///
/// # Errors
///
/// The driver refuses.
///
/// # Safety
///
/// Both ranges are valid until the copy is done; while it may run, nobody writes to the source or uses the destination.
///
/// ```
/// # use dtc_cuda::{Device, DeviceBuffer, Stream, copy};
/// if let Ok(device) = Device::get(0) {
///     let (stream, buffer) = (Stream::new(&device)?, DeviceBuffer::new(&device, 16)?);
///     // SAFETY: both halves lie in the buffer, which is freed only when the device has done its work.
///     unsafe { copy::on_device(&stream, buffer.address() + 8, buffer.address(), 8)? };
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub unsafe fn on_device(stream: &Stream, destination: u64, source: u64, bytes: usize) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    // SAFETY: the caller answers for the ranges; stream and context are alive.
    unsafe { stream.device().driver().copy_on_device_async(destination, source, bytes, stream.handle()) }
}

/// Enqueues a copy between any two addresses, of the host or of any device; the driver finds out what they are. From pageable
/// memory it returns when the source was read, and to pageable memory perhaps only when the copy is done.
///
/// # Errors
///
/// The driver refuses.
///
/// # Safety
///
/// As [`on_device`].
///
/// ```
/// # use dtc_cuda::{Device, DeviceBuffer, PinnedBuffer, Stream, copy};
/// if let Ok(device) = Device::get(0) {
///     let stream = Stream::new(&device)?;
///     let (buffer, pinned) = (DeviceBuffer::new(&device, 8)?, PinnedBuffer::new(&device, 8)?);
///     // SAFETY: both buffers are as long, and live until the stream was waited for.
///     unsafe { copy::between(&stream, buffer.address(), pinned.address(), 8)? };
///     stream.synchronize()?;
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub unsafe fn between(stream: &Stream, destination: u64, source: u64, bytes: usize) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    // SAFETY: the caller answers for the ranges; stream and context are alive.
    unsafe { stream.device().driver().copy_async(destination, source, bytes, stream.handle()) }
}

/// Enqueues setting bytes of a device to one value.
///
/// # Errors
///
/// The driver refuses.
///
/// # Safety
///
/// The range is valid until the fill is done, and nobody uses it while it may run.
///
/// ```
/// # use dtc_cuda::{Device, DeviceBuffer, Stream, copy};
/// if let Ok(device) = Device::get(0) {
///     let (stream, buffer) = (Stream::new(&device)?, DeviceBuffer::new(&device, 16)?);
///     // SAFETY: the range is the buffer, which is freed only when the device has done its work.
///     unsafe { copy::fill(&stream, buffer.address(), 7, buffer.len())? };
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub unsafe fn fill(stream: &Stream, destination: u64, value: u8, bytes: usize) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    // SAFETY: the caller answers for the range; stream and context are alive.
    unsafe { stream.device().driver().fill_async(destination, value, bytes, stream.handle()) }
}

/// Rows at a constant distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The first byte of the first row, of the host or of any device.
    pub address: u64,
    /// Bytes from one row to the next; at least a row, at most what the device allows (2 GiB).
    pub pitch: usize,
}

/// Enqueues a copy of so many rows of so many bytes.
///
/// # Safety
///
/// As [`on_device`], for all rows.
pub unsafe fn rows(
    stream: &Stream,
    destination: Rows,
    source: Rows,
    row_bytes: usize,
    row_count: usize,
) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    let copy = Memcpy2D {
        source_x: 0,
        source_y: 0,
        source_memory: MEMORY_UNIFIED,
        source_host: std::ptr::null(),
        source_device: source.address,
        source_array: std::ptr::null_mut(),
        source_pitch: source.pitch,
        destination_x: 0,
        destination_y: 0,
        destination_memory: MEMORY_UNIFIED,
        destination_host: std::ptr::null_mut(),
        destination_device: destination.address,
        destination_array: std::ptr::null_mut(),
        destination_pitch: destination.pitch,
        width: row_bytes,
        height: row_count,
    };
    // SAFETY: the caller answers for the rows; the structure is read before the call returns.
    unsafe { stream.device().driver().copy_2d_async(&copy, stream.handle()) }
}

/// Slices of rows, both at constant distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// The first byte of the first row of the first slice, of the host or of any device.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// From one slice to the next, in rows: a slice's distance must be a multiple of a row's.
    pub rows_per_slice: usize,
}

/// Enqueues a copy of so many slices of so many rows of so many bytes.
///
/// # Safety
///
/// As [`on_device`], for all rows.
pub unsafe fn slices(
    stream: &Stream,
    destination: Slices,
    source: Slices,
    row_bytes: usize,
    row_count: usize,
    slice_count: usize,
) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    let copy = Memcpy3D {
        source_x: 0,
        source_y: 0,
        source_z: 0,
        source_lod: 0,
        source_memory: MEMORY_UNIFIED,
        source_host: std::ptr::null(),
        source_device: source.address,
        source_array: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        source_pitch: source.pitch,
        source_height: source.rows_per_slice,
        destination_x: 0,
        destination_y: 0,
        destination_z: 0,
        destination_lod: 0,
        destination_memory: MEMORY_UNIFIED,
        destination_host: std::ptr::null_mut(),
        destination_device: destination.address,
        destination_array: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        destination_pitch: destination.pitch,
        destination_height: destination.rows_per_slice,
        width: row_bytes,
        height: row_count,
        depth: slice_count,
    };
    // SAFETY: the caller answers for the rows; the structure is read before the call returns.
    unsafe { stream.device().driver().copy_3d_async(&copy, stream.handle()) }
}

/// Enqueues many copies in one call, in any order among themselves, preferably beside kernels. Says whether this driver
/// can (since 12.8); if not, nothing was enqueued. Not on the legacy default stream, and not captured. The lists are
/// the caller's, so that nothing is allocated; the driver changes none of them.
///
/// # Safety
///
/// As [`on_device`], for all copies.
pub unsafe fn batch(
    stream: &Stream,
    destinations: &mut [u64],
    sources: &mut [u64],
    bytes: &mut [usize],
) -> Result<bool, CudaError> {
    let driver = stream.device().driver();
    let Some(copy) = driver.copy_batch else { return Ok(false) };
    let count = destinations.len().min(sources.len()).min(bytes.len());
    if count == 0 {
        return Ok(true);
    }
    let _scope = stream.device().scope()?;
    let anywhere = MemoryLocation { kind: 0, id: 0 };
    let mut attributes = MemcpyAttributes {
        source_access_order: SOURCE_ACCESS_STREAM,
        source_hint: anywhere,
        destination_hint: anywhere,
        flags: PREFER_OVERLAP_WITH_COMPUTE,
    };
    let (mut first, mut failed) = (0, 0);
    // SAFETY: every list has `count` entries, and one attribute serves from the first copy on.
    let code = unsafe {
        copy(
            destinations.as_mut_ptr(),
            sources.as_mut_ptr(),
            bytes.as_mut_ptr(),
            count,
            &mut attributes,
            &mut first,
            1,
            &mut failed,
            stream.handle(),
        )
    };
    driver.check("cuMemcpyBatchAsync", code).map(|()| true)
}
