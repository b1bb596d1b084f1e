//! The demo in the memory of the host: checks, then the race with memcpy and the hand-written loop.

use super::findings::{POISON, Report, call_failed};
use super::matrix;
use super::verdict::{self, Race};
use crate::description::Named;
use crate::failure::Failure;
use crate::report;
use crate::samples::{PageAligned, SEED, fill, room_for};
use crate::timing::{Rounds, repetitions, sample};
use crate::verify::{Placement, Verifier};
use dtc_compiler::Pipeline;
use dtc_compiler::layout::Layout;
use dtc_runtime::{Committed, Engine, Memory, MemoryMut, Policy, Range, Tier};
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

/// The least nanoseconds of a sample: shorter than a time slice, so that some samples are not interrupted.
const SAMPLE: f64 = 5e5;

/// Copies of the memory and of the packed bytes that the demo has at a time, with those that are compared.
const COPIES: u64 = 4;

/// Commits the type, checks it and races it.
pub fn run(named: &Named, pipeline: &Pipeline, built_in: bool, report: &mut Report) -> Result<(), Failure> {
    let datatype = &named.description.datatype;
    let out = &mut report.details;
    let generic = Engine::builder().policy(Policy::Off).build().commit(datatype);
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    let committed = engine.commit(datatype);
    let commit = start.elapsed();
    let start = Instant::now();
    let tier = committed.specialise();
    let compile = report::time(start.elapsed().as_nanos() as f64);
    writeln!(out, "plan for this processor")?;
    write!(out, "{}", report::shortened(&pipeline.plan().to_string(), 16, verdict::COLUMNS))?;
    writeln!(out, "commit")?;
    writeln!(out, "    hash {}", committed.type_hash())?;
    writeln!(out, "    usable after {}", report::time(commit.as_nanos() as f64))?;
    let decision = pipeline.plan().decision();
    let kernel = match tier {
        Tier::Specialised => format!("kernels compiled in {compile}"),
        Tier::Generic if decision.specialise() => "no kernel: executable memory is refused (see dtc doctor)".to_owned(),
        Tier::Generic => decision.to_string(),
    };
    for text in [decision.to_string(), kernel.clone()] {
        for line in report::wrapped(&text, verdict::COLUMNS - 4) {
            writeln!(out, "    {line}")?;
        }
    }
    report.passes = format!("{}; {kernel}", report.passes);
    let mut tiers = vec![("generic", generic)];
    if tier == Tier::Specialised {
        tiers.push(("specialised", committed));
    }
    check_and_measure(named, pipeline.lowered(), &tiers, built_in, report)
}

fn check_and_measure(
    named: &Named,
    lowered: &Layout,
    tiers: &[(&str, Committed)],
    built_in: bool,
    report: &mut Report,
) -> Result<(), Failure> {
    let description = &named.description;
    let Some((_, first)) = tiers.first() else { return Ok(()) };
    let placement = Placement::of(first, description.count, description.origin_bytes, description.buffer_bytes)?;
    let remark = placement.remark(description.count);
    let Placement { count, buffer, origin } = placement;
    let bytes = first.packed_size(count).map_err(|error| Failure::Description(error.to_string()))?;
    let total = bytes as u64;
    room_for((buffer as u64).saturating_add(total).saturating_mul(COPIES))?;
    let verifier = Verifier::new(lowered, origin, count);
    let mut memory = PageAligned::new(buffer);
    fill(memory.bytes_mut(), SEED);
    // The elements lie inside the buffer, so their bytes are fewer unless the type repeats some.
    let mut packed = PageAligned::new(bytes);

    report.data(count, total, buffer, remark)?;
    for (name, committed) in tiers {
        packed.bytes_mut().fill(POISON);
        fill(memory.bytes_mut(), SEED);
        committed
            .pack(Memory::at(memory.bytes(), origin), Range::elements(count), packed.bytes_mut())
            .map_err(call_failed)?;
        let checked = verifier.check_packed(&format!("{name} pack"), memory.bytes(), packed.bytes())?;
        memory.bytes_mut().fill(POISON);
        committed
            .unpack(packed.bytes(), Range::elements(count), MemoryMut::at(memory.bytes_mut(), origin))
            .map_err(call_failed)?;
        let what = format!("{name} unpack");
        let (restored, untouched) = verifier.check_memory(&what, memory.bytes(), packed.bytes(), POISON)?;
        report.checked(name, checked, restored, untouched)?;
    }
    if built_in {
        packed.bytes_mut().fill(POISON);
        matrix::pack(memory.bytes(), packed.bytes_mut());
        verifier.check_packed("hand loop", memory.bytes(), packed.bytes())?;
    }
    if total == 0 {
        return Ok(());
    }
    let other = PageAligned::new(packed.bytes().len());
    let mut contest = Contest { tiers, built_in, origin, count, memory, packed, other };
    let races: Vec<Race> = [true, false].into_iter().map(|pack| contest.race(pack)).collect();
    writeln!(report.details, "speed, one thread: time, rate, share of memcpy's speed, spread")?;
    verdict::table(&races, total as f64, "memcpy", &mut report.details)?;
    report.races = races;
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
        let loops = self.built_in.then_some("loop");
        self.tiers.iter().map(|(name, _)| *name).chain(["memcpy"]).chain(loops).collect()
    }

    /// One call of a contestant.
    #[inline]
    fn call(&mut self, index: usize, pack: bool) {
        let Contest { tiers, origin, count, memory, packed, other, .. } = self;
        match tiers.get(index) {
            // These calls have succeeded before.
            Some((_, committed)) if pack => {
                let _ = black_box(committed.pack(
                    Memory::at(black_box(memory.bytes()), *origin),
                    Range::elements(*count),
                    packed.bytes_mut(),
                ));
            }
            Some((_, committed)) => {
                let _ = black_box(committed.unpack(
                    black_box(packed.bytes()),
                    Range::elements(*count),
                    MemoryMut::at(memory.bytes_mut(), *origin),
                ));
            }
            None if index == tiers.len() && pack => packed.bytes_mut().copy_from_slice(black_box(other.bytes())),
            None if index == tiers.len() => other.bytes_mut().copy_from_slice(black_box(packed.bytes())),
            None if pack => matrix::pack(black_box(memory.bytes()), black_box(packed.bytes_mut())),
            None => matrix::unpack(black_box(packed.bytes()), black_box(memory.bytes_mut())),
        }
    }

    /// Interleaved rounds of one direction.
    fn race(&mut self, pack: bool) -> Race {
        let names: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        let calls: Vec<u64> = (0..names.len()).map(|index| repetitions(SAMPLE, || self.call(index, pack))).collect();
        let mut samples: Vec<(String, Vec<f64>)> = names.into_iter().map(|name| (name, Vec::new())).collect();
        for _ in Rounds::start() {
            for (index, (_, samples)) in samples.iter_mut().enumerate() {
                samples.push(sample(calls[index], || self.call(index, pack)));
            }
        }
        Race { direction: if pack { "pack" } else { "unpack" }, samples, tiers: self.tiers.len() }
    }
}
