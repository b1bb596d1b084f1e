//! Triple buffers that transfers go through, with their streams and events. They are kept from one transfer to the next, so that
//! only the first allocates, and freed with the GPU's engine: freeing waits for kernels and holds launches back meanwhile.

use dtc_cuda::{CudaError, Device, DeviceBuffer, Event, PinnedBuffer, Stream};

/// Slots of a triple buffer: one is filled while another is emptied, and the third absorbs variations in speed.
pub(crate) const SLOTS: usize = 3;

/// Bytes of a pinned slot: small enough to be in the processor's cache when it is copied.
pub(crate) const RING_CHUNK: u64 = 1 << 20;

/// Bytes of the buffer of a ring.
pub(in crate::device) const RING_BYTES: usize = SLOTS * RING_CHUNK as usize;

/// Bytes of a slot on a device: large enough that the time of a launch does not matter.
pub(crate) const STAGE_CHUNK: u64 = 4 << 20;

/// Pinned buffers for a transfer in which the processor takes part.
pub(crate) struct Ring {
    pub(crate) stream: Stream,
    buffer: PinnedBuffer,
    /// Recorded after the device's last use of each slot.
    pub(crate) events: [Event; SLOTS],
    /// Recorded after the work that was enqueued before the transfer.
    pub(crate) begun: Event,
}

impl Ring {
    /// Of a buffer of [`RING_BYTES`].
    pub(crate) fn new(device: &Device, buffer: PinnedBuffer) -> Result<Ring, CudaError> {
        Ok(Ring { stream: Stream::new(device)?, buffer, events: events(device)?, begun: Event::new(device)? })
    }

    /// The addresses of a slot: for the processor and for kernels.
    pub(crate) fn slot(&self, index: usize) -> (*mut u8, u64) {
        let at = index * RING_CHUNK as usize;
        (self.buffer.as_ptr().wrapping_add(at), self.buffer.address() + at as u64)
    }
}

/// Buffers on a device for a transfer by kernels and copies. Its streams order one transfer after the last one, so it is given
/// back as soon as everything is enqueued.
pub(crate) struct Stage {
    /// The stream that fills slots.
    pub(crate) first: Stream,
    /// The stream that empties slots.
    pub(crate) second: Stream,
    buffer: DeviceBuffer,
    pub(crate) filled: [Event; SLOTS],
    pub(crate) emptied: [Event; SLOTS],
    pub(crate) begun: Event,
}

impl Stage {
    pub(crate) fn new(device: &Device) -> Result<Stage, CudaError> {
        Ok(Stage {
            first: Stream::new(device)?,
            second: Stream::new(device)?,
            buffer: DeviceBuffer::new(device, SLOTS * STAGE_CHUNK as usize)?,
            filled: events(device)?,
            emptied: events(device)?,
            begun: Event::new(device)?,
        })
    }

    pub(crate) fn slot(&self, index: usize) -> u64 {
        self.buffer.address() + (index as u64) * STAGE_CHUNK
    }
}

fn events(device: &Device) -> Result<[Event; SLOTS], CudaError> {
    Ok([Event::new(device)?, Event::new(device)?, Event::new(device)?])
}
