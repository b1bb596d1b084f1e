//! The calls of a committed type on data in any memory.

use super::error::TransferError;
use super::lower::ends;
use super::request::Request;
use super::transfer::{Action, Elements, Transfer};
use crate::committed::check_offset;
use crate::cpu::Addresses;
use crate::error::CopyError;
use crate::recorder::recorder;
use dtc_compiler::plan::Direction;
use dtc_cuda::Stream;

impl Transfer<'_> {
    /// How many bytes it moves: those of the range, or fewer at the end of the packed bytes.
    ///
    /// # Errors
    ///
    /// [`TransferError::Call`] where a range begins behind the packed bytes, or these do not fit 63 bits; for a copy
    /// [`TransferError::Copy`]. Such a transfer moves nothing.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Endpoint, Engine, Range};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = Engine::new().commit(&types.finish(int)?);
    /// let memory = Endpoint::from([0; 3].as_ptr());
    /// let pack = |range| int.at(memory, range).pack(memory);
    /// assert_eq!(pack(Range::elements(3).bytes(2..)).bytes()?, 10);
    /// assert!(pack(Range::elements(3).bytes(13..)).bytes().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bytes(&self) -> Result<usize, TransferError> {
        let bounded =
            |elements: &Elements| check_offset(elements.range, elements.of.packed_size(elements.range.count())?);
        let elements = &self.elements;
        let range = match &self.action {
            Action::Move(..) | Action::Accumulate(..) => bounded(elements)?,
            Action::External(..) => {
                check_offset(elements.range, elements.of.packed_external_size(elements.range.count())?)?
            }
            Action::Copy(_, destination) => {
                let range = bounded(elements).map_err(CopyError::Source)?;
                range.at_most(bounded(destination).map_err(CopyError::Destination)?.length())
            }
        };
        Ok(range.length() as usize)
    }

    /// Moves the bytes, and returns when they are there. Returns how many.
    ///
    /// On a device it is ordered after what was enqueued on the legacy default stream. A range that begins behind the packed bytes
    /// moves nothing.
    ///
    /// # Errors
    ///
    /// [`TransferError::Address`] where an end is null, or a run of a type of absolute addresses; [`TransferError::Accumulate`] for
    /// what [`Committed::accumulate`](crate::Committed::accumulate) refuses, and for reductions of long doubles on a GPU; [`TransferError::External`] for a value
    /// that does not fit; [`TransferError::NotHost`] for `external32` in memory of a device; CUDA refuses.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`].
    ///
    /// See [`Transfer`] for an example.
    // A call on the host may take 2 ns. So this is inlined, and reads the parts of the transfer where they are: a copy of an endpoint
    // reads both halves of its kind at once, and waits, since only one was written just before.
    #[inline(always)]
    pub unsafe fn run(&self) -> Result<usize, TransferError> {
        let Elements { of, memory, range } = &self.elements;
        if let Action::Move(direction, packed) = &self.action
            && memory.are_on_host(packed)
        {
            let addresses = Addresses { memory: memory.address(), packed: packed.address() };
            // SAFETY: clauses 1 to 4; the processor reaches memory of these kinds (clause 5).
            return Ok(unsafe {
                match direction {
                    Direction::Pack => of.run::<true>(addresses, *range),
                    Direction::Unpack => of.run::<false>(addresses, *range),
                }
            });
        }
        // SAFETY: `begin` has the same contract, and `wait` returns when the request is done.
        unsafe { self.begin(true)?.wait() }
    }

    /// Starts moving the bytes, and returns at once where a device does the work. On the host, the bytes are there when it
    /// returns.
    ///
    /// # Errors
    ///
    /// As for [`Transfer::run`].
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`], until the request is done.
    ///
    /// ```
    /// use dtc_runtime::{Committed, Endpoint, Range, TransferError};
    /// fn pack(column: &Committed, matrix: Endpoint, packed: Endpoint) -> Result<usize, TransferError> {
    ///     // SAFETY: `matrix` and `packed` have every byte of one element, and live until `wait` returns.
    ///     let request = unsafe { column.at(matrix, Range::elements(1)).pack(packed).start()? };
    ///     request.wait()
    /// }
    /// ```
    pub unsafe fn start(&self) -> Result<Request, TransferError> {
        // SAFETY: `begin` has the same contract: clauses 1 to 6 hold until the request is done.
        unsafe { self.begin(false) }
    }

    /// Enqueues the work on a CUDA stream, whose device moves the bytes, and returns at once. Returns how many bytes will be
    /// moved. May be captured into a graph, which then keeps what the kernel needs.
    ///
    /// Either end may lie in any memory that the device of the stream reaches, which is checked. Which bits a NaN has that an
    /// accumulation computes is the device's matter.
    ///
    /// # Errors
    ///
    /// As for [`Transfer::run`]; [`TransferError::OutOfReach`] when the device does not reach an end, which is so for pageable
    /// memory on most machines; [`TransferError::Buffered`] for elements with gaps that are accumulated in others. Nothing was
    /// enqueued then, unless CUDA refuses.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`], until the work is done.
    ///
    /// ```
    /// # use dtc_runtime::{Committed, TransferError, cuda::{DeviceBuffer, Stream}};
    /// use dtc_runtime::Range;
    /// # fn pack(column: &Committed, matrix: &DeviceBuffer, packed: &DeviceBuffer, stream: &Stream) -> Result<usize, TransferError> {
    /// // SAFETY: the buffers are large enough, and live until the stream was waited for.
    /// unsafe { column.at(matrix, Range::elements(1)).pack(packed).enqueue(stream) }
    /// # }
    /// ```
    pub unsafe fn enqueue(&self, stream: &Stream) -> Result<usize, TransferError> {
        // SAFETY: `Checked::enqueue` has the same contract.
        let bytes = unsafe { self.checked()?.enqueue(stream)? };
        self.record();
        Ok(bytes as usize)
    }

    /// Starts the transfer, and ends it if the caller waits for it anyway and that is cheaper so.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`], until the request is done.
    #[inline(never)]
    unsafe fn begin(&self, wait: bool) -> Result<Request, TransferError> {
        // SAFETY: `Checked::start` has the same contract.
        let request = unsafe { self.checked()?.start(wait)? };
        self.record();
        Ok(request)
    }

    /// Tells the recorder of the process, if it has one, of this call. Conversions tell it themselves.
    fn record(&self) {
        if recorder().is_none() {
            return;
        }
        let elements = self.elements.exact();
        match self.action {
            Action::Move(direction, _) => elements.of.record(direction, elements.range.length()),
            Action::External(..) => {}
            Action::Accumulate(..) => elements.of.record(Direction::Unpack, elements.range.length()),
            Action::Copy(_, destination) => {
                let [source, destination] = ends(elements, destination);
                source.of.record(Direction::Pack, source.range.length());
                destination.of.record(Direction::Unpack, source.range.length());
            }
        }
    }
}
