//! Seeded generators.
//!
//! [`random`] draws datatypes; [`sequence`] draws byte sequences; [`split`] and [`algebra`] write a sequence as a
//! datatype in some random way, with the constructors of [`writer`].

pub mod sequence;
