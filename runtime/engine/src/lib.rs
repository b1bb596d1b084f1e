//! The runtime of dtc: commits datatypes and packs and unpacks their bytes.
//!
//! An [`Engine`] turns a description into a [`Committed`] type. Equal types, however they were described, share one plan
//! and one kernel. Under the default policy a commit waits for no compiler: the generic tier, which runs the plan by SIMD
//! microkernels, serves the first calls. A kernel for the type takes over where the cost model expects it to be faster.
//!
//! # Features
//!
//! `jit`, on by default, compiles kernels for CPUs by Cranelift. With `default-features = false` Cranelift is not built: the generic tier
//! and the kernels of bundles ([`Engine::load_bundle`]) move the bytes. GPUs need no feature.
//!
//! # Example
//!
//! ```
//! use dtc_runtime::datatype::{Datatype, Predefined, TypeBuilder};
//! use dtc_runtime::{Engine, Memory, MemoryMut, Range};
//!
//! // A column of a 3 x 4 matrix of bytes, in the short notation.
//! let column: Datatype = "vector 3 1 4 byte".parse()?;
//! assert_eq!((column.size(), column.extent()), (3, 9));
//! let column = Engine::new().commit(&column);
//!
//! // The second column of this one.
//! let matrix = *b"abcdefghijkl";
//! let mut packed = [0; 3];
//! column.pack(Memory::at(&matrix, 1), Range::elements(1), &mut packed)?;
//! assert_eq!(&packed, b"bfj");
//!
//! let mut other = [b'.'; 12];
//! column.unpack(&packed, Range::elements(1), MemoryMut::at(&mut other, 1))?;
//! assert_eq!(&other, b".b...f...j..");
//!
//! // The same type by the names of MPI's constructors, for numbers that a program computes.
//! let mut types = TypeBuilder::new();
//! let byte = types.named(Predefined::BYTE);
//! let vector = types.vector(3, 1, 4, byte)?;
//! assert_eq!(types.finish(vector)?.to_string(), "vector 3 1 4 byte");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Structs with padding are packed by their fields:
//!
//! ```
//! use dtc_runtime::{Engine, Range, Record};
//!
//! #[derive(Clone, Copy, Record)]
//! #[repr(C)]
//! struct Particle {
//!     position: [f64; 3],
//!     charge: i32, // and 4 bytes of padding
//! }
//!
//! let particle = Engine::new().commit(&Particle::datatype()?).of::<Particle>()?;
//! let particles = [Particle { position: [0.5; 3], charge: 1 }; 10];
//! let mut packed = [0u8; 10 * 28];
//! assert_eq!(particle.pack(&particles, Range::elements(10), &mut packed)?, 280);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`datatype`] lists the ways to describe a type, JSON among them. [`datatype`], [`layout`], [`plan`], [`codegen`] and [`operation`]
//! are the modules of the compiler whose types stand in the signatures here, and [`bytemuck`] has the traits of the slices that calls
//! take: no program needs a second crate.

#![warn(missing_debug_implementations)]

/// The example of the page that the crate's registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod builder;
mod bundle;
mod cache;
mod cached_type;
mod committed;
mod cpu;
pub mod cuda;
mod described;
mod descriptions;
mod device;
mod endpoint;
mod engine;
mod error;
mod memory;
mod multiprocessors;
mod piece;
mod policy;
mod range;
#[doc(hidden)]
pub mod record;
mod recorder;
mod shape;
mod tabled;
mod transfers;
mod worker;

pub use builder::EngineBuilder;
pub use bundle::{BundleWriter, REVISION};
pub use bytemuck;
pub use committed::Committed;
pub use described::UncommittedPlan;
pub use device::{GenericCode, Gpu, TransferModel};
pub use dtc_compiler::plan::Direction;
pub use dtc_compiler::tabled::{TabledLayout, TabledRoofline};
pub use dtc_compiler::{Pipeline, TextError, codegen, datatype, layout, operation, plan};
pub use dtc_microkernels::unknown_level;
pub use dtc_store as store;
pub use endpoint::Endpoint;
pub use engine::{Engine, Guard};
pub use error::{AccumulateError, CopyError, ExternalError, PackError};
pub use memory::{Memory, MemoryMut};
pub use multiprocessors::Multiprocessors;
pub use policy::{Policy, Tier};
pub use range::Range;
pub use record::{Record, RecordError, Records};
pub use recorder::{is_recording, recording_file};
pub use tabled::{BatchTransfer, CommittedTabled, IndexTable, TabledElements, TabledError, TabledTransfer};
pub use transfers::{
    Choice, Elements, Estimate, PersistentBatch, Request, Transfer, TransferCase, TransferError, TransferPath,
};
