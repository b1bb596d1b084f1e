//! MPICH 4.0 and Open MPI 4.1: the libraries themselves, and the compiler's models of their bounds.
//!
//! [`bounds`] asks the models, [`program`] the libraries. `docs/reference/bounds.md` describes where the two differ from each
//! other and from dtc.

pub mod bounds;
pub mod program;

pub use dtc_compiler::datatype::Mpi;

/// The C compiler of an MPI, by Debian's name.
pub fn compiler(mpi: Mpi) -> &'static str {
    match mpi {
        Mpi::Mpich => "mpicc.mpich",
        Mpi::OpenMpi => "mpicc.openmpi",
    }
}
