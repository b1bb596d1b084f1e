//! Seeded generators.
//!
//! [`random`] draws datatypes of every kind. [`sequence`] draws byte sequences, and [`split`] writes a sequence as a
//! random datatype. [`algebra`] does both for sequences too long to enumerate. They share the constructor choices of
//! [`writer`], and no code with the compiler. [`tabled`] draws types with index tables. [`hostile`] draws short descriptions that are made to be expensive.

pub mod algebra;
mod arrays;
pub mod hostile;
mod pieces;
pub mod random;
pub mod sequence;
pub mod split;
pub mod tabled;
pub mod writer;
