//! CUDA streams.

use super::abi::*;
use super::device::Device;
use super::error::CudaError;
use std::ffi::c_void;

/// A CUDA stream: work enqueued on it runs in order. Dropping a stream that dtc created lets its work finish.
///
/// ```
/// use dtc_cuda::{CudaError, Device, Stream};
/// fn wait(device: &Device) -> Result<(), CudaError> {
///     let stream = Stream::new(device)?;
///     stream.synchronize()
/// }
/// if let Ok(device) = Device::get(0) {
///     wait(&device)?;
/// }
/// # Ok::<(), CudaError>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    device: Device,
    handle: StreamHandle,
    owned: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned
            && let Ok(_scope) = self.device.scope_outside_capture()
        {
            // SAFETY: `new` created the stream, and `drop` runs once, after every other use.
            let _ = unsafe { self.device.driver().stream_destroy(self.handle) };
        }
    }
}

impl Stream {
    /// A new CUDA stream, which does not wait for the legacy default stream.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     Stream::new(&device)?.synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn new(device: &Device) -> Result<Stream, CudaError> {
        let _scope = device.scope_outside_capture()?;
        let mut handle = StreamHandle::NULL;
        // SAFETY: `handle` is a live handle to fill, and `_scope` has made the context current.
        unsafe { device.driver().stream_create(&mut handle, STREAM_NON_BLOCKING, 0)? };
        Ok(Stream { device: device.clone(), handle, owned: true })
    }

    /// The legacy default stream of a device. Other streams wait for it unless they are created as non-blocking.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     Stream::legacy_default(&device).synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn legacy_default(device: &Device) -> Stream {
        Stream { device: device.clone(), handle: StreamHandle::NULL, owned: false }
    }

    /// Borrows a stream: a `CUstream` or `cudaStream_t`. Dropping the returned value does not destroy it.
    ///
    /// # Safety
    ///
    /// `raw` is null or one of CUDA's special handles, or a stream of the device's primary context that outlives the
    /// value.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let own = Stream::new(&device)?;
    ///     // SAFETY: `own` outlives `borrowed`.
    ///     let borrowed = unsafe { Stream::borrow(&device, own.raw()) };
    ///     borrowed.synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub unsafe fn borrow(device: &Device, raw: *mut c_void) -> Stream {
        Stream { device: device.clone(), handle: StreamHandle(raw), owned: false }
    }

    /// The `CUstream`, which is also a `cudaStream_t`.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     assert!(Stream::legacy_default(&device).raw().is_null());
    /// }
    /// ```
    pub fn raw(&self) -> *mut c_void {
        self.handle.0
    }

    /// Its device.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(Stream::legacy_default(&device).device(), &device);
    /// }
    /// ```
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all work enqueued so far is done.
    ///
    /// # Errors
    ///
    /// Enqueued work failed, or the stream is being captured.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     Stream::new(&device)?.synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _scope = self.device.scope_outside_capture()?;
        // SAFETY: `self` keeps the stream alive, and `_scope` has made its context current.
        unsafe { self.device.driver().stream_synchronize(self.handle) }
    }

    /// Whether all work enqueued so far is done. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`].
    ///
    /// ```
    /// # use dtc_cuda::{Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let stream = Stream::new(&device)?;
    ///     while !stream.query()? {}
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn query(&self) -> Result<bool, CudaError> {
        let _scope = self.device.scope_outside_capture()?;
        let driver = self.device.driver();
        // SAFETY: `self` keeps the stream alive, and `_scope` has made its context current.
        let code = unsafe { (driver.functions.stream_query)(self.handle) };
        if code == NOT_READY { Ok(false) } else { driver.check("cuStreamQuery", code).map(|()| true) }
    }

    #[inline]
    pub(super) fn handle(&self) -> StreamHandle {
        self.handle
    }
}
