//! Kernels that pack and unpack many types in one launch.
//!
//! A batch is a list of items, and every block of the grid belongs to one of them. The compiled kernel holds a function for
//! every kind of item, which is a layout wherever it begins, and a variant; the generic one interprets programs that are in
//! the memory of the device.

use super::kernel::{Kernels, POOL, Program, header};
use super::template::{TemplateError, render};
use crate::plan::gpu::{Call, GpuPlan, Variant};
use minijinja::context;
use std::fmt::Write;

/// Threads of a block of a batch.
pub const BATCH_THREADS: u32 = 256;

/// Items that the parameters of a launch hold.
pub const BATCH_INLINE: usize = 48;

/// Different kinds of items that a kernel is compiled for. A batch of more is served by the generic kernel.
pub const BATCH_KINDS: usize = 64;

/// The name of the compiled kernel.
pub const BATCH_ENTRY: &str = "dtc_batch";

/// The name of the generic kernel. Its kinds are packs, then unpacks.
pub const GENERIC_BATCH_ENTRY: &str = "dtc_generic_batch";

/// One item of a batch, as the kernels read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Item {
    /// The lowest displacement of a byte of the elements, counted from `memory`.
    pub low: i64,
    /// One past the highest.
    pub high: i64,
    /// The address of element 0; for a compiled kernel, of where its root is.
    pub memory: u64,
    /// The address of packed byte `first`.
    pub packed: u64,
    /// The address of the lists of the type.
    pub tables: u64,
    /// The first packed byte to move.
    pub first: u64,
    /// How many bytes to move, at least 1.
    pub bytes: u64,
    /// The address of the program of the type, which the generic kernel interprets.
    pub program: u64,
    /// What the kernel does for the item.
    pub kind: u32,
    /// The first block of the item.
    pub begin: u32,
}

impl Item {
    /// The item as it is in the memory of a device.
    ///
    /// ```
    /// use dtc_compiler::codegen::cuda::Item;
    /// assert_eq!(Item { low: 1, ..Item::default() }.to_bytes()[..8], 1i64.to_ne_bytes());
    /// ```
    pub fn to_bytes(&self) -> [u8; size_of::<Item>()] {
        let Item { low, high, memory, packed, tables, first, bytes, program, kind, begin } = *self;
        let mut all = [0; size_of::<Item>()];
        let words = [low as u64, high as u64, memory, packed, tables, first, bytes, program];
        for (place, word) in all.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        all[64..68].copy_from_slice(&kind.to_ne_bytes());
        all[68..].copy_from_slice(&begin.to_ne_bytes());
        all
    }
}

/// The parameter of the kernels.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Batch {
    /// How many items there are.
    pub count: u32,
    /// How many blocks they have together.
    pub blocks: u32,
    /// Where the items are if there are more than [`BATCH_INLINE`], and behind them the item of every block, as 32-bit
    /// numbers.
    pub items: u64,
    /// The items, if there are no more.
    pub own: [Item; BATCH_INLINE],
}

/// The text of a batch kernel.
#[derive(Clone, Debug)]
pub struct BatchProgram {
    /// CUDA C++, for NVRTC, and the lists of all types.
    pub program: Program,
    /// The kind of each of the types and variants that were asked for.
    pub kinds: Vec<u32>,
}

/// Writes the kernel for items of these types and variants.
///
/// Types that differ only in where they begin are one kind.
///
/// # Errors
///
/// Only by a defect of dtc.
///
/// ```
/// use dtc_compiler::codegen::cuda::batch;
/// use dtc_compiler::layout::Layout;
/// use dtc_compiler::plan::{Direction, gpu::GpuPlan};
/// let plan = |offset| {
///     let text = format!("layout lb 0 extent 99 {{\n  %0 = dense 8 x byte\n  %1 = stream 4 x 16 of %0\n  root {offset}: %1\n}}");
///     Layout::parse(&text).map(|layout| GpuPlan::new(&layout))
/// };
/// let (low, high) = (plan(16)?, plan(32)?);
/// let variant = low.usual(Direction::Pack);
/// let program = batch(&[(&low, variant), (&high, variant)])?;
/// assert_eq!(program.kinds, [0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn batch(requested: &[(&GpuPlan, Variant)]) -> Result<BatchProgram, TemplateError> {
    let mut known: Vec<(&GpuPlan, Variant)> = Vec::new();
    let mut kinds = Vec::with_capacity(requested.len());
    for &(plan, variant) in requested {
        let equals =
            |&(other, its): &(&GpuPlan, Variant)| its == variant && other.layout().equals_without_origin(plan.layout());
        // Few kinds, most of which differ in the variant or in the first nodes.
        let kind = known.iter().position(equals).unwrap_or(known.len());
        if kind == known.len() {
            known.push((plan, variant));
        }
        kinds.push(kind as u32);
    }
    let chosen: Vec<(GpuPlan, Variant)> =
        known.iter().map(|(plan, variant)| (plan.without_origin(), *variant)).collect();
    let mut kernels = Kernels::default();
    let mut names = Vec::with_capacity(chosen.len());
    for (number, (plan, variant)) in chosen.iter().enumerate() {
        let name = format!("{}_{number}", variant.direction);
        kernels.add_item(plan, variant, (&name, BATCH_THREADS))?;
        names.push(name);
    }
    let plans: Vec<&GpuPlan> = chosen.iter().map(|(plan, _)| plan).collect();
    let mut source = header("A batch", &plans) + &kernels.library() + &items()?;
    if kernels.shared_bytes > 0 {
        let words = kernels.shared_bytes.div_ceil(size_of::<u128>() as u32);
        let _ =
            write!(source, "\n// For the tiles of whichever kind a block has.\n__shared__ uint4 {POOL}[{words}];\n");
    }
    source.push_str(&kernels.text);
    source.push_str(&entry(BATCH_ENTRY, &names)?);
    Ok(BatchProgram { program: Program { source, tables: kernels.tables.into_bytes() }, kinds })
}

/// The types of a batch's parameters.
pub(super) fn items() -> Result<String, TemplateError> {
    render("batch", &context! { inline_items => BATCH_INLINE }).map(|text| format!("\n{text}\n"))
}

/// The kernel whose kinds are the namespaces of these names.
pub(super) fn entry(name: &str, kinds: &[String]) -> Result<String, TemplateError> {
    let text = render("batch_entry", &context! { entry => name, kinds, threads => BATCH_THREADS })?;
    Ok(format!("\n{text}\n"))
}

impl GpuPlan {
    /// The plan of the same bytes, counted from where the root is.
    fn without_origin(&self) -> GpuPlan {
        GpuPlan::regular(self.layout().without_origin())
    }

    /// How many blocks of a batch a call has, or `None` when no grid is that large.
    pub fn batch_blocks(&self, variant: &Variant, call: &Call) -> Option<u32> {
        self.blocks_with(variant, call, BATCH_THREADS)
    }
}
