//! CUDA events: points in a stream to wait for and to measure between.

use super::abi::*;
use super::device::Device;
use super::error::CudaError;
use super::stream::Stream;

/// A CUDA event.
///
/// ```
/// use dtc_cuda::{Device, Event, Stream};
/// if let Ok(device) = Device::get(0) {
///     let stream = Stream::new(&device)?;
///     let (start, end) = (Event::timed(&device)?, Event::timed(&device)?);
///     start.record(&stream)?;
///     end.record(&stream)?;
///     end.synchronize()?;
///     assert!(start.elapsed_ms(&end)? >= 0.0);
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[derive(Debug)]
pub struct Event {
    device: Device,
    handle: EventHandle,
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_scope) = self.device.scope_outside_capture() {
            // SAFETY: `with_flags` created the event, and `drop` runs once, after every other use.
            let _ = unsafe { self.device.driver().event_destroy(self.handle) };
        }
    }
}

impl Event {
    /// An event to wait for. It cannot measure times, and is cheaper than one that can.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event};
    /// if let Ok(device) = Device::get(0) {
    ///     // An event that was never recorded is done.
    ///     assert!(Event::new(&device)?.query()?);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn new(device: &Device) -> Result<Event, CudaError> {
        Event::with_flags(device, EVENT_DISABLE_TIMING)
    }

    /// An event that measures times.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event};
    /// if let Ok(device) = Device::get(0) {
    ///     Event::timed(&device)?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn timed(device: &Device) -> Result<Event, CudaError> {
        Event::with_flags(device, EVENT_DEFAULT)
    }

    fn with_flags(device: &Device, flags: u32) -> Result<Event, CudaError> {
        let _scope = device.scope_outside_capture()?;
        let mut handle = EventHandle::NULL;
        // SAFETY: `handle` is a live handle to fill, and `_scope` has made the context current.
        unsafe { device.driver().event_create(&mut handle, flags)? };
        Ok(Event { device: device.clone(), handle })
    }

    /// Marks the current end of the stream, in place of the point marked before.
    ///
    /// # Errors
    ///
    /// The driver refuses: the stream is of another device.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     Event::new(&device)?.record(&Stream::new(&device)?)?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        let _scope = stream.device().scope()?;
        // SAFETY: `self` and `stream` keep event and stream alive, and `_scope` has made the stream's context current.
        unsafe { self.device.driver().event_record(self.handle, stream.handle()) }
    }

    /// Whether the stream has reached the point. Does not wait.
    ///
    /// # Errors
    ///
    /// Work enqueued before the point failed.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let event = Event::new(&device)?;
    ///     event.record(&Stream::new(&device)?)?;
    ///     while !event.query()? {}
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn query(&self) -> Result<bool, CudaError> {
        let _scope = self.device.scope_outside_capture()?;
        let driver = self.device.driver();
        // SAFETY: `self` keeps the event alive.
        let code = unsafe { (driver.functions.event_query)(self.handle) };
        if code == NOT_READY { Ok(false) } else { driver.check("cuEventQuery", code).map(|()| true) }
    }

    /// Waits until the stream has reached the point.
    ///
    /// # Errors
    ///
    /// As [`Event::query`].
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let event = Event::new(&device)?;
    ///     event.record(&Stream::new(&device)?)?;
    ///     event.synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn synchronize(&self) -> Result<(), CudaError> {
        let _scope = self.device.scope_outside_capture()?;
        // SAFETY: `self` keeps the event alive.
        unsafe { self.device.driver().event_synchronize(self.handle) }
    }

    /// Milliseconds from this event to a later one, with a resolution of about half a microsecond.
    ///
    /// # Errors
    ///
    /// One of the events was not recorded, cannot measure times, or is not reached yet.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event};
    /// if let Ok(device) = Device::get(0) {
    ///     let event = Event::timed(&device)?;
    ///     assert!(event.elapsed_ms(&event).is_err());
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32, CudaError> {
        let _scope = self.device.scope()?;
        let mut milliseconds = 0.0;
        // SAFETY: `self` and `end` keep the events alive, and `milliseconds` is a live number to fill.
        unsafe { self.device.driver().event_elapsed_time(&mut milliseconds, self.handle, end.handle)? };
        Ok(milliseconds)
    }
}

impl Stream {
    /// Makes work enqueued from now on wait for an event, which may be of another device.
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
        let _scope = self.device().scope()?;
        // SAFETY: `self` and `event` keep stream and event alive, and `_scope` has made the stream's context current.
        unsafe { self.device().driver().stream_wait_event(self.handle(), event.handle, 0) }
    }
}
