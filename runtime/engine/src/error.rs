//! What can be wrong with a call.

use dtc_compiler::datatype::Predefined;
use dtc_compiler::operation::{Element, Reduction};
use dtc_cuda::CudaError;
use thiserror::Error;

/// Why a pack or unpack did nothing.
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, PackError, Range};
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let int = Engine::new().commit(&types.finish(int)?);
/// let error = int.pack(&[0u8; 3], Range::elements(1), &mut [0u8; 4]).unwrap_err();
/// assert_eq!(error, PackError::Bounds { low: 0, high: 4, before: 0, after: 3 });
/// # Ok::<(), dtc_runtime::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PackError {
    /// The elements reach outside the buffer.
    #[error(
        "buffer: expected {low} to {high} bytes from the origin to lie inside, found {before} bytes before it and \
         {after} bytes after it"
    )]
    Bounds {
        /// Lowest displacement of a byte of all elements.
        low: i128,
        /// One past the highest displacement of a byte of all elements.
        high: i128,
        /// Bytes of the buffer before the origin.
        before: usize,
        /// Bytes of the buffer from the origin on.
        after: usize,
    },
    /// The origin lies outside the buffer.
    #[error("origin: expected at most {length}, found {origin}")]
    Origin {
        /// The origin.
        origin: usize,
        /// Bytes of the buffer.
        length: usize,
    },
    /// The fragment begins after the end of the packed bytes.
    #[error("offset: expected at most {total}, found {offset}")]
    Offset {
        /// Where the fragment begins.
        offset: u64,
        /// Packed bytes of all elements.
        total: u64,
    },
    /// The buffer of the packed bytes is shorter than the range.
    #[error("packed: expected at least the {expected} bytes of the range, found {found}")]
    Packed {
        /// Packed bytes of the range.
        expected: u64,
        /// Bytes of the buffer.
        found: usize,
    },
    /// The packed bytes of all elements do not fit 64 bits.
    #[error("count: expected at most {most} elements, found {count}")]
    Count {
        /// The count of the call.
        count: u64,
        /// How many elements can be addressed.
        most: u64,
    },
}

/// Why an accumulation did nothing.
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::operation::{Element, Operation, Reduction};
/// use dtc_runtime::{AccumulateError, Engine, Range};
/// let mut types = TypeBuilder::new();
/// let double = types.named(Predefined::DOUBLE);
/// let double = Engine::new().commit(&types.finish(double)?);
/// let sum = Reduction::new(Operation::Sum, Element::F64)?;
/// let error = double.accumulate(sum, &[0u8; 7], Range::elements(1).at_most(7), &mut [0u8; 8]).unwrap_err();
/// assert_eq!(error, AccumulateError::Multiple { field: "length", element: Element::F64, found: 7 });
/// assert_eq!(error.to_string(), "length: expected a multiple of the 8 bytes of f64, found 7");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccumulateError {
    /// An unpack would be refused, too.
    #[error(transparent)]
    Unpack(#[from] PackError),
    /// The reduction cannot be computed here: that of long doubles of 80 bits, on a CPU that has none.
    #[error("operation: expected one that this machine computes, found {0}")]
    Unsupported(Reduction),
    /// The fragment begins or ends inside an element, or the type does.
    #[error("{field}: expected a multiple of the {} bytes of {element}, found {found}", element.size())]
    Multiple {
        /// What should be a multiple: `offset`, `length`, or `size of the type`.
        field: &'static str,
        /// The element.
        element: Element,
        /// Its value in bytes.
        found: u64,
    },
    /// The type consists of other elements.
    #[error("type: expected elements {0}, found others")]
    Elements(Element),
}

/// Why a copy did nothing: what is wrong with which side.
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, Range};
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let int = Engine::new().commit(&types.finish(int)?);
/// let one = Range::elements(1);
/// let error = int.copy(&[0u8; 4], one.bytes(5..), &int, one, &mut [0u8; 4]).unwrap_err();
/// assert_eq!(error.to_string(), "source offset: expected at most 4, found 5");
/// # Ok::<(), dtc_runtime::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The elements that are read.
    #[error("source {0}")]
    Source(PackError),
    /// The elements that are written.
    #[error("destination {0}")]
    Destination(PackError),
    /// The range of the destination has fewer packed bytes than that of the source.
    #[error("destination range: expected at least the {expected} packed bytes of the source, found {found}")]
    Length {
        /// Packed bytes of the range that is read.
        expected: u64,
        /// Packed bytes of the range that is written.
        found: u64,
    },
}

/// What was wrong with a pack to `external32`.
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, ExternalError, Range};
/// let mut types = TypeBuilder::new();
/// let long = types.named(Predefined::LONG);
/// let long = Engine::new().commit(&types.finish(long)?);
/// let mut packed = [0; 4];
/// let error = long.pack_external(&(7i64 + (1 << 32)).to_ne_bytes(), Range::elements(1), &mut packed).unwrap_err();
/// assert_eq!(error, ExternalError::Value { element: Predefined::LONG, position: 0, found: 7 + (1 << 32) });
/// assert_eq!(error.to_string(), "external byte 0: expected a value of MPI_LONG that fits 4 bytes, found 4294967303");
/// assert_eq!(packed, [0, 0, 0, 7]);
/// # Ok::<(), dtc_runtime::datatype::DatatypeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// A pack would be refused, too. Nothing was written.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A value cannot be represented. Everything was written, the value and others of its kind without their most significant
    /// bytes.
    #[error("external byte {position}: expected a value of {} that fits {size} bytes, found {found}", element.name(),
        size = if *element == Predefined::WCHAR { 2 } else { 4 })]
    Value {
        /// Which type narrows: `LONG`, also in a `LONG_INT`, `UNSIGNED_LONG` or `WCHAR`.
        element: Predefined,
        /// Where the value begins in `external32`.
        position: u64,
        /// The first such value.
        found: i128,
    },
}

/// Bytes of the text of a kernel by table at most that NVRTC is asked for. NVRTC 13.0 took 2.4 s of a processor for 146 KB of a structure of 400 parts, and
/// 20 s for 600 KB of one of 1,600 (Emerald Rapids).
const MOST_TEXT: usize = 512 << 10;

/// Refuses the text of a kernel by table that NVRTC would take too long for.
pub(crate) fn check_text(source: &str) -> Result<(), CudaError> {
    match source.len() {
        ..=MOST_TEXT => Ok(()),
        bytes => {
            let log = format!("at most {MOST_TEXT} bytes are given to a compiler");
            Err(CudaError::Compile { compiler: "dtc", name: format!("a kernel with {bytes} bytes of text"), log })
        }
    }
}

/// The error of a call whose kernel has no source.
pub(crate) fn without_source(error: impl std::fmt::Display) -> CudaError {
    CudaError::Compile { compiler: "dtc", name: "no kernel text".to_owned(), log: error.to_string() }
}
