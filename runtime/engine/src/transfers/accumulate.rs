//! Unpacking with an operation, on a device.

use super::buffered_move::BufferedMove;
use super::error::TransferError;
use super::movers::MemoryClass;
use super::place::{Located, Placed};
use super::placed_move::PlacedMove;
use super::request::Part;
use crate::committed::CheckedReduction;
use crate::cpu::Addresses;
use crate::device::Gpu;
use crate::engine::Engine;
use crate::error::AccumulateError;
use crate::multiprocessors::Multiprocessors;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::computes;
use dtc_cuda::{MemoryKind, Stream, copy};
use dtc_microkernels::accumulate::select_accumulate;

impl Engine {
    /// Whether [`Committed::accumulate`](crate::Committed::accumulate) computes a reduction on this machine, for elements and packed bytes in memory of
    /// these kinds: devices have no long doubles.
    ///
    /// ```
    /// use dtc_runtime::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::{Engine, cuda::MemoryKind::{Device, Pageable}};
    /// let engine = Engine::new();
    /// let sum = Reduction::new(Operation::Sum, Element::F64)?;
    /// assert!(engine.computes(sum, Pageable, Pageable) && engine.computes(sum, Device(0), Pageable));
    /// let extended = Reduction::new(Operation::Sum, Element::F80)?;
    /// assert!(!engine.computes(extended, Device(0), Pageable));
    /// # Ok::<(), dtc_runtime::operation::OperationError>(())
    /// ```
    pub fn computes(&self, reduction: Reduction, memory: MemoryKind, packed: MemoryKind) -> bool {
        let by_device = accumulates_on_device(memory, packed);
        reduction.operation() == Operation::Replace
            || if by_device { computes(reduction) } else { select_accumulate(self.target().level, reduction).is_some() }
    }
}

impl Placed<'_> {
    /// Accumulates packed bytes in them by the processor.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), with memory and packed bytes that the processor reaches. The reduction was checked
    /// for the type, and the bytes are whole elements.
    pub(super) unsafe fn accumulate(&self, reduction: &CheckedReduction, packed: *mut u8) {
        let addresses = Addresses { memory: self.memory.address, packed };
        // SAFETY: clauses 1 to 4 and 6 hold for every byte of the range, and the processor reaches both ends (contract of this
        // function), as do whole elements of the reduction.
        unsafe { self.of.accumulate_bytes(reduction, addresses, self.range) };
    }
}

impl PlacedMove<'_> {
    /// The accumulation of packed bytes in elements.
    pub(super) fn accumulation<'a>(elements: Placed<'a>, packed: Located) -> PlacedMove<'a> {
        PlacedMove { direction: Direction::Unpack, elements, packed, multiprocessors: Multiprocessors::All }
    }

    /// Enqueues an accumulation on a CUDA stream, as one launch.
    ///
    /// # Safety
    ///
    /// As for [`PlacedMove::enqueue`]. The bytes are whole elements, and kernels compute the reduction.
    pub(super) unsafe fn enqueue_accumulation(
        &self,
        reduction: Reduction,
        gpu: &Gpu,
        stream: &Stream,
    ) -> Result<(), TransferError> {
        let part = self.elements.device_move(self.direction, self.packed.device_address());
        // SAFETY: until the work is done, the device of the stream reaches both ends, and the bytes are whole elements (contract of
        // this function).
        unsafe { self.elements.of.device_type(gpu).accumulate(stream, &part, reduction)? };
        Ok(())
    }

    /// Starts an accumulation. Nothing is left under way if it is done.
    ///
    /// # Safety
    ///
    /// As for [`PlacedMove::start`]. The bytes are whole elements, which whichever processor has the memory can accumulate.
    pub(super) unsafe fn start_accumulation(
        &self,
        checked: &CheckedReduction,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        let PlacedMove { elements, packed, .. } = *self;
        let reduction = checked.reduction();
        let (by, from) = MemoryClass::movers(elements.kind().into(), packed.kind().into());
        if by.is_none() && from.is_none() {
            // SAFETY: the contract of `Transfer` holds for the move, and no end lies on a device, so the processor reaches both.
            unsafe { elements.accumulate(checked, packed.address) };
            return Ok(None);
        }
        let gpu = |ordinal: Option<u32>| ordinal.map(|ordinal| elements.of.engine().gpu(ordinal)).transpose();
        let whole = elements.device_move(self.direction, packed.device_address());
        // Packed bytes are read once, and in whole lines: a kernel takes pinned ones over the link as fast as a copy does.
        if let Some(gpu) = gpu(by)?
            && (from == by || packed.kind() == MemoryKind::Pinned)
        {
            // SAFETY: the device reaches both ends, and the bytes are whole elements.
            unsafe { elements.of.device_type(&gpu).accumulate(&gpu.state.stream, &whole, reduction)? };
            return Part::enqueued(&gpu, wait);
        }
        let (by, from) = (gpu(by)?, gpu(from)?);
        let (from, to) = (from.as_ref(), by.as_ref());
        BufferedMove { from, to, bytes: elements.range.length(), granule: reduction.element().size() }.run(
            false,
            |at, bytes, slot| match from {
                // SAFETY: the buffer is as long as a chunk, and free; the device reaches the packed bytes.
                Some(gpu) => unsafe {
                    copy::on_device(&gpu.state.stream, slot.address, whole.call.packed + at, bytes as usize)
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
                    unsafe { elements.of.device_type(gpu).accumulate(&gpu.state.stream, &part, reduction) }
                }
                None => {
                    // SAFETY: the buffer holds whole elements, and the processor reaches the memory.
                    unsafe { elements.part(at, bytes).accumulate(checked, slot.host) };
                    Ok(())
                }
            },
        )?;
        Ok(None)
    }

    /// An error if a device has the elements, and its kernels do not compute the reduction.
    pub(super) fn check_computes(&self, reduction: Reduction) -> Result<(), AccumulateError> {
        if accumulates_on_device(self.elements.kind(), self.packed.kind()) { check_computes(reduction) } else { Ok(()) }
    }
}

/// Whether a device combines elements in memory of a kind with packed bytes in that of another.
pub(super) fn accumulates_on_device(memory: MemoryKind, packed: MemoryKind) -> bool {
    MemoryClass::movers(memory.into(), packed.into()).0.is_some()
}

/// Refuses reductions that no kernel computes.
pub(super) fn check_computes(reduction: Reduction) -> Result<(), AccumulateError> {
    let can = reduction.operation() == Operation::Replace || computes(reduction);
    if can { Ok(()) } else { Err(AccumulateError::Unsupported(reduction)) }
}
