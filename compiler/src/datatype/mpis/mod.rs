//! Bounds of types as MPICH 4.0 and Open MPI 4.1 compute them. The two differ from each other, and from the standard: `docs/reference/bounds.md` lists
//! where. [`Facts`](super::Facts) are dtc's own.
//!
//! The tests hold these models against the libraries.

mod bounds;
mod mpich;
mod open_mpi;
mod parts;

pub use bounds::MpiBounds;

use super::Datatype;
use std::fmt;

/// An implementation of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mpi {
    /// MPICH 4.0, with Yaksa.
    Mpich,
    /// Open MPI 4.1.
    OpenMpi,
}

impl Mpi {
    /// Both implementations.
    pub const ALL: [Mpi; 2] = [Mpi::Mpich, Mpi::OpenMpi];

    /// The bounds of every node of a type, by the index of the node ([`Datatype::nodes`]); `None` if a number leaves 64 bits. Takes time in
    /// proportion to the numbers of the constructors.
    ///
    /// # Example
    ///
    /// ```
    /// use dtc_compiler::datatype::{Mpi, text};
    /// let rows = text::parse("hvector 2 1 5 int")?;
    /// let extent = |mpi: Mpi| Some(mpi.bounds(&rows)?[rows.nodes().place(&rows)].extent());
    /// assert_eq!((extent(Mpi::Mpich), extent(Mpi::OpenMpi)), (Some(9), Some(12)));
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    #[must_use]
    pub fn bounds(self, datatype: &Datatype) -> Option<Vec<MpiBounds>> {
        match self {
            Mpi::Mpich => mpich::bounds(datatype),
            Mpi::OpenMpi => open_mpi::bounds(datatype),
        }
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mpi::Mpich => "MPICH 4.0",
            Mpi::OpenMpi => "Open MPI 4.1",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::text;

    fn whole(mpi: Mpi, notation: &str) -> Option<(i64, i64)> {
        let datatype = text::parse(notation).expect("a type");
        let bounds = mpi.bounds(&datatype)?[datatype.nodes().place(&datatype)];
        Some((bounds.lb, bounds.ub))
    }

    /// The libraries were asked for each of these.
    #[test]
    fn bounds_of_parts_without_bytes_differ() {
        let both = |notation| Mpi::ALL.map(|mpi| whole(mpi, notation));
        assert_eq!(both("struct [1@100 (contiguous 0 int), 1@0 int]"), [Some((0, 100)); 2]);
        let nested = "struct [1@100 (struct [1@50 (contiguous 0 int)]), 1@0 int]";
        assert_eq!(both(nested), [Some((0, 100)), Some((0, 152))]);
        let marked = "struct [1@100 (vector 3 1 2 (resized 0 8 (contiguous 0 int))), 1@0 int]";
        assert_eq!(both(marked), [Some((0, 100)), Some((100, 140))]);
    }

    #[test]
    fn numbers_that_leave_64_bits_have_no_bounds() {
        // A type of no bytes by the standard, whose strides MPICH counts.
        let strided = "hvector 4611686018427387904 0 8 int";
        assert_eq!((whole(Mpi::Mpich, strided), whole(Mpi::OpenMpi, strided)), (None, Some((0, 0))));
        for notation in [
            "hvector 4611686018427387904 0 -9223372036854775808 int",
            "vector 9223372036854775807 0 9223372036854775807 (resized 0 9223372036854775807 int)",
            "indexed_block 0 [9223372036854775807, -9223372036854775808] (resized 0 -9223372036854775808 int)",
            "struct [0@9223372036854775807 int, 1@0 int]",
            "contiguous 9223372036854775807 (contiguous 0 int)",
        ] {
            let datatype = text::parse(notation).expect("a type");
            // A number or none, and no panic.
            let _ = Mpi::ALL.map(|mpi| mpi.bounds(&datatype));
        }
    }
}
