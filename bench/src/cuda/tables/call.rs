//! A call on the buffers of a case.
#![expect(unsafe_code, reason = "moves memory of a device")]

use dtc_compiler::plan::Direction;
use dtc_runtime::Endpoint;
use dtc_runtime::cuda::{CudaError, Stream, copy};

/// A call for all packed bytes, in buffers that have all of them.
#[derive(Clone, Copy)]
pub struct Call {
    /// Which way.
    pub direction: Direction,
    /// Where the elements are.
    pub memory: Endpoint,
    /// Where the packed bytes are.
    pub packed: Endpoint,
    /// How many.
    pub bytes: u64,
}

impl Call {
    /// The driver's copy of as many bytes.
    pub fn copy(&self, stream: &Stream) -> Result<(), CudaError> {
        let (memory, packed) = (self.memory.address().addr() as u64, self.packed.address().addr() as u64);
        let (to, from) = match self.direction {
            Direction::Pack => (packed, memory),
            Direction::Unpack => (memory, packed),
        };
        // SAFETY: both buffers have at least the packed bytes, and live until the stream was waited for.
        unsafe { copy::between(stream, to, from, self.bytes as usize) }
    }
}
