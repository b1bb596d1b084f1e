//! Kernels that pack and unpack many types in one launch.
//!
//! A batch is a list of items, and every block of the grid belongs to one of them. The compiled kernel holds a function for
//! every kind of item, which is a layout wherever it begins, and a variant; the generic one interprets programs that are in
//! the memory of the device.

use super::kernel::{Kernels, POOL, Program, header};
use super::tabled::{self, TabledSides};
use super::template::{TemplateError, render};
use crate::plan::gpu::{Call, GpuPlan, LaunchShape, LibraryPart, TabledVariant, Variant};
use minijinja::context;
use serde::Serialize;
use std::fmt::Write;

/// Threads of a block of a batch.
pub const BATCH_THREADS: u32 = 256;

// A step of a box has room for the rows that its plan made for as many threads.
const _: () = assert!(crate::plan::gpu::SM_90.boxes.threads <= BATCH_THREADS);

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
    /// The address of the program of the type, which the generic kernel interprets; for a type with index tables, of what the call says of them.
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
    let parts: Vec<BatchPart<'_>> = requested.iter().map(|&(plan, variant)| BatchPart::Fixed(plan, variant)).collect();
    batch_of(&parts)
}

/// What a batch does for some of its items.
#[derive(Clone, Copy, Debug)]
pub enum BatchPart<'a> {
    /// Moves a type as its plan says.
    Fixed(&'a GpuPlan, Variant),
    /// Moves a type with index tables. An item's `program` is the address of [`TabledSides::parameter`].
    Tabled(TabledSides<'a>, TabledVariant),
}

/// The kernel of a batch that moves what another one moves alone.
pub fn tabled_in_batch(variant: TabledVariant) -> TabledVariant {
    TabledVariant { capped: false, shape: LaunchShape { threads: BATCH_THREADS, ..variant.shape }, ..variant }
}

/// Writes the kernel for items of types with index tables and of others.
///
/// # Errors
///
/// A type with index tables has too many parts whose sizes depend on them.
///
/// ```
/// use dtc_compiler::codegen::cuda::{BatchPart, TabledSides, batch_of, tabled_in_batch};
/// use dtc_compiler::plan::gpu::TabledVariant;
/// use dtc_compiler::tabled::TabledLayout;
/// let pages = TabledLayout::new(&"table 0 1024 64 65536 (contiguous 8192 double)".parse()?);
/// let variant = tabled_in_batch(TabledVariant::new(16, pages.most_bytes(), false));
/// let parts = [TabledSides::Pack(&pages), TabledSides::Unpack(&pages)].map(|sides| BatchPart::Tabled(sides, variant));
/// assert_eq!(batch_of(&parts)?.kinds, [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn batch_of(requested: &[BatchPart<'_>]) -> Result<BatchProgram, TemplateError> {
    let mut known: Vec<BatchPart<'_>> = Vec::new();
    let mut kinds = Vec::with_capacity(requested.len());
    for part in requested {
        // Few kinds, most of which differ in the variant or in the first nodes.
        let kind = known.iter().position(|known| known.serves(part)).unwrap_or(known.len());
        if kind == known.len() {
            known.push(*part);
        }
        kinds.push(kind as u32);
    }
    let mut kernels = Kernels::default();
    let (mut cases, mut plans, mut checked) = (Vec::with_capacity(known.len()), Vec::new(), false);
    for (number, part) in known.iter().enumerate() {
        cases.push(match part {
            BatchPart::Fixed(plan, variant) => {
                let (plan, name) = (plan.without_origin(), format!("{}_{number}", variant.direction));
                kernels.add_item(&plan, variant, (&name, BATCH_THREADS))?;
                plans.push(plan);
                BatchCase::of(name)
            }
            BatchPart::Tabled(sides, variant) => {
                let name = format!("tabled_{number}");
                let text = tabled::item(*sides, variant, &name, &mut kernels.tables)?;
                kernels.text.push_str(&text);
                checked |= variant.checked;
                if variant.reduction.is_some() {
                    kernels.require([LibraryPart::Combine, LibraryPart::LoadValue]);
                }
                if tabled::prefetches(*sides, variant) {
                    kernels.require([LibraryPart::Prefetch, LibraryPart::PrefetchEnds]);
                }
                BatchCase { call: format!("*(const {name}::Tabled *)item.program"), name: format!("{name}::tabled") }
            }
        });
    }
    let mut source = if plans.is_empty() {
        "// A batch by dtc\n\n".to_owned()
    } else {
        header("A batch", &plans.iter().collect::<Vec<_>>())
    };
    source.push_str(&kernels.library());
    source.push_str(&items()?);
    if checked {
        let _ = write!(source, "\n{}", dtc_templates::BEYOND);
    }
    if kernels.shared_bytes > 0 {
        let words = kernels.shared_bytes.div_ceil(size_of::<u128>() as u32);
        let _ =
            write!(source, "\n// For the tiles of whichever kind a block has.\n__shared__ uint4 {POOL}[{words}];\n");
    }
    source.push_str(&kernels.text);
    source.push_str(&entry(BATCH_ENTRY, &cases)?);
    Ok(BatchProgram { program: Program { source, tables: kernels.tables.into_bytes() }, kinds })
}

impl BatchPart<'_> {
    /// Whether the code of one serves another. Parts with index tables are not compared: who asks names each once.
    fn serves(&self, other: &BatchPart<'_>) -> bool {
        match (self, other) {
            (BatchPart::Fixed(plan, variant), BatchPart::Fixed(other, its)) => {
                its == variant && other.layout().equals_without_origin(plan.layout())
            }
            _ => false,
        }
    }
}

/// What a kernel does for a kind of items: the namespace of `move_block`, and what that has of the call.
#[derive(Serialize)]
pub(super) struct BatchCase {
    name: String,
    call: String,
}

impl BatchCase {
    /// A kind whose function reads the item.
    pub(super) fn of(name: String) -> BatchCase {
        BatchCase { name, call: "item".to_owned() }
    }
}

/// The types of a batch's parameters.
pub(super) fn items() -> Result<String, TemplateError> {
    render("batch", &context! { inline_items => BATCH_INLINE }).map(|text| format!("\n{text}\n"))
}

/// The kernel of these kinds.
pub(super) fn entry(name: &str, kinds: &[BatchCase]) -> Result<String, TemplateError> {
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
