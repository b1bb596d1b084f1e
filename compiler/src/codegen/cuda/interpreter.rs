//! The generic kernels.
//!
//! They serve every layout, direction and alignment, from the same templates as the compiled kernels; where a packed byte
//! is, is interpreted from a table of nodes. A program without lists and with few nodes travels in the parameters of the
//! launch, so that a type can be used on a device before anything was allocated for it.

use super::accumulate;
use super::batch::{self, BATCH_THREADS, BatchCase, GENERIC_BATCH_ENTRY};
use super::copy;
use super::program::{INLINE_NODES, LENGTH};
use super::template::{TemplateError, render};
use super::{interpreted_columns, interpreted_fields, interpreted_groups, interpreted_tabled, interpreted_tiles};
use crate::plan::Direction;
use crate::plan::gpu::{Call, Family, Generic, GpuPlan, SM_90, Variant, WordsKernel, word_type};
use minijinja::context;
use std::fmt::Write;

/// One of the generic kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GenericKernel {
    /// The name in the module.
    pub entry: &'static str,
    /// What it does.
    pub variant: Variant,
}

/// What a generic kernel does.
const fn variant(direction: Direction, kernel: Generic, capped: bool) -> Variant {
    Variant { direction, family: kernel.family(direction), wide: true, capped }
}

const fn generic(entry: &'static str, direction: Direction, kernel: Generic) -> GenericKernel {
    GenericKernel { entry, variant: variant(direction, kernel, false) }
}

const fn capped(entry: &'static str, direction: Direction) -> GenericKernel {
    GenericKernel { entry, variant: variant(direction, Generic::Bytes, true) }
}

/// Every generic kernel.
pub const GENERIC_KERNELS: &[GenericKernel] = &[
    generic("dtc_generic_pack_4", Direction::Pack, Generic::Words(4)),
    generic("dtc_generic_pack_8", Direction::Pack, Generic::Words(8)),
    generic("dtc_generic_pack_16", Direction::Pack, Generic::Words(16)),
    generic("dtc_generic_pack_shifted_4", Direction::Pack, Generic::Shifted(4)),
    generic("dtc_generic_pack_shifted_8", Direction::Pack, Generic::Shifted(8)),
    generic("dtc_generic_pack_bytes", Direction::Pack, Generic::Bytes),
    generic("dtc_generic_pack_columns", Direction::Pack, Generic::Columns),
    generic("dtc_generic_pack_fields", Direction::Pack, Generic::Fields),
    generic("dtc_generic_pack_groups", Direction::Pack, Generic::Groups),
    generic("dtc_generic_pack_tiles", Direction::Pack, Generic::Tiles),
    generic("dtc_generic_unpack_4", Direction::Unpack, Generic::Words(4)),
    generic("dtc_generic_unpack_8", Direction::Unpack, Generic::Words(8)),
    generic("dtc_generic_unpack_16", Direction::Unpack, Generic::Words(16)),
    generic("dtc_generic_unpack_shifted_4", Direction::Unpack, Generic::Shifted(4)),
    generic("dtc_generic_unpack_shifted_8", Direction::Unpack, Generic::Shifted(8)),
    generic("dtc_generic_unpack_shifted_16", Direction::Unpack, Generic::Shifted(16)),
    generic("dtc_generic_unpack_bytes", Direction::Unpack, Generic::Bytes),
    generic("dtc_generic_unpack_lines", Direction::Unpack, Generic::Lines),
    generic("dtc_generic_unpack_columns", Direction::Unpack, Generic::Columns),
    generic("dtc_generic_unpack_fields", Direction::Unpack, Generic::Fields),
    generic("dtc_generic_unpack_groups", Direction::Unpack, Generic::Groups),
    generic("dtc_generic_unpack_tiles", Direction::Unpack, Generic::Tiles),
    capped("dtc_generic_pack_capped", Direction::Pack),
    capped("dtc_generic_unpack_capped", Direction::Unpack),
];

/// What the generic kernel for batches does for items of its kinds.
const GENERIC_BATCH: [Variant; 2] =
    [variant(Direction::Pack, Generic::Bytes, false), variant(Direction::Unpack, Generic::Bytes, false)];

/// What the generic kernel for batches does in a direction, and the kind of such items.
///
/// ```
/// use dtc_compiler::codegen::cuda::generic_batch;
/// assert_eq!(generic_batch(dtc_compiler::plan::Direction::Unpack).1, 1);
/// ```
pub fn generic_batch(direction: Direction) -> (&'static Variant, u32) {
    match direction {
        Direction::Pack => (&GENERIC_BATCH[0], 0),
        Direction::Unpack => (&GENERIC_BATCH[1], 1),
    }
}

impl GenericKernel {
    /// The one that serves a call.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::GenericKernel;
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::{Direction, gpu::{Call, GpuPlan}};
    /// let text = "layout lb 0 extent 65536 {\n  %0 = dense 8 x byte\n  %1 = stream 4096 x 16 of %0\n  root %1\n}";
    /// let plan = GpuPlan::new(&Layout::parse(text)?);
    /// let kernel = GenericKernel::serving(&plan, Direction::Pack, &Call::whole(32768));
    /// assert_eq!(kernel.entry, "dtc_generic_pack_8");
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn serving(plan: &GpuPlan, direction: Direction, call: &Call) -> &'static GenericKernel {
        let of = |family: Family| {
            let serves = |kernel: &&GenericKernel| kernel.variant.family == family && !kernel.variant.capped;
            GENERIC_KERNELS.iter().find(|kernel| kernel.variant.direction == direction && serves(kernel))
        };
        let bytes = || of(Generic::Bytes.family(direction));
        of(plan.generic(direction, call)).or_else(bytes).unwrap_or(&GENERIC_KERNELS[0])
    }

    /// The one that serves any call with a grid of fewer blocks than the work has.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::GenericKernel;
    /// use dtc_compiler::plan::Direction;
    /// assert_eq!(GenericKernel::capped(Direction::Pack).entry, "dtc_generic_pack_capped");
    /// ```
    pub fn capped(direction: Direction) -> &'static GenericKernel {
        let is = |kernel: &&GenericKernel| kernel.variant.capped && kernel.variant.direction == direction;
        GENERIC_KERNELS.iter().find(is).unwrap_or(&GENERIC_KERNELS[0])
    }
}

/// The text of the generic kernels.
///
/// # Errors
///
/// Only by a defect of dtc.
///
/// ```
/// let source = dtc_compiler::codegen::cuda::generic_source()?;
/// assert!(source.contains("dtc_generic_pack_bytes"));
/// # Ok::<(), dtc_compiler::codegen::cuda::TemplateError>(())
/// ```
pub fn generic_source() -> Result<String, TemplateError> {
    let mut source = String::from("// Generic kernels by dtc, for every layout.\n\n");
    let parts = [
        dtc_templates::PRELUDE,
        dtc_templates::LOAD_BYTES,
        dtc_templates::STORE_BYTES,
        dtc_templates::PREFETCH,
        dtc_templates::STAGED,
    ];
    for part in parts {
        source.push_str(part);
    }
    let _ = write!(source, "\nenum {{ INLINE_NODES = {INLINE_NODES} }};\n\ntypedef u64 index;\n\n");
    source.push_str(dtc_templates::INTERPRETER);
    for GenericKernel { entry, variant } in GENERIC_KERNELS {
        let threads = variant.threads();
        let name = entry.trim_start_matches("dtc_");
        let own = match variant.family {
            Family::Columns(_) => Some(interpreted_columns::kernel(name, entry, variant, LENGTH)?),
            Family::Fields(_) => Some(interpreted_fields::kernel(name, entry, variant)?),
            Family::Groups(_) => Some(interpreted_groups::kernel(name, entry, variant)?),
            Family::Tiles(_) => Some(interpreted_tiles::kernel(name, entry, variant)?),
            _ => None,
        };
        if let Some(text) = own {
            source.push_str(&text);
            continue;
        }
        let shared = matches!(variant.family, Family::Lines(_));
        let kernel = render(
            "entry",
            &context! { entry, threads, resident => 1, shared, capped => variant.capped, call => "Program" },
        )?;
        source.push_str(&interpreting(name, variant, threads, "Program", "call", &format!("{kernel}\n"))?);
    }
    source.push_str(&batch::items()?);
    let kinds = GENERIC_BATCH.map(|variant| format!("batch_{}", variant.direction));
    for (name, variant) in kinds.iter().zip(&GENERIC_BATCH) {
        let program = "*(const Program *)call.program";
        source.push_str(&interpreting(name, variant, BATCH_THREADS, "Item", program, "")?);
    }
    source.push_str(&batch::entry(GENERIC_BATCH_ENTRY, &kinds.map(BatchCase::of))?);
    source.push_str(&accumulate::library());
    source.push_str(dtc_templates::LOAD_VALUE);
    source.push_str(&accumulate::generic()?);
    source.push_str(&copy::generic()?);
    source.push_str(&interpreted_tabled::generic()?);
    Ok(source)
}

/// A namespace with what a block does that interprets a program, and the kernel behind it.
fn interpreting(
    namespace: &str,
    variant: &Variant,
    threads: u32,
    call: &str,
    program: &str,
    kernel: &str,
) -> Result<String, TemplateError> {
    let (name, word, unroll) = match variant.family {
        Family::Words(WordsKernel { word, shape, .. }) => ("words", word, shape.unroll),
        Family::Shifted(shifted) if variant.direction == Direction::Pack => {
            ("shifted_pack", shifted.word, shifted.unroll(&SM_90))
        }
        Family::Shifted(shifted) => ("shifted_unpack", shifted.word, shifted.unroll(&SM_90)),
        Family::Gather(_) => ("gather", 1, 1),
        Family::Lines(_) => ("lines", 1, 1),
        _ => ("scatter", 1, 1),
    };
    let bytes = "const u8 *tables, index at, index &left, bool &start";
    let (context, parameters, body) = match variant.family {
        // Threads go from run to run. Those that scatter are no faster for it.
        Family::Gather(_) | Family::Lines(_) => {
            let body = format!("    return proceed({program}, tables, at, left, start, cursor);\n");
            ("call, cursor, ", format!("Cursor &cursor, {bytes}"), body)
        }
        Family::Scatter(_) => {
            ("call, ", bytes.to_owned(), format!("    return interpret({program}, tables, at, left, start);\n"))
        }
        _ => {
            let body = format!("    return interpret({program}, tables, at * {word}, left, start);\n");
            ("call, ", "const u8 *tables, index at".to_owned(), format!("    u64 left;\n    bool start;\n{body}"))
        }
    };
    let place =
        format!("static __device__ __forceinline__ i64 place(const {call} &call, {parameters})\n{{\n{body}}}\n\n");
    let values = context! {
        word, threads, unroll, call, context,
        word_type => word_type(word),
        pack => variant.direction == Direction::Pack,
        cut => true,
        span => SM_90.lines.span,
        pool => "",
        streamed => false,
        prefetched => false,
        crosses_once => false,
    };
    let body = render(name, &values)?;
    Ok(format!("\nnamespace {namespace} {{\n\n{place}{body}\n{kernel}}}\n"))
}
