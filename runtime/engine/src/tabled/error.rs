//! What can be wrong with a call of a type with index tables.

use crate::error::{AccumulateError, PackError};
use crate::transfers::TransferError;
use dtc_compiler::operation::Reduction;
use dtc_cuda::CudaError;
use thiserror::Error;

/// Why a call moved nothing.
///
/// ```
/// use dtc_runtime::{Engine, IndexTable, TabledError};
/// let blocks = Engine::new().commit_tabled(&"table 0 4 2 8 double".parse()?);
/// let error = blocks.pack(&[0.0; 4], &[IndexTable::from(&[1, 4])], .., &mut [0; 16]).unwrap_err();
/// assert_eq!(error, TabledError::Entry { table: 0, index: 1, places: 4, found: 4 });
/// assert_eq!(error.to_string(), "table 0, entry 1: expected a place below 4, found 4");
/// # Ok::<(), dtc_runtime::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TabledError {
    /// The call has too few tables, or too many.
    #[error("tables: expected {expected} of the type, found {found}")]
    Tables {
        /// How many the type has.
        expected: usize,
        /// How many the call has.
        found: usize,
    },
    /// A table is too long.
    #[error("table {table}: expected at most {most} entries, found {found}")]
    Length {
        /// The number of the table.
        table: usize,
        /// The bound of the type.
        most: u64,
        /// Entries of the call's table.
        found: u64,
    },
    /// An entry leads beyond the places of its table, or is below 0 where the call does not say that such are skipped.
    #[error("table {table}, entry {index}: expected a place below {places}, found {found}")]
    Entry {
        /// The number of the table.
        table: usize,
        /// Which entry.
        index: u64,
        /// How many places there are.
        places: u64,
        /// The entry.
        found: i64,
    },
    /// An address is not a multiple of what the type says, or is 0 where the call does not say that such are skipped.
    #[error("table {table}, entry {index}: expected an address that is a multiple of {alignment}, found {found:#x}")]
    Address {
        /// The number of the table.
        table: usize,
        /// Which entry.
        index: u64,
        /// What addresses are multiples of.
        alignment: u64,
        /// The entry.
        found: i64,
    },
    /// The entries of a table are of the wrong kind: addresses have 64 bits, and are not for safe calls.
    #[error("table {table}: expected {expected}, found {found}")]
    Kind {
        /// The number of the table.
        table: usize,
        /// What the type or the call needs.
        expected: &'static str,
        /// What the table is.
        found: &'static str,
    },
    /// The sides of a copy have different packed sizes.
    #[error(
        "copy: expected {source_bytes} bytes of the source on both sides, found {destination_bytes} of the destination"
    )]
    Sizes {
        /// Packed bytes of the source.
        source_bytes: u64,
        /// Packed bytes of the destination.
        destination_bytes: u64,
    },
    /// The reduction does not fit the call.
    #[error(transparent)]
    Accumulate(#[from] AccumulateError),
    /// A device combines elements whose bytes follow each other, of 1, 2, 4, 8 or 16 bytes.
    #[error(
        "operation: expected elements that strides and lengths of the type are multiples of, on a GPU, found {reduction} with \
         multiples of {granularity} bytes"
    )]
    Apart {
        /// What is done to which elements.
        reduction: Reduction,
        /// What strides and lengths are multiples of.
        granularity: u32,
    },
    /// A transfer of a batch is wrong.
    #[error("transfer {item}: {error}")]
    Item {
        /// Its place among those of the batch.
        item: usize,
        /// What is wrong.
        error: Box<TabledError>,
    },
    /// A range, or a side, is wrong.
    #[error(transparent)]
    Call(#[from] PackError),
    /// An end lies nowhere, or out of the device's reach.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// CUDA cannot do it.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

impl TabledError {
    /// The same of a transfer of a batch.
    pub(super) fn of_item(self, item: usize) -> TabledError {
        TabledError::Item { item, error: Box::new(self) }
    }

    /// What a kernel noted in the 24 bytes of [`TabledTransfer::reporting`](crate::TabledTransfer::reporting), as three numbers: the first entry
    /// beyond the `places` of its table that it met. Nothing if all were below. In a copy, the tables of the destination follow those of the
    /// source.
    ///
    /// ```
    /// use dtc_runtime::TabledError;
    /// assert_eq!(TabledError::reported([0; 3], &[64]), None);
    /// assert_eq!(TabledError::reported([1, 7, 64], &[64]), Some(TabledError::Entry { table: 0, index: 7, places: 64, found: 64 }));
    /// ```
    pub fn reported(report: [u64; 3], places: &[u64]) -> Option<TabledError> {
        let [table, index, entry] = report;
        let table = table.checked_sub(1)? as usize;
        let places = places.get(table).copied().unwrap_or(0);
        Some(TabledError::Entry { table, index, places, found: entry as i64 })
    }
}
