//! Copies and fills of raw addresses, enqueued on CUDA streams. None allocates. All but [`batch`] may be captured, as
//! far as CUDA captures their kinds of memory.

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
/// Both ranges are valid until the copy is done. Until then, the source is not written and the destination is not used.
///
/// ```
/// # use dtc_cuda::{Device, DeviceBuffer, Stream, copy};
/// if let Ok(device) = Device::get(0) {
///     let (stream, buffer) = (Stream::new(&device)?, DeviceBuffer::new(&device, 16)?);
///     // SAFETY: both halves are in the buffer, and freeing it waits for the work of the device.
///     unsafe { copy::on_device(&stream, buffer.address() + 8, buffer.address(), 8)? };
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub unsafe fn on_device(stream: &Stream, destination: u64, source: u64, bytes: usize) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    // SAFETY: both ranges are valid and unshared until the copy is done (contract of this function); `_scope` keeps the
    // context current.
    unsafe { stream.device().driver().copy_on_device_async(destination, source, bytes, stream.handle()) }
}

/// Enqueues a copy between any two addresses, of the host or of any device; the driver detects their kinds. From
/// pageable memory it returns once the source is read. To pageable memory it may return only when the copy is done.
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
///     // SAFETY: both buffers have 8 bytes, and live until the stream is synchronised.
///     unsafe { copy::between(&stream, buffer.address(), pinned.address(), 8)? };
///     stream.synchronize()?;
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub unsafe fn between(stream: &Stream, destination: u64, source: u64, bytes: usize) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    // SAFETY: both ranges are valid and unshared until the copy is done (contract of this function); `_scope` keeps the
    // context current.
    unsafe { stream.device().driver().copy_async(destination, source, bytes, stream.handle()) }
}

/// Enqueues a fill of `bytes` bytes of a device with `value`.
///
/// # Errors
///
/// The driver refuses.
///
/// # Safety
///
/// The range is valid until the fill is done, and is not used until then.
///
/// ```
/// # use dtc_cuda::{Device, DeviceBuffer, Stream, copy};
/// if let Ok(device) = Device::get(0) {
///     let (stream, buffer) = (Stream::new(&device)?, DeviceBuffer::new(&device, 16)?);
///     // SAFETY: the range is the whole buffer, and freeing it waits for the work of the device.
///     unsafe { copy::fill(&stream, buffer.address(), 7, buffer.len())? };
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
pub unsafe fn fill(stream: &Stream, destination: u64, value: u8, bytes: usize) -> Result<(), CudaError> {
    let _scope = stream.device().scope()?;
    // SAFETY: the range is valid and unshared until the fill is done (contract of this function); `_scope` keeps the
    // context current.
    unsafe { stream.device().driver().fill_async(destination, value, bytes, stream.handle()) }
}

/// Rows at a constant pitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// First byte of the first row, of the host or of any device.
    pub address: u64,
    /// Bytes from one row to the next: at least the length of a row, at most the limit of the device (2 GiB).
    pub pitch: usize,
}

/// Enqueues a copy of `row_count` rows of `row_bytes` bytes.
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
    // SAFETY: every row of both sides is valid and unshared until the copy is done (contract of this function); `copy`
    // is read during the call.
    unsafe { stream.device().driver().copy_2d_async(&copy, stream.handle()) }
}

/// Slices of rows, with a constant pitch of rows and of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// First byte of the first row of the first slice, of the host or of any device.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// Rows from one slice to the next: the pitch of slices is a multiple of the pitch of rows.
    pub rows_per_slice: usize,
}

/// Enqueues a copy of `slice_count` slices of `row_count` rows of `row_bytes` bytes.
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
    // SAFETY: every row of both sides is valid and unshared until the copy is done (contract of this function); `copy`
    // is read during the call.
    unsafe { stream.device().driver().copy_3d_async(&copy, stream.handle()) }
}

/// Enqueues many copies in one call, in any order among themselves, preferably beside kernels. Returns false without
/// enqueueing anything if the driver is older than 12.8. The stream must not be the legacy default stream nor be
/// captured. The lists are borrowed so that the call allocates nothing; the driver does not change them.
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
    // SAFETY: each list has at least `count` entries, and the ranges they name are valid until the copies are done
    // (contract of this function). The one attribute applies from copy `first` = 0 on.
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
