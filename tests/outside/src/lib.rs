//! A program that depends on dtc-runtime alone.
//!
//! The documentation tests of this crate are those of the book and of dtc-runtime: they compile here without a crate that is
//! not named in a user's manifest. [`signatures`] names the types of public functions.

pub mod signatures;

/// The examples of dtc-runtime and of the book, a module for each file.
#[cfg(doctest)]
pub mod examples {
    include!(concat!(env!("OUT_DIR"), "/examples.rs"));
}
