//! The compiler of dtc.
#![forbid(unsafe_code)]
pub mod datatype;
pub mod layout;
pub mod lower;
pub use lower::lower;
