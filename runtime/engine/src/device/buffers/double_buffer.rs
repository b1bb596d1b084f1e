//! Buffers that bytes pass through on their way from one mover to another.

use super::pool::Pool;
use dtc_cuda::{DeviceBuffer, PinnedBuffer};

/// Bytes of a slot: large enough that the time of a launch does not matter.
pub(crate) const CHUNK: u64 = 4 << 20;

/// A double buffer.
pub(crate) enum DoubleBuffer {
    /// Pinned memory, which the processor and every device reach.
    Pinned(PinnedBuffer),
    /// On the device that empties them, within reach of the one that fills them.
    OnDevice(DeviceBuffer),
}

/// Double buffers of both sorts that no call uses now.
#[derive(Default)]
pub(crate) struct DoubleBuffers {
    pub(crate) pinned: Pool<PinnedBuffer>,
    pub(crate) on_device: Pool<DeviceBuffer>,
}

/// The addresses of one half of a double buffer.
#[derive(Clone, Copy)]
pub(crate) struct BufferSlot {
    /// For kernels and copies.
    pub(crate) address: u64,
    /// For the processor; null if it has no access.
    pub(crate) host: *mut u8,
}

impl DoubleBuffer {
    pub(crate) fn slot(&self, index: usize) -> BufferSlot {
        let at = index * CHUNK as usize;
        match self {
            DoubleBuffer::Pinned(buffer) => {
                BufferSlot { address: buffer.address() + at as u64, host: buffer.as_ptr().wrapping_add(at) }
            }
            DoubleBuffer::OnDevice(buffer) => {
                BufferSlot { address: buffer.address() + at as u64, host: std::ptr::null_mut() }
            }
        }
    }
}
