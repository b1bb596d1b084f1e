//! How a GPU moves a transfer: kernels, what a block, a warp and a thread move, and the sectors that a warp touches.

use crate::touched::{TouchedUnit, touched};
use dtc_compiler::Pipeline;
use dtc_compiler::layout::positions::Positions;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, GpuPlan, Roofline, Variant};
use dtc_measure::report;
use serde::Serialize;

/// Threads of a warp.
const WARP: u64 = 32;

/// Bytes of a sector, in which a GPU reads and writes its memory.
pub const SECTOR: u64 = 32;

/// Packed bytes of a thread in the families that move bytes at any alignment.
const SLOT: u64 = 8;

/// Packed bytes that the kernel of vectors stores at once.
const VECTOR: u64 = 16;

/// Packed bytes of a block whose sectors are counted.
const MOST_COUNTED: u64 = 64 << 10;

/// Kinds of calls that kernels for a GPU differ by: what is special, and the alignment of memory and of packed bytes.
pub const CALLS: [(&str, u64, u64); 4] = [
    ("aligned as allocations are", 0, 0),
    ("packed bytes at an odd address", 0, 1),
    ("memory at a multiple of 4 bytes only", 4, 0),
    ("memory at an odd address", 1, 0),
];

/// What one block, one warp or one thread moves.
#[derive(Serialize)]
pub struct Share {
    /// `block`, `warp` or `thread`.
    pub who: &'static str,
    /// Packed bytes.
    pub packed: u64,
    /// How they are spread.
    pub text: String,
    /// Sectors of memory that they are in, where threads go through the packed bytes in order.
    pub sectors: Option<u64>,
}

/// Which thread moves a packed byte, where threads go through the packed bytes in order: words are dealt to the threads of a block in turn.
#[derive(Clone, Copy, Serialize)]
pub struct ThreadOrder {
    /// Packed bytes of a word.
    pub word: u64,
    /// Threads of a block.
    pub threads: u64,
    /// Words of a thread.
    pub words: u64,
}

/// The kernel of one direction.
#[derive(Serialize)]
pub struct GpuKernel {
    /// The direction.
    pub direction: String,
    /// The kernel of a call that is aligned as allocations are.
    pub kernel: String,
    /// What it is launched with.
    pub launch: String,
    /// What a block, a warp and a thread move.
    pub shares: Vec<Share>,
    /// Which thread moves a packed byte, if that is as simple.
    pub order: Option<ThreadOrder>,
    /// The kernels of calls that are aligned otherwise: what is special, and the kernel.
    pub others: Vec<(&'static str, String)>,
}

/// The first warp of a pack.
#[derive(Serialize)]
pub struct WarpView {
    /// Packed bytes of a lane.
    pub lane: u64,
    /// Packed bytes of all lanes.
    pub bytes: u64,
    /// The sectors that they are in.
    pub sectors: Vec<TouchedUnit>,
}

/// How a GPU moves a transfer.
#[derive(Serialize)]
pub struct GpuView {
    /// Why there is no kernel, if there is none.
    pub remark: Option<String>,
    /// The kernels of a pack and of an unpack.
    pub kernels: Vec<GpuKernel>,
    /// The first warp of a pack.
    pub warp: Option<WarpView>,
    /// Sectors that the whole transfer touches, the bytes that are wanted of them, and the relative error of both.
    pub sectors: Option<(u64, u64, f64)>,
}

/// The order of threads in the families that go through the packed bytes from the first to the last.
fn order_of(variant: &Variant) -> Option<ThreadOrder> {
    let (word, words) = match variant.family {
        Family::Words(kernel) => (kernel.word.into(), kernel.shape.unroll.into()),
        Family::Vectors(_) => (VECTOR, 1),
        Family::Shifted(kernel) => (kernel.word.into(), 1),
        Family::Gather(_) | Family::Scatter(_) => (SLOT, 1),
        _ => return None,
    };
    Some(ThreadOrder { word, threads: variant.threads().into(), words })
}

fn shares(variant: &Variant, blocks: u64, bytes: u64, positions: &Positions<'_>) -> Vec<Share> {
    let threads = u64::from(variant.threads());
    let sectors = |bytes: u64| (bytes <= MOST_COUNTED).then(|| touched(positions, bytes, SECTOR).len() as u64);
    let grouped = report::grouped;
    let Some(ThreadOrder { word, words, .. }) = order_of(variant) else {
        let share = |who, parts: u64, text: &str| {
            let packed = bytes.div_ceil(blocks.saturating_mul(parts).max(1));
            Share { who, packed, text: text.to_owned(), sectors: None }
        };
        return vec![
            share("block", 1, "on average"),
            share("warp", threads / WARP, "on average"),
            share("thread", threads, "on average, in the order that the family has"),
        ];
    };
    let (block, warp) = ((threads * words * word).min(bytes), (WARP * word).min(bytes));
    let apart = match words {
        1 => format!("one word of {}", report::bytes(word)),
        _ => {
            let apart = grouped(threads * word);
            format!("{words} words of {word} bytes, {apart} packed bytes apart, loaded before the first is stored")
        }
    };
    let share = |who, packed, text: &str, sectors| Share { who, packed, text: text.to_owned(), sectors };
    vec![
        share("block", block, "packed bytes that follow each other", sectors(block)),
        share("warp", warp, "by one load of each lane", sectors(warp)),
        share("thread", (words * word).min(bytes), &apart, None),
    ]
}

fn kernel(plan: &GpuPlan, direction: Direction, bytes: u64, positions: &Positions<'_>) -> GpuKernel {
    let of = |memory, packed| plan.variant(direction, &Call { memory, packed, first: 0, bytes });
    let (call, variant) = (Call::whole(bytes), of(0, 0));
    let text = |variant: &Variant| variant.family.to_string();
    let threads = variant.threads();
    let (launch, shares) = match plan.blocks(&variant, &call) {
        Some(blocks) => {
            let plural = if blocks == 1 { "block" } else { "blocks" };
            let launch = format!("{} {plural} of {threads} threads", report::grouped(blocks.into()));
            (launch, shares(&variant, blocks.into(), bytes, positions))
        }
        None => (format!("several launches of blocks of {threads} threads: no grid has as many blocks"), Vec::new()),
    };
    let others = CALLS.iter().skip(1).map(|&(call, memory, packed)| (call, text(&of(memory, packed))));
    GpuKernel {
        direction: direction.to_string(),
        kernel: text(&variant),
        launch,
        shares,
        order: order_of(&variant),
        others: others.collect(),
    }
}

impl GpuView {
    /// How a GPU moves `bytes` packed bytes of a type.
    pub fn of(pipeline: &Pipeline, bytes: u64, roofline: Option<&Roofline>) -> GpuView {
        let (plan, layout) = (pipeline.gpu_plan(), pipeline.layout());
        let remark = (!plan.allows()).then(|| plan.to_string().trim_end().to_owned());
        let sectors = roofline.filter(|_| bytes > 0).map(|roofline| {
            let footprint = roofline.footprint();
            (footprint.sectors, bytes, footprint.error)
        });
        if remark.is_some() || bytes == 0 {
            return GpuView { remark, kernels: Vec::new(), warp: None, sectors };
        }
        let positions = Positions::new(layout);
        let directions = [Direction::Pack, Direction::Unpack];
        let kernels = directions.map(|direction| kernel(plan, direction, bytes, &positions)).into();
        let variant = plan.variant(Direction::Pack, &Call::whole(bytes));
        let warp = order_of(&variant).map(|ThreadOrder { word, .. }| {
            let bytes = (WARP * word).min(bytes);
            WarpView { lane: word, bytes, sectors: touched(&positions, bytes, SECTOR) }
        });
        GpuView { remark: None, kernels, warp, sectors }
    }
}
