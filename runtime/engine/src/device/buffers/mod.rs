//! Buffers that transfers go through, kept from one transfer to the next.

mod double_buffer;
mod pool;
mod triple_buffers;

pub(crate) use double_buffer::{BufferSlot, CHUNK, DoubleBuffer, DoubleBuffers};
pub(crate) use pool::Pool;
pub(super) use triple_buffers::RING_BYTES;
pub(crate) use triple_buffers::{RING_CHUNK, Ring, SLOTS, STAGE_CHUNK, Stage};
