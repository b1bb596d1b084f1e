//! Kernels that copy from the memory of one type to that of another.

use super::kernel::{Program, header};
use super::place::Places;
use super::tables::Tables;
use super::template::{TemplateError, render};
use crate::plan::gpu::{CopyFamily, CopyVariant, GpuPlan, word_type};
use minijinja::context;
use std::fmt::Write;

/// The name of the compiled kernel.
pub const COPY_ENTRY: &str = "dtc_copy";

/// The name of the generic kernel.
pub const GENERIC_COPY_ENTRY: &str = "dtc_generic_copy";

/// The namespaces of the address functions of both sides.
const SOURCE: &str = "source";
const TARGET: &str = "target";

/// What the generic kernel does.
pub const GENERIC_COPY: CopyVariant = CopyVariant { family: CopyFamily::Bytes, wide: true };

/// The last parameter of the kernels. Element 0 of the target takes the place of the packed bytes among those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CopyTarget {
    /// The lowest displacement of a byte of the elements of the source.
    pub low: i64,
    /// One past the highest.
    pub high: i64,
    /// The first packed byte of the target.
    pub first: u64,
    /// Where the lists of its type are. Only read by the generic kernel: compiled ones have all lists in one place.
    pub tables: u64,
    /// Where the programs of the types of source and target are, for the generic kernel.
    pub programs: [u64; 2],
}

/// Writes the kernel that copies from one layout to another.
///
/// # Errors
///
/// Only by a defect of dtc.
///
/// ```
/// use dtc_compiler::codegen::cuda;
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::gpu::{CopyCall, CopyVariant, GpuPlan};
/// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
/// let plan = GpuPlan::new(&Layout::parse(text)?);
/// let call = CopyCall { source: 0, source_first: 0, target: 0, target_first: 0, bytes: 32768 };
/// let variant = CopyVariant::serving(&plan, &plan, &call).unwrap();
/// assert!(cuda::copy(&plan, &plan, &variant)?.source.contains("dtc_copy(u8 *memory"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn copy(source: &GpuPlan, target: &GpuPlan, variant: &CopyVariant) -> Result<Program, TemplateError> {
    let mut tables = Tables::default();
    let mut text = header("A copy", &[source, target]);
    text.push_str(dtc_templates::PRELUDE);
    text.push_str(match variant.family {
        CopyFamily::Words { .. } => "",
        CopyFamily::Rows { .. } | CopyFamily::Bytes => dtc_templates::LOAD_BYTES,
    });
    text.push_str(match variant.family {
        CopyFamily::Words { .. } => "",
        CopyFamily::Rows { .. } => dtc_templates::STORE_PART,
        CopyFamily::Bytes => dtc_templates::STORE_BYTES,
    });
    text.push_str(dtc_templates::COPY_TARGET);
    let index = if variant.wide { "u64" } else { "u32" };
    let _ = write!(text, "\ntypedef {index} index;\n\n");
    for (name, plan) in [(SOURCE, source), (TARGET, target)] {
        tables.next_type();
        let mut places = Places::new(plan, &mut tables);
        match variant.family {
            CopyFamily::Words { word, .. } => places.elements(word.into(), false),
            CopyFamily::Rows { row, .. } if name == TARGET => places.elements(row, false),
            CopyFamily::Rows { .. } | CopyFamily::Bytes => places.elements(1, true),
        }
        let _ = write!(text, "namespace {name} {{\n\n{}}}\n\n", places.into_text());
    }
    text.push_str(&kernel("copy", COPY_ENTRY, variant, "")?);
    Ok(Program { source: text, tables: tables.into_bytes() })
}

/// The generic kernel, behind the interpreter.
pub(super) fn generic() -> Result<String, TemplateError> {
    let mut text = format!("{}\n", dtc_templates::COPY_TARGET);
    for (name, program, tables) in [(SOURCE, "source_program", "tables"), (TARGET, "program", "call.tables")] {
        let _ = write!(
            text,
            "namespace {name} {{\n\nstatic __device__ __forceinline__ i64 place(const Target &call, const u8 *tables, \
             index at, index &left, bool &start)\n{{\n    \
             return interpret(*(const Program *)call.{program}, {tables}, at, left, start);\n}}\n\n}}\n\n"
        );
    }
    text.push_str(&kernel("generic_copy", GENERIC_COPY_ENTRY, &GENERIC_COPY, "call, ")?);
    Ok(text)
}

/// A namespace with what a block does, and the kernel.
fn kernel(namespace: &str, entry: &str, variant: &CopyVariant, context: &str) -> Result<String, TemplateError> {
    let threads = variant.threads();
    let body = match variant.family {
        CopyFamily::Words { word, shape, cut } => {
            let unroll = shape.unroll;
            render("copy_words", &context! { word, word_type => word_type(word), threads, unroll, cut })?
        }
        CopyFamily::Rows { row, slots } => render("copy_rows", &context! { threads, row, slots })?,
        CopyFamily::Bytes => render("copy_bytes", &context! { threads, context })?,
    };
    let kernel = render(
        "entry",
        &context! { entry, threads, resident => 1, shared => false, capped => false, call => "Target" },
    )?;
    Ok(format!("namespace {namespace} {{\n\n{body}\n{kernel}\n}}\n"))
}
