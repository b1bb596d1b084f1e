//! Transfers through memory of a device: kernels on one stream, copies on another, chunk by chunk.

use crate::device::{DeviceType, Move, SLOTS, STAGE_CHUNK, Stage};
use dtc_compiler::plan::Direction;
use dtc_cuda::{CudaError, Event, Stream, copy};
use std::sync::Arc;

/// Enqueues a whole transfer, after what is enqueued on `after`, which then waits for it too. The event marks its end.
///
/// # Safety
///
/// The device reaches the elements, and the driver's copies reach the packed bytes, until the work is done.
pub(super) unsafe fn enqueue(
    device_type: &Arc<DeviceType>,
    after: &Stream,
    requested: &Move,
    end: &Event,
) -> Result<(), CudaError> {
    let state = &device_type.state;
    let stage = state.stage()?;
    // SAFETY: `through` enqueues the same transfer under the same contract.
    let enqueued = unsafe { through(&stage, device_type, after, requested, end) };
    if enqueued.is_err() {
        // The caller may free the buffers after an error. If the device has failed, nothing runs on it.
        let _ = stage.first.synchronize().and_then(|()| stage.second.synchronize());
    }
    state.keep_stage(stage);
    enqueued
}

/// # Safety
///
/// As for [`enqueue`].
unsafe fn through(
    stage: &Stage,
    device_type: &Arc<DeviceType>,
    after: &Stream,
    requested: &Move,
    end: &Event,
) -> Result<(), CudaError> {
    stage.begun.record(after)?;
    stage.first.wait_event(&stage.begun)?;
    let chunks = requested.call.bytes.div_ceil(STAGE_CHUNK);
    // Copies to pageable memory return when they are done: the kernel of the next chunk is enqueued before, to run meanwhile.
    // Copies from there return when the bytes were read, and the kernel behind one comes at once.
    let ahead = if requested.direction == Direction::Pack { 1 } else { 0 };
    for iteration in 0..chunks + ahead {
        if iteration < chunks {
            // SAFETY: chunk `iteration` is a part of the transfer, whose elements and packed bytes are reached until the work is
            // done (contract of `enqueue`).
            unsafe { fill(stage, device_type, requested, iteration)? };
        }
        if let Some(chunk) = iteration.checked_sub(ahead) {
            // SAFETY: `chunk` is a part of the transfer, whose elements and packed bytes are reached until the work is done
            // (contract of `enqueue`).
            unsafe { empty(stage, device_type, requested, chunk)? };
        }
    }
    end.record(&stage.second)?;
    after.wait_event(end)
}

/// Enqueues what brings a chunk into its slot, when that is free.
///
/// # Safety
///
/// As for [`enqueue`].
unsafe fn fill(stage: &Stage, device_type: &Arc<DeviceType>, requested: &Move, chunk: u64) -> Result<(), CudaError> {
    let (index, part) = part(stage, requested, chunk);
    let slot = part.call;
    stage.first.wait_event(&stage.emptied[index])?;
    // SAFETY: the slot is the device's and as long as a chunk; the events keep its uses apart. The elements and the packed bytes
    // of the chunk are reached until the work is done (contract of `enqueue`).
    unsafe {
        match requested.direction {
            Direction::Pack => device_type.launch(&stage.first, &part)?,
            Direction::Unpack => {
                copy::between(
                    &stage.first,
                    slot.packed,
                    requested.call.packed + chunk * STAGE_CHUNK,
                    slot.bytes as usize,
                )?;
            }
        }
    }
    stage.filled[index].record(&stage.first)
}

/// Enqueues what brings a chunk from its slot to where it belongs, when it is there.
///
/// # Safety
///
/// As for [`enqueue`].
unsafe fn empty(stage: &Stage, device_type: &Arc<DeviceType>, requested: &Move, chunk: u64) -> Result<(), CudaError> {
    let (index, part) = part(stage, requested, chunk);
    let slot = part.call;
    stage.second.wait_event(&stage.filled[index])?;
    // SAFETY: the slot is the device's and as long as a chunk; the events keep its uses apart. The elements and the packed bytes
    // of the chunk are reached until the work is done (contract of `enqueue`).
    unsafe {
        match requested.direction {
            Direction::Pack => {
                copy::between(
                    &stage.second,
                    requested.call.packed + chunk * STAGE_CHUNK,
                    slot.packed,
                    slot.bytes as usize,
                )?;
            }
            Direction::Unpack => device_type.launch(&stage.second, &part)?,
        }
    }
    stage.emptied[index].record(&stage.second)
}

/// The slot of a chunk, and the part of the transfer between the elements and that slot.
fn part(stage: &Stage, requested: &Move, chunk: u64) -> (usize, Move) {
    let (index, at) = ((chunk % SLOTS as u64) as usize, chunk * STAGE_CHUNK);
    (index, requested.part(at, STAGE_CHUNK.min(requested.call.bytes - at), stage.slot(index)))
}
