//! Transfers in which the processor takes part: it fills pinned buffers that a device empties, or the reverse, one beside the
//! other.

use super::error::TransferError;
use crate::committed::Committed;
use crate::cpu::Addresses;
use crate::device::{DeviceState, DeviceType, Move, RING_CHUNK, Ring, SLOTS};
use dtc_compiler::plan::Direction;
use dtc_cuda::{CudaError, copy};
use dtc_microkernels::{CopyFn, select_bulk_copy};
use std::sync::Arc;

/// The side that packs and unpacks: the processor or the device. The other one copies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Packer {
    Device,
    Processor,
}

/// A transfer under way. The processor's part runs in the thread that calls [`Pipeline::advance`] or [`Pipeline::finish`].
pub(crate) struct Pipeline {
    committed: Committed,
    device_type: Arc<DeviceType>,
    packer: Packer,
    /// How the processor copies, if that is its part.
    copy: CopyFn,
    requested: Move,
    /// `None` until a ring is free, and after the last chunk.
    ring: Option<Ring>,
    /// Whether the device has done the work that was enqueued before the transfer.
    begun: bool,
    /// Packed bytes that were enqueued for the device, and that the processor has moved.
    by_device: u64,
    by_processor: u64,
    done: bool,
}

impl Pipeline {
    /// A transfer whose work has not begun.
    ///
    /// # Safety
    ///
    /// Until it is done, the processor and the device reach what they are to move, by the same addresses, and the sides do
    /// not overlap.
    pub(super) unsafe fn new(
        committed: &Committed,
        device_type: &Arc<DeviceType>,
        packer: Packer,
        requested: Move,
    ) -> Pipeline {
        Pipeline {
            committed: committed.clone(),
            device_type: device_type.clone(),
            packer,
            copy: select_bulk_copy(committed.engine().target().level),
            requested,
            ring: None,
            begun: false,
            by_device: 0,
            by_processor: 0,
            done: false,
        }
    }

    fn gpu(&self) -> &Arc<DeviceState> {
        &self.device_type.state
    }

    /// Whether the device works on a chunk before the processor does.
    fn device_first(&self) -> bool {
        (self.requested.direction == Direction::Pack) == (self.packer == Packer::Device)
    }

    /// Gives the device its first work, if there is a ring and the device comes first.
    pub(super) fn start(&mut self) -> Result<(), TransferError> {
        if !self.gpu().has_ring() {
            return Ok(());
        }
        let fed = self.take_ring().and_then(|()| if self.device_first() { self.feed() } else { Ok(()) });
        fed.map_err(|error| {
            self.abandon();
            error.into()
        })
    }

    /// Does the work that needs no waiting, at most one chunk of the processor's. Returns whether all is done.
    pub(crate) fn advance(&mut self) -> Result<bool, TransferError> {
        self.step(false)
    }

    /// Does all work that is left, and waits.
    pub(crate) fn finish(&mut self) -> Result<(), TransferError> {
        while !self.step(true)? {}
        Ok(())
    }

    fn step(&mut self, wait: bool) -> Result<bool, TransferError> {
        if self.done {
            return Ok(true);
        }
        if self.ring.is_none() && !wait && !self.gpu().has_ring() {
            return Ok(false);
        }
        let stepped =
            self.take_ring().and_then(|()| if self.device_first() { self.drain(wait) } else { self.fill(wait) });
        match stepped {
            Ok(false) => Ok(false),
            Ok(true) => {
                self.leave();
                Ok(true)
            }
            Err(error) => {
                self.abandon();
                Err(error.into())
            }
        }
    }

    /// Takes a ring, unless there is one; gives up if none can be had. The work of the device on it begins behind what it has been given
    /// before.
    pub(super) fn take_ring(&mut self) -> Result<(), CudaError> {
        if self.ring.is_none() {
            let ring = self.gpu().ring().inspect_err(|_| self.abandon())?;
            // Ordered like work of the legacy default stream, from here on.
            let ordered = ring.begun.record(&self.gpu().stream).and_then(|()| ring.stream.wait_event(&ring.begun));
            self.ring = Some(ring);
            if let Err(error) = ordered {
                self.abandon();
                return Err(error);
            }
        }
        Ok(())
    }

    /// The device comes first: it is given what there is room for, and the processor does the oldest chunk that is ready.
    fn drain(&mut self, wait: bool) -> Result<bool, CudaError> {
        self.feed()?;
        if self.by_processor == self.requested.call.bytes {
            return Ok(true);
        }
        if !self.ready(slot(self.by_processor), wait)? {
            return Ok(false);
        }
        self.processor(self.by_processor);
        self.by_processor += self.chunk(self.by_processor);
        self.feed()?;
        Ok(self.by_processor == self.requested.call.bytes)
    }

    /// The processor comes first: it does a chunk if there is room, and the device is given that.
    fn fill(&mut self, wait: bool) -> Result<bool, CudaError> {
        let last = self.requested.call.bytes - 1;
        if self.by_processor == self.requested.call.bytes {
            return self.ready(slot(last), wait);
        }
        // Pinned memory may be what the device worked on before.
        if !self.begun {
            let Some(ring) = &self.ring else { return Ok(false) };
            if wait {
                ring.begun.synchronize()?;
            } else if !ring.begun.query()? {
                return Ok(false);
            }
            self.begun = true;
        }
        let at = self.by_processor;
        if at >= RING_CHUNK * SLOTS as u64 && !self.ready(slot(at), wait)? {
            return Ok(false);
        }
        self.processor(at);
        self.by_processor += self.chunk(at);
        self.device(at)?;
        self.by_device = self.by_processor;
        Ok(false)
    }

    /// Whether the device is done with the last use of a slot.
    fn ready(&self, slot: usize, wait: bool) -> Result<bool, CudaError> {
        let Some(ring) = &self.ring else { return Ok(false) };
        if wait { ring.events[slot].synchronize().map(|()| true) } else { ring.events[slot].query() }
    }

    /// Gives the device all chunks that there are slots for.
    fn feed(&mut self) -> Result<(), CudaError> {
        while self.by_device < self.requested.call.bytes
            && self.by_device < self.by_processor + RING_CHUNK * SLOTS as u64
        {
            self.device(self.by_device)?;
            self.by_device += self.chunk(self.by_device);
        }
        Ok(())
    }

    /// Bytes of the chunk that begins `at` bytes behind the first.
    fn chunk(&self, at: u64) -> u64 {
        RING_CHUNK.min(self.requested.call.bytes - at)
    }

    /// The device's part of a chunk.
    fn device(&self, at: u64) -> Result<(), CudaError> {
        let Some(ring) = &self.ring else { return Ok(()) };
        let (index, bytes) = (slot(at), self.chunk(at));
        let (_, buffer) = ring.slot(index);
        let (direction, packed) = (self.requested.direction, self.requested.call.packed + at);
        // SAFETY: a chunk fits its slot, which the processor uses only after the event of the device's work. The elements and the
        // packed bytes of the chunk are reached until the transfer is done (contract of `Pipeline::new`).
        unsafe {
            match (self.packer, direction) {
                (Packer::Device, _) => {
                    self.device_type.launch(&ring.stream, &self.requested.part(at, bytes, buffer))?;
                }
                (Packer::Processor, Direction::Pack) => copy::between(&ring.stream, packed, buffer, bytes as usize)?,
                (Packer::Processor, Direction::Unpack) => copy::between(&ring.stream, buffer, packed, bytes as usize)?,
            }
        }
        ring.events[index].record(&ring.stream)
    }

    /// The processor's part of a chunk.
    fn processor(&self, at: u64) {
        let Some(ring) = &self.ring else { return };
        let bytes = self.chunk(at);
        let (buffer, _) = ring.slot(slot(at));
        let Move { direction, call, .. } = self.requested;
        let memory = std::ptr::with_exposed_provenance_mut::<u8>(call.memory as usize);
        let packed = std::ptr::with_exposed_provenance_mut::<u8>((call.packed + at) as usize);
        let (addresses, range) = (Addresses { memory, packed: buffer }, self.requested.range().part(at, bytes));
        // SAFETY: a chunk fits its slot, and the event says that the device has done with the slot. The elements and the packed
        // bytes of the chunk are reached until the transfer is done (contract of `Pipeline::new`).
        unsafe {
            match (self.packer, direction) {
                (Packer::Device, Direction::Pack) => (self.copy)(packed, buffer, bytes as usize),
                (Packer::Device, Direction::Unpack) => (self.copy)(buffer, packed, bytes as usize),
                (Packer::Processor, Direction::Pack) => self.committed.some::<true>(addresses, range),
                (Packer::Processor, Direction::Unpack) => self.committed.some::<false>(addresses, range),
            }
        }
    }

    /// Gives the ring back.
    fn leave(&mut self) {
        self.done = true;
        if let Some(ring) = self.ring.take() {
            self.gpu().keep_ring(ring);
        }
    }

    /// Gives up after a failure. The device may still be using the ring.
    fn abandon(&mut self) {
        if let Some(ring) = &self.ring {
            // An error here means that the device has failed, and then nothing runs.
            let _ = ring.stream.synchronize();
        }
        self.leave();
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if self.gpu().device.check_process().is_err() {
            // A forked child must not touch the streams and events of its parent.
            std::mem::forget(self.ring.take());
        } else if !self.done {
            // A drop has no caller to report a failure to.
            let _ = self.finish();
        }
    }
}

/// The slot of the chunk that holds a byte.
fn slot(at: u64) -> usize {
    (at / RING_CHUNK % SLOTS as u64) as usize
}
