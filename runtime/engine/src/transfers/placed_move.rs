//! Packs and unpacks with memory of one kind at each end, and the path that each takes.

use super::choice::TransferCase;
use super::error::TransferError;
use super::path::TransferPath;
use super::pipeline::{Packer, Pipeline};
use super::place::{Located, Placed};
use super::request::Part;
use super::staged;
use super::transfer::Elements;
use crate::committed::Committed;
use crate::device::{Gpu, Move};
use crate::endpoint::Endpoint;
use crate::multiprocessors::Multiprocessors;
use dtc_compiler::plan::Direction;
use dtc_cuda::{MemoryKind, Stream};
use smallvec::SmallVec;

/// A pack or unpack of elements in memory of one kind.
#[derive(Clone, Copy)]
pub(super) struct PlacedMove<'a> {
    pub(super) direction: Direction,
    pub(super) elements: Placed<'a>,
    /// Where the first packed byte of their range lies.
    pub(super) packed: Located,
    pub(super) multiprocessors: Multiprocessors,
}

/// The moves of a call, in packed order: one, for most calls.
pub(super) type PlacedMoves<'a> = SmallVec<[PlacedMove<'a>; 1]>;

/// Cuts a call where the kind of its memory changes. The range ends with the packed bytes or before.
pub(super) fn placed_moves<'a>(
    direction: Direction,
    elements: Elements<'a>,
    packed: Endpoint,
    multiprocessors: Multiprocessors,
) -> Result<PlacedMoves<'a>, TransferError> {
    let first = elements.range.offset();
    let placed = elements.placed("memory")?;
    let packed = Located::new("packed bytes", packed)?;
    let moved = |elements: Placed<'a>| {
        let packed = packed.advanced(elements.range.offset() - first);
        PlacedMove { direction, elements, packed, multiprocessors }
    };
    Ok(placed.into_iter().map(moved).collect())
}

impl PlacedMove<'_> {
    /// The call as a device sees it.
    pub(super) fn device_move(&self, gpu: &Gpu) -> Move {
        let kinds = [self.elements.kind(), self.packed.kind()];
        let multiprocessors = match self.multiprocessors {
            // An eighth fills the link to the host, and kernels of the application need not wait for the others.
            Multiprocessors::All if kinds.contains(&MemoryKind::Pinned) => {
                Multiprocessors::AtMost(gpu.device().info().multiprocessors / 8)
            }
            // Between two ranges of one device the driver's copies of rows are kernels, and slower ones.
            Multiprocessors::None if kinds[0] == kinds[1] => Multiprocessors::All,
            requested => requested,
        };
        Move { multiprocessors, ..self.elements.device_move(self.direction, self.packed.device_address()) }
    }

    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), with both ends in memory that the processor reaches.
    unsafe fn on_processor(&self) {
        // SAFETY: `Placed::on_processor` has the same contract, and is given both ends of the move.
        unsafe { self.elements.on_processor(self.direction, self.packed.address) }
    }

    /// Starts the call, and ends it if the caller waits for it anyway and that is cheaper so. Nothing is left under way if it is
    /// done.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer).
    pub(super) unsafe fn start(&self, wait: bool) -> Result<Option<Part>, TransferError> {
        let Placed { of, range, .. } = self.elements;
        let (memory, packed) = (self.elements.kind(), self.packed.kind());
        let (gpu, other) = of.devices(memory, packed)?;
        let Some(gpu) = gpu else {
            // SAFETY: the contract of `Transfer` holds for the move, and no end lies on a device, so the processor reaches both.
            unsafe { self.on_processor() };
            return Ok(None);
        };
        let case = TransferCase {
            direction: self.direction,
            memory,
            packed,
            peers: other.as_ref().is_some_and(|other| gpu.state.reaches(other.device())),
            shares_page_tables: gpu.device().info().shares_page_tables,
            waits: wait,
            run_bytes: of.run_bytes(),
            bytes: range.length(),
        };
        // SAFETY: the contract of `Transfer` holds for the move, and `choose` returns only paths that fit the kinds of memory in
        // `case`.
        unsafe { self.start_on(&gpu, other.as_ref(), case.choose(gpu.model()).path, wait) }
    }

    /// Starts a call that a device takes part in, in a given path.
    ///
    /// # Safety
    ///
    /// As for [`PlacedMove::start`], and the path fits the kinds of memory.
    pub(super) unsafe fn start_on(
        &self,
        gpu: &Gpu,
        other: Option<&Gpu>,
        path: TransferPath,
        wait: bool,
    ) -> Result<Option<Part>, TransferError> {
        let state = &gpu.state;
        let device_type = self.elements.of.moved_by(gpu);
        let mut moved = self.device_move(gpu);
        if let Some(other) = other {
            gpu.follow(other)?;
        }
        let packer = match path {
            TransferPath::Processor => {
                // SAFETY: the processor reaches both ends on this path.
                unsafe { self.on_processor() };
                return Ok(None);
            }
            TransferPath::Kernel => {
                // SAFETY: the device reaches both ends on this path.
                unsafe { device_type.launch(&state.stream, &moved)? };
                return Part::enqueued(gpu, wait);
            }
            // SAFETY: the device reaches the elements on this path.
            TransferPath::Staged => return unsafe { self.start_staged(gpu, &moved) },
            TransferPath::Ring => {
                moved.call.packed = self.packed.address.expose_provenance() as u64;
                Packer::Device
            }
            TransferPath::HostPacked => {
                moved.call.memory = self.elements.memory.address.expose_provenance() as u64;
                Packer::Processor
            }
        };
        // SAFETY: each end has the address that its mover uses.
        let mut pipeline = Box::new(unsafe { Pipeline::new(self.elements.of, device_type, packer, moved) });
        if !wait {
            pipeline.start()?;
        } else if let Err(error) = pipeline.take_ring() {
            if packer == Packer::Processor || !error.is_out_of_memory() {
                return Err(error.into());
            }
            // No more memory can be pinned. The driver's copies need none.
            // SAFETY: the packer of this path is the device, which reaches the elements.
            return unsafe { self.start_staged(gpu, &self.device_move(gpu)) };
        }
        Ok(Some(Part::Pipeline(pipeline)))
    }

    /// Starts a call through buffers on a device.
    ///
    /// # Safety
    ///
    /// As for [`PlacedMove::start`], and the device reaches the elements.
    unsafe fn start_staged(&self, gpu: &Gpu, moved: &Move) -> Result<Option<Part>, TransferError> {
        let event = gpu.state.event()?;
        // SAFETY: the device reaches the elements, and the driver's copies reach memory of every kind (contract of this function).
        unsafe { staged::enqueue(self.elements.of.moved_by(gpu), &gpu.state.stream, moved, &event)? };
        Ok(Some(Part::Device(event, gpu.state.clone())))
    }

    /// An error if an end is in memory of a device.
    pub(super) fn check_host(&self) -> Result<(), TransferError> {
        for (side, kind) in [("memory", self.elements.kind()), ("packed", self.packed.kind())] {
            if let MemoryKind::Device(_) = kind {
                return Err(TransferError::NotHost { side, kind });
            }
        }
        Ok(())
    }

    /// An error if kernels of a device cannot use both ends.
    pub(super) fn check_reach(&self, gpu: &Gpu) -> Result<(), TransferError> {
        let engine = self.elements.of.engine();
        engine.check_reach(gpu, "packed bytes", self.packed.kind())?;
        engine.check_reach(gpu, "memory", self.elements.kind())
    }

    /// Enqueues the call on a CUDA stream, as one launch.
    ///
    /// # Safety
    ///
    /// As for [`PlacedMove::start`], until the work is done; the device of the stream reaches both ends.
    pub(super) unsafe fn enqueue(&self, gpu: &Gpu, stream: &Stream) -> Result<(), TransferError> {
        // SAFETY: until the work is done, the device of the stream reaches both ends (contract of this function), which do not
        // overlap (clause 2).
        unsafe { self.elements.of.moved_by(gpu).launch(stream, &self.device_move(gpu))? };
        Ok(())
    }
}

impl Gpu {
    /// Has the default stream of this device wait for what that of another was given.
    pub(super) fn follow(&self, other: &Gpu) -> Result<(), TransferError> {
        let event = other.state.event()?;
        event.record(&other.state.stream)?;
        self.state.stream.wait_event(&event)?;
        other.state.give_back(event);
        Ok(())
    }
}

impl Committed {
    /// The mean length of the runs of this type, in bytes.
    pub(super) fn run_bytes(&self) -> u64 {
        let layout = self.any_layout();
        layout.size() / layout.measure(layout.root().node).runs.max(1)
    }

    /// The device that takes part in a transfer, if one does, and a second one where the packed bytes lie on another.
    pub(super) fn devices(
        &self,
        memory: MemoryKind,
        packed: MemoryKind,
    ) -> Result<(Option<Gpu>, Option<Gpu>), TransferError> {
        use MemoryKind::Device;
        let gpu = |ordinal| self.engine().gpu(ordinal);
        Ok(match (memory, packed) {
            (Device(one), Device(other)) if one != other => (Some(gpu(one)?), Some(gpu(other)?)),
            (Device(one), _) | (_, Device(one)) => (Some(gpu(one)?), None),
            _ => (None, None),
        })
    }
}
