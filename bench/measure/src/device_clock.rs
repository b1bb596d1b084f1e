//! Times on a device.

use crate::device::fill;
use dtc_runtime::cuda::{CudaError, Device, DeviceBuffer, Event, Stream};
use std::cell::Cell;

/// Bytes that are written to empty the cache of the device.
pub const FLUSH_BYTES: u64 = 256 << 20;

/// A CUDA stream of its own, with events around what is enqueued there.
pub struct DeviceClock {
    /// Where everything is enqueued.
    pub stream: Stream,
    start: Event,
    end: Event,
    flushed: DeviceBuffer,
    flushes: Cell<u8>,
}

impl DeviceClock {
    /// Takes [`FLUSH_BYTES`] of the device.
    pub fn new(device: &Device) -> Result<DeviceClock, CudaError> {
        Ok(DeviceClock {
            stream: Stream::new(device)?,
            start: Event::timed(device)?,
            end: Event::timed(device)?,
            flushed: DeviceBuffer::new(device, FLUSH_BYTES as usize)?,
            flushes: Cell::new(0),
        })
    }

    /// Enqueues what empties the cache of the device.
    pub fn enqueue_flush(&self) -> Result<(), CudaError> {
        // The value changes, so that no write can be left out.
        self.flushes.set(self.flushes.get().wrapping_add(1));
        fill(&self.stream, &self.flushed, 0..FLUSH_BYTES, self.flushes.get())
    }

    /// Microseconds of what is enqueued on the stream, with the cache emptied or right after the same. The fills before it keep the
    /// device busy while the host enqueues the rest, so that no time of the host is between the events.
    pub fn time<E: From<CudaError>>(&self, warm: bool, enqueue: impl Fn() -> Result<(), E>) -> Result<f64, E> {
        self.enqueue_flush()?;
        self.enqueue_flush()?;
        if warm {
            enqueue()?;
        }
        self.start.record(&self.stream)?;
        enqueue()?;
        self.end.record(&self.stream)?;
        self.end.synchronize()?;
        Ok(f64::from(self.start.elapsed_ms(&self.end)?) * 1e3)
    }
}
