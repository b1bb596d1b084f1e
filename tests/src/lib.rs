//! Tests of dtc: an oracle, generators, a corpus and a conformance run.
//!
//! [`type_map`] enumerates a datatype by MPI's definitions and shares no code with the compiler, which is compared with
//! it. [`generate`] draws random datatypes, and writes one byte sequence as many datatypes. [`corpus`] holds named
//! types of every constructor and edge case, and [`conformance`] runs a type on an engine.
#![deny(unsafe_code)]

pub mod book;
pub mod conformance;
pub mod corpus;
pub mod external32;
pub mod generate;
pub mod kernels;
pub mod memory;
pub mod mpi;
pub mod nvrtc;
pub mod plot;
pub mod reduce;
pub mod shim;
pub mod skip;
pub mod type_map;
pub mod watch;
