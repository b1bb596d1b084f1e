//! What a description of at most 10 KB can cost: planners, roofline and sampler 10 ms and 64 MiB; `lower`, `explain` and the
//! sources of `emit` 1 s and 256 MiB.
//!
//! `DTC_HOSTILE=10000 cargo test --release -p dtc-tests --test budgets` draws as many descriptions, and `DTC_HOSTILE=4711..4712`
//! those of some seeds.

#[path = "scale/clock.rs"]
mod clock;

use clock::computed;
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cuda::{self, GenericKernel, Interpreted, TabledProgram, TabledSides};
use dtc_compiler::codegen::{cranelift, llvm, mpi_c, source};
use dtc_compiler::datatype::{TabledDatatype, json};
use dtc_compiler::plan::gpu::{Call, GpuPlan, Roofline, TabledVariant};
use dtc_compiler::plan::{Direction, Level, Plan, Strategy, Target};
use dtc_compiler::tabled::TabledLayout;
use dtc_runtime::Engine;
use dtc_tests::generate::hostile::{self, Hostile};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Debug builds take this many times as long as the release builds that the budgets are for. Measured: 5 to 9.
const SLOWER: u32 = if cfg!(debug_assertions) { 12 } else { 1 };

/// Time of a planner, of the roofline and of the sampler.
const PLANNED: Duration = Duration::from_millis(10);

/// Memory of each of them, in bytes.
const PLANNED_BYTES: u64 = 64 << 20;

/// Time of `lower`, of `explain`, and of a source.
const WRITTEN: Duration = Duration::from_secs(1);

/// Memory of each of them, in bytes.
const WRITTEN_BYTES: u64 = 256 << 20;

/// Runs of what goes over its budget, before it counts.
const TRIES: usize = 4;

/// Descriptions that are drawn where no variable says how many.
const DRAWN: u64 = 150;

/// The peak of memory is that of the process: one test at a time measures it.
static MEASURES: Mutex<()> = Mutex::new(());

fn measures_alone() -> MutexGuard<'static, ()> {
    MEASURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a stage cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: Duration,
    bytes: u64,
}

/// A field of `/proc/self/status`, in bytes.
fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect(field);
    let kib: u64 = line.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().expect("a number");
    kib << 10
}

/// The costs of the stages of one description, by their names.
struct Meter {
    /// Bytes that the process had before the first description.
    before: u64,
    costs: Vec<(&'static str, Cost)>,
    /// What went over its budget, every time that it ran.
    over: Vec<String>,
}

impl Meter {
    fn measure<T>(&mut self, name: &'static str, plans: bool, work: impl Fn() -> T) -> T {
        let (time, bytes) = if plans { (PLANNED, PLANNED_BYTES) } else { (WRITTEN, WRITTEN_BYTES) };
        // Others on the machine make a run slower, and never faster.
        for left in (0..TRIES).rev() {
            // The peak begins anew.
            std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
            let start = computed();
            let made = black_box(work());
            let cost = Cost { time: computed() - start, bytes: status("VmHWM:").saturating_sub(self.before) };
            let within = cost.time <= time * SLOWER && cost.bytes <= bytes;
            if within || left == 0 {
                self.costs.push((name, cost));
                if !within {
                    self.over.push(format!("{name}: {:.1?}, {} MiB", cost.time, cost.bytes >> 20));
                }
                return made;
            }
        }
        unreachable!("the last try returns")
    }

    /// Adds what a description cost to the costs of all.
    fn add_to(self, most: &mut BTreeMap<&'static str, Cost>, over: &mut Vec<String>, described: &str) {
        for (name, cost) in self.costs {
            let most = most.entry(name).or_default();
            *most = Cost { time: most.time.max(cost.time), bytes: most.bytes.max(cost.bytes) };
        }
        over.extend(self.over.into_iter().map(|over| format!("{described}: {over}")));
    }

    /// Does what plans a transfer of the type.
    fn plan(&mut self, pipeline: &Pipeline, count: u64) {
        let (lowered, layout, target) = (pipeline.lowered(), pipeline.layout(), target());
        self.measure("plan as described", true, || Plan::as_described(lowered));
        let plan = self.measure("plan", true, || Plan::new(layout));
        self.measure("strategy", true, || Strategy::new(&plan, &target, count).to_string());
        let described = self.measure("plan for a GPU as described", true, || GpuPlan::as_described(lowered));
        let gpu = self.measure("plan for a GPU", true, || GpuPlan::new(layout));
        self.measure("program of the generic kernels", true, || Interpreted::new(&described));
        self.measure("program of the generic kernels, canonical", true, || Interpreted::new(&gpu));
        self.measure("kernels of calls", true, || kernels(&gpu, count));
        self.measure("roofline", true, || Roofline::of(layout, count, 0));
    }

    /// Does what `lower`, `explain` and `emit` print.
    fn write(&mut self, text: &str, pipeline: &Pipeline) {
        self.measure("lower", false, || {
            let lowered = Pipeline::new(json::read(text).expect("a description").datatype);
            format!("{} {} {} {}", lowered.lowered(), lowered.report(), lowered.layout(), lowered.hash())
        });
        self.measure("explain", false, || serde_json::to_string_pretty(pipeline).expect("JSON"));
        let (plan, gpu) = (pipeline.plan(), pipeline.gpu_plan());
        let compiler = cranelift::Compiler::new(Level::Portable).expect("a compiler");
        for direction in [Direction::Pack, Direction::Unpack] {
            if plan.decision().specialise() {
                self.measure("kernels of explain", false, || compiler.compile(plan, direction).is_ok());
            }
            self.measure("emit --as clif", false, || compiler.intermediate(plan, direction).is_ok());
        }
        self.measure("emit --as dot", false, || pipeline.layout().to_dot());
        self.measure("emit --as mpi-c", false, || mpi_c::emit(pipeline.datatype()));
        self.measure("emit --as c", false, || source::c("hostile", pipeline).is_ok());
        self.measure("emit --as cuda-header", false, || source::cuda_header("hostile", pipeline).is_ok());
        let cpu = cranelift::CpuTarget::ALL[0];
        self.measure("emit --as llvm", false, || llvm::ir(cpu, "hostile", plan).is_ok());
        self.measure("emit --as cuda", false, || {
            let usual = [Direction::Pack, Direction::Unpack].map(|direction| gpu.usual(direction));
            gpu.allows().then(|| cuda::program(gpu, &usual).is_ok())
        });
    }
}

impl Meter {
    /// Does all that there is for a type with index tables.
    fn tabled(&mut self, datatype: &TabledDatatype, text: &str, write: impl Fn(&TabledDatatype) -> String) {
        self.measure("tables: read and written", false, || {
            assert!(write(datatype).len() <= 2 * text.len());
            let is_json = text.starts_with('{');
            let again = if is_json {
                json::read_tabled(text).map(drop).is_ok()
            } else {
                text.parse::<TabledDatatype>().is_ok()
            };
            assert!(again, "{text}");
        });
        let layout = self.measure("tables: lower", false, || TabledLayout::new(datatype));
        self.measure("tables: hash and text", false, || format!("{layout} {}", layout.hash()));
        self.measure("tables: program of the generic kernels", true, || TabledProgram::new(&layout));
        self.measure("tables: sizes and words", true, || (layout.most_bytes(), layout.granularity()));
        self.measure("tables: plans", false, || layout.fixed_layouts().iter().map(Plan::new).count());
        let variant = TabledVariant::new(layout.granularity(), layout.most_bytes(), true);
        for sides in [
            TabledSides::Pack(&layout),
            TabledSides::Unpack(&layout),
            TabledSides::Copy { source: &layout, target: &layout },
        ] {
            self.measure("tables: emit --as cuda", false, || cuda::tabled(sides, &variant).is_ok());
        }
        self.measure("tables: emit --as c", false, || source::tabled_c("hostile", datatype).is_ok());
        self.measure("tables: emit --as cuda-header", false, || {
            source::tabled_cuda_header("hostile", datatype).is_ok()
        });
    }
}

fn target() -> Target {
    Engine::new().target()
}

/// Chooses kernels for calls of every kind.
fn kernels(plan: &GpuPlan, count: u64) {
    if plan.is_contiguous() || plan.layout().size() == 0 {
        return;
    }
    // No call has more.
    let bytes = plan.layout().size().saturating_mul(count).min(i64::MAX as u64);
    for direction in [Direction::Pack, Direction::Unpack] {
        for (memory, packed) in [(0, 0), (0, 1), (4, 0), (1, 0)] {
            let call = Call { memory, packed, first: 0, bytes };
            black_box(GenericKernel::serving(plan, direction, &call));
            black_box(plan.candidates(direction, &call));
            if plan.allows() {
                let variant = plan.variant(direction, &call);
                black_box(plan.blocks(&variant, &call));
            }
        }
        black_box(plan.whole(direction, 8));
    }
    black_box(plan.copies(&Call::whole(bytes)));
}

fn seeds() -> Range<u64> {
    let said = std::env::var("DTC_HOSTILE").unwrap_or_default();
    let number = |text: &str| text.trim().parse().expect("DTC_HOSTILE: expected a number or a range of numbers");
    match said.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None if said.is_empty() => 0..DRAWN,
        None => 0..number(&said),
    }
}

#[test]
fn hostile_descriptions_are_planned_and_printed_within_budgets() {
    let _alone = measures_alone();
    let before = status("VmRSS:");
    let (mut most, mut over) = (BTreeMap::<&str, Cost>::new(), Vec::new());
    for seed in seeds() {
        let Hostile { datatype, json, count } = hostile::description(&mut SmallRng::seed_from_u64(seed));
        let pipeline = Pipeline::new(datatype);
        let mut meter = Meter { before, costs: Vec::new(), over: Vec::new() };
        meter.plan(&pipeline, count);
        meter.write(&json, &pipeline);
        meter.add_to(&mut most, &mut over, &format!("seed {seed}"));
    }
    within_budgets(most, &over);
}

#[test]
fn hostile_types_with_index_tables_are_written_within_budgets() {
    let _alone = measures_alone();
    let before = status("VmRSS:");
    let (mut most, mut over) = (BTreeMap::<&str, Cost>::new(), Vec::new());
    for seed in seeds() {
        let (datatype, text) = hostile::tabled_description(&mut SmallRng::seed_from_u64(seed));
        let mut meter = Meter { before, costs: Vec::new(), over: Vec::new() };
        meter.tabled(&datatype, &text, json::write_tabled);
        meter.add_to(&mut most, &mut over, &format!("seed {seed}"));
    }
    within_budgets(most, &over);
}

/// An axis by table within constructors of one kind.
fn nested(outer: &str, closed: &str, times: usize) -> String {
    format!("{}table 0 2 1 0 byte{}", outer.repeat(times), closed.repeat(times))
}

#[test]
fn deep_types_with_index_tables_cost_no_more_than_their_text() {
    let _alone = measures_alone();
    let before = status("VmRSS:");
    let (mut most, mut over) = (BTreeMap::<&str, Cost>::new(), Vec::new());
    for (outer, closed, times) in [
        ("table 0 2 1 0 (", ")", 255),
        ("struct [1@0 byte, 1@8 (", ")]", 5_000),
        ("struct [1@0 byte, 1@8 (", ")]", 30_000),
        ("contiguous 1 (", ")", 30_000),
        ("resized 0 4 (", ")", 30_000),
        ("hindexed [1@8] (", ")", 30_000),
    ] {
        let text = nested(outer, closed, times);
        let datatype: TabledDatatype = text.parse().expect("no more than the limits");
        let mut meter = Meter { before, costs: Vec::new(), over: Vec::new() };
        meter.tabled(&datatype, &text, ToString::to_string);
        meter.add_to(&mut most, &mut over, outer);
    }
    within_budgets(most, &over);
}

#[test]
fn too_many_axes_and_parts_of_types_with_index_tables_are_refused() {
    let _alone = measures_alone();
    let refused = |text: &str| text.parse::<TabledDatatype>().expect_err("more than a limit").to_string();
    let deep = refused(&nested("table 0 2 1 0 (", ")", 100_000));
    assert_eq!(deep, "line 1, column 1: expected table: at most 256 axes by table, found 100001");
    let chain = refused(&nested("struct [1@0 byte, 1@8 (", ")]", 100_000));
    assert_eq!(chain, "line 1, column 1: expected table: at most 65536 parts around axes by table, found 100002");
    let mut doubled = "let a0 = table 0 2 1 0 byte; ".to_owned();
    (1..60).for_each(|level| doubled += &format!("let a{level} = struct [1@0 a{0}, 1@1 a{0}]; ", level - 1));
    let found = refused(&(doubled + "a59"));
    assert!(found.ends_with(&format!("found {}", (1u64 << 59) + 1)), "{found}");
}

fn within_budgets(most: BTreeMap<&str, Cost>, over: &[String]) {
    for (name, Cost { time, bytes }) in most {
        println!("{name}: at most {time:.1?}, {} MiB", bytes >> 20);
    }
    assert!(over.is_empty(), "{} stages over their budgets\n{}", over.len(), over[..over.len().min(40)].join("\n"));
}
