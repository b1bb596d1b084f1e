//! Transfers through memory of a device: kernels on one stream, copies on another, chunk by chunk.

use super::super::on_device::{GpuType, Move};
use super::lanes::{SLOTS, STAGE_CHUNK, Stage};
use crate::cuda::{CudaError, Event, Stream, copy};
use dtc_compiler::plan::Direction;
use std::sync::Arc;

/// Enqueues a whole transfer, after what is enqueued on `after`, which then waits for it too. The event marks its end.
///
/// # Safety
///
/// The device reaches the elements, and the driver's copies reach the packed bytes, until the work is done.
pub(super) unsafe fn enqueue(
    on_device: &Arc<GpuType>,
    after: &Stream,
    asked: &Move,
    end: &Event,
) -> Result<(), CudaError> {
    let gpu = &on_device.gpu;
    let stage = gpu.stage()?;
    // SAFETY: the caller's promise.
    let enqueued = unsafe { through(&stage, on_device, after, asked, end) };
    if enqueued.is_err() {
        // Whoever is told of a failure may free the buffers. Where the device has failed, nothing runs.
        let _ = stage.first.synchronize().and_then(|()| stage.second.synchronize());
    }
    gpu.keep_stage(stage);
    enqueued
}

/// # Safety
///
/// As for [`enqueue`].
unsafe fn through(
    stage: &Stage,
    on_device: &Arc<GpuType>,
    after: &Stream,
    asked: &Move,
    end: &Event,
) -> Result<(), CudaError> {
    stage.begun.record(after)?;
    stage.first.wait_event(&stage.begun)?;
    let chunks = (0..asked.bytes).step_by(STAGE_CHUNK as usize).enumerate();
    for (index, at) in chunks {
        let bytes = STAGE_CHUNK.min(asked.bytes - at);
        let index = index % SLOTS;
        let slot = stage.slot(index);
        let kernel = Move { packed: slot, first: asked.first + at, bytes, ..*asked };
        stage.first.wait_event(&stage.emptied[index])?;
        // SAFETY: the slot is the device's and as long as a chunk; the events keep its uses apart. The rest is the caller's
        // promise.
        unsafe {
            match asked.direction {
                Direction::Pack => on_device.launch(&stage.first, &kernel)?,
                Direction::Unpack => copy::between(&stage.first, slot, asked.packed + at, bytes as usize)?,
            }
            stage.filled[index].record(&stage.first)?;
            stage.second.wait_event(&stage.filled[index])?;
            match asked.direction {
                Direction::Pack => copy::between(&stage.second, asked.packed + at, slot, bytes as usize)?,
                Direction::Unpack => on_device.launch(&stage.second, &kernel)?,
            }
        }
        stage.emptied[index].record(&stage.second)?;
    }
    end.record(&stage.second)?;
    after.wait_event(end)
}
