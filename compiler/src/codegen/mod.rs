//! Text and code made from datatypes, layouts and plans.
//!
//! Everything here returns text or bytes. What is done with them is the caller's business.

pub mod mpi_c;
