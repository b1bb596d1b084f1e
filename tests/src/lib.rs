//! The test side of dtc: an oracle, generators, a corpus and a conformance runner.
//!
//! [`type_map`] enumerates a datatype straight from MPI's definitions and shares no code with the compiler; everything
//! else is compared with it. [`generate`] draws random datatypes, and writes one byte sequence as many datatypes.
#![deny(unsafe_code)]

pub mod generate;
pub mod type_map;
