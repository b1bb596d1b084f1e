//! Machine code for host memory, by Cranelift.
//!
//! A kernel is one function for one plan and direction:
//!
//! ```text
//! fn(memory: pointer, packed: pointer, count: u64, tables: pointer)
//! ```
//!
//! moves `count >= 1` whole elements. Loops and short pieces are inline, with every count, stride and offset a constant.
//! Longer pieces call the runtime's microkernels, because Cranelift has vectors of 16 bytes only, no masks and no
//! non-temporal stores. The code refers to microkernels by [`Relocation`]s and to lists through `tables`, an array with one
//! pointer for each entry of [`MachineCode::tables`]; so it is position independent and free of this process's
//! addresses.
//!
//! Without the feature `jit`, kernels are read and none is compiled.
//!
//! Programs without dtc are linked with closed functions (`object`): the same loops, with loops and `memcpy` in place of
//! microkernels, and their lists beside them.

#[cfg(feature = "jit")]
mod backend;
#[cfg(feature = "jit")]
mod closed;
#[cfg(feature = "jit")]
mod compiler;
#[cfg(feature = "jit")]
mod copy;
#[cfg(feature = "jit")]
mod emit;
mod image;
#[cfg(feature = "jit")]
mod interleave;
#[cfg(feature = "jit")]
mod loops;
mod microkernel;
#[cfg(feature = "objects")]
mod object;
#[cfg(feature = "jit")]
mod rows;
#[cfg(feature = "jit")]
mod runs;

pub use super::error::CodegenError;
pub use super::target::CpuTarget;
#[cfg(feature = "jit")]
pub use compiler::Compiler;
pub use image::{Image, ImageError};
pub use microkernel::Microkernel;
#[cfg(feature = "objects")]
pub use object::object;

use crate::plan::StepId;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The release series of Cranelift that compiles kernels. Its releases differ in the last number alone, and this crate's manifest
/// admits no others.
pub const SERIES: &str = "0.135";

/// The version of Cranelift.
#[cfg(feature = "jit")]
pub const VERSION: &str = cranelift_codegen::VERSION;

/// A place in the code for the address of a microkernel: 8 bytes in native order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocation {
    /// Offset of the place in the code, in bytes.
    pub offset: u32,
    /// The microkernel.
    pub microkernel: Microkernel,
    /// Bytes to add to its address.
    pub addend: i64,
}

/// A compiled kernel, not yet at an address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MachineCode {
    /// The instructions and their constants.
    pub code: Vec<u8>,
    /// Alignment of the code, in bytes.
    pub alignment: u64,
    /// The microkernels it calls.
    pub relocations: Vec<Relocation>,
    /// The steps whose lists it reads, in the order of its table of pointers.
    pub tables: Vec<StepId>,
    /// What the instructions are for, in the order of the code.
    #[serde(skip)]
    pub sources: Vec<Source>,
}

/// A stretch of a kernel's code, and the step that it carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Bytes of the code.
    pub range: Range<u32>,
    /// The innermost step; none for the loop over the elements.
    pub step: Option<StepId>,
}

#[cfg(all(test, feature = "jit"))]
mod tests {
    use super::*;

    #[test]
    fn cranelift_is_of_the_series() {
        assert_eq!(VERSION.rsplit_once('.').map(|(series, _)| series), Some(SERIES));
    }
}
