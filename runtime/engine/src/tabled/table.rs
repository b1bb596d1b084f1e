//! Index tables of a call.

use super::error::TabledError;
use crate::endpoint::Endpoint;
use dtc_compiler::datatype::{TableFacts, TableKind};
use dtc_compiler::tabled::Entries;

/// An index table of a call: indices of places, or addresses, of 32 or 64 bits, signed.
///
/// A slice is a table in host memory: calls check its entries before they move a byte. [`IndexTable::at`] is a table in any memory, whose entries
/// only the kernel reads. The kernel skips those that are not below the places of the type.
///
/// ```
/// use dtc_runtime::IndexTable;
/// let table = IndexTable::from(&[3, 1, 7]);
/// assert_eq!(table.len(), 3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct IndexTable<'a>(TableSource<'a>);

#[derive(Clone, Copy, Debug)]
pub(super) enum TableSource<'a> {
    Host(Entries<'a>),
    Anywhere { first: Endpoint, wide: bool, length: u64 },
}

impl<'a> IndexTable<'a> {
    /// `length` entries in memory of any kind that the device of the call reaches, `wide` if they have 64 bits and 32 otherwise. A part of a
    /// table begins at its first entry.
    ///
    /// ```
    /// # use dtc_runtime::{IndexTable, cuda::DeviceBuffer};
    /// # fn blocks(buffer: &DeviceBuffer) {
    /// let table = IndexTable::at(buffer, false, 512);
    /// # }
    /// ```
    pub fn at(first: impl Into<Endpoint>, wide: bool, length: u64) -> IndexTable<'a> {
        IndexTable(TableSource::Anywhere { first: first.into(), wide, length })
    }

    /// How many entries it has.
    pub fn len(&self) -> u64 {
        match self.0 {
            TableSource::Host(entries) => entries.len() as u64,
            TableSource::Anywhere { length, .. } => length,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether entries have 64 bits.
    pub(super) fn is_wide(&self) -> bool {
        matches!(self.0, TableSource::Host(Entries::Wide(_)) | TableSource::Anywhere { wide: true, .. })
    }

    pub(super) fn source(self) -> TableSource<'a> {
        self.0
    }

    /// Checks what can be checked without reading memory of a device. `skips`: whether entries may be none.
    pub(super) fn check(&self, number: usize, facts: &TableFacts, skips: bool) -> Result<(), TabledError> {
        let found = self.len();
        if found > facts.most {
            return Err(TabledError::Length { table: number, most: facts.most, found });
        }
        if !self.is_wide() && matches!(facts.kind, TableKind::Addresses(_)) {
            let (expected, found) = ("addresses of 64 bits", "entries of 32 bits");
            return Err(TabledError::Kind { table: number, expected, found });
        }
        match self.0 {
            TableSource::Host(Entries::Narrow(entries)) => {
                check_all(entries.iter().map(|&entry| entry.into()), number, facts.kind, skips)
            }
            TableSource::Host(Entries::Wide(entries)) => check_all(entries.iter().copied(), number, facts.kind, skips),
            TableSource::Anywhere { first, wide, .. } => {
                let width = if wide { size_of::<i64>() } else { size_of::<i32>() };
                if !first.address().addr().is_multiple_of(width) {
                    let (expected, found) = ("entries at multiples of their size", "an address in between");
                    return Err(TabledError::Kind { table: number, expected, found });
                }
                Ok(())
            }
        }
    }
}

fn check_all(
    mut entries: impl Iterator<Item = i64>,
    table: usize,
    kind: TableKind,
    skips: bool,
) -> Result<(), TabledError> {
    let wrong = match kind {
        TableKind::Places(places) => {
            entries.enumerate().find(|&(_, entry)| if entry < 0 { !skips } else { entry as u64 >= places })
        }
        TableKind::Addresses(alignment) => entries
            .by_ref()
            .enumerate()
            .find(|&(_, entry)| if entry == 0 { !skips } else { !(entry as u64).is_multiple_of(alignment) }),
    };
    let Some((index, found)) = wrong else { return Ok(()) };
    let index = index as u64;
    Err(match kind {
        TableKind::Places(places) => TabledError::Entry { table, index, places, found },
        TableKind::Addresses(alignment) => TabledError::Address { table, index, alignment, found },
    })
}

impl<'a> From<&'a [i32]> for IndexTable<'a> {
    fn from(entries: &'a [i32]) -> IndexTable<'a> {
        IndexTable(TableSource::Host(Entries::Narrow(entries)))
    }
}

impl<'a> From<&'a [i64]> for IndexTable<'a> {
    fn from(entries: &'a [i64]) -> IndexTable<'a> {
        IndexTable(TableSource::Host(Entries::Wide(entries)))
    }
}

impl<'a, const N: usize> From<&'a [i32; N]> for IndexTable<'a> {
    fn from(entries: &'a [i32; N]) -> IndexTable<'a> {
        entries.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [i64; N]> for IndexTable<'a> {
    fn from(entries: &'a [i64; N]) -> IndexTable<'a> {
        entries.as_slice().into()
    }
}

impl<'a> From<&'a Vec<i32>> for IndexTable<'a> {
    fn from(entries: &'a Vec<i32>) -> IndexTable<'a> {
        entries.as_slice().into()
    }
}

impl<'a> From<&'a Vec<i64>> for IndexTable<'a> {
    fn from(entries: &'a Vec<i64>) -> IndexTable<'a> {
        entries.as_slice().into()
    }
}
