//! The demo on a GPU: its plan, its kernel, every byte checked, and its speed beside that of a device's copy.

use super::findings::{POISON, Report};
use super::transpose;
use super::verdict::{self, COLUMNS, Race};
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cuda;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::GpuPlan;
use dtc_measure::description::Named;
use dtc_measure::device::{OnDevice, copy};
use dtc_measure::device_clock::DeviceClock;
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_measure::samples::{SEED, fill};
use dtc_measure::timing::Rounds;
use dtc_measure::verify::{Placement, Verifier};
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::{Committed, Engine, Gpu, Policy, Tier};
use std::io::Write;
use std::time::Instant;

/// Runs the demo on a device.
pub fn run(
    named: &Named,
    pipeline: &Pipeline,
    built_in: bool,
    engine: &Engine,
    gpu: &Gpu,
    report: &mut Report,
) -> Result<(), Failure> {
    let datatype = &named.description.datatype;
    let info = gpu.device().info();
    report.device = Some(format!("GPU {}", info.ordinal));
    let out = &mut report.details;
    writeln!(out, "GPU {}: {}, sm_{}", info.ordinal, info.name, info.architecture())?;
    // The context is there, so that opening the GPU in another engine is loading the generic kernels.
    let generic_engine = Engine::builder().policy(Policy::Off).build();
    let start = Instant::now();
    let generic_gpu = generic_engine.gpu(0)?;
    generic_gpu.load()?;
    writeln!(out, "    generic kernels loaded in {}", report::time(start.elapsed().as_nanos() as f64))?;
    let generic = generic_engine.commit(datatype);
    generic.prepare(&generic_gpu)?;

    let start = Instant::now();
    let committed = engine.commit(datatype);
    let commit = start.elapsed();
    let start = Instant::now();
    let tier = committed.prepare(gpu)?;
    let prepare = start.elapsed();
    let plan = pipeline.gpu_plan();
    writeln!(out, "commit")?;
    writeln!(out, "    hash {}", committed.type_hash())?;
    writeln!(out, "    usable after {}", report::time(commit.as_nanos() as f64))?;
    let kernel = match gpu.problem() {
        _ if tier == Tier::Specialised => {
            let time = report::time(prepare.as_nanos() as f64);
            format!("kernels ready in {time}")
        }
        Some(problem) => format!("no kernel: {problem}"),
        None => "no kernel is made for it".to_owned(),
    };
    for line in report::wrapped(&kernel, COLUMNS - 4) {
        writeln!(out, "    {line}")?;
    }
    report.passes = format!("{}; {kernel}", report.passes);
    writeln!(out, "plan for the GPU")?;
    write!(out, "{}", report::shortened(&plan.to_string(), 16, COLUMNS))?;
    if plan.allows() {
        writeln!(out, "kernel that packs, without what all kernels begin with")?;
        write!(out, "{}", report::shortened(&source(plan)?, 40, COLUMNS))?;
    }
    let mut tiers = vec![("generic", generic)];
    if tier == Tier::Specialised {
        tiers.push(("specialised", committed));
    }
    check_and_measure(named, pipeline.lowered(), &tiers, built_in, gpu, report)
}

/// The text of the kernel that packs, from its namespace on.
fn source(plan: &GpuPlan) -> Result<String, Failure> {
    let program = cuda::program(plan, &[plan.usual(Direction::Pack)]);
    let source = program.map_err(|error| Failure::Missing(error.to_string()))?.source;
    let start = source.rfind("\nnamespace ").map_or(0, |at| at + 1);
    Ok(source[start..].to_owned())
}

fn check_and_measure(
    named: &Named,
    lowered: &Layout,
    tiers: &[(&str, Committed)],
    built_in: bool,
    gpu: &Gpu,
    report: &mut Report,
) -> Result<(), Failure> {
    let description = &named.description;
    let Some((_, first)) = tiers.first() else { return Ok(()) };
    let placement = Placement::of(first, description.count, description.origin_bytes, description.buffer_bytes)?;
    let remark = placement.remark(description.count);
    let Placement { count, buffer, origin } = placement;
    // Placement allows a few gigabytes only.
    let bytes = first.packed_size(count).map_err(|error| Failure::Description(error.to_string()))?;
    let total = bytes as u64;
    let verifier = Verifier::new(lowered, origin, count);
    let allocate = |bytes| DeviceBuffer::new(gpu.device(), bytes);
    let (mut memory, mut packed, other) = (allocate(buffer)?, allocate(bytes)?, allocate(bytes)?);
    let (mut host, mut host_packed) = (vec![0; buffer], vec![0; bytes]);

    report.data(count, total, buffer, remark)?;
    for (name, committed) in tiers {
        fill(&mut host, SEED);
        memory.write(0, &host)?;
        packed.fill(POISON)?;
        on_device(committed, count, &memory, origin, &packed).call(Direction::Pack, 0, total)?;
        packed.read(0, &mut host_packed)?;
        let checked = verifier.check_packed(&format!("{name} pack"), &host, &host_packed)?;
        memory.fill(POISON)?;
        on_device(committed, count, &memory, origin, &packed).call(Direction::Unpack, 0, total)?;
        memory.read(0, &mut host)?;
        let (restored, untouched) = verifier.check_memory(&format!("{name} unpack"), &host, &host_packed, POISON)?;
        report.checked(name, checked, restored, untouched)?;
    }
    if total == 0 {
        return Ok(());
    }
    if built_in {
        // Once right, since the rounds do nothing else.
        let stream = Stream::new(gpu.device())?;
        packed.fill(POISON)?;
        transpose::columns(Direction::Pack, &stream, &memory, &packed)?;
        stream.synchronize()?;
        packed.read(0, &mut host_packed)?;
        verifier.check_packed(ROWS, &host, &host_packed)?;
        report.peers.push(format!("{ROWS}: {} calls", transpose::COLUMNS_ON_GPU));
    }
    report.peers.push(format!("{COPY}: as many bytes, the limit"));
    drop((host, host_packed));
    let clock = DeviceClock::new(gpu.device())?;
    for direction in [Direction::Pack, Direction::Unpack] {
        let rows = built_in.then_some(ROWS);
        let names = tiers.iter().map(|(name, _)| *name).chain(rows).chain([COPY]);
        let mut samples: Vec<(String, Vec<f64>)> = names.map(|name| (name.to_owned(), Vec::new())).collect();
        for _ in Rounds::start() {
            for (index, (_, samples)) in samples.iter_mut().enumerate() {
                let time = clock.time(false, || match tiers.get(index) {
                    Some((_, committed)) => {
                        let call = on_device(committed, count, &memory, origin, &packed);
                        call.enqueue(direction, &clock.stream, 0, total).map(drop)
                    }
                    None if rows.is_some() && index == tiers.len() => {
                        transpose::columns(direction, &clock.stream, &memory, &packed)
                    }
                    None => copy(&clock.stream, &other, 0, &packed, 0, total),
                });
                // The clock of the device counts microseconds.
                samples.push(time? * 1e3);
            }
        }
        let direction = if direction == Direction::Pack { "pack" } else { "unpack" };
        report.races.push(Race { direction, samples, tiers: tiers.len() });
    }
    report.total = total;
    writeln!(report.details, "speed on the device, its cache emptied before each call; spread")?;
    Ok(verdict::table(&report.races, total as f64, COPY, &mut report.details)?)
}

/// What moves the columns of the built-in type without a kernel.
const ROWS: &str = "cuMemcpy2D";

/// What kernels are compared with on a device.
const COPY: &str = "device copy";

fn on_device<'a>(
    committed: &'a Committed,
    count: u64,
    memory: &'a DeviceBuffer,
    origin: usize,
    packed: &'a DeviceBuffer,
) -> OnDevice<'a> {
    OnDevice { committed, count, memory, origin: origin as i64, packed, at: 0 }
}
