//! The kernel that a plan chooses, beside every other one that may serve the call: where another is faster, the cost model is wrong.
#![expect(unsafe_code, reason = "launches kernels that no plan chooses")]

use dtc_compiler::codegen::cuda;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Family, LaunchShape, Variant, WordsKernel};
use dtc_measure::bench::case::Case;
use dtc_measure::bench::cuda::comparison::{Arena, Line};
use dtc_measure::bench::cuda::gpu_peer::{Candidate, FamilyCandidate, GpuPeer};
use dtc_measure::bench::table::table;
use dtc_measure::failure::Failure;
use dtc_measure::timing::geometric_mean;
use dtc_runtime::cuda::{CudaError, DeviceBuffer, Function, Stream};
use std::collections::HashSet;
use std::ffi::c_void;
use std::fmt::Display;
use std::io::Write;
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// Launch shapes of words that are tried: threads of a block, and words of each.
const SHAPES: [(u32, u32); 9] =
    [(128, 1), (128, 2), (128, 4), (256, 1), (256, 2), (256, 4), (512, 1), (512, 2), (1024, 1)];

/// A share of the fastest candidate's speed below which the choice is called wrong: less is noise.
const RIGHT: f64 = 0.97;

/// A kernel, and the call for which it was made.
struct Compiled {
    variant: Variant,
    function: Function,
    tables: Option<DeviceBuffer>,
    blocks: u32,
    memory: u64,
    packed: u64,
    bytes: u64,
    span: (i64, i64),
}

impl Candidate for Compiled {
    fn name(&self) -> String {
        self.variant.to_string()
    }

    fn enqueue(&self, stream: &Stream) -> Result<(), CudaError> {
        let Compiled { mut memory, mut packed, mut bytes, mut blocks, mut span, .. } = *self;
        let mut tables = self.tables.as_ref().map_or(0, |tables| tables.address());
        let mut first = 0_u64;
        let mut parameters: [*mut c_void; 7] = [
            (&raw mut memory).cast(),
            (&raw mut packed).cast(),
            (&raw mut tables).cast(),
            (&raw mut first).cast(),
            (&raw mut bytes).cast(),
            (&raw mut blocks).cast(),
            (&raw mut span).cast(),
        ];
        let threads = [self.variant.threads(), 1, 1];
        // SAFETY: the parameters are those of every compiled kernel (`dtc_templates`). The buffers of the arena, which outlives the
        // candidates, have all bytes of the call, and the plan says that the kernel may serve it.
        unsafe { self.function.launch(stream, [self.blocks, 1, 1], threads, 0, &mut parameters) }
    }
}

/// Compiles every candidate of a call.
fn compile(requested: &FamilyCandidate<'_>) -> Result<Vec<Compiled>, Failure> {
    let FamilyCandidate { gpu, plan, direction, call, span } = requested;
    let shaped = |candidate: Variant| match candidate.family {
        Family::Words(words) => SHAPES
            .map(|(threads, unroll)| WordsKernel { shape: LaunchShape { threads, unroll }, ..words }.into())
            .map(|family| Variant { family, ..candidate })
            .to_vec(),
        _ => vec![candidate],
    };
    let mut variants: Vec<Variant> = plan.candidates(*direction, call).into_iter().flat_map(shaped).collect();
    // Words of one size have all shapes once, whichever of them the plan names.
    let mut seen = HashSet::new();
    variants.retain(|variant| plan.blocks(variant, call).is_some() && seen.insert(*variant));
    // One after the other, they would take longer than all that is measured.
    let build = |variant: &Variant| {
        let failed = |error: &dyn Display| Failure::Data(format!("{variant}: {error}"));
        let program = cuda::program(plan, &[*variant]).map_err(|error| failed(&error))?;
        let functions = gpu.compile(&program.source, &[cuda::entry(variant)]).map_err(|error| failed(&error))?;
        Ok((*variant, program.tables, functions))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<&[Variant]> = variants.chunks(variants.len().div_ceil(threads).max(1)).collect();
    let built: Vec<Result<_, Failure>> = std::thread::scope(|scope| {
        let started: Vec<_> =
            parts.into_iter().map(|part| scope.spawn(|| part.iter().map(build).collect::<Vec<_>>())).collect();
        let ended = |part: ScopedJoinHandle<'_, _>| part.join().unwrap_or_else(|panic| resume_unwind(panic));
        started.into_iter().flat_map(ended).collect()
    });
    let mut compiled = Vec::new();
    for built in built {
        let (variant, tables, functions) = built?;
        let (Some(function), Some(blocks)) = (functions.into_iter().next(), plan.blocks(&variant, call)) else {
            continue;
        };
        let tables = if tables.is_empty() {
            None
        } else {
            let mut uploaded = DeviceBuffer::new(gpu.device(), tables.len())?;
            uploaded.write(0, &tables)?;
            Some(uploaded)
        };
        let (memory, packed, bytes) = (call.memory, call.packed, call.bytes);
        compiled.push(Compiled { variant, function, tables, blocks, memory, packed, bytes, span: *span });
    }
    Ok(compiled)
}

/// What was found of one direction of a case: its kernel, the driver's copy, and candidates.
pub struct Found(pub Vec<Line>);

impl Found {
    /// Measures one direction of a case.
    pub fn measure(arena: &mut Arena, case: &Case, direction: Direction, rounds: usize) -> Result<Found, Failure> {
        arena.contend(case, direction, rounds, compile).map(Found)
    }

    fn chosen(&self) -> &Line {
        &self.0[0]
    }

    /// Candidates and their times, the fastest first.
    fn ranked(&self) -> Vec<(&Line, f64)> {
        let mut ranked: Vec<(&Line, f64)> = self
            .0
            .iter()
            .filter(|line| matches!(line.peer, GpuPeer::Candidate(_)))
            .filter_map(|line| Some((line, line.times.as_ref().ok()?.cold)))
            .collect();
        ranked.sort_by(|one, other| one.1.total_cmp(&other.1));
        ranked
    }

    /// The speed of the chosen kernel as a share of that of the fastest candidate.
    pub fn share(&self) -> Option<f64> {
        Some(self.ranked().first()?.1 / self.chosen().times.as_ref().ok()?.cold)
    }
}

/// Prints the chosen kernel of every case, the fastest candidate, and the fastest of another family.
pub fn print(found: &[Found], out: &mut dyn Write) -> Result<(), Failure> {
    for direction in [Direction::Pack, Direction::Unpack] {
        let found: Vec<&Found> = found.iter().filter(|found| found.chosen().direction == direction).collect();
        writeln!(
            out,
            "\n{direction}: payload in GB/s with the cache emptied; shares of the speed of the fastest candidate"
        )?;
        let mut table = table(&["type", "chosen", "GB/s", "share", "fastest", "GB/s", "next family", "GB/s"]);
        for found in &found {
            let chosen = found.chosen();
            let rate = |time: f64| format!("{:.1}", chosen.packed_bytes as f64 / time.max(1e-3) / 1e3);
            let ranked = found.ranked();
            let named = |found: Option<&(&Line, f64)>| {
                found.map_or_else(
                    || ["-".to_owned(), "-".to_owned()],
                    |(line, time)| [line.variant.clone(), rate(*time)],
                )
            };
            let family = |line: &Line| line.variant.split(',').next().unwrap_or_default().to_owned();
            let fastest = ranked.first();
            let next = ranked.iter().find(|(line, _)| fastest.is_some_and(|fastest| family(line) != family(fastest.0)));
            let share = found.share().map_or_else(|| "-".to_owned(), |share| format!("{share:.2}"));
            let time = chosen.times.as_ref().map_or_else(|_| "-".to_owned(), |times| rate(times.cold));
            let row = [chosen.case.clone(), chosen.variant.clone(), time, share];
            table.add_row(row.into_iter().chain(named(fastest)).chain(named(next)));
        }
        writeln!(out, "{table}")?;
        let shares: Vec<f64> = found.iter().filter_map(|found| found.share()).collect();
        if shares.is_empty() {
            writeln!(out, "{direction}: no type has a kernel of its own")?;
            continue;
        }
        let wrong = shares.iter().filter(|share| **share < RIGHT).count();
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = geometric_mean(&shares);
        writeln!(
            out,
            "{direction}: {mean:.3} of the fastest candidate in the geometric mean, {least:.3} at least; {wrong} of {} choices are below {RIGHT}",
            shares.len()
        )?;
    }
    Ok(())
}
