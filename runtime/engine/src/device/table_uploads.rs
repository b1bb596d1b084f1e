//! Index tables of calls on their way to the device: memory on both sides that is kept from one call to the next.

use dtc_cuda::{CudaError, Device, DeviceBuffer, Event, PinnedBuffer, Stream, copy};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes on either side at least: a page.
const LEAST: usize = 4096;

/// How many are kept: calls that are under way at once each need one.
const MOST_KEPT: usize = 32;

/// Memory for the tables of a call.
pub(crate) struct TableUpload {
    host: PinnedBuffer,
    device: DeviceBuffer,
    /// Recorded behind the kernel that reads the tables.
    done: Event,
}

impl TableUpload {
    /// The address of the tables on the device.
    pub(crate) fn address(&self) -> u64 {
        self.device.address()
    }

    /// Enqueues bringing tables there.
    pub(crate) fn enqueue(&mut self, stream: &Stream, tables: &[u8]) -> Result<(), CudaError> {
        let length = self.device.len();
        let bytes = tables.len();
        let room = self.host.as_mut_slice().get_mut(..bytes).ok_or(CudaError::Bounds { offset: 0, bytes, length })?;
        room.copy_from_slice(tables);
        // SAFETY: both sides have as many bytes. Nobody writes to them before `done`, which is recorded behind their last use.
        unsafe { copy::between(stream, self.device.address(), self.host.address(), bytes) }
    }
}

/// The memory that no call uses now, or whose kernels may still be running.
#[derive(Default)]
pub(super) struct TableUploads(Mutex<Vec<TableUpload>>);

impl TableUploads {
    fn kept(&self) -> MutexGuard<'_, Vec<TableUpload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for `bytes` bytes of tables that no call uses any more; `staging` makes new pinned memory.
    pub(super) fn take(
        &self,
        device: &Device,
        bytes: usize,
        staging: impl FnOnce(usize) -> Result<PinnedBuffer, CudaError>,
    ) -> Result<TableUpload, CudaError> {
        let free = |upload: &TableUpload| upload.device.len() >= bytes && upload.done.query() == Ok(true);
        let mut kept = self.kept();
        if let Some(at) = kept.iter().position(free) {
            return Ok(kept.swap_remove(at));
        }
        drop(kept);
        let room = bytes.next_power_of_two().max(LEAST);
        Ok(TableUpload { host: staging(room)?, device: DeviceBuffer::new(device, room)?, done: Event::new(device)? })
    }

    /// Keeps memory for the next call, once the work that was enqueued on the stream is done. Returns what is too much.
    pub(super) fn keep(&self, upload: TableUpload, stream: &Stream) -> Result<Option<TableUpload>, CudaError> {
        upload.done.record(stream)?;
        let mut kept = self.kept();
        kept.push(upload);
        Ok(if kept.len() > MOST_KEPT { Some(kept.remove(0)) } else { None })
    }
}
