//! What can be wrong with a call.

use thiserror::Error;

/// Why a pack or unpack did nothing.
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::{Engine, PackError};
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let int = Engine::new().commit(&types.finish(int));
/// let error = int.pack(&[0; 3], 0, 1, 0, &mut [0; 4]).unwrap_err();
/// assert_eq!(error, PackError::Bounds { low: 0, high: 4, before: 0, after: 3 });
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
    /// The packed bytes of all elements do not fit 64 bits.
    #[error("count: expected at most {most} elements, found {count}")]
    Count {
        /// The count of the call.
        count: u64,
        /// How many elements can be addressed.
        most: u64,
    },
}
