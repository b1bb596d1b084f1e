//! Layouts.
pub(crate) mod field;
mod kind;
pub use kind::Kind;
