//! Copies from type to type, on devices.

use super::buffered_move::BufferedMove;
use super::error::TransferError;
use super::movers::MemoryClass;
use super::place::Placed;
use super::request::Part;
use super::transfer::Elements;
use crate::device::{BufferSlot, CopyMove, Gpu};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::CopyCall;
use dtc_cuda::{CudaError, Stream};
use smallvec::SmallVec;

/// Runs of a peer's memory from this length on, in bytes, are written over the link one by one. Shorter ones come packed, and
/// are unpacked there.
const LONG_RUN: u64 = 128;

/// A copy with memory of one kind at each end. Both ranges are of one length, and not empty.
#[derive(Clone, Copy)]
pub(super) struct PlacedCopy<'a> {
    pub(super) source: Placed<'a>,
    pub(super) destination: Placed<'a>,
}

/// The parts of a copy with memory of one kind at each end: one, for most copies.
pub(super) type CopyParts<'a> = SmallVec<[PlacedCopy<'a>; 1]>;

/// Cuts a copy where the kind of memory changes at either end. Both ranges are of one length, and end with the packed bytes or
/// before.
pub(super) fn parts<'a>(source: Elements<'a>, destination: Elements<'a>) -> Result<CopyParts<'a>, TransferError> {
    let (read, written) = (source.placed("source")?, destination.placed("destination")?);
    let (mut parts, mut at) = (CopyParts::new(), 0);
    let (mut reads, mut writes) = (read.iter().peekable(), written.iter().peekable());
    let end = |placed: &Placed, whole: &Elements| placed.range.offset() + placed.range.length() - whole.range.offset();
    while let (Some(from), Some(into)) = (reads.peek(), writes.peek()) {
        let ends = [end(from, &source), end(into, &destination)];
        let end = ends[0].min(ends[1]);
        let part = |placed: &Placed<'a>, whole: &Elements| Placed { range: whole.range.part(at, end - at), ..*placed };
        parts.push(PlacedCopy { source: part(from, &source), destination: part(into, &destination) });
        at = end;
        reads.next_if(|_| ends[0] == end);
        writes.next_if(|_| ends[1] == end);
    }
    Ok(parts)
}

impl Placed<'_> {
    /// Enqueues the call between them and packed bytes at an address on the default stream of a device.
    ///
    /// # Safety
    ///
    /// As for [`DeviceType::launch`](crate::device::DeviceType::launch).
    pub(super) unsafe fn launch(&self, gpu: &Gpu, direction: Direction, packed: u64) -> Result<(), CudaError> {
        // SAFETY: `DeviceType::launch` has the same contract, and the stream is one of the device.
        unsafe { self.of.device_type(gpu).launch(&gpu.state.stream, &self.device_move(direction, packed)) }
    }
}

impl PlacedCopy<'_> {
    /// Starts the copy. Nothing is left under way if it is done.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer).
    pub(super) unsafe fn start(&self, wait: bool) -> Result<Option<Part>, TransferError> {
        let PlacedCopy { source, destination } = self;
        match MemoryClass::movers(source.kind().into(), destination.kind().into()) {
            (None, None) => {
                let (read, written) = (source.memory.address, destination.memory.address);
                // SAFETY: clauses 1 to 4 hold for both ranges, and no end lies on a device, so the processor reaches both.
                unsafe { source.of.copy_bytes(read, source.range, destination.of, destination.range, written) };
                Ok(None)
            }
            (Some(one), Some(other)) if one == other => {
                let gpu = source.of.engine().gpu(one)?;
                // SAFETY: the device reaches both ends.
                unsafe { self.enqueue(&gpu, &gpu.state.stream)? };
                Part::enqueued(&gpu, wait)
            }
            (from, into) => {
                let gpu = |ordinal: Option<u32>| ordinal.map(|ordinal| source.of.engine().gpu(ordinal)).transpose();
                let (from, into) = (gpu(from)?, gpu(into)?);
                let peers = from.as_ref().zip(into.as_ref());
                if let Some((from, into)) = peers.filter(|(from, into)| from.state.reaches(into.device())) {
                    // SAFETY: the device of the source reaches that of the destination.
                    return unsafe { self.to_peer(from, into, wait) };
                }
                // SAFETY: the contract of `Transfer` holds for every byte of the copy, and `movers` gave each end a mover that
                // reaches it.
                unsafe { self.through(from.as_ref(), into.as_ref(), false)? };
                Ok(None)
            }
        }
    }

    /// An error if kernels of a device cannot use both ends.
    pub(super) fn check_reach(&self, gpu: &Gpu) -> Result<(), TransferError> {
        self.source.of.engine().check_reach(gpu, "source", self.source.kind())?;
        self.source.of.engine().check_reach(gpu, "destination", self.destination.kind())
    }

    /// Enqueues the copy on a CUDA stream, as one kernel or one copy of the driver.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), until the work is done; the device reaches both ends.
    pub(super) unsafe fn enqueue(&self, gpu: &Gpu, stream: &Stream) -> Result<(), CudaError> {
        let PlacedCopy { source, destination } = self;
        // SAFETY: the device reaches both ends (contract of this function), which do not overlap (clause 2).
        unsafe {
            source.of.device_type(gpu).copy(
                stream,
                destination.of.device_type(gpu),
                &self.device_copy(),
                &gpu.shared_kernels.copies,
            )
        }
    }

    /// Copies to memory of another device; short runs go through a buffer, which is waited for.
    ///
    /// # Safety
    ///
    /// As for [`PlacedCopy::start`]; the first device has the source and reaches the destination, on the second.
    unsafe fn to_peer(self, from: &Gpu, into: &Gpu, wait: bool) -> Result<Option<Part>, TransferError> {
        // After what the other device was given, too.
        from.follow(into)?;
        let to = self.destination.of;
        if to.run_bytes() >= LONG_RUN || to.device_type(into).plan.is_contiguous() {
            // SAFETY: the device of the source reaches both ends.
            unsafe { self.enqueue(from, &from.state.stream)? };
            return Part::enqueued(from, wait);
        }
        // SAFETY: each device reaches its own end, and the first one buffers of the second.
        unsafe { self.through(Some(from), Some(into), true)? };
        Ok(None)
    }

    /// Copies through packed bytes, chunk by chunk, and waits. The processor moves what no device is given for.
    ///
    /// # Safety
    ///
    /// As for [`PlacedCopy::start`]; each mover reaches its end and the buffers.
    unsafe fn through(&self, from: Option<&Gpu>, into: Option<&Gpu>, on_device: bool) -> Result<(), CudaError> {
        let pass = |placed: &Placed, direction, gpu: Option<&Gpu>, slot: BufferSlot| {
            // SAFETY: the mover reaches its end; the buffer is as long as a chunk, and no other mover uses it now.
            unsafe {
                match gpu {
                    Some(gpu) => placed.launch(gpu, direction, slot.address),
                    None => {
                        placed.on_processor(direction, slot.host);
                        Ok(())
                    }
                }
            }
        };
        BufferedMove { from, to: into, bytes: self.source.range.length(), granule: 16 }.run(
            on_device,
            |at, bytes, slot| pass(&self.source.part(at, bytes), Direction::Pack, from, slot),
            |at, bytes, slot| pass(&self.destination.part(at, bytes), Direction::Unpack, into, slot),
        )
    }

    /// The copy as a device sees it.
    fn device_copy(&self) -> CopyMove {
        let PlacedCopy { source, destination } = self;
        let call = CopyCall {
            source: source.memory.device_address(),
            source_first: source.range.offset(),
            target: destination.memory.device_address(),
            target_first: destination.range.offset(),
            bytes: source.range.length(),
        };
        CopyMove { call, counts: [source.range.count(), destination.range.count()] }
    }
}
