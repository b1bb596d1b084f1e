//! Unpacking with an operation, on a device.

use super::copies::Multiprocessors;
use super::on_device::{GpuType, Grid, Move};
use super::request::{Part, Request, TransferError};
use super::transfer::{Fragment, Fragments, Memory, Passage, Place, Sides, place_of};
use crate::committed::Committed;
use crate::error::AccumulateError;
use crate::range::Range;
use dtc_compiler::codegen::cuda::GENERIC_ACCUMULATE_THREADS;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, computes};
use dtc_cuda::{CudaError, MemoryKind, Stream, copy};
use std::sync::Arc;

impl Committed {
    /// Enqueues an unpack with an operation on a CUDA stream, and returns at once: each basic element of the
    /// range in memory becomes itself OP the packed one. Returns how many packed bytes will be read. May be captured into a graph, which then keeps what the kernel needs. The results are
    /// those of [`Committed::accumulate`]; which bits a NaN has that was computed is the machine's matter.
    ///
    /// # Errors
    ///
    /// [`TransferError::Accumulate`] for what [`Committed::accumulate_raw`] refuses, and for reductions of long doubles, which
    /// no GPU has; CUDA refuses. Nothing was enqueued then.
    ///
    /// # Safety
    ///
    /// As for [`Committed::accumulate_raw`], for the device of the stream and until the work is done.
    ///
    /// ```
    /// # use dtc_runtime::{Committed, TransferError, cuda::{DeviceBuffer, Stream}};
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::Range;
    /// # fn add(ghosts: &Committed, packed: &DeviceBuffer, grid: &DeviceBuffer, stream: &Stream) -> Result<u64, Box<dyn std::error::Error>> {
    /// let sum = Reduction::new(Operation::Sum, Element::F64)?;
    /// let (source, target) = (packed.address() as *const u8, grid.address() as *mut u8);
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// Ok(unsafe { ghosts.accumulate_enqueue(stream, sum, source, Range::elements(1).bytes(..packed.len() as u64), target)? })
    /// # }
    /// ```
    pub unsafe fn accumulate_enqueue(
        &self,
        stream: &Stream,
        reduction: Reduction,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, TransferError> {
        let (offset, bytes) = (range.offset(), self.take(range));
        self.check_reduction(reduction, offset, bytes)?;
        check_computes(reduction)?;
        if bytes > 0 {
            let gpu = self.engine().gpu(stream.device().info().ordinal)?;
            let asked = Accumulation { reduction, packed, range, memory: destination };
            let place = Place::known(MemoryKind::Device(gpu.device().info().ordinal));
            let asked = asked.on_device(&Fragment { first: offset, bytes, place }, place);
            // SAFETY: the caller's promise; the bytes are whole elements.
            unsafe { self.on_device(&gpu).accumulate(stream, &asked, reduction)? };
        }
        Ok(bytes)
    }

    /// Unpacks with an operation from and to memory of any kind, asking CUDA what it is, and returns when the results are
    /// there: [`Committed::accumulate_raw`] anywhere. On a device it is ordered after what was enqueued on the legacy default
    /// stream. A device takes packed bytes out of pinned memory itself; those that whoever has the elements does not reach come
    /// through a pinned buffer, chunk by chunk.
    ///
    /// # Errors
    ///
    /// As for [`Committed::accumulate_raw`] and [`Committed::accumulate_enqueue`]; [`TransferError::Address`] when a side is
    /// null.
    ///
    /// # Safety
    ///
    /// As for [`Committed::accumulate_raw`].
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let sum = Reduction::new(Operation::Sum, Element::I32)?;
    /// let (packed, mut memory) = (7i32.to_ne_bytes(), 3i32);
    /// // SAFETY: both sides are as long as the type.
    /// let read = unsafe { int.accumulate_any(sum, packed.as_ptr(), Range::elements(1).bytes(..4), (&raw mut memory).cast())? };
    /// assert_eq!((read, memory), (4, 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn accumulate_any(
        &self,
        reduction: Reduction,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, TransferError> {
        let asked = Accumulation { reduction, packed, range, memory: destination };
        // SAFETY: the caller's promise.
        unsafe { self.accumulate_between(&asked, Sides::UNKNOWN, true)?.wait() }
    }

    /// Starts an unpack with an operation, and ends it if the caller waits for it anyway.
    ///
    /// # Safety
    ///
    /// As for [`Committed::accumulate_raw`], until the request is done, and both sides lie where the caller said.
    pub(super) unsafe fn accumulate_between(
        &self,
        asked: &Accumulation,
        sides: Sides,
        wait: bool,
    ) -> Result<Request, TransferError> {
        let bytes = self.take(asked.range);
        self.check_reduction(asked.reduction, asked.range.offset(), bytes)?;
        if bytes == 0 {
            return Ok(Request::done(0));
        }
        let (fragments, packed) = self.places_of_accumulation(asked, bytes, sides)?;
        // Before anything is moved.
        if fragments.iter().any(|fragment| combines(fragment.place.kind, packed.kind)) {
            check_computes(asked.reduction)?;
        }
        let wait = wait && fragments.len() == 1;
        // SAFETY: the caller's promise, for a part of the call; what could be refused was checked.
        let start = |fragment| unsafe { self.start_accumulation(asked, fragment, packed, wait) };
        Request::start(bytes, fragments.iter().map(start))
    }

    /// Starts a call on elements in memory of one kind. Nothing is left under way if it is done.
    ///
    /// # Safety
    ///
    /// As for [`Committed::accumulate_between`].
    unsafe fn start_accumulation(
        &self,
        asked: &Accumulation,
        fragment: &Fragment,
        source: Place,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        let whole = asked.on_device(fragment, source);
        let Accumulation { reduction, packed, memory, range } = *asked;
        let Fragment { first, bytes, place } = *fragment;
        let packed = packed.wrapping_add((first - range.offset()) as usize);
        let (by, from) = Memory::movers(place.kind.into(), source.kind.into());
        if by.is_none() && from.is_none() {
            // SAFETY: the caller's promise; both sides are the processor's to use.
            unsafe { self.accumulate_raw(reduction, packed, range.fragment(first, bytes), memory)? };
            return Ok(None);
        }
        let gpu = |ordinal: Option<u32>| ordinal.map(|ordinal| self.engine().gpu(ordinal)).transpose();
        // Packed bytes are read once, and in whole lines: a kernel takes pinned ones over the link as fast as a copy does.
        if let Some(gpu) = gpu(by)?
            && (from == by || source.kind == MemoryKind::Pinned)
        {
            // SAFETY: the caller's promise; the device reaches both sides, and the bytes are whole elements.
            unsafe { self.on_device(&gpu).accumulate(&gpu.shared.stream, &whole, reduction)? };
            return Part::enqueued(&gpu, wait);
        }
        let (by, from) = (gpu(by)?, gpu(from)?);
        let (from, to) = (from.as_ref(), by.as_ref());
        Passage { from, to, bytes, granule: reduction.element().size() }.run(
            false,
            |at, bytes, slot| match from {
                // SAFETY: the caller's promise; the buffer is as long as a chunk, and free.
                Some(gpu) => unsafe {
                    copy::on_device(&gpu.shared.stream, slot.address, whole.packed + at, bytes as usize)
                },
                None => {
                    // SAFETY: as above.
                    unsafe { slot.host.copy_from_nonoverlapping(packed.wrapping_add(at as usize), bytes as usize) };
                    Ok(())
                }
            },
            |at, bytes, slot| match to {
                Some(gpu) => {
                    let part = Move { packed: slot.address, first: first + at, bytes, ..whole };
                    // SAFETY: the caller's promise; the buffer holds whole elements.
                    unsafe { self.on_device(gpu).accumulate(&gpu.shared.stream, &part, reduction) }
                }
                None => {
                    // SAFETY: as above. What could be refused was checked.
                    let _ =
                        unsafe { self.accumulate_raw(reduction, slot.host, range.fragment(first + at, bytes), memory) };
                    Ok(())
                }
            },
        )?;
        Ok(None)
    }

    /// Enqueues an unpack with an operation on a CUDA stream, if its device reaches both sides.
    ///
    /// # Safety
    ///
    /// As for [`Committed::accumulate_raw`], until the work is done, and both sides lie where the caller said.
    pub(super) unsafe fn enqueue_accumulate(
        &self,
        stream: &Stream,
        asked: &Accumulation,
        sides: Sides,
    ) -> Result<u64, TransferError> {
        let bytes = self.take(asked.range);
        self.check_reduction(asked.reduction, asked.range.offset(), bytes)?;
        check_computes(asked.reduction)?;
        if bytes > 0 {
            let gpu = self.engine().gpu(stream.device().info().ordinal)?;
            let (fragments, packed) = self.places_of_accumulation(asked, bytes, sides)?;
            self.check_reach(&gpu, "packed bytes", packed.kind)?;
            fragments.iter().try_for_each(|fragment| self.check_reach(&gpu, "memory", fragment.place.kind))?;
            for fragment in &fragments {
                let part = asked.on_device(fragment, packed);
                // SAFETY: the caller's promise; the device reaches both sides, and the bytes are whole elements.
                unsafe { self.on_device(&gpu).accumulate(stream, &part, asked.reduction)? };
            }
        }
        Ok(bytes)
    }

    /// Where the elements lie, and where the packed bytes do.
    fn places_of_accumulation(
        &self,
        asked: &Accumulation,
        bytes: u64,
        sides: Sides,
    ) -> Result<(Fragments, Place), TransferError> {
        let fragments = self.fragments("memory", asked.memory, asked.range, bytes, sides.memory)?;
        Ok((fragments, place_of("packed bytes", asked.packed, sides.packed)?))
    }
}

/// An unpack with an operation, on addresses.
#[derive(Clone, Copy)]
pub(super) struct Accumulation {
    pub(super) reduction: Reduction,
    pub(super) packed: *const u8,
    pub(super) range: Range,
    /// The address that the type is applied to.
    pub(super) memory: *mut u8,
}

impl Accumulation {
    /// A part of it, as a device sees it.
    fn on_device(&self, fragment: &Fragment, packed: Place) -> Move {
        let Fragment { first, bytes, place } = *fragment;
        Move {
            direction: Direction::Unpack,
            memory: place.on_device(self.memory),
            packed: packed.on_device(self.packed).wrapping_add(first - self.range.offset()),
            count: self.range.count(),
            first,
            bytes,
            multiprocessors: Multiprocessors::All,
        }
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
        let Move { memory, packed, first, bytes, count, .. } = *asked;
        if reduction.operation() == Operation::Replace {
            // SAFETY: the caller's promise.
            return unsafe { self.launch(stream, asked) };
        }
        let call = Call { memory, packed, first, bytes };
        if let Some(variant) = self.plan.accumulation(reduction, &call)
            && let Some(kernel) = self.serving(&variant)
            && let Some(blocks) = self.plan.blocks(&variant, &call)
        {
            // SAFETY: the caller's promise.
            return unsafe { self.launch_compiled(stream, kernel, &call, count, Grid::all(blocks, variant.threads())) };
        }
        let threads = GENERIC_ACCUMULATE_THREADS;
        let blocks = bytes.div_ceil(reduction.element().size() * u64::from(threads));
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31);
        let blocks = blocks.ok_or(CudaError::GridTooLarge { bytes })?;
        let interpreter = self.interpreter()?;
        let program = interpreter.program.accumulating(reduction);
        // SAFETY: the caller's promise; the kernel ends in a program.
        unsafe {
            interpreter.launch(interpreter.generic.accumulate(), stream, &call, Grid::all(blocks, threads), program)
        }
    }
}
