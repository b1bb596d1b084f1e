//! Calls by the copy engines, which need no multiprocessor.

use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Copies;
use dtc_cuda::copy::{self, Rows, Slices};
use dtc_cuda::{CaptureStatus, CudaError, Stream};

/// Enqueues a call as copies.
///
/// # Safety
///
/// Until the work is done, the device can read and write both sides, which do not overlap.
pub(crate) unsafe fn enqueue(
    stream: &Stream,
    direction: Direction,
    copies: &Copies,
    memory: u64,
    packed: u64,
) -> Result<(), CudaError> {
    let Copies { row_bytes, rows, pitch, planes, plane_pitch, copies: number, .. } = *copies;
    let memory = memory.wrapping_add_signed(copies.offset);
    let places = (0..number).map(|copy| {
        let memory = memory.wrapping_add_signed(copy as i64 * copies.copy_pitch);
        let packed = packed + copy * copies.copy_bytes();
        if direction == Direction::Pack { (packed, memory) } else { (memory, packed) }
    });
    if (rows, planes) == (1, 1) {
        // SAFETY: each of `places` is one row of the call, `row_bytes` long, which the device reaches on both sides (contract of
        // this function).
        return unsafe { contiguous(stream, places, row_bytes as usize) };
    }
    let memory_height = plane_pitch / pitch;
    let (to_pitch, to_height, from_pitch, from_height) = match direction {
        Direction::Pack => (row_bytes, rows, pitch, memory_height),
        Direction::Unpack => (pitch, memory_height, row_bytes, rows),
    };
    for (to, from) in places {
        // SAFETY: the rows and planes at `to` and `from` are those of one copy of the call, which the device reaches on both
        // sides (contract of this function).
        unsafe {
            if planes == 1 {
                let to = Rows { address: to, pitch: to_pitch as usize };
                let from = Rows { address: from, pitch: from_pitch as usize };
                copy::rows(stream, to, from, row_bytes as usize, rows as usize)?;
            } else {
                let to = Slices { address: to, pitch: to_pitch as usize, rows_per_slice: to_height as usize };
                let from = Slices { address: from, pitch: from_pitch as usize, rows_per_slice: from_height as usize };
                copy::slices(stream, to, from, row_bytes as usize, rows as usize, planes as usize)?;
            }
        }
    }
    Ok(())
}

/// Enqueues copies of `bytes` bytes each, in one call if the driver can.
///
/// # Safety
///
/// As for [`enqueue`].
unsafe fn contiguous(stream: &Stream, places: impl Iterator<Item = (u64, u64)>, bytes: usize) -> Result<(), CudaError> {
    let (to, from): (Vec<u64>, Vec<u64>) = places.unzip();
    let lengths = vec![bytes; to.len()];
    // SAFETY: each of `places` has `bytes` bytes of the call, which the device reaches on both sides (contract of `enqueue`), and the
    // three lists are equally long.
    unsafe { enqueue_listed(stream, to, from, lengths) }
}

/// Enqueues copies between listed addresses, in one call if the driver can.
///
/// # Safety
///
/// The lists are equally long. As for [`enqueue`], for each copy.
pub(crate) unsafe fn enqueue_listed(
    stream: &Stream,
    mut to: Vec<u64>,
    mut from: Vec<u64>,
    mut lengths: Vec<usize>,
) -> Result<(), CudaError> {
    let batched = to.len() > 1
        && !stream.raw().is_null()
        && stream.capture_status()? == CaptureStatus::None
        // SAFETY: the lists are equally long, and the device reaches both sides of each copy (contract of this function).
        && unsafe { copy::batch(stream, &mut to, &mut from, &mut lengths)? };
    if !batched {
        for ((&to, &from), &bytes) in to.iter().zip(&from).zip(&lengths) {
            // SAFETY: the device reaches both sides of each copy (contract of this function).
            unsafe { copy::between(stream, to, from, bytes)? };
        }
    }
    Ok(())
}
