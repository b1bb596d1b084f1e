//! How a CPU moves a transfer: the steps of the plan, the microkernel of each on every level, and the cache lines that are touched.

use crate::touched::{TouchedUnit, touched};
use dtc_compiler::Pipeline;
use dtc_compiler::layout::positions::Positions;
use dtc_compiler::plan::gpu::Roofline;
use dtc_compiler::plan::{Level, Plan, Strategy, Target};
use dtc_runtime::Engine;
use serde::Serialize;

/// Bytes of a cache line.
pub const LINE: u64 = 64;

/// Packed bytes whose cache lines are drawn.
const DRAWN_BYTES: u64 = 256;

/// Lines of a plan that are shown.
const MOST_LINES: usize = 40;

/// The microkernels of one level.
#[derive(Serialize)]
pub struct LevelStrategy {
    /// The name of the level.
    pub level: String,
    /// Whether this machine has it.
    pub here: bool,
    /// What moves each step.
    pub steps: Vec<String>,
}

/// How a CPU moves a transfer.
#[derive(Serialize)]
pub struct CpuView {
    /// The plan of each layout, and which layout it is.
    pub plans: Vec<(String, String)>,
    /// Why there is a compiled kernel, or none.
    pub decision: String,
    /// The microkernels, level by level.
    pub strategies: Vec<LevelStrategy>,
    /// The cache lines of the first packed bytes, and how many packed bytes these are.
    pub lines: Vec<TouchedUnit>,
    /// Packed bytes of these lines.
    pub lines_bytes: u64,
    /// Cache lines that the whole transfer touches, and the relative error.
    pub touched: Option<(u64, f64)>,
}

/// The steps of a plan, without what stands around them.
fn steps_of(plan: &Plan) -> String {
    let text = plan.to_string();
    let all: Vec<&str> = text.lines().skip(1).map(str::trim).filter(|line| *line != "}").collect();
    let steps = &all[..all.len().saturating_sub(1)];
    let mut shown: Vec<String> = steps.iter().take(MOST_LINES).map(|line| (*line).to_owned()).collect();
    if steps.len() > MOST_LINES {
        shown.push(format!("\u{2026} {} more", steps.len() - MOST_LINES));
    }
    shown.join("\n")
}

impl CpuView {
    /// How a CPU moves `count` elements of a type.
    pub fn of(pipeline: &Pipeline, count: u64, roofline: Option<&Roofline>) -> CpuView {
        let (plan, here) = (pipeline.plan(), Engine::new().target());
        let strategy = |level: Level| {
            let text = Strategy::new(plan, &Target { level, ..here }, count).to_string();
            let steps = text.lines().skip(1).take(MOST_LINES).map(|line| line.trim().to_owned()).collect();
            LevelStrategy { level: level.to_string(), here: level == here.level, steps }
        };
        let lines_bytes = pipeline.layout().size().saturating_mul(count).min(DRAWN_BYTES);
        CpuView {
            plans: vec![(String::new(), steps_of(plan))],
            decision: plan.decision().to_string(),
            strategies: Level::ALL.map(strategy).into(),
            lines: touched(&Positions::new(pipeline.layout()), lines_bytes, LINE),
            lines_bytes,
            touched: roofline.map(|roofline| (roofline.footprint().granules, roofline.footprint().error)),
        }
    }

    /// The plans of the layouts of a type with index tables, and the cache lines that an example call touches.
    pub fn of_plans(plans: Vec<(String, Plan)>, touched: Option<u64>) -> CpuView {
        CpuView {
            plans: plans.into_iter().map(|(name, plan)| (name, steps_of(&plan))).collect(),
            decision: String::new(),
            strategies: Vec::new(),
            lines: Vec::new(),
            lines_bytes: 0,
            touched: touched.map(|lines| (lines, 0.0)),
        }
    }
}
