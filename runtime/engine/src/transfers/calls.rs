//! The calls of a committed type on data in any memory.

use super::accumulate::check_computes;
use super::error::TransferError;
use super::piece::{Pieces, pieces};
use super::request::Request;
use super::transfer::{Action, Elements, Transfer};
use super::type_to_type::parts;
use crate::committed::check_offset;
use crate::cpu::Addresses;
use crate::endpoint::Endpoint;
use crate::error::{AccumulateError, CopyError};
use crate::multiprocessors::Multiprocessors;
use crate::recorder::recorder;
use dtc_compiler::operation::Reduction;
use dtc_compiler::plan::Direction;
use dtc_cuda::{MemoryKind, Stream};

impl<'a> Transfer<'a> {
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
        // SAFETY: `put` has the same contract.
        let bytes = unsafe { self.put(stream)? };
        self.record();
        Ok(bytes)
    }

    /// # Safety
    ///
    /// As for [`Transfer::enqueue`].
    unsafe fn put(&self, stream: &Stream) -> Result<usize, TransferError> {
        let elements = self.elements.exact();
        let gpu = || elements.of.engine().gpu(stream.device().info().ordinal);
        match self.action {
            Action::Move(direction, packed) => {
                if elements.range.length() > 0 {
                    let gpu = gpu()?;
                    let pieces = pieces(direction, elements, packed, self.multiprocessors)?;
                    pieces.iter().try_for_each(|piece| piece.check_reach(&gpu))?;
                    // SAFETY: clauses 1 to 6 of the contract hold for every byte of the call, hence for those of each piece,
                    // until the work is done. `check_reach` found that the device reaches both ends.
                    pieces.iter().try_for_each(|piece| unsafe { piece.enqueue(&gpu, stream) })?;
                }
            }
            Action::External(..) => return Err(TransferError::NotHost { side: "stream", kind: device_of(stream) }),
            Action::Accumulate(reduction, packed) => {
                elements.of.check_reduction(reduction, elements.range)?;
                check_computes(reduction)?;
                if elements.range.length() > 0 {
                    let gpu = gpu()?;
                    let pieces = pieces(Direction::Unpack, elements, packed, Multiprocessors::All)?;
                    pieces.iter().try_for_each(|piece| piece.check_reach(&gpu))?;
                    for piece in &pieces {
                        let part = piece.elements.on_device(Direction::Unpack, piece.packed.on_device());
                        // SAFETY: clauses 1 to 6 of the contract hold for every byte of the call, hence for those of each piece,
                        // until the work is done. `check_reach` found that the device reaches both ends, and `check_reduction`
                        // that the bytes are whole elements.
                        unsafe { elements.of.on_device(&gpu).accumulate(stream, &part, reduction)? };
                    }
                }
            }
            Action::Copy(Some(reduction), destination) => {
                let [source, destination] = self.ends_of_accumulation(reduction, destination)?;
                let flat = source.contiguous(reduction, destination).ok_or(TransferError::Buffered)?;
                // SAFETY: `flat` has the same bytes: those of a contiguous source are its packed bytes. Clauses 1 to 6 hold for
                // them.
                return unsafe { flat.put(stream) };
            }
            Action::Copy(None, destination) => {
                let [source, destination] = ends(elements, destination);
                if source.range.length() > 0 {
                    let gpu = gpu()?;
                    let parts = parts(source, destination)?;
                    parts.iter().try_for_each(|part| part.check_reach(&gpu))?;
                    // SAFETY: clauses 1 to 6 of the contract hold for every byte of the call, hence for those of each part, until
                    // the work is done. `check_reach` found that the device reaches both ends.
                    parts.iter().try_for_each(|part| unsafe { part.enqueue(&gpu, stream) })?;
                }
                return Ok(source.range.length() as usize);
            }
        }
        Ok(elements.range.length() as usize)
    }

    /// Starts the transfer, and ends it if the caller waits for it anyway and that is cheaper so.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`], until the request is done.
    #[inline(never)]
    unsafe fn begin(&self, wait: bool) -> Result<Request, TransferError> {
        // SAFETY: `dispatch` has the same contract.
        let request = unsafe { self.dispatch(wait)? };
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

    /// # Safety
    ///
    /// As for [`Transfer::begin`].
    unsafe fn dispatch(&self, wait: bool) -> Result<Request, TransferError> {
        let elements = self.elements.exact();
        let bytes = elements.range.length();
        match self.action {
            Action::Move(direction, packed) => {
                if bytes == 0 {
                    return Ok(Request::done(0));
                }
                let pieces = pieces(direction, elements, packed, self.multiprocessors)?;
                let wait = wait && pieces.len() == 1;
                // SAFETY: clauses 1 to 6 of the contract hold for every byte of the call, hence for those of each piece, until
                // the work is done.
                Request::start(bytes, pieces.iter().map(|piece| unsafe { piece.start(wait) }))
            }
            // SAFETY: `convert` has the same contract, for the same bytes.
            Action::External(direction, packed) => unsafe { self.convert(direction, packed) },
            Action::Accumulate(reduction, packed) => {
                if elements.memory.are_on_host(&packed) {
                    let addresses = Addresses { memory: elements.memory.address(), packed: packed.address() };
                    // SAFETY: clauses 1 to 4 and 6 hold for every byte of the range, and both ends are memory of the host
                    // (`are_on_host`, clause 5).
                    unsafe { elements.of.accumulate_bytes(reduction, addresses, elements.range)? };
                    return Ok(Request::done(bytes));
                }
                elements.of.check_reduction(reduction, elements.range)?;
                if bytes == 0 {
                    return Ok(Request::done(0));
                }
                let pieces = pieces(Direction::Unpack, elements, packed, Multiprocessors::All)?;
                // Before anything is moved.
                pieces.iter().try_for_each(|piece| piece.check_computes(reduction))?;
                let wait = wait && pieces.len() == 1;
                // SAFETY: the contract of `Transfer` holds for every byte of the call, hence for those of a piece.
                // `check_reduction` found whole elements, and `check_computes` a processor that accumulates them.
                Request::start(bytes, pieces.iter().map(|piece| unsafe { piece.start_accumulation(reduction, wait) }))
            }
            Action::Copy(Some(reduction), destination) => {
                let [source, destination] = self.ends_of_accumulation(reduction, destination)?;
                if let Some(flat) = source.contiguous(reduction, destination) {
                    // SAFETY: `flat` has the same bytes: those of a contiguous source are its packed bytes. Clauses 1 to 6 hold
                    // for them.
                    return unsafe { flat.dispatch(wait) };
                }
                let parts = parts(source, destination)?;
                // Before anything is moved.
                parts.iter().try_for_each(|part| part.check_computes(reduction))?;
                // SAFETY: the contract of `Transfer` holds for every byte of the call, hence for those of a part.
                // `ends_of_accumulation` found whole elements, and `check_computes` a processor that accumulates them.
                parts.iter().try_for_each(|part| unsafe { part.accumulate(reduction) })?;
                Ok(Request::done(source.range.length()))
            }
            Action::Copy(None, destination) => {
                let [source, destination] = ends(elements, destination);
                let bytes = source.range.length();
                if bytes == 0 {
                    return Ok(Request::done(0));
                }
                if source.memory.are_on_host(&destination.memory) {
                    let (read, written) = (source.memory.address(), destination.memory.address());
                    // SAFETY: clauses 1 to 4 hold for every byte of both ranges, and both ends are memory of the host (`are_on_host`,
                    // clause 5).
                    unsafe { source.of.copy_bytes(read, source.range, destination.of, destination.range, written) };
                    return Ok(Request::done(bytes));
                }
                let parts = parts(source, destination)?;
                let wait = wait && parts.len() == 1;
                // SAFETY: clauses 1 to 6 of the contract hold for every byte of the call, hence for those of each part, until the
                // work is done.
                Request::start(bytes, parts.iter().map(|part| unsafe { part.start(wait) }))
            }
        }
    }

    /// Converts to or from `external32`, on the processor.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`].
    unsafe fn convert(&self, direction: Direction, packed: Endpoint) -> Result<Request, TransferError> {
        let Elements { of, memory, .. } = self.elements;
        let range = of.exact_external(self.elements.range);
        if range.length() == 0 {
            return Ok(Request::done(0));
        }
        let on_host = memory.are_on_host(&packed);
        let elements = Elements { range, ..self.elements };
        let asked = if on_host { Pieces::new() } else { pieces(direction, elements, packed, Multiprocessors::All)? };
        for piece in asked {
            for (side, kind) in [("memory", piece.elements.kind()), ("packed", piece.packed.kind())] {
                if let MemoryKind::Device(_) = kind {
                    return Err(TransferError::NotHost { side, kind });
                }
            }
        }
        let addresses = Addresses { memory: memory.address(), packed: packed.address() };
        // SAFETY: clauses 1 to 4 and 6 hold for every byte of the range. No piece lies on a device, so both ends are memory of
        // the host.
        unsafe {
            match direction {
                Direction::Pack => of.convert::<true>(addresses, range)?,
                Direction::Unpack => of.convert::<false>(addresses, range)?,
            }
        }
        Ok(Request::done(range.length()))
    }

    /// Both ends of an accumulation from type to type, with ranges of one length; an error if it makes no sense for them.
    fn ends_of_accumulation(
        &self,
        reduction: Reduction,
        destination: Elements<'a>,
    ) -> Result<[Elements<'a>; 2], AccumulateError> {
        let [source, destination] = ends(self.elements.exact(), destination);
        let (element, found) = (reduction.element(), source.range.offset());
        destination.of.check_reduction(reduction, destination.range)?;
        if !source.of.may_consist_of(element) {
            return Err(AccumulateError::Elements(element));
        }
        if !found.is_multiple_of(element.size()) {
            return Err(AccumulateError::Multiple { field: "offset", element, found });
        }
        Ok([source, destination])
    }
}

impl<'a> Elements<'a> {
    /// The accumulation of elements that lie one after the other, and so are packed already.
    fn contiguous(self, reduction: Reduction, destination: Elements<'a>) -> Option<Transfer<'a>> {
        let run = self.of.cached().run_at(self.range.offset());
        (run.bytes >= self.range.length()).then(|| destination.accumulate(reduction, self.memory.advanced(run.offset)))
    }
}

/// Both ends of a copy, with ranges of one length.
fn ends<'a>(source: Elements<'a>, destination: Elements<'a>) -> [Elements<'a>; 2] {
    let (source, destination) = (source.exact(), destination.exact());
    let bytes = source.range.length().min(destination.range.length());
    [source, destination].map(|elements| elements.part(0, bytes))
}

fn device_of(stream: &Stream) -> MemoryKind {
    MemoryKind::Device(stream.device().info().ordinal)
}
