//! The compiler of dtc.
#![forbid(unsafe_code)]
pub mod datatype;
pub mod layout;
