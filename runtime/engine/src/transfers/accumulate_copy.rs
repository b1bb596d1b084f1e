//! Accumulations from type to type, between memory of any kind.

use super::accumulate::{accumulates_on_device, check_computes};
use super::buffered_move::BufferedMove;
use super::error::TransferError;
use super::movers::MemoryClass;
use super::placed_copy::PlacedCopy;
use crate::committed::CheckedReduction;
use crate::device::Gpu;
use crate::error::AccumulateError;
use crate::piece::{Buffer, PIECE};
use dtc_compiler::operation::Reduction;
use dtc_compiler::plan::Direction;

impl PlacedCopy<'_> {
    /// An error if a device has the destination, and its kernels do not compute the reduction.
    pub(super) fn check_computes(&self, reduction: Reduction) -> Result<(), AccumulateError> {
        let by_device = accumulates_on_device(self.destination.kind(), self.source.kind());
        if by_device { check_computes(reduction) } else { Ok(()) }
    }

    /// Accumulates the elements of the source in those of the destination, through packed bytes, and waits.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer). The bytes are whole elements, which whichever processor has the destination
    /// can accumulate.
    pub(super) unsafe fn accumulate(&self, checked: &CheckedReduction) -> Result<(), TransferError> {
        let PlacedCopy { source, destination } = self;
        let reduction = checked.reduction();
        let (bytes, size) = (source.range.length(), reduction.element().size());
        let collect = |at: u64, bytes: u64, packed: *mut u8| {
            // SAFETY: the processor reaches the source; the other end is a buffer of this call, and as long as the part.
            unsafe { source.part(at, bytes).on_processor(Direction::Pack, packed) };
        };
        let accumulate = |at: u64, bytes: u64, packed: *mut u8| {
            // SAFETY: the processor reaches the destination; the buffer holds the part.
            unsafe { destination.part(at, bytes).accumulate(checked, packed) };
        };
        let (from, into) = MemoryClass::movers(source.kind().into(), destination.kind().into());
        if from.is_none() && into.is_none() {
            let mut buffer = Buffer::new();
            let step = PIECE / size * size;
            for at in (0..bytes).step_by(step as usize) {
                let bytes = step.min(bytes - at);
                collect(at, bytes, buffer.start());
                accumulate(at, bytes, buffer.start());
            }
            return Ok(());
        }
        let gpu = |ordinal: Option<u32>| ordinal.map(|ordinal| source.of.engine().gpu(ordinal)).transpose();
        let (from, into) = (gpu(from)?, gpu(into)?);
        let (from, into) = (from.as_ref(), into.as_ref());
        let ordinal = |gpu: &Gpu| gpu.device().info().ordinal;
        let together = from
            .zip(into)
            .is_some_and(|(from, into)| ordinal(from) == ordinal(into) || from.state.reaches(into.device()));
        BufferedMove { from, to: into, bytes, granule: size }.run(
            together,
            |at, bytes, slot| match from {
                // SAFETY: the buffer is as long as a chunk, and free; the device reaches the source.
                Some(gpu) => unsafe { source.part(at, bytes).launch(gpu, Direction::Pack, slot.address) },
                None => {
                    collect(at, bytes, slot.host);
                    Ok(())
                }
            },
            |at, bytes, slot| match into {
                Some(gpu) => {
                    let part = destination.part(at, bytes).device_move(Direction::Unpack, slot.address);
                    // SAFETY: the buffer holds whole elements, and the device reaches the destination.
                    unsafe { destination.of.device_type(gpu).accumulate(&gpu.state.stream, &part, reduction) }
                }
                None => {
                    accumulate(at, bytes, slot.host);
                    Ok(())
                }
            },
        )?;
        Ok(())
    }
}
