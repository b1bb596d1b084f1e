//! CUDA without a GPU, for tests.
//!
//! - `stub/` is a driver whose devices are memory of the host and whose kernels do nothing, and an NVRTC that hands out the text. [`in_child!`]
//!   runs a test in a process that finds them.
//! - `cpu/` is the same driver with kernels that g++ compiles and the CPU runs: an [`Emulator`] runs whole programs on it.
//! - `shim/` runs the text of one kernel on the CPU, block by block; `dtc-tests` compares what it does with the reference walker.
//!
//! # Panics
//!
//! Everything here panics where a test should fail: without a C compiler, or a folder for its output.

mod child;
mod emulator;
mod run;

pub use child::{Stub, build_stub, passes_in_child};
pub use emulator::Emulator;
pub use run::{Run, is_full, write};

/// The folder of the crate.
const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// The folder of the shim: `driver.cpp` and the headers that it and the texts of kernels are compiled with.
pub const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/shim");
