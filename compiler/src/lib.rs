//! The compiler of dtc.
#![forbid(unsafe_code)]
pub mod codegen;
pub mod datatype;
pub mod layout;
