//! The tables that are part of the crate.

use crate::measured::Table;
use crate::text::TableError;

static MPICH_4: &str = include_str!("../tables/mpich-4.txt");
static MPICH_5: &str = include_str!("../tables/mpich-5.txt");
static OPEN_MPI_4: &str = include_str!("../tables/open-mpi-4.txt");
static OPEN_MPI_5: &str = include_str!("../tables/open-mpi-5.txt");

/// The major version of an MPI: the number behind a name in what it says of itself; none if the name does not occur.
///
/// ```
/// assert_eq!(dtc_mpi_table::major_version("MPICH Version:      4.0.2", "MPICH Version:"), Some(4));
/// assert_eq!(dtc_mpi_table::major_version("Open MPI v5.0.11", "MPICH Version:"), None);
/// ```
pub fn major_version(version: &str, name: &str) -> Option<u32> {
    let (_, rest) = version.split_once(name)?;
    let digits = rest.trim_start().split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The table of an MPI that says this of itself (`MPI_Get_library_version`); none if it was not measured.
fn text_for(version: &str) -> Option<&'static str> {
    match (major_version(version, "Open MPI v"), major_version(version, "MPICH Version:")) {
        (Some(5..), _) => Some(OPEN_MPI_5),
        (Some(_), _) => Some(OPEN_MPI_4),
        (None, Some(5..)) => Some(MPICH_5),
        (None, Some(_)) => Some(MPICH_4),
        (None, None) => None,
    }
}

/// The lowest gain of each call under all MPIs.
fn lowest() -> Table {
    let mut lowest = Table::new("the lowest of all MPIs that were measured", "");
    for table in Table::all_shipped() {
        lowest.machine.clone_from(&table.machine);
        table.cells().for_each(|cell| {
            lowest.lower(&cell);
        });
    }
    lowest
}

impl Table {
    /// The tables of all MPIs that were measured.
    pub fn all_shipped() -> Vec<Table> {
        // A table that is wrong is found by a test.
        [MPICH_4, MPICH_5, OPEN_MPI_4, OPEN_MPI_5].into_iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// The table of an MPI that says this of itself (`MPI_Get_library_version`): of MPICH 4 and 5 and Open MPI 4 and 5. Others get the
    /// lowest gain of each call under these.
    ///
    /// # Errors
    ///
    /// The table of the crate is wrong, which a test rules out.
    pub fn shipped(version: &str) -> Result<Table, TableError> {
        text_for(version).map_or_else(|| Ok(lowest()), str::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Pieces, Use};

    #[test]
    fn every_table_is_of_the_mpi_that_it_is_for() {
        let versions =
            ["MPICH Version:      4.0.2", "MPICH Version: 5.0.2", "Open MPI v4.1.4, package", "Open MPI v5.0.11"];
        for version in versions {
            let table = Table::shipped(version).unwrap();
            assert_eq!(text_for(&table.mpi).map(str::as_ptr), text_for(version).map(str::as_ptr), "{version}");
            assert!(table.any(Use::Exchange).smallest().is_some() && !table.machine.is_empty(), "{version}");
        }
        assert_eq!(Table::all_shipped().len(), versions.len());
        assert_eq!(text_for("Open MPI v6.0.0").map(str::as_ptr), Some(OPEN_MPI_5.as_ptr()));
        assert_eq!(text_for("Intel(R) MPI Library 2021"), None);
        let unknown = Table::shipped("Intel(R) MPI Library 2021").unwrap();
        for table in Table::all_shipped() {
            for cell in table.cells() {
                let (piece, size) = (cell.piece, cell.size);
                let (arrangement, share) = (cell.arrangement, 1.0 / cell.density.reach() as f64);
                let pieces = Pieces { arrangement, bytes: piece, share, loop_bytes: i64::MAX };
                assert!(unknown.gain(cell.r#use, &pieces, size) <= cell.gain, "{piece} {size}");
            }
        }
    }
}
