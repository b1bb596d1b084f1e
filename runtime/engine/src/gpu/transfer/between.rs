//! Calls between kinds of memory that the caller knows, or asks about.

use super::super::accumulate::Accumulation;
use super::super::copies::Multiprocessors;
use super::super::request::{Request, TransferError};
use super::{Asked, Sides};
use crate::committed::Committed;
use crate::copy::Elements;
use crate::range::Range;
use dtc_compiler::operation::Reduction;
use dtc_compiler::plan::Direction;
use dtc_cuda::{MemoryKind, Stream};

/// A committed type, and where the two sides of its calls lie. Made by [`Committed::between`].
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::cuda::MemoryKind;
/// use dtc_runtime::Range;
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
/// let on_host = int.between(Some(MemoryKind::Pageable), Some(MemoryKind::Pageable));
/// let (memory, mut packed) = (7i32, [0u8; 4]);
/// // SAFETY: both sides are as long as the type, and on the host as promised.
/// let written = unsafe { on_host.pack((&raw const memory).cast(), Range::elements(1).bytes(..4), packed.as_mut_ptr())? };
/// assert_eq!((written, i32::from_ne_bytes(packed)), (4, 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Between<'a> {
    pub(super) committed: &'a Committed,
    pub(super) sides: Sides,
    multiprocessors: Multiprocessors,
}

impl Committed {
    /// Calls on memory of kinds that the caller knows: where the elements lie, and where the packed bytes do. About a side
    /// that is not given the driver is asked, once a call.
    ///
    /// ```
    /// use dtc_runtime::{Committed, Range, TransferError, cuda::MemoryKind};
    /// /// Packs what lies on GPU 0 into memory that was registered with CUDA.
    /// fn send(column: &Committed, matrix: *const u8, packed: &mut [u8]) -> Result<u64, TransferError> {
    ///     let sides = column.between(Some(MemoryKind::Device(0)), Some(MemoryKind::Pinned));
    ///     // SAFETY: the caller answers for the matrix and for the kinds.
    ///     unsafe { sides.pack(matrix, Range::elements(1).bytes(..packed.len() as u64), packed.as_mut_ptr()) }
    /// }
    /// ```
    pub fn between(&self, memory: Option<MemoryKind>, packed: Option<MemoryKind>) -> Between<'_> {
        Between { committed: self, sides: Sides { memory, packed }, multiprocessors: Multiprocessors::All }
    }
}

impl Between<'_> {
    /// The same calls with no more of the device's multiprocessors than that; packs and unpacks keep to it.
    ///
    /// See [`Multiprocessors`] for an example.
    pub fn on(self, multiprocessors: Multiprocessors) -> Self {
        Between { multiprocessors, ..self }
    }

    fn asked(&self, direction: Direction, memory: *const u8, packed: *const u8, range: Range) -> Asked {
        Asked { direction, memory, packed, range, multiprocessors: self.multiprocessors }
    }

    /// Packs, and returns when the bytes are there: [`Committed::pack_any`].
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack_any`].
    ///
    /// # Safety
    ///
    /// As for [`Committed::pack_raw`], and both sides lie where the caller said.
    ///
    /// See [`Between`] for an example.
    pub unsafe fn pack(&self, source: *const u8, range: Range, packed: *mut u8) -> Result<u64, TransferError> {
        let asked = self.asked(Direction::Pack, source, packed, range);
        // SAFETY: the caller's promise.
        unsafe { self.committed.between_kinds(&asked, self.sides, true)?.wait() }
    }

    /// Unpacks, and returns when the bytes are there: [`Committed::unpack_any`].
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack_any`].
    ///
    /// # Safety
    ///
    /// As for [`Committed::unpack_raw`], and both sides lie where the caller said.
    ///
    /// See [`Between`] for an example.
    pub unsafe fn unpack(&self, packed: *const u8, range: Range, destination: *mut u8) -> Result<u64, TransferError> {
        let asked = self.asked(Direction::Unpack, destination, packed, range);
        // SAFETY: the caller's promise.
        unsafe { self.committed.between_kinds(&asked, self.sides, true)?.wait() }
    }

    /// Starts a pack: [`Committed::pack_start`].
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack_any`].
    ///
    /// # Safety
    ///
    /// As for [`Between::pack`], until the request is done.
    ///
    /// See [`Between`] for an example.
    pub unsafe fn start_pack(
        &self,
        source: *const u8,
        range: Range,
        packed: *mut u8,
    ) -> Result<Request, TransferError> {
        let asked = self.asked(Direction::Pack, source, packed, range);
        // SAFETY: the caller's promise.
        unsafe { self.committed.between_kinds(&asked, self.sides, false) }
    }

    /// Starts an unpack: [`Committed::unpack_start`].
    ///
    /// # Errors
    ///
    /// As for [`Committed::pack_any`].
    ///
    /// # Safety
    ///
    /// As for [`Between::unpack`], until the request is done.
    ///
    /// See [`Between`] for an example.
    pub unsafe fn start_unpack(
        &self,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<Request, TransferError> {
        let asked = self.asked(Direction::Unpack, destination, packed, range);
        // SAFETY: the caller's promise.
        unsafe { self.committed.between_kinds(&asked, self.sides, false) }
    }

    /// Enqueues a pack on a CUDA stream, whose device moves the bytes, and returns at once: [`Committed::pack_enqueue`], but
    /// the other side may lie on another device or in host memory that the device reaches. That is checked, so it costs
    /// a question about each side that was not given. May be captured into a graph.
    ///
    /// # Errors
    ///
    /// [`TransferError::OutOfReach`] when the device does not reach a side, which is so for pageable memory on most
    /// machines; CUDA refuses.
    ///
    /// # Safety
    ///
    /// As for [`Between::pack`], until the work is done.
    ///
    /// ```
    /// use dtc_runtime::{Committed, TransferError, cuda::{MemoryKind, PinnedBuffer, Stream}};
    /// use dtc_runtime::Range;
    /// fn send(column: &Committed, matrix: *const u8, packed: &PinnedBuffer, stream: &Stream) -> Result<u64, TransferError> {
    ///     let sides = column.between(Some(MemoryKind::Device(0)), Some(MemoryKind::Pinned));
    ///     // SAFETY: the caller answers for the matrix, and keeps the buffer until the stream was waited for.
    ///     unsafe { sides.enqueue_pack(stream, matrix, Range::elements(1).bytes(..packed.as_slice().len() as u64), packed.as_ptr()) }
    /// }
    /// ```
    pub unsafe fn enqueue_pack(
        &self,
        stream: &Stream,
        source: *const u8,
        range: Range,
        packed: *mut u8,
    ) -> Result<u64, TransferError> {
        let asked = self.asked(Direction::Pack, source, packed, range);
        // SAFETY: the caller's promise.
        unsafe { self.committed.enqueue_transfer(stream, &asked, self.sides) }
    }

    /// Enqueues an unpack on a CUDA stream; the counterpart of [`Between::enqueue_pack`].
    ///
    /// # Errors
    ///
    /// As for [`Between::enqueue_pack`].
    ///
    /// # Safety
    ///
    /// As for [`Between::unpack`], until the work is done.
    ///
    /// See [`Between::enqueue_pack`] for an example.
    pub unsafe fn enqueue_unpack(
        &self,
        stream: &Stream,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, TransferError> {
        let asked = self.asked(Direction::Unpack, destination, packed, range);
        // SAFETY: the caller's promise.
        unsafe { self.committed.enqueue_transfer(stream, &asked, self.sides) }
    }

    /// Unpacks with an operation, and returns when the results are there: [`Committed::accumulate_any`]. It uses all
    /// multiprocessors that are free.
    ///
    /// # Errors
    ///
    /// As for [`Committed::accumulate_any`].
    ///
    /// # Safety
    ///
    /// As for [`Committed::accumulate_raw`], and both sides lie where the caller said.
    ///
    /// See [`Between::start_accumulate`] for an example.
    pub unsafe fn accumulate(
        &self,
        reduction: Reduction,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, TransferError> {
        let asked = Accumulation { reduction, packed, range, memory: destination };
        // SAFETY: the caller's promise.
        unsafe { self.committed.accumulate_between(&asked, self.sides, true)?.wait() }
    }

    /// Starts an unpack with an operation. Where a device has the elements and reaches the packed bytes, it goes on by itself;
    /// everything else is done when the call returns.
    ///
    /// # Errors
    ///
    /// As for [`Committed::accumulate_any`].
    ///
    /// # Safety
    ///
    /// As for [`Between::accumulate`], until the request is done.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::cuda::MemoryKind;
    /// use dtc_runtime::Range;
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let on_host = int.between(Some(MemoryKind::Pageable), Some(MemoryKind::Pageable));
    /// let sum = Reduction::new(Operation::Sum, Element::I32)?;
    /// let (packed, mut memory) = (7i32.to_ne_bytes(), 3i32);
    /// // SAFETY: both sides are as long as the type, and live until the request is done.
    /// let request = unsafe { on_host.start_accumulate(sum, packed.as_ptr(), Range::elements(1).bytes(..4), (&raw mut memory).cast())? };
    /// assert_eq!((request.wait()?, memory), (4, 10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn start_accumulate(
        &self,
        reduction: Reduction,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<Request, TransferError> {
        let asked = Accumulation { reduction, packed, range, memory: destination };
        // SAFETY: the caller's promise.
        unsafe { self.committed.accumulate_between(&asked, self.sides, false) }
    }

    /// Enqueues an unpack with an operation on a CUDA stream: [`Committed::accumulate_enqueue`], but either side may lie in any
    /// memory that the device of the stream reaches, which is checked. May be captured into a graph.
    ///
    /// # Errors
    ///
    /// As for [`Committed::accumulate_enqueue`] and [`Between::enqueue_pack`].
    ///
    /// # Safety
    ///
    /// As for [`Between::accumulate`], until the work is done.
    ///
    /// See [`Between::enqueue_pack`] and [`Committed::accumulate_enqueue`] for examples.
    pub unsafe fn enqueue_accumulate(
        &self,
        stream: &Stream,
        reduction: Reduction,
        packed: *const u8,
        range: Range,
        destination: *mut u8,
    ) -> Result<u64, TransferError> {
        let asked = Accumulation { reduction, packed, range, memory: destination };
        // SAFETY: the caller's promise.
        unsafe { self.committed.enqueue_accumulate(stream, &asked, self.sides) }
    }

    /// Copies to elements of another type, and returns when the bytes are there: [`Committed::copy_any`]. The memory of the
    /// destination is what the caller said of the packed bytes. It uses all multiprocessors that are free.
    ///
    /// # Errors
    ///
    /// As for [`Committed::copy_any`].
    ///
    /// # Safety
    ///
    /// As for [`Committed::copy_raw`], and both sides lie where the caller said.
    ///
    /// See [`Between::start_copy`] for an example.
    pub unsafe fn copy(
        &self,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
    ) -> Result<u64, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.committed.copy_between(source, to, destination, bytes, self.sides, true)?.wait() }
    }

    /// Starts a copy to elements of another type. Where one device reaches both sides, it goes on by itself; everything else is
    /// done when the call returns.
    ///
    /// # Errors
    ///
    /// As for [`Committed::copy_any`].
    ///
    /// # Safety
    ///
    /// As for [`Between::copy`], until the request is done.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Elements, cuda::MemoryKind};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
    /// let on_host = int.between(Some(MemoryKind::Pageable), Some(MemoryKind::Pageable));
    /// let (one, mut other) = (7i32, 0i32);
    /// let source = Elements { memory: (&raw const one).cast::<u8>(), origin: 0, count: 1, offset: 0 };
    /// let destination = Elements { memory: (&raw mut other).cast::<u8>(), origin: 0, count: 1, offset: 0 };
    /// // SAFETY: both sides are as long as the type, and live until the request is done.
    /// let request = unsafe { on_host.start_copy(source, &int, destination, 4)? };
    /// assert_eq!((request.wait()?, other), (4, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn start_copy(
        &self,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
    ) -> Result<Request, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.committed.copy_between(source, to, destination, bytes, self.sides, false) }
    }

    /// Enqueues a copy to elements of another type on a CUDA stream: [`Committed::copy_enqueue`], but either side may lie in any
    /// memory that the device of the stream reaches, which is checked. May be captured into a graph.
    ///
    /// # Errors
    ///
    /// As for [`Between::enqueue_pack`].
    ///
    /// # Safety
    ///
    /// As for [`Between::copy`], until the work is done.
    ///
    /// See [`Between::enqueue_pack`] and [`Committed::copy_enqueue`] for examples.
    pub unsafe fn enqueue_copy(
        &self,
        stream: &Stream,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
    ) -> Result<u64, TransferError> {
        // SAFETY: the caller's promise.
        unsafe { self.committed.enqueue_copy(stream, source, to, destination, bytes, self.sides) }
    }

    /// Starts a copy to elements of another type with an operation: each basic element of the destination becomes itself OP
    /// the one of the source. The memory of the destination is what the caller said of the packed bytes. Where the source is
    /// contiguous this is [`Between::start_accumulate`]; otherwise it goes through a buffer, chunk by chunk, beside whoever has
    /// the destination, and is done when the call returns.
    ///
    /// # Errors
    ///
    /// As for [`Committed::accumulate_any`].
    ///
    /// # Safety
    ///
    /// As for [`Between::copy`], until the request is done, with a destination that is readable, too.
    ///
    /// ```
    /// use dtc_compiler::datatype::{Predefined, TypeBuilder};
    /// use dtc_compiler::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::Elements;
    /// let (engine, mut types) = (dtc_runtime::Engine::new(), TypeBuilder::new());
    /// let int = types.named(Predefined::INT);
    /// let column = types.vector(2, 1, 2, int)?;
    /// let (int, column) = (engine.commit(&types.finish(int)?), engine.commit(&types.finish(column)?));
    /// let (matrix, mut sums) = ([1i32, 2, 3], [10i32, 20]);
    /// let source = Elements { memory: matrix.as_ptr().cast::<u8>(), origin: 0, count: 1, offset: 0 };
    /// let destination = Elements { memory: sums.as_mut_ptr().cast::<u8>(), origin: 0, count: 2, offset: 0 };
    /// let sum = Reduction::new(Operation::Sum, Element::I32)?;
    /// // SAFETY: both sides are as long as their types, and live until the request is done.
    /// let request = unsafe { column.between(None, None).start_combine(sum, source, &int, destination, 8)? };
    /// assert_eq!((request.wait()?, sums), (8, [11, 23]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn start_combine(
        &self,
        reduction: Reduction,
        source: Elements<*const u8>,
        to: &Committed,
        destination: Elements<*mut u8>,
        bytes: u64,
    ) -> Result<Request, TransferError> {
        let sides = self.sides;
        // SAFETY: the caller's promise.
        unsafe { self.committed.combine_between(reduction, source, to, destination, bytes, sides) }
    }
}
