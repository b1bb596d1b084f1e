//! Datatypes as MPI describes them: predefined types, constructors, bounds, signature, and their textual forms.
//!
//! A [`Datatype`] is a node: a [`Constructor`] with its arguments, the [`Facts`] that MPI defines for it, and its children. Nodes are
//! immutable and counted, and a child that is used twice is one node. All numbers have 64 bits; arithmetic that would leave them is
//! an error.
//!
//! | a type is | by |
//! | --- | --- |
//! | built bottom-up, by the names of MPI's constructors | [`TypeBuilder`], or node by node with [`Datatype::new`] |
//! | read from the short [notation](text), and printed in it | `"vector 12 1 14 double".parse::<Datatype>()`, `Display` |
//! | read from JSON, and written as JSON | [`json::read`], [`json::write`] |
//! | a part of what serde reads and writes, in the same JSON | `Serialize`, `Deserialize` |
//!
//! A [`TabledDatatype`] has displacements that come with each call.
//!
//! [`Datatype::runs`] iterates over the contiguous pieces of memory.
//!
//! # Example
//!
//! ```
//! use dtc_compiler::datatype::{Predefined, TypeBuilder};
//!
//! let mut types = TypeBuilder::new();
//! let double = types.named(Predefined::DOUBLE);
//! let int = types.named(Predefined::INT);
//! let character = types.named(Predefined::CHAR);
//! let particle = types.structure(&[1, 2, 1], &[0, 8, 16], &[double, int, character])?;
//! let particle = types.finish(particle)?;
//! assert_eq!(particle.facts().size, 17);
//! assert_eq!(particle.facts().extent(), 24);
//! # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
//! ```

mod array;
mod bounds;
mod builder;
mod constructor;
mod error;
mod facts;
pub mod json;
mod mpis;
mod node;
mod predefined;
mod signature;
mod tabled;
#[cfg(test)]
mod tests;
pub mod text;
mod written;

pub use array::{AxisBlocks, axes_of_darray, axes_of_subarray};
pub use bounds::{Facts, GivenBounds};
pub use builder::{TypeBuilder, TypeId};
pub use constructor::{Argument, Constructor, Distribution, MOST_TABLES, Order, ReadArguments};
pub use error::DatatypeError;
pub use mpis::{Mpi, MpiBounds};
pub use node::{Datatype, Nodes};
pub use predefined::{Field, Predefined};
pub use signature::Signature;
pub use tabled::{TableFacts, TableKind, TabledDatatype};
