//! Closed functions by LLVM: the loops of a plan in LLVM's intermediate form, and the objects that it compiles them to.
//!
//! [`ir`] prints the same two functions as `cranelift::object` compiles, for the same plan, as text; it
//! needs no LLVM. With the feature `llvm`, `object` and `assembly` have LLVM 19 verify, optimise and compile that text.
//!
//! - `function.rs` writes values, blocks and loops;
//! - `emit.rs` goes through the steps of a plan; `copy.rs`, `rows.rs` and `tile.rs` have the vectors;
//! - `module.rs` puts the functions together; `compile.rs` calls LLVM.

#[cfg(feature = "llvm")]
mod compile;
mod copy;
mod emit;
mod function;
mod module;
mod rows;
mod tile;

#[cfg(feature = "llvm")]
pub use compile::{assembly, object, version};
pub use module::ir;
