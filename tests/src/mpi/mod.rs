//! MPICH 4.0 and Open MPI 4.1: the libraries themselves, and models of their bounds.
//!
//! [`bounds`] has a model of each; [`program`] asks the libraries. `docs/bounds.md` describes where the two differ from each
//! other and from dtc.

pub mod bounds;
mod mpich;
mod open_mpi;
mod parts;
pub mod program;

/// An implementation of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    /// MPICH 4.0, with Yaksa.
    Mpich,
    /// Open MPI 4.1.
    OpenMpi,
}

impl Mpi {
    /// Both implementations.
    pub const ALL: [Mpi; 2] = [Mpi::Mpich, Mpi::OpenMpi];

    /// Its C compiler, by Debian's name.
    pub fn compiler(self) -> &'static str {
        match self {
            Mpi::Mpich => "mpicc.mpich",
            Mpi::OpenMpi => "mpicc.openmpi",
        }
    }
}
