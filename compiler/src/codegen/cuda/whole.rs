//! Programs for whole elements, for callers that have no plan when they launch.

use super::kernel::{Kernels, header};
use super::template::TemplateError;
use crate::plan::Direction;
use crate::plan::gpu::{GpuPlan, WholeKernel};

/// The kernels of a type for whole elements.
#[derive(Clone, Debug)]
pub struct WholeProgram {
    /// CUDA C++, for NVRTC.
    pub source: String,
    /// What the parameter `tables` of the kernels points at, on a boundary of 16 bytes; empty when they read none.
    pub tables: Vec<u8>,
    /// Packs, then unpacks, each in the order in which they are to be tried.
    pub kernels: Vec<WholeEntry>,
}

/// A kernel of a program. It has the parameters of all kernels, as `dtc-templates` lists them.
#[derive(Clone, Debug)]
pub struct WholeEntry {
    /// Its name.
    pub name: String,
    /// When it serves, and its grid.
    pub kernel: WholeKernel,
}

/// Writes the kernels of a layout that serve whole elements, wherever they are. Nothing for layouts that have none: contiguous
/// and too large ones.
///
/// `alignment`: what addresses are multiples of where they are not those of allocations, a power of two: that of the basic elements.
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
/// use dtc_compiler::plan::gpu::GpuPlan;
/// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
/// let program = cuda::whole(&GpuPlan::new(&Layout::parse(text)?), 8)?.expect("kernels");
/// assert_eq!(program.kernels[0].name, "dtc_pack_128");
/// assert!(program.source.contains("dtc_unpack_1("));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn whole(plan: &GpuPlan, alignment: u64) -> Result<Option<WholeProgram>, TemplateError> {
    let named = |direction: Direction| {
        let verb = if direction == Direction::Pack { "pack" } else { "unpack" };
        plan.whole(direction, alignment)
            .into_iter()
            .map(move |kernel| WholeEntry { name: format!("dtc_{verb}_{}", kernel.alignment), kernel })
    };
    let kernels: Vec<WholeEntry> = named(Direction::Pack).chain(named(Direction::Unpack)).collect();
    if kernels.is_empty() {
        return Ok(None);
    }
    let mut texts = Kernels::default();
    for WholeEntry { name, kernel } in &kernels {
        texts.add(plan, &kernel.variant, name)?;
    }
    let source = header("Kernels for whole elements", &[plan]) + &texts.library() + &texts.text;
    Ok(Some(WholeProgram { source, tables: texts.tables.into_bytes(), kernels }))
}
