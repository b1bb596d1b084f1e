//! CUDA streams.

use super::abi::*;
use super::device::Device;
use super::error::CudaError;
use super::event::Event;
use super::graph::Graph;
use std::ffi::c_void;

/// A CUDA stream: work enqueued on it runs in order. Dropping one that dtc created lets its work finish.
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

/// Whether a stream is being captured into a graph.
///
/// ```
/// use dtc_cuda::{CaptureStatus, Device, Stream};
/// if let Ok(device) = Device::get(0) {
///     assert_eq!(Stream::new(&device)?.capture_status()?, CaptureStatus::None);
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureStatus {
    /// It is not.
    None,
    /// It is: what is enqueued becomes nodes of the graph.
    Active,
    /// It was, until some call spoilt the capture.
    Invalidated,
}

/// Which calls that might disturb a capture are refused while it lasts.
///
/// ```
/// use dtc_cuda::CaptureMode;
/// assert_eq!(CaptureMode::default(), CaptureMode::Global);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// Those of all threads.
    #[default]
    Global,
    /// Those of the capturing thread.
    ThreadLocal,
    /// None.
    Relaxed,
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned
            && let Ok(_scope) = self.device.scope_outside_capture()
        {
            // SAFETY: the stream was created by this value, which is the last to use it.
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
        // SAFETY: the pointer is to a live handle, and the context is current.
        unsafe { device.driver().stream_create(&mut handle, STREAM_NON_BLOCKING, 0)? };
        Ok(Stream { device: device.clone(), handle, owned: true })
    }

    /// The legacy default stream of a device, which other streams wait for unless they were created not to.
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

    /// A CUDA stream of someone else's: a `CUstream` or `cudaStream_t`. It is not destroyed with this value.
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
    ///     // SAFETY: the stream lives on behind the borrowed one.
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

    /// The device.
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

    /// Waits until everything enqueued so far is done.
    ///
    /// # Errors
    ///
    /// Something enqueued failed, or the stream is being captured.
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
        // SAFETY: the stream is alive and its context current.
        unsafe { self.device.driver().stream_synchronize(self.handle) }
    }

    /// Whether everything enqueued so far is done. Does not wait.
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
        // SAFETY: the stream is alive and its context current.
        let code = unsafe { (driver.functions.stream_query)(self.handle) };
        if code == NOT_READY { Ok(false) } else { driver.check("cuStreamQuery", code).map(|()| true) }
    }

    /// Lets everything enqueued from now on wait for an event, which may be of another device.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let (first, second, event) = (Stream::new(&device)?, Stream::new(&device)?, Event::new(&device)?);
    ///     event.record(&first)?;
    ///     second.wait_event(&event)?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn wait_event(&self, event: &Event) -> Result<(), CudaError> {
        let _scope = self.device.scope()?;
        // SAFETY: stream and event are alive, and the stream's context is current.
        unsafe { self.device.driver().stream_wait_event(self.handle, event.handle(), 0) }
    }

    /// Whether the stream is being captured into a graph.
    ///
    /// # Errors
    ///
    /// The driver refuses. It does so for the legacy default stream while some other stream is being captured.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureStatus, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(Stream::new(&device)?.capture_status()?, CaptureStatus::None);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn capture_status(&self) -> Result<CaptureStatus, CudaError> {
        let _scope = self.device.scope()?;
        let mut status = CAPTURE_NONE;
        // SAFETY: the stream is alive, its context current, and the pointer is to a live integer.
        unsafe { self.device.driver().stream_is_capturing(self.handle, &mut status)? };
        Ok(match status {
            CAPTURE_NONE => CaptureStatus::None,
            CAPTURE_ACTIVE => CaptureStatus::Active,
            _ => CaptureStatus::Invalidated,
        })
    }

    /// Begins to capture what is enqueued into a graph.
    ///
    /// # Errors
    ///
    /// The driver refuses: the stream is being captured already, or is the legacy default stream.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureMode, CaptureStatus, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let stream = Stream::new(&device)?;
    ///     stream.begin_capture(CaptureMode::ThreadLocal)?;
    ///     assert_eq!(stream.capture_status()?, CaptureStatus::Active);
    ///     stream.end_capture()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn begin_capture(&self, mode: CaptureMode) -> Result<(), CudaError> {
        let _scope = self.device.scope()?;
        let mode = match mode {
            CaptureMode::Global => CAPTURE_GLOBAL,
            CaptureMode::ThreadLocal => CAPTURE_THREAD_LOCAL,
            CaptureMode::Relaxed => CAPTURE_RELAXED,
        };
        // SAFETY: the stream is alive and its context current.
        unsafe { self.device.driver().stream_begin_capture(self.handle, mode) }
    }

    /// Ends a capture and returns its graph.
    ///
    /// # Errors
    ///
    /// The stream is not being captured, or some call spoilt the capture.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureMode, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let stream = Stream::new(&device)?;
    ///     stream.begin_capture(CaptureMode::ThreadLocal)?;
    ///     assert_eq!(stream.end_capture()?.nodes()?.all, 0);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn end_capture(&self) -> Result<Graph, CudaError> {
        let _scope = self.device.scope()?;
        let mut graph = GraphHandle::NULL;
        // SAFETY: the stream is alive, its context current, and the pointer is to a live handle.
        unsafe { self.device.driver().stream_end_capture(self.handle, &mut graph)? };
        Ok(Graph::own(self.device.clone(), graph))
    }

    #[inline]
    pub(super) fn handle(&self) -> StreamHandle {
        self.handle
    }
}
