//! Memory that this crate owns: on a device, pinned on the host, or managed.

use super::abi::*;
use super::device::Device;
use super::error::CudaError;
use super::pointer::{MemoryKind, classify};
use super::staging::StagingAllocator;
use super::stream::Stream;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

/// Alignment in bytes that a [`StagingAllocator`] guarantees: a cache line, for vector stores of full lines.
const STAGING_ALIGNMENT: usize = 64;

/// Checks that a range is within a buffer.
fn within(offset: usize, bytes: usize, length: usize) -> Result<(), CudaError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= length => Ok(()),
        _ => Err(CudaError::Bounds { offset, bytes, length }),
    }
}

/// Memory of a device. Dropping it frees the memory, which waits for all work of the device.
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
    kind: MemoryKind,
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.address != 0
            && let Ok(_scope) = self.device.scope_outside_capture()
        {
            // SAFETY: `new` or `managed` allocated `address`, and `drop` runs once, after every other use.
            let _ = unsafe { self.device.driver().memory_free(self.address) };
        }
    }
}

impl DeviceBuffer {
    /// Allocates `bytes` bytes, aligned to at least 256. Their values are undefined until written.
    ///
    /// # Errors
    ///
    /// [`CudaError::Call`] with code 2: the device has no memory left.
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
        DeviceBuffer::allocate(device, bytes, MemoryKind::Device(device.info().ordinal), |address| {
            // SAFETY: `address` is a live integer for the driver to fill, and `allocate` has made the context current.
            unsafe { device.driver().memory_allocate(address, bytes) }
        })
    }

    /// Allocates memory, copies `source` into it on `stream`, and waits for that stream. It touches no other stream and
    /// frees nothing, so it neither waits for other kernels nor disturbs the capture of another stream.
    pub fn copy_of(stream: &Stream, source: &[u8]) -> Result<DeviceBuffer, CudaError> {
        let mut buffer = DeviceBuffer::plain(stream.device(), source.len())?;
        buffer.write_on(stream, source)?;
        Ok(buffer)
    }

    /// Copies `source` to its first bytes on `stream`, and waits for that stream alone, as [`DeviceBuffer::copy_of`] does.
    ///
    /// # Errors
    ///
    /// The buffer is shorter, or the driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let mut buffer = DeviceBuffer::new(&device, 4)?;
    ///     buffer.write_on(&Stream::new(&device)?, b"abcd")?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn write_on(&mut self, stream: &Stream, source: &[u8]) -> Result<(), CudaError> {
        within(0, source.len(), self.bytes)?;
        if !source.is_empty() {
            let device = stream.device();
            let _scope = device.scope_outside_capture()?;
            let (driver, handle) = (device.driver(), stream.handle());
            // SAFETY: the buffer has `source.len()` bytes (checked above), and both it and `source` live until the stream is
            // synchronised below.
            unsafe {
                driver.copy_to_device_async(self.address, source.as_ptr().cast(), source.len(), handle)?;
                driver.stream_synchronize(handle)?;
            }
        }
        Ok(())
    }

    /// Allocates managed memory: the host can use it at the same address, and its pages migrate to where they are used.
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
        DeviceBuffer::allocate(device, bytes, MemoryKind::Managed, |address| {
            // SAFETY: `address` is a live integer for the driver to fill, and `allocate` has made the context current.
            unsafe { device.driver().memory_allocate_managed(address, bytes, ATTACH_GLOBAL) }
        })
    }

    fn allocate(
        device: &Device,
        bytes: usize,
        kind: MemoryKind,
        allocate: impl FnOnce(&mut DevicePointer) -> Result<(), CudaError>,
    ) -> Result<DeviceBuffer, CudaError> {
        let mut address = 0;
        // The driver refuses to allocate 0 bytes.
        if bytes > 0 {
            let _scope = device.scope_outside_capture()?;
            allocate(&mut address)?;
        }
        Ok(DeviceBuffer { device: device.clone(), address, bytes, kind })
    }

    /// Its device address, a `CUdeviceptr`; zero if it has no bytes.
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

    /// The kind of its memory: that of the device, or managed.
    ///
    /// ```
    /// # use dtc_cuda::{Device, DeviceBuffer, MemoryKind};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(DeviceBuffer::new(&device, 8)?.kind(), MemoryKind::Device(0));
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// Its length in bytes.
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

    /// Whether its length is zero.
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

    /// The device that owns the memory.
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

    /// Copies `source` into it from `offset` on, in the order of the legacy default stream, and waits.
    ///
    /// # Errors
    ///
    /// The range is not within the buffer, or the copy fails.
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
        // SAFETY: `within` has checked `destination..destination + source.len()`, and `source` is borrowed for the
        // call.
        unsafe { self.device.driver().copy_to_device(destination, source.as_ptr().cast(), source.len())? };
        self.wait()
    }

    /// Copies bytes from `offset` on into `destination`, in the order of the legacy default stream, and waits.
    ///
    /// # Errors
    ///
    /// The range is not within the buffer, or the copy fails.
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
        // SAFETY: `within` has checked the range of the buffer; `destination` has as many bytes and is borrowed
        // exclusively.
        unsafe { self.device.driver().copy_to_host(destination.as_mut_ptr().cast(), source, destination.len()) }
    }

    /// Sets all bytes to `value`, in the order of the legacy default stream, and waits.
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
        // SAFETY: `address..address + bytes` is the whole buffer, which this value owns.
        unsafe { self.device.driver().fill(self.address, value, self.bytes)? };
        self.wait()
    }

    /// Waits for the legacy default stream. The driver returns from small copies and from fills before they are done,
    /// and streams that do not wait for the default stream would overtake them.
    fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the null stream always exists; it is that of the current context, which `write` and `fill` have made
        // the device's.
        unsafe { self.device.driver().stream_synchronize(StreamHandle::NULL) }
    }
}

/// Host memory that never moves. Devices copy it at full speed, also beside kernels, and kernels of every device can
/// use it in place. Dropping it gives the memory back.
///
/// After enqueueing work that writes to it, wait for that work before reading the bytes.
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
    /// Dangling if the buffer has no bytes.
    host: NonNull<u8>,
    address: DevicePointer,
    bytes: usize,
    /// The allocator that the memory came from; `None` is CUDA.
    allocator: Option<Arc<dyn StagingAllocator>>,
}

// SAFETY: the buffer owns `host..host + bytes` exclusively, like a boxed slice.
unsafe impl Send for PinnedBuffer {}
// SAFETY: `&PinnedBuffer` only reads the bytes; writing takes `&mut`.
unsafe impl Sync for PinnedBuffer {}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if let Some(allocator) = &self.allocator {
            // SAFETY: `staging` got `host` from this allocator with the same device and length, and `drop` frees it
            // once.
            unsafe { allocator.free(self.device.info().ordinal, self.host.as_ptr(), self.bytes) };
        } else if self.bytes > 0
            && let Ok(_scope) = self.device.scope_outside_capture()
        {
            // SAFETY: `new` allocated `host` with `cuMemHostAlloc`, and `drop` runs once, after every other use.
            let _ = unsafe { self.device.driver().memory_host_free(self.host.as_ptr().cast()) };
        }
    }
}

impl PinnedBuffer {
    /// Allocates `bytes` zero bytes, aligned to a page. It takes milliseconds: reuse such buffers.
    ///
    /// # Errors
    ///
    /// [`CudaError::Call`] with code 2: the system pins no more memory.
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
        // SAFETY: `host` is a live pointer for the driver to fill, and the context is current.
        unsafe { driver.memory_host_allocate(&mut host, bytes, HOST_ALLOC_PORTABLE | HOST_ALLOC_MAPPED)? };
        let Some(host) = NonNull::new(host.cast::<u8>()) else {
            return Err(driver.failure("cuMemHostAlloc", SUCCESS));
        };
        // From here on `drop` frees the memory.
        (buffer.host, buffer.bytes) = (host, bytes);
        // SAFETY: `cuMemHostAlloc` has just returned `bytes` bytes at `host`.
        unsafe { host.as_ptr().write_bytes(0, bytes) };
        // SAFETY: `host` was allocated with `HOST_ALLOC_MAPPED`, and `buffer.address` is a live integer.
        unsafe { driver.memory_host_device_pointer(&mut buffer.address, host.as_ptr().cast(), 0)? };
        Ok(buffer)
    }

    /// Allocates `bytes` zero bytes from `allocator`, or from CUDA without one.
    ///
    /// # Errors
    ///
    /// [`CudaError::Staging`]: the allocator returned null, or memory that is not pinned, mapped and aligned to 64
    /// bytes. Otherwise as [`PinnedBuffer::new`].
    pub fn staging(
        device: &Device,
        allocator: Option<&Arc<dyn StagingAllocator>>,
        bytes: usize,
    ) -> Result<PinnedBuffer, CudaError> {
        let Some(allocator) = allocator else { return PinnedBuffer::new(device, bytes) };
        let failed = |found: String| CudaError::Staging { bytes, found };
        let host = allocator.allocate(device.info().ordinal, bytes);
        let host = NonNull::new(host).ok_or_else(|| failed("null".to_owned()))?;
        // From here on `drop` gives the memory back.
        let mut buffer =
            PinnedBuffer { device: device.clone(), host, address: 0, bytes, allocator: Some(allocator.clone()) };
        // The device address holds for the current context.
        let scope = device.scope()?;
        let info = classify(host.as_ptr())?;
        drop(scope);
        if info.kind != MemoryKind::Pinned || info.device_address == 0 {
            return Err(failed(info.kind.to_string()));
        }
        if !host.as_ptr().addr().is_multiple_of(STAGING_ALIGNMENT) {
            return Err(failed(format!("an address that is no multiple of {STAGING_ALIGNMENT}")));
        }
        // SAFETY: the allocator returned `bytes` bytes that belong to this buffer (contract of `StagingAllocator`).
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
        // SAFETY: `host..host + bytes` was zeroed when allocated, lives as long as the buffer, and is borrowed with it.
        unsafe { std::slice::from_raw_parts(self.host.as_ptr(), self.bytes) }
    }

    /// The bytes, mutable.
    ///
    /// ```
    /// # use dtc_cuda::{Device, PinnedBuffer};
    /// if let Ok(device) = Device::get(0) {
    ///     PinnedBuffer::new(&device, 2)?.as_mut_slice()[1] = 7;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `host..host + bytes` was zeroed when allocated, lives as long as the buffer, and `&mut self` excludes
        // other borrows.
        unsafe { std::slice::from_raw_parts_mut(self.host.as_ptr(), self.bytes) }
    }

    /// Its host address; dangling if it has no bytes.
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

    /// Its device address, a `CUdeviceptr`; zero if it has no bytes.
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
