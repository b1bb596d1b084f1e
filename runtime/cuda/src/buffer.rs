//! Memory that this module owns: on a device, pinned on the host, or managed.

use super::abi::*;
use super::device::Device;
use super::error::CudaError;
use super::pointer::{MemoryKind, classify};
use super::staging::StagingAllocator;
use super::stream::Stream;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// What addresses of an allocator of the engine are multiples of: full lines for vector stores.
const STAGING_ALIGNMENT: usize = 64;

/// Checks that a range lies within a buffer.
fn within(offset: usize, bytes: usize, length: usize) -> Result<(), CudaError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= length => Ok(()),
        _ => Err(CudaError::Bounds { offset, bytes, length }),
    }
}

/// Memory of a device. Freed when dropped, which waits for work of the device.
///
/// ```
/// use dtc_cuda::{CudaError, Device, DeviceBuffer};
/// fn round_trip(device: &Device) -> Result<(), CudaError> {
///     let mut buffer = DeviceBuffer::new(device, 4)?;
///     buffer.write(0, b"abcd")?;
///     let mut read = [0; 2];
///     buffer.read(1, &mut read)?;
///     assert_eq!(&read, b"bc");
///     Ok(())
/// }
/// if let Ok(device) = Device::get(0) {
///     round_trip(&device)?;
/// }
/// # Ok::<(), CudaError>(())
/// ```
#[derive(Debug)]
pub struct DeviceBuffer {
    device: Device,
    address: DevicePointer,
    bytes: usize,
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.address != 0
            && let Ok(_scope) = self.device.scope_outside_capture()
        {
            // SAFETY: the memory was allocated by this value, which is the last to use it.
            let _ = unsafe { self.device.driver().memory_free(self.address) };
        }
    }
}

impl DeviceBuffer {
    /// Allocates bytes, aligned to at least 256. Their values are undefined until written.
    ///
    /// # Errors
    ///
    /// There is no memory left, which is [`CudaError::Call`] with code 2.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(DeviceBuffer::new(&device, 1 << 20)?.len(), 1 << 20);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn new(device: &Device, bytes: usize) -> Result<DeviceBuffer, CudaError> {
        DeviceBuffer::plain(device, bytes)
    }

    fn plain(device: &Device, bytes: usize) -> Result<DeviceBuffer, CudaError> {
        DeviceBuffer::allocate(device, bytes, |address| {
            // SAFETY: the pointer is to a live address, and the context is current.
            unsafe { device.driver().memory_allocate(address, bytes) }
        })
    }

    /// Allocates memory and copies bytes into it, on a stream that it waits for. Touches no other stream and frees nothing,
    /// so that neither a kernel that runs elsewhere nor a capture of another stream is in the way.
    pub fn holding(stream: &Stream, source: &[u8]) -> Result<DeviceBuffer, CudaError> {
        let device = stream.device();
        let buffer = DeviceBuffer::plain(device, source.len())?;
        if !source.is_empty() {
            let _scope = device.scope_outside_capture()?;
            let (driver, handle) = (device.driver(), stream.handle());
            // SAFETY: the buffer is as long as the source, and both live until the stream was waited for.
            unsafe {
                driver.copy_to_device_async(buffer.address, source.as_ptr().cast(), source.len(), handle)?;
                driver.stream_synchronize(handle)?;
            }
        }
        Ok(buffer)
    }

    /// Allocates managed memory: the host can use it at the same address, and its pages move to where they are used.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::new`]; or the device has no managed memory.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_ne!(DeviceBuffer::managed(&device, 8)?.address(), 0);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn managed(device: &Device, bytes: usize) -> Result<DeviceBuffer, CudaError> {
        DeviceBuffer::allocate(device, bytes, |address| {
            // SAFETY: the pointer is to a live address, and the context is current.
            unsafe { device.driver().memory_allocate_managed(address, bytes, ATTACH_GLOBAL) }
        })
    }

    fn allocate(
        device: &Device,
        bytes: usize,
        allocate: impl FnOnce(&mut DevicePointer) -> Result<(), CudaError>,
    ) -> Result<DeviceBuffer, CudaError> {
        let mut address = 0;
        // The driver refuses to allocate nothing.
        if bytes > 0 {
            let _scope = device.scope_outside_capture()?;
            allocate(&mut address)?;
        }
        Ok(DeviceBuffer { device: device.clone(), address, bytes })
    }

    /// Where it lies: a `CUdeviceptr`. Zero if it has no bytes.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(DeviceBuffer::new(&device, 100)?.address() % 256, 0);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many bytes it has.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(DeviceBuffer::new(&device, 100)?.len(), 100);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert!(DeviceBuffer::new(&device, 0)?.is_empty());
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The device.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(DeviceBuffer::new(&device, 8)?.device(), &device);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Copies bytes into it, ordered like work of the legacy default stream, and waits.
    ///
    /// # Errors
    ///
    /// The bytes do not fit behind the offset, or the copy fails.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     DeviceBuffer::new(&device, 8)?.write(4, &[1, 2, 3, 4])?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn write(&mut self, offset: usize, source: &[u8]) -> Result<(), CudaError> {
        within(offset, source.len(), self.bytes)?;
        if source.is_empty() {
            return Ok(());
        }
        let _scope = self.device.scope_outside_capture()?;
        let destination = self.address + offset as u64;
        // SAFETY: the range lies within the buffer, and the source is as long.
        unsafe { self.device.driver().copy_to_device(destination, source.as_ptr().cast(), source.len())? };
        self.wait()
    }

    /// Copies bytes out of it, ordered like work of the legacy default stream, and waits.
    ///
    /// # Errors
    ///
    /// The buffer has not so many bytes behind the offset, or the copy fails.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     let mut bytes = [0; 9];
    ///     assert!(DeviceBuffer::new(&device, 8)?.read(0, &mut bytes).is_err());
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn read(&self, offset: usize, destination: &mut [u8]) -> Result<(), CudaError> {
        within(offset, destination.len(), self.bytes)?;
        if destination.is_empty() {
            return Ok(());
        }
        let _scope = self.device.scope_outside_capture()?;
        let source = self.address + offset as u64;
        // SAFETY: the range lies within the buffer, and the destination is as long and borrowed alone.
        unsafe { self.device.driver().copy_to_host(destination.as_mut_ptr().cast(), source, destination.len()) }
    }

    /// Sets all bytes to one value, ordered like work of the legacy default stream, and waits.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     let (mut buffer, mut byte) = (DeviceBuffer::new(&device, 8)?, [0]);
    ///     buffer.fill(7)?;
    ///     buffer.read(5, &mut byte)?;
    ///     assert_eq!(byte, [7]);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn fill(&mut self, value: u8) -> Result<(), CudaError> {
        if self.bytes == 0 {
            return Ok(());
        }
        let _scope = self.device.scope_outside_capture()?;
        // SAFETY: the range is the whole buffer.
        unsafe { self.device.driver().fill(self.address, value, self.bytes)? };
        self.wait()
    }

    /// Waits for the legacy default stream: the driver returns from small copies and from fills before they are done,
    /// and streams that do not wait for the default stream would overtake them.
    fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the null stream is that of the current context, which the caller has made the device's.
        unsafe { self.device.driver().stream_synchronize(StreamHandle::NULL) }
    }
}

/// Host memory that stays where it is, so that devices copy at full speed, also beside kernels, and kernels of every
/// device can use it in place. Given back when dropped.
///
/// Whoever enqueues work that writes to it must wait for that work before looking at the bytes.
///
/// ```
/// use dtc_cuda::{CudaError, Device, PinnedBuffer};
/// fn fill(device: &Device) -> Result<(), CudaError> {
///     let mut buffer = PinnedBuffer::new(device, 3)?;
///     assert_eq!(buffer.as_slice(), [0; 3]);
///     buffer.as_mut_slice().copy_from_slice(b"abc");
///     Ok(())
/// }
/// if let Ok(device) = Device::get(0) {
///     fill(&device)?;
/// }
/// # Ok::<(), CudaError>(())
/// ```
#[derive(Debug)]
pub struct PinnedBuffer {
    device: Device,
    /// Dangling if there are no bytes.
    host: NonNull<u8>,
    address: DevicePointer,
    bytes: usize,
    /// Where it came from, if not from CUDA.
    allocator: Option<Arc<dyn StagingAllocator>>,
}

// SAFETY: the memory belongs to the buffer, like that of a boxed slice.
unsafe impl Send for PinnedBuffer {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for PinnedBuffer {}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if let Some(allocator) = &self.allocator {
            // SAFETY: the memory came from there, for this value, which is the last to use it.
            unsafe { allocator.free(self.device.info().ordinal, self.host.as_ptr(), self.bytes) };
        } else if self.bytes > 0
            && let Ok(_scope) = self.device.scope_outside_capture()
        {
            // SAFETY: the memory was allocated by this value, which is the last to use it.
            let _ = unsafe { self.device.driver().memory_host_free(self.host.as_ptr().cast()) };
        }
    }
}

impl PinnedBuffer {
    /// Allocates bytes of value zero, aligned to a page. Takes milliseconds: keep such buffers.
    ///
    /// # Errors
    ///
    /// The system pins no more memory, which is [`CudaError::Call`] with code 2.
    ///
    /// ```
    /// # use dtc_cuda::{Device, PinnedBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(PinnedBuffer::new(&device, 100)?.as_slice().len(), 100);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn new(device: &Device, bytes: usize) -> Result<PinnedBuffer, CudaError> {
        let (owner, host) = (device.clone(), NonNull::dangling());
        let mut buffer = PinnedBuffer { device: owner, host, address: 0, bytes: 0, allocator: None };
        if bytes == 0 {
            return Ok(buffer);
        }
        let _scope = device.scope_outside_capture()?;
        let driver = device.driver();
        let mut host: *mut c_void = std::ptr::null_mut();
        // SAFETY: the pointer is to a live pointer, and the context is current.
        unsafe { driver.memory_host_allocate(&mut host, bytes, HOST_ALLOC_PORTABLE | HOST_ALLOC_MAPPED)? };
        let Some(host) = NonNull::new(host.cast::<u8>()) else {
            return Err(driver.failure("cuMemHostAlloc", SUCCESS));
        };
        // From here on dropping the buffer frees the memory.
        (buffer.host, buffer.bytes) = (host, bytes);
        // SAFETY: the memory is as long as was asked for.
        unsafe { host.as_ptr().write_bytes(0, bytes) };
        // SAFETY: the memory was allocated with a mapping.
        unsafe { driver.memory_host_device_pointer(&mut buffer.address, host.as_ptr().cast(), 0)? };
        Ok(buffer)
    }

    /// Bytes of value zero from an allocator of the engine, or from CUDA without one.
    ///
    /// # Errors
    ///
    /// [`CudaError::Staging`] when the allocator has none, or what it has is not pinned; CUDA refuses.
    pub fn staging(
        device: &Device,
        allocator: Option<&Arc<dyn StagingAllocator>>,
        bytes: usize,
    ) -> Result<PinnedBuffer, CudaError> {
        let Some(allocator) = allocator else { return PinnedBuffer::new(device, bytes) };
        let failed = |found: String| CudaError::Staging { bytes, found };
        let host = allocator.allocate(device.info().ordinal, bytes);
        let host = NonNull::new(host).ok_or_else(|| failed("null".to_owned()))?;
        // From here on dropping the buffer gives the memory back.
        let mut buffer =
            PinnedBuffer { device: device.clone(), host, address: 0, bytes, allocator: Some(allocator.clone()) };
        // The address for kernels is one in the current context.
        let scope = device.scope()?;
        let info = classify(host.as_ptr())?;
        drop(scope);
        if info.kind != MemoryKind::Pinned || info.device_address == 0 {
            return Err(failed(info.kind.to_string()));
        }
        if !host.as_ptr().addr().is_multiple_of(STAGING_ALIGNMENT) {
            return Err(failed(format!("an address that is no multiple of {STAGING_ALIGNMENT}")));
        }
        // SAFETY: the memory is as long as was asked for, by the promise of the allocator.
        unsafe { host.as_ptr().write_bytes(0, bytes) };
        buffer.address = info.device_address;
        Ok(buffer)
    }

    /// The bytes.
    ///
    /// ```
    /// # use dtc_cuda::{Device, PinnedBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(PinnedBuffer::new(&device, 2)?.as_slice(), [0; 2]);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the memory is alive, was written when allocated, and is borrowed as the buffer is.
        unsafe { std::slice::from_raw_parts(self.host.as_ptr(), self.bytes) }
    }

    /// The bytes, to be changed.
    ///
    /// ```
    /// # use dtc_cuda::{Device, PinnedBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     PinnedBuffer::new(&device, 2)?.as_mut_slice()[1] = 7;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the buffer is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.host.as_ptr(), self.bytes) }
    }

    /// Where the host finds it. Dangling if it has no bytes.
    ///
    /// ```
    /// # use dtc_cuda::{Device, PinnedBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert!(!PinnedBuffer::new(&device, 2)?.as_ptr().is_null());
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn as_ptr(&self) -> *mut u8 {
        self.host.as_ptr()
    }

    /// Where kernels find it: a `CUdeviceptr`. Zero if it has no bytes.
    ///
    /// ```
    /// # use dtc_cuda::{Device, PinnedBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_ne!(PinnedBuffer::new(&device, 2)?.address(), 0);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn address(&self) -> u64 {
        self.address
    }
}
