//! Index lists on their way to the device: `codegen/cuda/tables.rs` writes those of a type as one block of bytes.

use super::state::DeviceState;
use dtc_cuda::{CudaError, DeviceBuffer};

impl DeviceState {
    /// Uploads the lists of a kernel, on a stream of their own, and returns when they are there; nothing if there are none.
    pub(super) fn upload(&self, lists: &[u8]) -> Result<Option<DeviceBuffer>, CudaError> {
        if lists.is_empty() { Ok(None) } else { DeviceBuffer::copy_of(&self.uploads, lists).map(Some) }
    }
}
