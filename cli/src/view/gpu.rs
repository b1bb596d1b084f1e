//! How a GPU moves a transfer: kernels, what a block, a warp and a thread move, and the sectors that a warp touches.

use super::touched::{TouchedUnit, touched};
use crate::commands::explain::CALLS;
use dtc_compiler::Pipeline;
use dtc_compiler::layout::positions::Positions;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Family, GpuPlan, Roofline, Variant};
use dtc_measure::report;
use serde::Serialize;

/// Threads of a warp.
const WARP: u64 = 32;

/// Bytes of a sector, in which a GPU reads and writes its memory.
const SECTOR: u64 = 32;

/// Packed bytes of a thread in the families that move bytes at any alignment.
const SLOT: u64 = 8;

/// Packed bytes of a block whose sectors are counted.
const MOST_COUNTED: u64 = 64 << 10;

/// What one block, one warp or one thread moves.
#[derive(Serialize)]
pub struct Share {
    /// Who.
    pub who: &'static str,
    /// Packed bytes.
    pub packed: u64,
    /// How they are spread.
    pub text: String,
    /// Sectors of memory that they are in, where threads go through the packed bytes in order.
    pub sectors: Option<u64>,
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

/// Packed bytes that a thread moves at once, if threads that follow each other move bytes that do.
fn lane_of(family: &Family) -> Option<u64> {
    match family {
        Family::Words(words) => Some(words.word.into()),
        Family::Shifted(shifted) => Some(shifted.word.into()),
        Family::Gather(_) | Family::Scatter(_) => Some(SLOT),
        _ => None,
    }
}

/// Words that a thread moves one after the other.
fn unroll_of(family: &Family) -> u64 {
    match family {
        Family::Words(words) => words.shape.unroll.into(),
        _ => 1,
    }
}

fn shares(variant: &Variant, blocks: u64, bytes: u64, positions: &Positions<'_>) -> Vec<Share> {
    let threads = u64::from(variant.threads());
    let sectors = |bytes: u64| (bytes <= MOST_COUNTED).then(|| touched(positions, bytes, SECTOR).len() as u64);
    let grouped = report::grouped;
    let Some(lane) = lane_of(&variant.family) else {
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
    let unroll = unroll_of(&variant.family);
    let (block, warp) = ((threads * unroll * lane).min(bytes), (WARP * lane).min(bytes));
    let apart = match unroll {
        1 => format!("one word of {lane} bytes"),
        _ => format!(
            "{unroll} words of {lane} bytes, {} packed bytes apart, loaded before the first is stored",
            grouped(threads * lane)
        ),
    };
    vec![
        Share {
            who: "block",
            packed: block,
            text: "packed bytes that follow each other".to_owned(),
            sectors: sectors(block),
        },
        Share { who: "warp", packed: warp, text: "by one load of each lane".to_owned(), sectors: sectors(warp) },
        Share { who: "thread", packed: (unroll * lane).min(bytes), text: apart, sectors: None },
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
    GpuKernel { direction: direction.to_string(), kernel: text(&variant), launch, shares, others: others.collect() }
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
        let warp = lane_of(&variant.family).map(|lane| {
            let bytes = (WARP * lane).min(bytes);
            WarpView { lane, bytes, sectors: touched(&positions, bytes, SECTOR) }
        });
        GpuView { remark: None, kernels, warp, sectors }
    }
}
