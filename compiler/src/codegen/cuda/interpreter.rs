//! The generic kernels.
//!
//! They serve every layout, direction and alignment, from the same templates as the compiled kernels; where a packed byte
//! lies is interpreted from a table of nodes. A program without lists and with few nodes travels in the parameters of the
//! launch, so that a type can be used on a device before anything was allocated for it.

use super::accumulate;
use super::batch::{self, BATCH_THREADS, GENERIC_BATCH_ENTRY};
use super::copy;
use super::program::{INLINE_NODES, LENGTH};
use super::template::{CodegenError, render, word_type};
use super::{interpreted_columns, interpreted_fields, interpreted_groups, interpreted_tiles};
use crate::plan::Direction;
use crate::plan::gpu::{Call, Family, GpuPlan, SHORT_RUNS_SPAN, Shape, Variant};
use minijinja::context;
use std::fmt::Write;

const SHAPE: Shape = Shape { threads: 256, unroll: 1 };

/// One of the generic kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GenericKernel {
    /// The name in the module.
    pub entry: &'static str,
    /// What it does.
    pub variant: Variant,
}

const fn generic(entry: &'static str, direction: Direction, family: Family) -> GenericKernel {
    GenericKernel { entry, variant: Variant { direction, family, wide: true, capped: false } }
}

const fn capped(entry: &'static str, direction: Direction, family: Family) -> GenericKernel {
    GenericKernel { entry, variant: Variant { direction, family, wide: true, capped: true } }
}

const fn words(word: u32) -> Family {
    Family::Words { word, shape: SHAPE, cut: true }
}

/// Every generic kernel.
pub const GENERIC_KERNELS: &[GenericKernel] = &[
    generic("dtc_generic_pack_4", Direction::Pack, words(4)),
    generic("dtc_generic_pack_8", Direction::Pack, words(8)),
    generic("dtc_generic_pack_16", Direction::Pack, words(16)),
    generic("dtc_generic_pack_shifted_4", Direction::Pack, Family::Shifted { word: 4 }),
    generic("dtc_generic_pack_shifted_8", Direction::Pack, Family::Shifted { word: 8 }),
    generic("dtc_generic_pack_bytes", Direction::Pack, Family::Gather),
    generic("dtc_generic_pack_columns", Direction::Pack, interpreted_columns::FAMILY),
    generic("dtc_generic_pack_fields", Direction::Pack, interpreted_fields::FAMILY),
    generic("dtc_generic_pack_groups", Direction::Pack, interpreted_groups::FAMILY),
    generic("dtc_generic_pack_tiles", Direction::Pack, interpreted_tiles::FAMILY),
    generic("dtc_generic_unpack_4", Direction::Unpack, words(4)),
    generic("dtc_generic_unpack_8", Direction::Unpack, words(8)),
    generic("dtc_generic_unpack_16", Direction::Unpack, words(16)),
    generic("dtc_generic_unpack_shifted_4", Direction::Unpack, Family::Shifted { word: 4 }),
    generic("dtc_generic_unpack_shifted_8", Direction::Unpack, Family::Shifted { word: 8 }),
    generic("dtc_generic_unpack_shifted_16", Direction::Unpack, Family::Shifted { word: 16 }),
    generic("dtc_generic_unpack_bytes", Direction::Unpack, Family::Scatter),
    generic("dtc_generic_unpack_lines", Direction::Unpack, Family::Lines),
    generic("dtc_generic_unpack_columns", Direction::Unpack, interpreted_columns::FAMILY),
    generic("dtc_generic_unpack_fields", Direction::Unpack, interpreted_fields::FAMILY),
    generic("dtc_generic_unpack_groups", Direction::Unpack, interpreted_groups::FAMILY),
    generic("dtc_generic_unpack_tiles", Direction::Unpack, interpreted_tiles::FAMILY),
    capped("dtc_generic_pack_capped", Direction::Pack, Family::Gather),
    capped("dtc_generic_unpack_capped", Direction::Unpack, Family::Scatter),
];

/// What the generic kernel for batches does for items of its kinds.
const GENERIC_BATCH: [Variant; 2] = [
    Variant { direction: Direction::Pack, family: Family::Gather, wide: true, capped: false },
    Variant { direction: Direction::Unpack, family: Family::Scatter, wide: true, capped: false },
];

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
        let wanted = plan.generic_family(direction, call);
        let bytes = if direction == Direction::Pack { Family::Gather } else { Family::Scatter };
        let of = |family: Family| {
            GENERIC_KERNELS.iter().find(|kernel| {
                kernel.variant.direction == direction
                    && !kernel.variant.capped
                    && match (kernel.variant.family, family) {
                        (Family::Words { word, .. }, Family::Words { word: wanted, .. }) => word == wanted,
                        (kernel, wanted) => kernel == wanted,
                    }
            })
        };
        of(wanted).or_else(|| of(bytes)).unwrap_or(&GENERIC_KERNELS[0])
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
/// # Ok::<(), dtc_compiler::codegen::cuda::CodegenError>(())
/// ```
pub fn generic_source() -> Result<String, CodegenError> {
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
        match variant.family {
            interpreted_columns::FAMILY => {
                source.push_str(&interpreted_columns::kernel(name, entry, variant, LENGTH)?);
                continue;
            }
            interpreted_fields::FAMILY => {
                source.push_str(&interpreted_fields::kernel(name, entry, variant)?);
                continue;
            }
            interpreted_groups::FAMILY => {
                source.push_str(&interpreted_groups::kernel(name, entry, variant)?);
                continue;
            }
            interpreted_tiles::FAMILY => {
                source.push_str(&interpreted_tiles::kernel(name, entry, variant)?);
                continue;
            }
            _ => {}
        }
        let shared = variant.family == Family::Lines;
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
    source.push_str(&batch::entry(GENERIC_BATCH_ENTRY, &kinds)?);
    source.push_str(&accumulate::library(true));
    source.push_str(&accumulate::generic()?);
    source.push_str(&copy::generic()?);
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
) -> Result<String, CodegenError> {
    let (name, word) = match variant.family {
        Family::Words { word, .. } => ("words", word),
        Family::Shifted { word } if variant.direction == Direction::Pack => ("shifted_pack", word),
        Family::Shifted { word } => ("shifted_unpack", word),
        Family::Gather => ("gather", 1),
        Family::Lines => ("lines", 1),
        _ => ("scatter", 1),
    };
    let bytes = "const u8 *tables, index at, index &left, bool &start";
    let (context, parameters, body) = match variant.family {
        // Threads go from run to run. Those that scatter are no faster for it.
        Family::Gather | Family::Lines => {
            let body = format!("    return proceed({program}, tables, at, left, start, cursor);\n");
            ("call, cursor, ", format!("Cursor &cursor, {bytes}"), body)
        }
        Family::Scatter => {
            ("call, ", bytes.to_owned(), format!("    return interpret({program}, tables, at, left, start);\n"))
        }
        _ => {
            let body = format!("    return interpret({program}, tables, at * {word}, left, start);\n");
            ("call, ", "const u8 *tables, index at".to_owned(), format!("    u64 left;\n    bool start;\n{body}"))
        }
    };
    let place =
        format!("static __device__ __forceinline__ i64 place(const {call} &call, {parameters})\n{{\n{body}}}\n\n");
    let body = render(
        name,
        &context! {
            word, word_type => word_type(word), pack => variant.direction == Direction::Pack,
            threads, unroll => variant.unroll(), cut => true, span => SHORT_RUNS_SPAN, pool => "", streamed => false, prefetched => false, crosses_once => false, call, context,
        },
    )?;
    Ok(format!("\nnamespace {namespace} {{\n\n{place}{body}\n{kernel}}}\n"))
}

impl GpuPlan {
    /// The family of the generic kernel that serves a call.
    fn generic_family(&self, direction: Direction, call: &Call) -> Family {
        let bytes = if direction == Direction::Pack { Family::Gather } else { Family::Scatter };
        let word = self.aligned_word(call);
        match self.variant(direction, call).family {
            family @ (Family::Shifted { .. } | Family::Gather) => family,
            family @ Family::Words { word: 4.., .. } if !self.interprets_bytes(direction, word) => family,
            interpreted_tiles::FAMILY if self.tiles().is_some_and(interpreted_tiles::fit) => interpreted_tiles::FAMILY,
            Family::Tiles { shifted } if self.tiles().is_some_and(|tiles| tiles.word >= 4) => {
                let word = self.tiles().map_or(4, |tiles| tiles.word);
                if shifted { Family::Shifted { word } } else { words(word) }
            }
            Family::Fields { .. }
                if self.tiles().is_some_and(|its| its.word <= word && interpreted_tiles::fit(its)) =>
            {
                interpreted_tiles::FAMILY
            }
            Family::Fields { .. } if interpreted_fields::fit(self.layout()) => interpreted_fields::FAMILY,
            Family::Columns { .. } => interpreted_columns::FAMILY,
            Family::Groups { memory, .. }
                if self.groups().is_some_and(|groups| interpreted_groups::fit(self.layout(), groups, memory)) =>
            {
                interpreted_groups::FAMILY
            }
            Family::Fields { .. }
            | Family::Groups { .. }
            | Family::Ordered { .. }
            | Family::Pieces
            | Family::Joined
            | Family::Records
                if word >= 4 && !self.interprets_bytes(direction, word) =>
            {
                words(word)
            }
            Family::Masks => Family::Lines,
            _ => bytes,
        }
    }
}
