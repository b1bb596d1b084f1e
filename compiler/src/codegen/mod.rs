//! What a plan or a datatype becomes: machine code, and the texts that explain it.
//!
//! Everything here returns text or bytes. What is done with them is the caller's business.

pub mod cranelift;
pub mod cuda;
mod error;
pub mod llvm;
pub mod mpi_c;
pub mod source;
mod target;
