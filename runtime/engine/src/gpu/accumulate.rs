//! Unpacking with an operation, on a device.

use super::error::TransferError;
use super::on_device::{GpuType, Grid, Move};
use super::request::Part;
use super::transfer::{BufferedMove, Memory, Piece, Placed};
use crate::cpu::Sides;
use crate::error::AccumulateError;
use dtc_compiler::codegen::cuda::GENERIC_ACCUMULATE_THREADS;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_compiler::plan::gpu::computes;
use dtc_cuda::{CudaError, MemoryKind, Stream, copy};
use std::sync::Arc;

impl Placed<'_> {
    /// Accumulates packed bytes in them by the processor. What could be refused was checked.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), with memory and packed bytes that the processor reaches.
    pub(super) unsafe fn accumulate(&self, reduction: Reduction, packed: *mut u8) {
        let sides = Sides { memory: self.memory.address, packed };
        // SAFETY: clauses 1 to 4 and 6 hold for every byte of the range, and the processor reaches both ends (contract of this
        // function). What `accumulate_bytes` refuses was checked before.
        let _ = unsafe { self.of.accumulate_bytes(reduction, sides, self.range) };
    }
}

impl Piece<'_> {
    /// Starts an accumulation. Nothing is left under way if it is done.
    ///
    /// # Safety
    ///
    /// As for [`Piece::start`]. The bytes are whole elements, which whichever processor has the memory can accumulate.
    pub(super) unsafe fn start_accumulation(
        &self,
        reduction: Reduction,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        let Piece { elements, packed, .. } = *self;
        let (by, from) = Memory::movers(elements.kind().into(), packed.kind().into());
        if by.is_none() && from.is_none() {
            // SAFETY: the contract of `Transfer` holds for the piece, and no end lies on a device, so the processor reaches both.
            unsafe { elements.accumulate(reduction, packed.address) };
            return Ok(None);
        }
        let gpu = |ordinal: Option<u32>| ordinal.map(|ordinal| elements.of.engine().gpu(ordinal)).transpose();
        let whole = elements.on_device(self.direction, packed.on_device());
        // Packed bytes are read once, and in whole lines: a kernel takes pinned ones over the link as fast as a copy does.
        if let Some(gpu) = gpu(by)?
            && (from == by || packed.kind() == MemoryKind::Pinned)
        {
            // SAFETY: the device reaches both ends, and the bytes are whole elements.
            unsafe { elements.of.on_device(&gpu).accumulate(&gpu.shared.stream, &whole, reduction)? };
            return Part::enqueued(&gpu, wait);
        }
        let (by, from) = (gpu(by)?, gpu(from)?);
        let (from, to) = (from.as_ref(), by.as_ref());
        BufferedMove { from, to, bytes: elements.range.length(), granule: reduction.element().size() }.run(
            false,
            |at, bytes, slot| match from {
                // SAFETY: the buffer is as long as a chunk, and free; the device reaches the packed bytes.
                Some(gpu) => unsafe {
                    copy::on_device(&gpu.shared.stream, slot.address, whole.call.packed + at, bytes as usize)
                },
                None => {
                    let packed = packed.advanced(at).address;
                    // SAFETY: the buffer is as long as a chunk, and free; the processor reaches the packed bytes.
                    unsafe { slot.host.copy_from_nonoverlapping(packed, bytes as usize) };
                    Ok(())
                }
            },
            |at, bytes, slot| match to {
                Some(gpu) => {
                    let part = whole.part(at, bytes, slot.address);
                    // SAFETY: the buffer holds whole elements, and the device reaches the memory.
                    unsafe { elements.of.on_device(gpu).accumulate(&gpu.shared.stream, &part, reduction) }
                }
                None => {
                    // SAFETY: the buffer holds whole elements, and the processor reaches the memory.
                    unsafe { elements.part(at, bytes).accumulate(reduction, slot.host) };
                    Ok(())
                }
            },
        )?;
        Ok(None)
    }

    /// An error if a device has the elements, and its kernels do not compute the reduction.
    pub(super) fn check_computes(&self, reduction: Reduction) -> Result<(), AccumulateError> {
        if combines(self.elements.kind(), self.packed.kind()) { check_computes(reduction) } else { Ok(()) }
    }
}

/// Whether a device combines elements in memory of a kind with packed bytes in that of another.
pub(crate) fn combines(memory: MemoryKind, packed: MemoryKind) -> bool {
    Memory::movers(memory.into(), packed.into()).0.is_some()
}

/// Refuses reductions that no kernel computes.
pub(super) fn check_computes(reduction: Reduction) -> Result<(), AccumulateError> {
    let can = reduction.operation() == Operation::Replace || computes(reduction);
    if can { Ok(()) } else { Err(AccumulateError::Unsupported(reduction)) }
}

impl GpuType {
    /// Enqueues an unpack with an operation, as one kernel.
    ///
    /// # Safety
    ///
    /// As for [`GpuType::launch`]. The call is an unpack of whole elements, and kernels compute the reduction or it replaces.
    pub(super) unsafe fn accumulate(
        self: &Arc<GpuType>,
        stream: &Stream,
        asked: &Move,
        reduction: Reduction,
    ) -> Result<(), CudaError> {
        let Move { call, count, .. } = *asked;
        if reduction.operation() == Operation::Replace {
            // SAFETY: a replacement is an unpack of the same bytes, under the contract of `launch`, which is part of this
            // function's.
            return unsafe { self.launch(stream, asked) };
        }
        if let Some(variant) = self.plan.accumulation(reduction, &call)
            && let Some((_, kernel)) = self.serving(&variant)
            && let Some(blocks) = self.plan.blocks(&variant, &call)
        {
            // SAFETY: `serving` found the kernel among those of this type. The bytes are those of `call`, for which the contract
            // of `launch` holds.
            return unsafe { self.launch_compiled(stream, kernel, &call, count, Grid::all(blocks, variant.threads())) };
        }
        let threads = GENERIC_ACCUMULATE_THREADS;
        let blocks = call.bytes.div_ceil(reduction.element().size() * u64::from(threads));
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31);
        let blocks = blocks.ok_or(CudaError::GridTooLarge { bytes: call.bytes })?;
        let interpreter = self.interpreter()?;
        let program = interpreter.program.accumulating(reduction);
        // SAFETY: the generic kernel for accumulations ends in a program, and this one is for the type and the reduction. The
        // bytes are those of `call`, for which the contract of `launch` holds.
        unsafe {
            interpreter.launch(interpreter.generic.accumulate(), stream, &call, Grid::all(blocks, threads), program)
        }
    }
}
