//! The demo in the memory of the host: checks, then the race with memcpy, the hand-written loop and the MPIs.

use super::comparison::{Buffers, Comparison};
use super::findings::{POISON, Report, call_failed};
use super::peers::DemoPeers;
use super::verdict::{self, Race};
use dtc_compiler::Pipeline;
use dtc_compiler::layout::Layout;
use dtc_measure::bench::case::Case;
use dtc_measure::description::Named;
use dtc_measure::failure::Failure;
use dtc_measure::program::called;
use dtc_measure::report;
use dtc_measure::samples::{PageAligned, SEED, fill, room_for};
use dtc_measure::verify::{Placement, Verifier};
use dtc_runtime::{Committed, Engine, Memory, MemoryMut, Policy, Range, Tier};
use std::io::Write;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Copies of the memory and of the packed bytes that the demo has at a time, with those that are compared.
const COPIES: u64 = 4;

/// The longest that the demo waits for its peers: a C compiler that never ends is no reason to wait with it.
const LONGEST_START: Duration = Duration::from_secs(10);

/// Commits the type, checks it and races it.
pub fn run(named: &Named, pipeline: &Pipeline, report: &mut Report) -> Result<(), Failure> {
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
        Tier::Generic if decision.specialise() => {
            format!("no kernel: executable memory is refused (see {})", called("doctor"))
        }
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
    check_and_measure(named, pipeline.lowered(), &tiers, report)
}

fn check_and_measure(
    named: &Named,
    lowered: &Layout,
    tiers: &[(&str, Committed)],
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
    // Compiled while the bytes are checked.
    let starting = if total > 0 { start_peers(named, placement) } else { None };
    let verifier = Verifier::new(lowered, origin, count);
    let mut buffers = Buffers::new(buffer, bytes, total > 0);

    report.data(count, total, buffer, remark)?;
    let checked = check(tiers, placement, &verifier, &mut buffers, report);
    // Waited for in any case: what they have in folders goes with them.
    let peers = starting.and_then(|peers| peers.recv_timeout(LONGEST_START).ok()).unwrap_or_else(DemoPeers::none);
    checked?;
    if total == 0 {
        return Ok(());
    }
    let mut comparison = Comparison { tiers, peers, placement, buffers, other: PageAligned::new(bytes) };
    comparison.check_peers(&verifier);
    let races: Vec<Race> = [true, false].into_iter().map(|pack| comparison.race(pack)).collect();
    writeln!(report.details, "speed, one thread: time, rate, multiple of memcpy's speed, spread")?;
    verdict::table(&races, total as f64, "memcpy", &mut report.details)?;
    (report.races, report.total) = (races, total);
    report.peers.append(&mut comparison.peers.who);
    Ok(())
}

/// Packs and unpacks by each tier, and compares every byte with the reference walker's.
fn check(
    tiers: &[(&str, Committed)],
    placement: Placement,
    verifier: &Verifier,
    buffers: &mut Buffers,
    report: &mut Report,
) -> Result<(), Failure> {
    let Placement { count, origin, .. } = placement;
    for (name, committed) in tiers {
        let (memory, packed) = buffers.sides();
        packed.fill(POISON);
        fill(memory, SEED);
        committed.pack(Memory::at(&*memory, origin), Range::elements(count), packed).map_err(call_failed)?;
        let checked = verifier.check_packed(&format!("{name} pack"), memory, packed)?;
        memory.fill(POISON);
        committed.unpack(&*packed, Range::elements(count), MemoryMut::at(memory, origin)).map_err(call_failed)?;
        let what = format!("{name} unpack");
        let (restored, untouched) = verifier.check_memory(&what, memory, packed, POISON)?;
        report.checked(name, checked, restored, untouched)?;
    }
    Ok(())
}

/// Compiles and starts the peers in a thread; nothing where the system has no thread for it.
fn start_peers(named: &Named, placement: Placement) -> Option<Receiver<DemoPeers>> {
    let case = Case {
        name: "type".to_owned(),
        datatype: named.description.datatype.clone(),
        count: placement.count,
        pack_origin: placement.origin as u64,
        unpack_origin: placement.origin as u64,
        buffer: Some(placement.buffer as u64),
    };
    let (sender, receiver) = channel();
    // Without a receiver, who has waited long enough shows nothing of them.
    let start = move || drop(sender.send(DemoPeers::start(&case)));
    std::thread::Builder::new().spawn(start).ok().map(|_| receiver)
}
