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
            // SAFETY: the event was created by this value, which is the last to use it.
            let _ = unsafe { self.device.driver().event_destroy(self.handle) };
        }
    }
}

impl Event {
    /// An event to wait for, which cannot measure times and is cheaper for it.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{Device, Event};
    /// if let Ok(device) = Device::get(0) {
    ///     // What was never recorded is done.
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
        // SAFETY: the pointer is to a live handle, and the context is current.
        unsafe { device.driver().event_create(&mut handle, flags)? };
        Ok(Event { device: device.clone(), handle })
    }

    /// Marks the point that the stream has been enqueued to, in place of the one marked before.
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
        // SAFETY: event and stream are alive, and the stream's context is current.
        unsafe { self.device.driver().event_record(self.handle, stream.handle()) }
    }

    /// Whether the stream has come to the point. Does not wait.
    ///
    /// # Errors
    ///
    /// Something enqueued before the point failed.
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
        // SAFETY: the event is alive.
        let code = unsafe { (driver.functions.event_query)(self.handle) };
        if code == NOT_READY { Ok(false) } else { driver.check("cuEventQuery", code).map(|()| true) }
    }

    /// Waits until the stream has come to the point.
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
        // SAFETY: the event is alive.
        unsafe { self.device.driver().event_synchronize(self.handle) }
    }

    /// Milliseconds from this event to a later one, to about half a microsecond.
    ///
    /// # Errors
    ///
    /// One of the events was not recorded, cannot measure times, or lies ahead.
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
        // SAFETY: both events are alive, and the pointer is to a live number.
        unsafe { self.device.driver().event_elapsed_time(&mut milliseconds, self.handle, end.handle)? };
        Ok(milliseconds)
    }
}

impl Stream {
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
        let _scope = self.device().scope()?;
        // SAFETY: stream and event are alive, and the stream's context is current.
        unsafe { self.device().driver().stream_wait_event(self.handle(), event.handle, 0) }
    }
}
