//! The tables that are part of the crate.

use crate::measured::Table;
use crate::text::TableError;

static MPICH_4: &str = include_str!("../../tables/mpich-4.txt");
static MPICH_5: &str = include_str!("../../tables/mpich-5.txt");
static OPEN_MPI_4: &str = include_str!("../../tables/open-mpi-4.txt");
static OPEN_MPI_5: &str = include_str!("../../tables/open-mpi-5.txt");

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

/// The table of an MPI that says this of itself (`MPI_Get_library_version`). Those of MPICH serve its descendants and every other MPI.
fn text_for(version: &str) -> &'static str {
    match major_version(version, "Open MPI v") {
        Some(5..) => return OPEN_MPI_5,
        Some(_) => return OPEN_MPI_4,
        None if version.contains("Open MPI") => return OPEN_MPI_4,
        None => {}
    }
    match major_version(version, "MPICH Version:") {
        Some(5..) => MPICH_5,
        _ => MPICH_4,
    }
}

impl Table {
    /// The tables of all MPIs that were measured.
    pub fn all_shipped() -> Vec<Table> {
        // A table that is wrong is found by a test.
        [MPICH_4, MPICH_5, OPEN_MPI_4, OPEN_MPI_5].into_iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// The table of an MPI that says this of itself (`MPI_Get_library_version`): of MPICH 4 and 5 and Open MPI 4 and 5, of which that of
    /// MPICH 4 serves all others.
    ///
    /// # Errors
    ///
    /// The table of the crate is wrong, which a test rules out.
    pub fn shipped(version: &str) -> Result<Table, TableError> {
        text_for(version).parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Use;

    #[test]
    fn every_table_is_of_the_mpi_that_it_is_for() {
        let versions =
            ["MPICH Version:      4.0.2", "MPICH Version: 5.0.2", "Open MPI v4.1.4, package", "Open MPI v5.0.11"];
        for version in versions {
            let table = Table::shipped(version).unwrap();
            assert_eq!(text_for(&table.mpi).as_ptr(), text_for(version).as_ptr(), "{version}");
            assert!(table.any(Use::Exchange).smallest().is_some() && !table.machine.is_empty(), "{version}");
        }
        assert_eq!(Table::all_shipped().len(), versions.len());
        let of = |version: &str| text_for(version).as_ptr();
        assert_eq!(of("Intel(R) MPI Library 2021"), MPICH_4.as_ptr());
        assert_eq!(of("Open MPI"), OPEN_MPI_4.as_ptr());
        assert_eq!(of("Open MPI v6.0.0"), OPEN_MPI_5.as_ptr());
    }
}
