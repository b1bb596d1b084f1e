//! Where one end of a transfer lies.

use dtc_cuda::{DeviceBuffer, MemoryKind, PinnedBuffer, is_in_use};

/// Addresses below this one are never mapped. A null base belongs to a type of absolute addresses.
const NEVER_MAPPED: usize = 4096;

/// Whether an address can never be mapped.
#[inline]
pub(crate) fn is_nowhere(address: *const u8) -> bool {
    address.addr() < NEVER_MAPPED
}

/// An address, and the kind of memory there.
///
/// An endpoint made of a pointer has no kind: a call asks the driver once, or not at all while the process does not use CUDA.
/// [`Endpoint::of_kind`] names the kind, and nothing is asked. A [`DeviceBuffer`] and a [`PinnedBuffer`] know theirs.
///
/// ```
/// use dtc_runtime::{Endpoint, cuda::MemoryKind};
/// let mut matrix = [0.0; 12];
/// let somewhere = Endpoint::from(matrix.as_mut_ptr());
/// let on_host = Endpoint::host(matrix.as_mut_ptr());
/// assert_eq!((somewhere.kind(), on_host.kind()), (None, Some(MemoryKind::Pageable)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: *mut u8,
    kind: Option<MemoryKind>,
}

impl Endpoint {
    /// An address in memory of a kind that the caller knows.
    ///
    /// ```
    /// use dtc_runtime::{Committed, Endpoint, Range, TransferError, cuda::MemoryKind};
    /// /// Packs what lies on GPU 0 into memory that was registered with CUDA.
    /// fn send(column: &Committed, matrix: *const f64, packed: *mut u8) -> Result<usize, TransferError> {
    ///     let matrix = Endpoint::of_kind(MemoryKind::Device(0), matrix);
    ///     let packed = Endpoint::of_kind(MemoryKind::Pinned, packed);
    ///     // SAFETY: `matrix` and `packed` have every byte of one element, in memory of these kinds.
    ///     unsafe { column.at(matrix, Range::elements(1)).pack(packed).run() }
    /// }
    /// ```
    #[inline]
    pub const fn of_kind<T>(kind: MemoryKind, address: *const T) -> Endpoint {
        Endpoint { address: address.cast_mut().cast(), kind: Some(kind) }
    }

    /// An address in host memory that CUDA does not know. The processor moves the bytes between two of these, without a question.
    ///
    /// See [`Endpoint`] for an example.
    #[inline]
    pub const fn host<T>(address: *const T) -> Endpoint {
        Endpoint::of_kind(MemoryKind::Pageable, address)
    }

    /// The address.
    ///
    /// ```
    /// let number = 7i32;
    /// assert_eq!(dtc_runtime::Endpoint::host(&raw const number).address(), (&raw const number).cast_mut().cast());
    /// ```
    #[inline]
    pub const fn address(self) -> *mut u8 {
        self.address
    }

    /// The kind of memory, if it is known.
    ///
    /// See [`Endpoint`] for an example.
    #[inline]
    pub const fn kind(self) -> Option<MemoryKind> {
        self.kind
    }

    /// Names the kind of memory, or leaves it open.
    ///
    /// ```
    /// use dtc_runtime::{Endpoint, cuda::MemoryKind};
    /// let number = 7i32;
    /// let endpoint = Endpoint::from(&raw const number);
    /// assert_eq!(endpoint.with_kind(Some(MemoryKind::Pageable)), Endpoint::host(&raw const number));
    /// assert_eq!(endpoint.with_kind(None), endpoint);
    /// ```
    #[inline]
    pub const fn with_kind(self, kind: Option<MemoryKind>) -> Endpoint {
        Endpoint { kind, ..self }
    }

    /// This many bytes further on.
    #[inline]
    pub(crate) fn advanced(self, bytes: i64) -> Endpoint {
        Endpoint { address: self.address.wrapping_offset(bytes as isize), ..self }
    }

    /// Whether the address can never be mapped.
    #[inline]
    pub(crate) fn is_nowhere(&self) -> bool {
        is_nowhere(self.address)
    }

    /// Whether the processor can move bytes between both addresses without asking the driver about them. While CUDA is not in use, all
    /// memory is the host's.
    // Asks at most once whether it is: that takes 20 ns.
    #[inline]
    pub(crate) fn are_on_host(&self, other: &Endpoint) -> bool {
        let ends = [self, other];
        let is_known = ends.iter().all(|end| end.kind.is_some());
        let is_elsewhere = ends.iter().any(|end| matches!(end.kind, Some(MemoryKind::Device(_))) || end.is_nowhere());
        !is_elsewhere && (is_known || !is_in_use())
    }
}

impl<T> From<*const T> for Endpoint {
    #[inline]
    fn from(address: *const T) -> Endpoint {
        Endpoint { address: address.cast_mut().cast(), kind: None }
    }
}

impl<T> From<*mut T> for Endpoint {
    #[inline]
    fn from(address: *mut T) -> Endpoint {
        Endpoint { address: address.cast(), kind: None }
    }
}

/// The first byte of the buffer.
impl From<&DeviceBuffer> for Endpoint {
    fn from(buffer: &DeviceBuffer) -> Endpoint {
        let address = std::ptr::with_exposed_provenance::<u8>(buffer.address() as usize);
        Endpoint::of_kind(buffer.kind(), address)
    }
}

/// The first byte of the buffer.
impl From<&PinnedBuffer> for Endpoint {
    fn from(buffer: &PinnedBuffer) -> Endpoint {
        Endpoint::of_kind(MemoryKind::Pinned, buffer.as_ptr())
    }
}
