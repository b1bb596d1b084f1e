//! Works: the parts of transfers, each with memory of one kind at either end.

use super::error::TransferError;
use super::placed_copy::{CopyParts, PlacedCopy};
use super::placed_move::{PlacedMove, PlacedMoves};
use super::request::Part;
use super::transfer::Elements;
use crate::committed::CheckedReduction;
use crate::cpu::Addresses;
use crate::device::Gpu;
use crate::endpoint::Endpoint;
use crate::error::AccumulateError;
use dtc_compiler::plan::Direction;
use dtc_cuda::Stream;

/// The works of a transfer, in packed order: one, unless the kind of memory changes within an end.
// They stay where they are made: to move them cost 100 ns of a call (Zen 4).
pub(super) enum Works<'a> {
    Moves(PlacedMoves<'a>),
    External(ExternalMove<'a>),
    Accumulations(PlacedMoves<'a>, CheckedReduction),
    Copies(CopyParts<'a>),
    AccumulateCopies(CopyParts<'a>, CheckedReduction),
}

impl<'a> Works<'a> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Works::External(_) => 1,
            Works::Moves(moves) | Works::Accumulations(moves, _) => moves.len(),
            Works::Copies(copies) | Works::AccumulateCopies(copies, _) => copies.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Work<'_, 'a>> {
        (0..self.len()).map(|at| match self {
            Works::Moves(moves) => Work::Move(&moves[at]),
            Works::External(external) => Work::External(external),
            Works::Accumulations(moves, reduction) => Work::Accumulate(&moves[at], reduction),
            Works::Copies(copies) => Work::Copy(&copies[at]),
            Works::AccumulateCopies(copies, reduction) => Work::AccumulateCopy(&copies[at], reduction),
        })
    }
}

/// A part of a transfer. At least one byte.
pub(super) enum Work<'w, 'a> {
    /// A pack or unpack.
    Move(&'w PlacedMove<'a>),
    /// A conversion, of a whole transfer: the processor does it, and the ends are memory of the host.
    External(&'w ExternalMove<'a>),
    /// An accumulation of packed bytes in elements.
    Accumulate(&'w PlacedMove<'a>, &'w CheckedReduction),
    /// A copy from type to type.
    Copy(&'w PlacedCopy<'a>),
    /// An accumulation from type to type, through a buffer.
    AccumulateCopy(&'w PlacedCopy<'a>, &'w CheckedReduction),
}

/// A conversion to or from `external32`.
pub(super) struct ExternalMove<'a> {
    pub(super) direction: Direction,
    /// The range counts bytes of `external32`.
    pub(super) elements: Elements<'a>,
    pub(super) packed: Endpoint,
}

impl Work<'_, '_> {
    /// An error if a device has the elements that are accumulated in, and its kernels do not compute the reduction.
    pub(super) fn check_computes(&self) -> Result<(), AccumulateError> {
        match self {
            Work::Accumulate(placed, reduction) => placed.check_computes(reduction.reduction()),
            Work::AccumulateCopy(copy, reduction) => copy.check_computes(reduction.reduction()),
            Work::Move(_) | Work::External(_) | Work::Copy(_) => Ok(()),
        }
    }

    /// An error if kernels of a device cannot use both ends.
    pub(super) fn check_reach(&self, gpu: &Gpu) -> Result<(), TransferError> {
        match self {
            Work::Move(placed) | Work::Accumulate(placed, _) => placed.check_reach(gpu),
            Work::Copy(copy) | Work::AccumulateCopy(copy, _) => copy.check_reach(gpu),
            Work::External(_) => Ok(()),
        }
    }

    /// Enqueues the work on a CUDA stream, as one kernel or one copy of the driver.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), until the work is done; the device of the stream reaches both ends.
    pub(super) unsafe fn enqueue(&self, gpu: &Gpu, stream: &Stream) -> Result<(), TransferError> {
        // SAFETY: each of these has the contract of this function, for the bytes of the work.
        unsafe {
            match self {
                Work::Move(placed) => placed.enqueue(gpu, stream),
                Work::Accumulate(placed, reduction) => placed.enqueue_accumulation(reduction.reduction(), gpu, stream),
                Work::Copy(copy) => Ok(copy.enqueue(gpu, stream)?),
                // `Checked::enqueue` refuses both before it makes works.
                Work::AccumulateCopy(..) | Work::External(_) => Err(TransferError::Buffered),
            }
        }
    }

    /// Starts the work, and ends it if the caller waits for it anyway and that is cheaper so. Returns nothing if it is done.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), until the work is done; a processor that accumulates it is there.
    pub(super) unsafe fn start(&self, wait: bool) -> Result<Option<Part>, TransferError> {
        // SAFETY: each of these has the contract of this function, for the bytes of the work. A `CheckedReduction` fits the elements.
        unsafe {
            match self {
                Work::Move(placed) => placed.start(wait),
                Work::External(external) => external.convert().map(|()| None),
                Work::Accumulate(placed, reduction) => placed.start_accumulation(reduction, wait),
                Work::Copy(copy) => copy.start(wait),
                Work::AccumulateCopy(copy, reduction) => copy.accumulate(reduction).map(|()| None),
            }
        }
    }
}

impl ExternalMove<'_> {
    /// Converts on the processor.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer); the processor reaches both ends.
    unsafe fn convert(&self) -> Result<(), TransferError> {
        let Elements { of, memory, range } = self.elements;
        let addresses = Addresses { memory: memory.address(), packed: self.packed.address() };
        // SAFETY: clauses 1 to 4 and 6 hold for every byte of the range, and both ends are memory of the host (contract of this
        // function).
        unsafe {
            match self.direction {
                Direction::Pack => of.convert::<true>(addresses, range)?,
                Direction::Unpack => of.convert::<false>(addresses, range)?,
            }
        }
        Ok(())
    }
}
