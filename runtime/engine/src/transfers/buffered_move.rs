//! Moving bytes through a double buffer: one slot is filled while the other is emptied.

use crate::device::{BufferSlot, CHUNK, DoubleBuffer, Gpu};
use dtc_cuda::{CudaError, Event};

/// A move of bytes from one device to another through a double buffer; `None` is the processor.
pub(super) struct BufferedMove<'a> {
    pub(super) from: Option<&'a Gpu>,
    pub(super) to: Option<&'a Gpu>,
    pub(super) bytes: u64,
    /// Bytes that every chunk is a multiple of.
    pub(super) granule: u64,
}

impl BufferedMove<'_> {
    /// Moves all bytes and waits. `fill` and `empty` get the chunk's first byte, its length and its slot; those of devices enqueue
    /// on the legacy default stream. With `on_device`, the slots lie on the device that empties them.
    pub(super) fn run(
        &self,
        on_device: bool,
        fill: impl Fn(u64, u64, BufferSlot) -> Result<(), CudaError>,
        empty: impl Fn(u64, u64, BufferSlot) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let Some(owner) = self.to.or(self.from) else {
            // Between the processor and itself there is nothing to move.
            return Ok(());
        };
        let double_buffer = owner.state.double_buffer(on_device)?;
        let (filled, emptied) = (events(self.from)?, events(self.to)?);
        let moved = self.iterations(&double_buffer, filled.as_ref(), emptied.as_ref(), fill, empty);
        // After a failure, too, work that was enqueued may still use the buffers.
        let waited = [self.from, self.to].into_iter().flatten().try_for_each(|gpu| gpu.state.stream.synchronize());
        for (gpu, events) in [(self.from, filled), (self.to, emptied)] {
            if let (Some(gpu), Some(events)) = (gpu, events) {
                events.into_iter().for_each(|event| gpu.state.give_back(event));
            }
        }
        owner.state.keep_double_buffer(double_buffer);
        moved.and(waited)
    }

    fn iterations(
        &self,
        double_buffer: &DoubleBuffer,
        filled: Option<&[Event; 2]>,
        emptied: Option<&[Event; 2]>,
        fill: impl Fn(u64, u64, BufferSlot) -> Result<(), CudaError>,
        empty: impl Fn(u64, u64, BufferSlot) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let chunk = CHUNK / self.granule * self.granule;
        let chunks = self.bytes.div_ceil(chunk);
        for iteration in 0..=chunks {
            if iteration < chunks {
                let (at, slot) = (iteration * chunk, (iteration % 2) as usize);
                if iteration >= 2 {
                    wait(emptied, slot, self.from)?;
                }
                fill(at, chunk.min(self.bytes - at), double_buffer.slot(slot))?;
                record(filled, slot, self.from)?;
            }
            if let Some(iteration) = iteration.checked_sub(1) {
                let (at, slot) = (iteration * chunk, (iteration % 2) as usize);
                wait(filled, slot, self.to)?;
                empty(at, chunk.min(self.bytes - at), double_buffer.slot(slot))?;
                record(emptied, slot, self.to)?;
            }
        }
        Ok(())
    }
}

fn events(gpu: Option<&Gpu>) -> Result<Option<[Event; 2]>, CudaError> {
    gpu.map(|gpu| Ok([gpu.state.event()?, gpu.state.event()?])).transpose()
}

/// Has `next` wait for the event of a slot. There is none for the processor, which has done its part when it returns.
fn wait(events: Option<&[Event; 2]>, slot: usize, next: Option<&Gpu>) -> Result<(), CudaError> {
    match (events, next) {
        (None, _) => Ok(()),
        (Some(events), Some(gpu)) => gpu.state.stream.wait_event(&events[slot]),
        (Some(events), None) => events[slot].synchronize(),
    }
}

fn record(events: Option<&[Event; 2]>, slot: usize, by: Option<&Gpu>) -> Result<(), CudaError> {
    match (events, by) {
        (Some(events), Some(gpu)) => events[slot].record(&gpu.state.stream),
        _ => Ok(()),
    }
}
