//! Transfers at any address: the elements, the range of their packed bytes, and both ends.
//!
//! [`Committed::at`] names elements in memory, a method of [`Elements`] makes a transfer of them, and a method of [`Transfer`]
//! runs it.

use crate::committed::Committed;
use crate::endpoint::Endpoint;
use crate::multiprocessors::Multiprocessors;
use crate::range::Range;
use dtc_compiler::operation::Reduction;
use dtc_compiler::plan::Direction;

/// Packed bytes of elements in memory.
///
/// The range alone says how many packed bytes a transfer moves: an address has no length that could be compared with it, so clause 1
/// of the contract of [`Transfer`] is the caller's. Only the safe calls, such as [`Committed::pack`], compare.
///
/// Made by [`Committed::at`]; see [`Transfer`] for examples.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    pub(crate) of: &'a Committed,
    /// The address that the type is applied to.
    pub(crate) memory: Endpoint,
    pub(crate) range: Range,
}

/// A pack, unpack, accumulation or copy between two addresses, in memory of any kind.
///
/// A transfer moves nothing until it is run. [`run`](Transfer::run) returns when the bytes are there, [`start`](Transfer::start)
/// returns a [`Request`](crate::Request), and [`enqueue`](Transfer::enqueue) puts the work on a CUDA stream.
///
/// # Contract
///
/// The caller of one of the three ensures, until the work is done:
///
/// 1. Every byte of the elements in the range is readable where it is read and writable where it is written, and so are as many
///    packed bytes.
/// 2. The two ends do not overlap, and the bytes that are written are written once.
/// 3. On the side that is read, gaps of less than 4 KiB between bytes of the range are readable, too, and so is every aligned block
///    of 16 bytes that holds one of them.
/// 4. The packed bytes of all elements fit 63 bits.
/// 5. Each end lies in memory of the kind that its [`Endpoint`] names.
/// 6. The destination of an accumulation is readable, too, as are the values that a range of `external32` cuts.
///
/// # Example
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, Range};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let column = types.vector(3, 1, 4, double)?;
/// let row = types.contiguous(3, double)?;
/// let engine = Engine::new();
/// let (column, row) = (engine.commit(&types.finish(column)?), engine.commit(&types.finish(row)?));
///
/// let matrix: [f64; 12] = std::array::from_fn(|at| at as f64);
/// let (mut packed, mut other) = ([0.0; 3], [0.0; 3]);
/// let elements = column.at(matrix.as_ptr(), Range::elements(1));
/// // SAFETY: the matrix has every element of the column, and both other arrays have room for as many.
/// unsafe {
///     elements.pack(packed.as_mut_ptr()).run()?;
///     elements.copy_to(row.at(other.as_mut_ptr(), Range::elements(1))).run()?;
/// }
/// assert_eq!((packed, other), ([0.0, 4.0, 8.0], packed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Transfer<'a> {
    pub(crate) elements: Elements<'a>,
    pub(crate) action: Action<'a>,
    pub(crate) multiprocessors: Multiprocessors,
}

/// What a transfer does with its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'a> {
    /// Moves them to or from packed bytes.
    Move(Direction, Endpoint),
    /// Moves them to or from bytes in `external32`.
    External(Direction, Endpoint),
    /// Each basic element becomes itself OP the packed one.
    Accumulate(Reduction, Endpoint),
    /// Moves them to elements of another type. With a reduction, each basic element there becomes itself OP the moved one.
    Copy(Option<Reduction>, Elements<'a>),
}

impl Committed {
    /// Packed bytes of elements in memory: `memory` is the address that the type is applied to, which may be null for absolute
    /// types.
    ///
    /// See [`Transfer`] for an example.
    #[inline]
    pub fn at(&self, memory: impl Into<Endpoint>, range: Range) -> Elements<'_> {
        Elements { of: self, memory: memory.into(), range }
    }
}

impl<'a> Elements<'a> {
    /// Packs them.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.2 (`MPI_Pack`).
    ///
    /// See [`Transfer`] for an example.
    #[inline]
    pub fn pack(self, packed: impl Into<Endpoint>) -> Transfer<'a> {
        self.with(Action::Move(Direction::Pack, packed.into()))
    }

    /// Unpacks bytes into them. Writes bytes of the type map and no others.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 5.2 (`MPI_Unpack`).
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Endpoint, Engine, Range};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = Engine::new().commit(&types.finish(int)?);
    /// let (packed, mut memory) = (7i32.to_ne_bytes(), 0i32);
    /// let elements = int.at(Endpoint::host(&raw mut memory), Range::elements(1));
    /// // SAFETY: both ends are as long as the type.
    /// let moved = unsafe { elements.unpack(Endpoint::host(packed.as_ptr())).run()? };
    /// assert_eq!((moved, memory), (4, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn unpack(self, packed: impl Into<Endpoint>) -> Transfer<'a> {
        self.with(Action::Move(Direction::Unpack, packed.into()))
    }

    /// Packs them in `external32`, as [`Committed::pack_external`] does. The range counts bytes of `external32`, and both ends
    /// lie in host memory.
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 5.3 (`MPI_Pack_external`), 14.5.2.
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::{Engine, Range};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = Engine::new().commit(&types.finish(int)?);
    /// let (memory, mut packed) = (7i32, [0u8; 4]);
    /// let elements = int.at(&raw const memory, Range::elements(1));
    /// // SAFETY: both ends are as long as the type.
    /// let moved = unsafe { elements.pack_external(packed.as_mut_ptr()).run()? };
    /// assert_eq!((moved, packed), (4, [0, 0, 0, 7]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn pack_external(self, packed: impl Into<Endpoint>) -> Transfer<'a> {
        self.with(Action::External(Direction::Pack, packed.into()))
    }

    /// Unpacks bytes in `external32` into them, as [`Committed::unpack_external`] does.
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 5.3 (`MPI_Unpack_external`), 14.5.2.
    ///
    /// See [`Elements::pack_external`] for an example.
    #[inline]
    pub fn unpack_external(self, packed: impl Into<Endpoint>) -> Transfer<'a> {
        self.with(Action::External(Direction::Unpack, packed.into()))
    }

    /// Accumulates packed bytes in them, as [`Committed::accumulate`] does: each basic element becomes itself OP the packed one.
    ///
    /// # Standard sections
    ///
    /// MPI 4.1, 12.3.4 (`MPI_Accumulate`), 6.9.7 (`MPI_Reduce_local`).
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::{Engine, Range};
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let int = Engine::new().commit(&types.finish(int)?);
    /// let sum = Reduction::new(Operation::Sum, Element::I32)?;
    /// let (packed, mut memory) = (7i32, 3i32);
    /// let elements = int.at(&raw mut memory, Range::elements(1));
    /// // SAFETY: both ends are as long as the type.
    /// unsafe { elements.accumulate(sum, &raw const packed).run()? };
    /// assert_eq!(memory, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn accumulate(self, reduction: Reduction, packed: impl Into<Endpoint>) -> Transfer<'a> {
        self.with(Action::Accumulate(reduction, packed.into()))
    }

    /// Copies them to elements of another type, as [`Committed::copy`] does, but as many bytes as both ranges have, which the call
    /// returns: interfaces whose callers name a maximum on each side need no third number.
    ///
    /// Within a device that is one launch, without a buffer between. Between devices that reach each other, runs of the destination
    /// of 128 bytes and more are written where they belong by the device of the source; shorter ones are packed into a small buffer
    /// on the other device and unpacked there. Everything else goes through pinned memory, chunk by chunk.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 3.10 (`MPI_Sendrecv`, to oneself).
    ///
    /// See [`Transfer`] for an example.
    #[inline]
    pub fn copy_to(self, destination: Elements<'a>) -> Transfer<'a> {
        self.with(Action::Copy(None, destination))
    }

    /// Accumulates them in elements of another type: each basic element of the destination becomes itself OP the one of the
    /// source. As many bytes are read as both ranges have.
    ///
    /// Where the source is contiguous, this is [`Elements::accumulate`]; otherwise it goes through a buffer, chunk by chunk, beside
    /// whichever processor has the destination, and cannot be enqueued.
    ///
    /// # Standard section
    ///
    /// MPI 4.1, 12.3.4 (`MPI_Accumulate`).
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// use dtc_runtime::operation::{Element, Operation, Reduction};
    /// use dtc_runtime::{Engine, Range};
    /// let (engine, mut types) = (Engine::new(), TypeBuilder::new());
    /// let int = types.named(Predefined::INT);
    /// let column = types.vector(2, 1, 2, int)?;
    /// let (int, column) = (engine.commit(&types.finish(int)?), engine.commit(&types.finish(column)?));
    /// let (matrix, mut sums) = ([1, 2, 3], [10, 20]);
    /// let (source, destination) =
    ///     (column.at(matrix.as_ptr(), Range::elements(1)), int.at(sums.as_mut_ptr(), Range::elements(2)));
    /// let sum = Reduction::new(Operation::Sum, Element::I32)?;
    /// // SAFETY: both ends are as long as their elements.
    /// unsafe { source.accumulate_to(sum, destination).run()? };
    /// assert_eq!(sums, [11, 23]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn accumulate_to(self, reduction: Reduction, destination: Elements<'a>) -> Transfer<'a> {
        self.with(Action::Copy(Some(reduction), destination))
    }

    /// Their type.
    ///
    /// ```
    /// use dtc_runtime::{Committed, Endpoint, Range};
    /// fn is_of(column: &Committed, memory: Endpoint) -> bool {
    ///     std::ptr::eq(column.at(memory, Range::elements(1)).datatype(), column)
    /// }
    /// ```
    pub fn datatype(&self) -> &'a Committed {
        self.of
    }

    /// The address that the type is applied to.
    ///
    /// ```
    /// use dtc_runtime::{Committed, Endpoint, Range};
    /// fn is_there(column: &Committed, memory: Endpoint) -> bool {
    ///     column.at(memory, Range::elements(1)).memory() == memory
    /// }
    /// ```
    pub fn memory(&self) -> Endpoint {
        self.memory
    }

    /// The packed bytes that are meant.
    ///
    /// ```
    /// use dtc_runtime::{Committed, Endpoint, Range};
    /// fn is_one(column: &Committed, memory: Endpoint) -> bool {
    ///     column.at(memory, Range::elements(1)).range() == Range::elements(1)
    /// }
    /// ```
    pub fn range(&self) -> Range {
        self.range
    }

    #[inline]
    fn with(self, action: Action<'a>) -> Transfer<'a> {
        Transfer { elements: self, action, multiprocessors: Multiprocessors::All }
    }

    /// The same elements, with the range cut to their packed bytes.
    #[inline]
    pub(crate) fn exact(self) -> Elements<'a> {
        Elements { range: self.of.exact(self.range), ..self }
    }

    /// `length` packed bytes of them, from byte `at` of the range on.
    pub(crate) fn part(self, at: u64, length: u64) -> Elements<'a> {
        Elements { range: self.range.part(at, length), ..self }
    }
}

impl<'a> Transfer<'a> {
    /// Limits the device's multiprocessors that a pack or unpack uses. Other transfers ignore the limit.
    ///
    /// See [`Multiprocessors`] for an example.
    pub fn on(self, multiprocessors: Multiprocessors) -> Transfer<'a> {
        Transfer { multiprocessors, ..self }
    }
}
