//! The generic kernels, and layouts as programs for them.
//!
//! They serve every layout, direction and alignment, from the same templates as the compiled kernels; where a packed byte
//! lies is interpreted from a table of nodes. A program without lists and with few nodes travels in the parameters of the
//! launch, so that a type can be used on a device before anything was allocated for it.

use super::accumulate::{self, generic_reduction};
use super::batch::{self, BATCH_THREADS, GENERIC_BATCH_ENTRY};
use super::copy;
use super::tables::{append, chunks, starts};
use super::template::{CodegenError, render, word_type};
use crate::layout::{Layout, Node};
use crate::operation::Reduction;
use crate::plan::Direction;
use crate::plan::gpu::{Call, Family, GpuPlan, Shape, Variant};
use minijinja::context;
use std::fmt::Write;

/// Nodes that the parameters of a launch hold.
const INLINE_NODES: usize = 24;

/// Bytes of a node.
const NODE: usize = 48;

/// Bytes before the nodes of a program.
const HEAD: usize = 64;

/// The last parameter of a generic kernel, as 64-bit numbers.
pub type Parameter = [u64; (HEAD + INLINE_NODES * NODE) / 8];

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
    generic("dtc_generic_unpack_4", Direction::Unpack, words(4)),
    generic("dtc_generic_unpack_8", Direction::Unpack, words(8)),
    generic("dtc_generic_unpack_16", Direction::Unpack, words(16)),
    generic("dtc_generic_unpack_shifted_4", Direction::Unpack, Family::Shifted { word: 4 }),
    generic("dtc_generic_unpack_shifted_8", Direction::Unpack, Family::Shifted { word: 8 }),
    generic("dtc_generic_unpack_shifted_16", Direction::Unpack, Family::Shifted { word: 16 }),
    generic("dtc_generic_unpack_bytes", Direction::Unpack, Family::Scatter),
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
    for part in [dtc_templates::PRELUDE, dtc_templates::LOAD_BYTES, dtc_templates::STORE_BYTES] {
        source.push_str(part);
    }
    let _ = write!(source, "\nenum {{ INLINE_NODES = {INLINE_NODES} }};\n\ntypedef u64 index;\n\n");
    source.push_str(dtc_templates::INTERPRETER);
    for GenericKernel { entry, variant } in GENERIC_KERNELS {
        let threads = variant.threads();
        let kernel = render(
            "entry",
            &context! { entry, threads, resident => 1, shared => false, capped => variant.capped, call => "Program" },
        )?;
        let name = entry.trim_start_matches("dtc_");
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
    let (name, word, parameters, at) = match variant.family {
        Family::Words { word, .. } => ("words", word, "index at", "at * "),
        Family::Shifted { word } if variant.direction == Direction::Pack => ("shifted_pack", word, "index at", "at * "),
        Family::Shifted { word } => ("shifted_unpack", word, "index at", "at * "),
        Family::Gather => ("gather", 1, "index at, index &left, bool &start", "at * "),
        _ => ("scatter", 1, "index at, index &left, bool &start", "at * "),
    };
    let left = if word == 1 { "" } else { "    u64 left;\n    bool start;\n" };
    let place = format!(
        "static __device__ __forceinline__ i64 place(const {call} &call, const u8 *tables, {parameters})\n\
         {{\n{left}    return interpret({program}, tables, {at}{word}, left, start);\n}}\n\n"
    );
    let body = render(
        name,
        &context! {
            word, word_type => word_type(word), pack => variant.direction == Direction::Pack,
            threads, unroll => variant.unroll(), cut => true, streamed => false, prefetched => false, crosses_once => false, call, context => "call, ",
        },
    )?;
    Ok(format!("\nnamespace {namespace} {{\n\n{place}{body}\n{kernel}}}\n"))
}

/// A layout as the generic kernels interpret it.
#[derive(Clone, Debug)]
pub struct Interpreted {
    /// What the last parameter of a generic kernel is made from.
    pub program: InterpreterProgram,
    /// What the parameter `tables` points at, on a boundary of 16 bytes; empty when it is not read.
    pub tables: Vec<u8>,
}

impl Interpreted {
    /// Writes the program of a plan's layout.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::Interpreted;
    /// use dtc_compiler::layout::Layout;
    /// use dtc_compiler::plan::gpu::GpuPlan;
    /// let text = "layout lb 0 extent 64 {\n  %0 = dense 8 x byte\n  %1 = stream 4 x 16 of %0\n  root %1\n}";
    /// let program = Interpreted::new(&GpuPlan::new(&Layout::parse(text)?));
    /// assert!(program.tables.is_empty());
    /// # Ok::<(), dtc_compiler::TextError>(())
    /// ```
    pub fn new(plan: &GpuPlan) -> Interpreted {
        let layout = plan.layout();
        let count = layout.nodes().len();
        let inline = count <= INLINE_NODES;
        let mut tables = vec![0; if inline { 0 } else { count * NODE }];
        let mut nodes = Vec::with_capacity(count * NODE);
        for (_, node) in layout.nodes() {
            let node = encode(layout, node, &mut tables);
            nodes.extend_from_slice(&node);
        }
        // Copies of a stream without a seam never end; a dense element tells what is left of it.
        let size = if plan.continues() && !plan.is_contiguous() { 1 << 62 } else { layout.size().max(1) };
        let (magic, shift) = magic(size);
        let root = layout.root();
        let mut bytes = Vec::with_capacity(HEAD + INLINE_NODES * NODE);
        bytes.extend_from_slice(&[0; 16]);
        for number in [size, magic, layout.extent() as u64, root.offset as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        // The last is the reduction, if there is one.
        for number in [shift, root.node.index() as u32, count as u32, 0] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        if inline {
            bytes.extend_from_slice(&nodes);
        } else {
            tables[..nodes.len()].copy_from_slice(&nodes);
        }
        let mut program: Parameter = [0; (HEAD + INLINE_NODES * NODE) / 8];
        for (word, eight) in program.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*eight);
        }
        Interpreted { program: InterpreterProgram(program), tables }
    }
}

/// The nodes of a layout, or where the tables hold them.
#[derive(Clone, Debug)]
pub struct InterpreterProgram(Parameter);

impl InterpreterProgram {
    /// The last parameter of a generic kernel, for elements that span these displacements in memory.
    pub fn parameter(&self, low: i64, high: i64) -> Parameter {
        let mut program = self.0;
        program[0] = low as u64;
        program[1] = high as u64;
        program
    }

    /// The last parameter of the generic kernel that unpacks with an operation.
    pub fn accumulating(&self, reduction: Reduction) -> Parameter {
        let mut program = self.0;
        let last = &mut program[HEAD / 8 - 1];
        *last = (*last & u64::from(u32::MAX)) | u64::from(generic_reduction(reduction)) << 32;
        program
    }
}

fn encode(layout: &Layout, node: &Node, tables: &mut Vec<u8>) -> Vec<u8> {
    let size_of = |edge: &crate::layout::Edge| layout.measure(edge.node).size;
    let mut begin = || {
        tables.resize(tables.len().next_multiple_of(16), 0);
        tables.len() as u64
    };
    let (kind, entries, child, size, stride, table, shift) = match node {
        Node::Dense { count, kind } => (0, 0, 0, count * kind.size(), 0, 0, None),
        Node::Stream { stride, child, .. } => (1, 0, child.node.index(), size_of(child), *stride, 0, None),
        Node::Indexed { offsets, child } => {
            let table = begin();
            append(tables, offsets.iter().map(|offset| (offset + child.offset).to_le_bytes()));
            (2, offsets.len(), child.node.index(), size_of(child), 0, table, None)
        }
        Node::Runs { runs, kind } => {
            let table = begin();
            let starts = starts(runs, kind.size(), 1);
            let (shift, chunks) = chunks(&starts);
            append(tables, starts.iter().map(|start| start.to_le_bytes()));
            append(tables, runs.iter().map(|run| run.offset.to_le_bytes()));
            append(tables, chunks.iter().map(|&run| (run as u32).to_le_bytes()));
            (3, runs.len(), 0, 1, 0, table, Some(shift))
        }
        Node::Record { parts } => {
            let table = begin();
            let mut at = 0;
            let position = |part| {
                let position = at;
                at += size_of(part);
                position.to_le_bytes()
            };
            append(tables, parts.iter().map(position));
            append(tables, parts.iter().map(|part| part.offset.to_le_bytes()));
            append(tables, parts.iter().map(|part| (part.node.index() as u32).to_le_bytes()));
            (4, parts.len(), 0, 1, 0, table, None)
        }
    };
    let (magic, division) = magic(size);
    let mut bytes = Vec::with_capacity(NODE);
    for number in [kind, entries as u32, child as u32, shift.unwrap_or(division)] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [size, magic, stride as u64, table] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// What divides numbers below 2^63 by `size` as a multiplication: `high(at * magic) >> shift`. A shift of 64 stands for a
/// size of 1. (Granlund and Montgomery 1994, section 4, rounding up.)
fn magic(size: u64) -> (u64, u32) {
    if size <= 1 {
        return (0, 64);
    }
    let bits = 64 - (size - 1).leading_zeros();
    let magic = (1u128 << (63 + bits)) / u128::from(size) + 1;
    (magic as u64, bits - 1)
}

impl GpuPlan {
    /// The family of the generic kernel that serves a call.
    fn generic_family(&self, direction: Direction, call: &Call) -> Family {
        let bytes = if direction == Direction::Pack { Family::Gather } else { Family::Scatter };
        let word = self.aligned_word(call);
        match self.variant(direction, call).family {
            family @ (Family::Shifted { .. } | Family::Gather) => family,
            family @ Family::Words { word: 4.., .. } if !self.interprets_bytes(direction, word) => family,
            Family::Tiles { shifted } if self.tiles().is_some_and(|tiles| tiles.word >= 4) => {
                let word = self.tiles().map_or(4, |tiles| tiles.word);
                if shifted { Family::Shifted { word } } else { words(word) }
            }
            Family::Fields { .. }
            | Family::Columns { .. }
            | Family::Ordered { .. }
            | Family::Pieces
            | Family::Joined
            | Family::Records
                if word >= 4 && !self.interprets_bytes(direction, word) =>
            {
                words(word)
            }
            _ => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::magic;

    #[test]
    fn magic_numbers_divide() {
        let sizes = [1, 2, 3, 5, 7, 8, 17, 1001, 4096, (1 << 31) - 1, 1 << 40, (1 << 62) + 1, 1 << 62];
        for size in sizes {
            let (magic, shift) = magic(size);
            let interesting =
                [0, 1, size - 1, size, size + 1, 3 * (size / 2), (1 << 63) - 1, (1 << 63) / size * size - 1];
            for at in interesting {
                let found = if shift == 64 { at } else { ((u128::from(at) * u128::from(magic)) >> 64) as u64 >> shift };
                assert_eq!(found, at / size, "{at} / {size}");
            }
        }
    }
}
