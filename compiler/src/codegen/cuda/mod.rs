//! CUDA C++ for the kernels of a [`GpuPlan`].
//!
//! The text is self-contained: no header, no file. A template of the crate `dtc-templates` says how bytes are moved;
//! `place.rs` writes one device function for every node of the layout, which tells where a packed word is in memory, with
//! all counts, strides and offsets as constants; `tables.rs` holds what is too long to be constants. A shared node is one
//! function, so code grows with the DAG and not with the paths through it.

mod accumulate;
mod batch;
mod copy;
mod division;
mod interpreted_columns;
mod interpreted_fields;
mod interpreted_groups;
mod interpreted_tabled;
mod interpreted_tiles;
mod interpreter;
mod kernel;
mod place;
mod program;
mod tabled;
mod tables;
mod template;
mod whole;

pub use accumulate::{GENERIC_ACCUMULATE_ENTRY, GENERIC_ACCUMULATE_THREADS};
pub use batch::{
    BATCH_ENTRY, BATCH_INLINE, BATCH_KINDS, BATCH_THREADS, Batch, BatchPart, BatchProgram, GENERIC_BATCH_ENTRY, Item,
    batch, batch_of, tabled_in_batch,
};
pub use copy::{COPY_ENTRY, CopyTarget, GENERIC_COPY, GENERIC_COPY_ENTRY, copy};
pub use interpreted_tabled::{GENERIC_TABLED, GenericTabled, TabledParameter, TabledProgram, TabledReport};
pub use interpreter::{GENERIC_KERNELS, GenericKernel, generic_batch, generic_source};
pub use program::{Interpreted, InterpreterProgram, Parameter};

pub use kernel::Program;
pub use tabled::{TABLED_ENTRY, TABLED_MOST_WORDS, TabledEntries, TabledSides, tabled};
pub use template::TemplateError;
pub use whole::{WholeEntry, WholeProgram, whole};

use crate::plan::Direction;
use crate::plan::gpu::{Family, GpuPlan, Variant};
use kernel::{Kernels, header};

/// The name of a variant's kernel in a program.
///
/// ```
/// use dtc_compiler::codegen::cuda::entry;
/// use dtc_compiler::plan::{Direction, gpu::{GatherKernel, Variant}};
/// let family = GatherKernel.into();
/// let variant = Variant { direction: Direction::Pack, family, wide: false, capped: false };
/// assert_eq!(entry(&variant), "dtc_pack");
/// ```
pub fn entry(variant: &Variant) -> &'static str {
    match (variant.family, variant.direction) {
        (Family::Accumulate(_), _) => "dtc_accumulate",
        (_, Direction::Pack) => "dtc_pack",
        (_, Direction::Unpack) => "dtc_unpack",
    }
}

/// Writes kernels for a layout, at most one of each name.
///
/// # Errors
///
/// Only by a defect of dtc.
///
/// # Example
///
/// ```
/// use dtc_compiler::codegen::cuda;
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::{Direction, gpu::GpuPlan};
/// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
/// let plan = GpuPlan::new(&Layout::parse(text)?);
/// let program = cuda::program(&plan, &[plan.usual(Direction::Pack)])?;
/// assert!(program.source.contains("dtc_pack(u8 *memory"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn program(plan: &GpuPlan, variants: &[Variant]) -> Result<Program, TemplateError> {
    let mut kernels = Kernels::default();
    for variant in variants {
        kernels.add(plan, variant, entry(variant))?;
    }
    let source = header("Kernels", &[plan]) + &kernels.library() + &kernels.text;
    Ok(Program { source, tables: kernels.tables.into_bytes() })
}
