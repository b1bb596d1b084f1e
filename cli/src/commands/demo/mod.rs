//! `dtc demo`: one type from its description to a kernel whose every byte is checked, on the GPU if there is one.

mod gpu;

use crate::description::{self, Named};
use crate::failure::Failure;
use crate::judge::{Judge, Placement};
use crate::report;
use crate::samples::{PageAligned, SEED, fill};
use crate::timing::{median, repetitions, sample};
use dtc_compiler::datatype::json;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::Plan;
use dtc_compiler::{canonicalise, lower};
use dtc_runtime::{Committed, Engine, Policy, Tier};
use std::hint::black_box;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Compiles a type, packs and unpacks data with it, checks every byte and measures
#[derive(clap::Args)]
pub struct Arguments {
    /// A type description; without one, a piece of a distributed matrix
    #[arg(value_name = "TYPE.json")]
    file: Option<PathBuf>,
    /// Where the data lies
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Backend {
    /// In the memory of a GPU if there is one, else of the host
    Auto,
    /// In the memory of the host
    Cpu,
    /// In the memory of the first GPU
    Cuda,
}

/// The type of the demo: a process's piece of a matrix that is dealt out in blocks, as ScaLAPACK does.
const MATRIX: &str = include_str!("../../../../ir-examples/darray_block_cyclic.json");

/// What unpacks are poured onto.
const POISON: u8 = 0xa5;

/// Rounds of the measurement, and the least nanoseconds of a sample.
const ROUNDS: usize = 7;
const SAMPLE: f64 = 2e6;

/// The loops that a programmer writes for the matrix: process (1, 1) of a 2 x 3 grid holds every second block of 32
/// rows and every third of 24 columns, both from the second on, of 500 x 430 doubles in columns.
mod matrix {
    const ROWS: usize = 500;
    const COLUMNS: usize = 430;
    const ELEMENT: usize = 8;

    /// The stretches of whole columns that blocks of rows cut out, in packed order: first byte and length.
    #[inline]
    fn pieces() -> impl Iterator<Item = (usize, usize)> {
        let columns = (24..COLUMNS).step_by(3 * 24).flat_map(|block| block..(block + 24).min(COLUMNS));
        columns.flat_map(|column| {
            (32..ROWS).step_by(2 * 32).map(move |row| {
                let rows = 32.min(ROWS - row);
                ((column * ROWS + row) * ELEMENT, rows * ELEMENT)
            })
        })
    }

    pub fn pack(memory: &[u8], mut packed: &mut [u8]) {
        for (at, bytes) in pieces() {
            let Some((piece, rest)) = packed.split_at_mut_checked(bytes) else { return };
            piece.copy_from_slice(&memory[at..at + bytes]);
            packed = rest;
        }
    }

    pub fn unpack(mut packed: &[u8], memory: &mut [u8]) {
        for (at, bytes) in pieces() {
            let Some((piece, rest)) = packed.split_at_checked(bytes) else { return };
            memory[at..at + bytes].copy_from_slice(piece);
            packed = rest;
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let named = match &arguments.file {
        Some(path) => description::read(path)?,
        None => {
            let description =
                json::read(MATRIX).map_err(|error| Failure::Description(format!("the built-in type: {error}")))?;
            Named { name: "darray_block_cyclic".to_owned(), description }
        }
    };
    let built_in = arguments.file.is_none();
    let lowered = lower(&named.description.datatype);
    tell(&named, &lowered, out)?;
    if arguments.backend != Backend::Cpu {
        // Without a thread nothing is compiled behind our back, so that times are those of what they say.
        let engine = Engine::builder().background_thread(false).build();
        match engine.gpu(0) {
            Ok(gpu) => return gpu::run(&named, &lowered, built_in, &engine, &gpu, out),
            Err(error) if arguments.backend == Backend::Cuda => return Err(error.into()),
            Err(error) if error.is_absence() => {}
            Err(error) => writeln!(out, "no GPU is used: {error}")?,
        }
    }
    let plan = Plan::new(&canonicalise(&lowered).layout);
    writeln!(out, "plan for this processor")?;
    write!(out, "{}", report::shortened(&plan.to_string(), 16, 110))?;

    let generic = Engine::builder().policy(Policy::Off).build().commit(&named.description.datatype);
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    let committed = engine.commit(&named.description.datatype);
    let commit = start.elapsed();
    let start = Instant::now();
    let tier = committed.specialise();
    let compile = start.elapsed();
    writeln!(out, "commit")?;
    writeln!(out, "    hash {}", committed.type_hash())?;
    writeln!(out, "    {}", committed.plan().decision())?;
    writeln!(out, "    usable after {}", report::time(commit.as_nanos() as f64))?;
    match tier {
        Tier::Specialised => {
            writeln!(out, "    kernels for both directions after another {}", report::time(compile.as_nanos() as f64))?;
        }
        Tier::Generic if committed.plan().decision().specialise() => {
            writeln!(out, "    no kernel: executable memory is refused (see dtc doctor)")?;
        }
        Tier::Generic => {}
    }
    let mut tiers = vec![("generic", generic)];
    if tier == Tier::Specialised {
        tiers.push(("specialised", committed));
    }
    check_and_measure(&named, &lowered, &tiers, built_in, out)
}

/// What the judge found of a tier.
fn tell_checked(name: &str, packed: u64, restored: u64, untouched: u64, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "    {name:<12}{} packed bytes right, {} restored bytes right, {} bytes beside them untouched",
        report::grouped(packed),
        report::grouped(restored),
        report::grouped(untouched)
    )
}

/// The way from the description to the canonical layout.
fn tell(named: &Named, lowered: &Layout, out: &mut dyn Write) -> Result<(), Failure> {
    let description = &named.description;
    let canonical = canonicalise(lowered);
    writeln!(out, "{}", named.name)?;
    for remark in [&description.story, &description.source].into_iter().flatten() {
        writeln!(out, "    {remark}")?;
    }
    let facts = description.datatype.facts();
    writeln!(out, "datatype: {} packed bytes over an extent of {}", facts.size, facts.extent())?;
    write!(out, "{}", report::shortened(&description.datatype.to_string(), 6, 240))?;
    writeln!(out, "layout before the passes")?;
    write!(out, "{}", report::shortened(&lowered.to_string(), 14, 110))?;
    writeln!(out, "passes that fired")?;
    writeln!(out, "    {}", canonical.report)?;
    writeln!(out, "layout after the passes")?;
    write!(out, "{}", report::shortened(&canonical.layout.to_string(), 14, 110))?;
    Ok(())
}

fn check_and_measure(
    named: &Named,
    lowered: &Layout,
    tiers: &[(&str, Committed)],
    built_in: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let description = &named.description;
    let Some((_, first)) = tiers.first() else { return Ok(()) };
    let placement = Placement::of(first, description.count, description.origin_bytes, description.buffer_bytes)?;
    let Placement { count, buffer, origin } = placement;
    let total = first.packed_size(count).map_err(|error| Failure::Description(error.to_string()))?;
    let judge = Judge::new(lowered, origin, count);
    let mut memory = PageAligned::new(buffer);
    fill(memory.bytes_mut(), SEED);
    // The elements lie inside the buffer, so their bytes are fewer unless the type repeats some.
    let mut packed = PageAligned::new(usize::try_from(total).unwrap_or(usize::MAX));
    let call = |error| Failure::Data(format!("demo: {error}"));

    writeln!(out, "data: {count} elements, {} in a buffer of {}", report::bytes(total), report::bytes(buffer as u64))?;
    if let Some(remark) = placement.remark(description.count) {
        writeln!(out, "    {remark}")?;
    }
    for (name, committed) in tiers {
        packed.bytes_mut().fill(POISON);
        fill(memory.bytes_mut(), SEED);
        committed.pack(memory.bytes(), origin, count, 0, packed.bytes_mut()).map_err(call)?;
        let checked = judge.check_packed(&format!("{name} pack"), memory.bytes(), packed.bytes())?;
        memory.bytes_mut().fill(POISON);
        committed.unpack(packed.bytes(), 0, memory.bytes_mut(), origin, count).map_err(call)?;
        let what = format!("{name} unpack");
        let (restored, untouched) = judge.check_memory(&what, memory.bytes(), packed.bytes(), POISON)?;
        tell_checked(name, checked, restored, untouched, out)?;
    }
    if built_in {
        packed.bytes_mut().fill(POISON);
        matrix::pack(memory.bytes(), packed.bytes_mut());
        judge.check_packed("hand-written loop", memory.bytes(), packed.bytes())?;
    }

    writeln!(out, "speed, one thread{}", if cfg!(debug_assertions) { ", of a debug build" } else { "" })?;
    let other = PageAligned::new(packed.bytes().len());
    measure(&mut Contest { tiers, built_in, origin, count, memory, packed, other }, out)?;
    writeln!(out, "every byte checked")?;
    Ok(())
}

/// Who is measured, and the buffers of all.
struct Contest<'a> {
    tiers: &'a [(&'a str, Committed)],
    built_in: bool,
    origin: usize,
    count: u64,
    memory: PageAligned,
    packed: PageAligned,
    other: PageAligned,
}

impl Contest<'_> {
    fn names(&self) -> Vec<&str> {
        let loops = self.built_in.then_some("hand-written loop");
        self.tiers.iter().map(|(name, _)| *name).chain(["memcpy"]).chain(loops).collect()
    }

    /// One call of a contestant.
    #[inline]
    fn call(&mut self, index: usize, pack: bool) {
        let Contest { tiers, origin, count, memory, packed, other, .. } = self;
        match tiers.get(index) {
            // These calls have succeeded before.
            Some((_, committed)) if pack => {
                let _ = black_box(committed.pack(black_box(memory.bytes()), *origin, *count, 0, packed.bytes_mut()));
            }
            Some((_, committed)) => {
                let _ = black_box(committed.unpack(black_box(packed.bytes()), 0, memory.bytes_mut(), *origin, *count));
            }
            None if index == tiers.len() && pack => packed.bytes_mut().copy_from_slice(black_box(other.bytes())),
            None if index == tiers.len() => other.bytes_mut().copy_from_slice(black_box(packed.bytes())),
            None if pack => matrix::pack(black_box(memory.bytes()), black_box(packed.bytes_mut())),
            None => matrix::unpack(black_box(packed.bytes()), black_box(memory.bytes_mut())),
        }
    }
}

/// Interleaved rounds; the median of each.
fn measure(contest: &mut Contest, out: &mut dyn Write) -> Result<(), Failure> {
    let bytes = contest.packed.bytes().len() as f64;
    let names: Vec<String> = contest.names().into_iter().map(str::to_owned).collect();
    for (direction, pack) in [("pack", true), ("unpack", false)] {
        let calls: Vec<u64> = (0..names.len()).map(|index| repetitions(SAMPLE, || contest.call(index, pack))).collect();
        let mut samples = vec![Vec::new(); names.len()];
        for _ in 0..ROUNDS {
            for (index, samples) in samples.iter_mut().enumerate() {
                samples.push(sample(calls[index], || contest.call(index, pack)));
            }
        }
        let reference = median(&samples[contest.tiers.len()]);
        for (name, samples) in names.iter().zip(&samples) {
            let time = median(samples);
            let (rate, share) = (bytes / time.max(0.01), reference / time.max(0.01));
            let time = report::time(time);
            writeln!(out, "    {direction:<8}{name:<18}{time:>11}{rate:>9.2} GB/s{share:>8.2} of memcpy's speed")?;
        }
    }
    Ok(())
}
