//! Memory of a device that the bytes of copies pass through, kept from one copy to the next.

use dtc_cuda::{CudaError, Device, DeviceBuffer, Event, Stream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes at least: a page of the device.
const LEAST: usize = 64 << 10;

/// How many are kept: generic kernels serve few copies before the compiled ones do.
const MOST_KEPT: usize = 4;

/// Memory for the bytes of a copy.
pub(crate) struct PassBuffer {
    device: DeviceBuffer,
    /// Recorded behind the kernel that reads it last.
    done: Event,
}

impl PassBuffer {
    pub(crate) fn address(&self) -> u64 {
        self.device.address()
    }
}

/// The memory that no copy uses now, or whose kernels may still be running.
#[derive(Default)]
pub(super) struct PassBuffers(Mutex<Vec<PassBuffer>>);

impl PassBuffers {
    fn kept(&self) -> MutexGuard<'_, Vec<PassBuffer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for `bytes` bytes that no copy uses any more.
    pub(super) fn take(&self, device: &Device, bytes: usize) -> Result<PassBuffer, CudaError> {
        let free = |buffer: &PassBuffer| buffer.device.len() >= bytes && buffer.done.query() == Ok(true);
        let mut kept = self.kept();
        if let Some(at) = kept.iter().position(free) {
            return Ok(kept.swap_remove(at));
        }
        drop(kept);
        let room = bytes.next_multiple_of(LEAST);
        Ok(PassBuffer { device: DeviceBuffer::new(device, room)?, done: Event::new(device)? })
    }

    /// Keeps memory for the next copy, once the work that was enqueued on the stream is done. Returns what is too much.
    pub(super) fn keep(&self, buffer: PassBuffer, stream: &Stream) -> Result<Option<PassBuffer>, CudaError> {
        buffer.done.record(stream)?;
        let mut kept = self.kept();
        kept.push(buffer);
        Ok(if kept.len() > MOST_KEPT { Some(kept.remove(0)) } else { None })
    }
}
