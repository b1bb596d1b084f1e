//! The compiler of dtc: from an MPI derived datatype to the code that packs and unpacks it.
//!
//! A [`Pipeline`] holds a datatype and the results of all stages. Each stage is a module:
//!
//! 1. [`datatype`]: the application's description, a DAG of MPI constructors, with its bounds and signature;
//! 2. [`lower`](mod@lower): the datatype as a [`layout`], a hash-consed DAG of streams, lists and records of bytes;
//! 3. [`passes`]: named rewrites that bring the layout into its canonical form;
//! 4. [`plan`]: the strategy to move the bytes, on a CPU and on a GPU;
//! 5. [`codegen`]: the machine code of the plan, and other texts generated from a datatype.
//!
//! Beside them, [`operation`] defines the reductions and their elements, and [`external32`] the representation of
//! values outside of memory.
//!
//! Everything here is pure: no device, file, thread or clock, and no unsafe code. The crate `dtc-runtime` runs the
//! result.
//!
//! # Features
//!
//! `jit`, on by default, brings Cranelift, which compiles kernels for CPUs; `objects` its backends for other CPUs than this one, and
//! `llvm` LLVM 19.
//!
//! # Example
//!
//! Two descriptions of a column of an 8 x 8 matrix of doubles give one layout with one hash:
//!
//! ```
//! use dtc_compiler::datatype::{Predefined, TypeBuilder};
//! use dtc_compiler::Pipeline;
//!
//! let mut types = TypeBuilder::new();
//! let double = types.named(Predefined::DOUBLE);
//! let vector = types.vector(8, 1, 8, double)?;
//! let list = types.indexed_block(1, &[0, 8, 16, 24, 32, 40, 48, 56], double)?;
//!
//! let from_vector = Pipeline::new(types.finish(vector)?);
//! let from_list = Pipeline::new(types.finish(list)?);
//! assert_eq!(from_vector.layout().to_string(), from_list.layout().to_string());
//! assert_eq!(from_vector.hash(), from_list.hash());
//! assert_ne!(from_vector.report(), from_list.report());
//! # Ok::<(), dtc_compiler::datatype::DatatypeError>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

// The stages, and the value that holds their results.
pub mod datatype;

pub mod lower;

pub mod passes;

#[cfg_attr(
    not(feature = "jit"),
    expect(dead_code, unused_imports, reason = "limits of kernels, which nothing compiles")
)]
pub mod plan;

pub mod codegen;

pub mod pipeline;

// What the stages share, and what leaves the pipeline on the way.
pub mod external32;
pub mod layout;
pub mod operation;
pub mod raise;
mod runs;
pub mod shared;
mod suggest;
pub mod tabled;
mod tokens;

pub use lower::lower;
pub use passes::canonicalise;
pub use pipeline::Pipeline;
pub use raise::raise;
pub use shared::Shared;
pub use tokens::TextError;
