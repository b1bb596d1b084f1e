//! Transfers lowered to works: checked once, then cut where the kind of memory changes.

use super::accumulate::check_computes;
use super::error::TransferError;
use super::place::Located;
use super::placed_copy::{PlacedCopy, parts};
use super::placed_move::{PlacedMove, placed_moves};
use super::request::Request;
use super::transfer::{Action, Elements, Transfer};
use super::work::{ExternalMove, Works};
use crate::committed::CheckedReduction;
use crate::endpoint::Endpoint;
use crate::engine::Engine;
use crate::error::AccumulateError;
use crate::multiprocessors::Multiprocessors;
use dtc_compiler::operation::Reduction;
use dtc_compiler::plan::Direction;
use dtc_cuda::{MemoryKind, Stream};
use smallvec::smallvec;

/// A transfer after every check that needs no driver. Ranges end with the packed bytes, and both ends of a copy have as many.
pub(super) enum Checked<'a> {
    /// A pack or unpack.
    Move { direction: Direction, elements: Elements<'a>, packed: Endpoint, multiprocessors: Multiprocessors },
    /// A conversion: the range counts bytes of `external32`.
    External { direction: Direction, elements: Elements<'a>, packed: Endpoint },
    /// An accumulation of packed bytes in elements.
    Accumulate { reduction: CheckedReduction, elements: Elements<'a>, packed: Endpoint },
    /// A copy from type to type.
    Copy { source: Elements<'a>, destination: Elements<'a> },
    /// An accumulation of elements with gaps in those of another type.
    AccumulateCopy { reduction: CheckedReduction, source: Elements<'a>, destination: Elements<'a> },
}

impl<'a> Transfer<'a> {
    /// The transfer with exact ranges. An accumulation of contiguous elements becomes one of their packed bytes, which are the same.
    ///
    /// # Errors
    ///
    /// A reduction does not fit the types, or the ranges are not whole elements.
    pub(super) fn checked(&self) -> Result<Checked<'a>, TransferError> {
        let elements = self.elements.exact();
        Ok(match self.action {
            Action::Move(direction, packed) => {
                Checked::Move { direction, elements, packed, multiprocessors: self.multiprocessors }
            }
            Action::External(direction, packed) => {
                let range = elements.of.exact_external(self.elements.range);
                Checked::External { direction, elements: Elements { range, ..elements }, packed }
            }
            Action::Accumulate(reduction, packed) => {
                let reduction = elements.of.check_reduction(reduction, elements.range)?;
                Checked::Accumulate { reduction, elements, packed }
            }
            Action::Copy(None, destination) => {
                let [source, destination] = ends(elements, destination);
                Checked::Copy { source, destination }
            }
            Action::Copy(Some(reduction), destination) => {
                let [source, destination] = ends(elements, destination);
                let reduction = check_accumulation(reduction, source, destination)?;
                let run = source.of.cached().run_at(source.range.offset());
                if run.bytes >= source.range.length() {
                    let packed = source.memory.advanced(run.offset);
                    Checked::Accumulate { reduction, elements: destination, packed }
                } else {
                    Checked::AccumulateCopy { reduction, source, destination }
                }
            }
        })
    }
}

impl<'a> Checked<'a> {
    /// The elements whose range has as many bytes as the transfer moves.
    fn elements(&self) -> Elements<'a> {
        match *self {
            Checked::Move { elements, .. }
            | Checked::External { elements, .. }
            | Checked::Accumulate { elements, .. }
            | Checked::Copy { source: elements, .. }
            | Checked::AccumulateCopy { source: elements, .. } => elements,
        }
    }

    /// Bytes that the transfer moves.
    fn bytes(&self) -> u64 {
        self.elements().range.length()
    }

    fn engine(&self) -> &'a Engine {
        self.elements().of.engine()
    }

    /// Enqueues the transfer on a CUDA stream; returns how many bytes will be moved.
    ///
    /// # Safety
    ///
    /// As for [`Transfer::enqueue`].
    pub(super) unsafe fn enqueue(&self, stream: &Stream) -> Result<u64, TransferError> {
        let ordinal = stream.device().info().ordinal;
        match self {
            Checked::External { .. } => {
                return Err(TransferError::NotHost { side: "stream", kind: MemoryKind::Device(ordinal) });
            }
            Checked::AccumulateCopy { .. } => return Err(TransferError::Buffered),
            Checked::Accumulate { reduction, .. } => check_computes(reduction.reduction())?,
            Checked::Move { .. } | Checked::Copy { .. } => {}
        }
        let bytes = self.bytes();
        if bytes > 0 {
            let gpu = self.engine().gpu(ordinal)?;
            let works = self.works()?;
            works.iter().try_for_each(|work| work.check_reach(&gpu))?;
            // SAFETY: clauses 1 to 6 of the contract hold for every byte of the transfer, hence for those of each work, until it is
            // done. `check_reach` found that the device reaches both ends.
            works.iter().try_for_each(|work| unsafe { work.enqueue(&gpu, stream) })?;
        }
        Ok(bytes)
    }

    /// Starts the transfer, and ends it if the caller waits for it anyway and that is cheaper so.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`], until the request is done.
    pub(super) unsafe fn start(&self, wait: bool) -> Result<Request, TransferError> {
        let bytes = self.bytes();
        if bytes == 0 {
            return Ok(Request::done(0));
        }
        let works = self.on_host().map_or_else(|| self.works(), Ok)?;
        // Before anything is moved.
        works.iter().try_for_each(|work| work.check_computes())?;
        let wait = wait && works.len() == 1;
        // SAFETY: clauses 1 to 6 of the contract hold for every byte of the transfer, hence for those of each work, until it is done.
        // `check_computes` found a processor that accumulates.
        Request::start(bytes, works.iter().map(|work| unsafe { work.start(wait) }))
    }

    /// The transfer as one work, if the driver need not be asked where the ends are: the processor reaches both.
    fn on_host(&self) -> Option<Works<'a>> {
        match *self {
            Checked::External { direction, elements, packed } if elements.memory.are_on_host(&packed) => {
                Some(Works::External(ExternalMove { direction, elements, packed }))
            }
            Checked::Accumulate { reduction, elements, packed } if elements.memory.are_on_host(&packed) => {
                let (elements, packed) = (elements.on_host(), Located::on_host(packed));
                Some(Works::Accumulations(smallvec![PlacedMove::accumulation(elements, packed)], reduction))
            }
            Checked::Copy { source, destination } if source.memory.are_on_host(&destination.memory) => {
                let (source, destination) = (source.on_host(), destination.on_host());
                Some(Works::Copies(smallvec![PlacedCopy { source, destination }]))
            }
            _ => None,
        }
    }

    /// The works of the transfer.
    // Inlined, so that they are made where they stay.
    #[inline(always)]
    fn works(&self) -> Result<Works<'a>, TransferError> {
        Ok(match *self {
            Checked::Move { direction, elements, packed, multiprocessors } => {
                Works::Moves(placed_moves(direction, elements, packed, multiprocessors)?)
            }
            Checked::External { direction, elements, packed } => {
                for placed in placed_moves(direction, elements, packed, Multiprocessors::All)? {
                    placed.check_host()?;
                }
                Works::External(ExternalMove { direction, elements, packed })
            }
            Checked::Accumulate { reduction, elements, packed } => Works::Accumulations(
                placed_moves(Direction::Unpack, elements, packed, Multiprocessors::All)?,
                reduction,
            ),
            Checked::Copy { source, destination } => Works::Copies(parts(source, destination)?),
            Checked::AccumulateCopy { reduction, source, destination } => {
                Works::AccumulateCopies(parts(source, destination)?, reduction)
            }
        })
    }
}

/// Both ends of a copy, with ranges of one length.
pub(super) fn ends<'a>(source: Elements<'a>, destination: Elements<'a>) -> [Elements<'a>; 2] {
    let (source, destination) = (source.exact(), destination.exact());
    let bytes = source.range.length().min(destination.range.length());
    [source, destination].map(|elements| elements.part(0, bytes))
}

/// The reduction of an accumulation from type to type; an error if it does not fit both ends.
fn check_accumulation(
    reduction: Reduction,
    source: Elements<'_>,
    destination: Elements<'_>,
) -> Result<CheckedReduction, AccumulateError> {
    let (element, found) = (reduction.element(), source.range.offset());
    let checked = destination.of.check_reduction(reduction, destination.range)?;
    if !source.of.may_consist_of(element) {
        return Err(AccumulateError::Elements(element));
    }
    if !found.is_multiple_of(element.size()) {
        return Err(AccumulateError::Multiple { field: "offset", element, found });
    }
    Ok(checked)
}
