//! Index lists on their way to the device: `codegen/cuda/tables.rs` writes those of a type as one block of bytes.

use super::state::DeviceState;
use dtc_cuda::{CudaError, DeviceBuffer};
use std::mem;
use std::sync::PoisonError;

/// Bytes of host memory at most that are kept for the next lists.
const MOST_SPARE: usize = 4 << 20;

impl DeviceState {
    /// Memory for lists, with contents of no use.
    pub(super) fn spare_lists(&self) -> Vec<u8> {
        mem::take(&mut *self.spare_lists.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the memory of lists for the next ones.
    pub(super) fn keep_lists(&self, lists: Vec<u8>) {
        if (1..=MOST_SPARE).contains(&lists.capacity()) {
            *self.spare_lists.lock().unwrap_or_else(PoisonError::into_inner) = lists;
        }
    }

    /// Bytes on the device, brought there on a stream of their own, when they are there.
    pub(crate) fn uploaded(&self, bytes: &[u8]) -> Result<DeviceBuffer, CudaError> {
        DeviceBuffer::copy_of(&self.uploads, bytes)
    }

    /// Copies bytes to a buffer that no work uses yet, and returns when they are there; during a capture, too.
    pub(crate) fn fill(&self, buffer: &mut DeviceBuffer, bytes: &[u8]) -> Result<(), CudaError> {
        buffer.write_on(&self.uploads, bytes)
    }

    /// Uploads the lists of a kernel, on a stream of their own, and returns when they are there; nothing if there are none.
    pub(crate) fn upload(&self, lists: &[u8]) -> Result<Option<DeviceBuffer>, CudaError> {
        if lists.is_empty() { Ok(None) } else { self.uploaded(lists).map(Some) }
    }
}
