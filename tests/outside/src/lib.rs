//! A program that depends on dtc-runtime alone.
//!
//! The documentation tests of this crate are those of the README and of dtc-runtime: they compile here without a crate that is
//! not named in a user's manifest. [`signatures`] names the types of public functions.

pub mod signatures;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub mod readme {}

/// The examples of dtc-runtime, a module for each of its files.
#[cfg(doctest)]
pub mod examples {
    include!(concat!(env!("OUT_DIR"), "/examples.rs"));
}
