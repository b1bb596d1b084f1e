//! One type, all peers: checks, then interleaved rounds.
//!
//! dtc is called through its safe interface, as a program would: the default engine, the kernel ready. All move bytes
//! between the same two buffers: the loops in this process, MPIs in processes that map the same pages.

use super::case::Case;
use super::commit::{Extent, Recipe, commits, kernel_ready};
use super::comparison::{AGAIN, Comparison, Settings};
use super::hand_loop::{HandLoop, Transfer};
use super::loops::{Compiled, LOOPS};
use super::peer::Peer;
use super::peers::Peers;
use super::prepare::write_calls;
use super::shared::Shared;
use crate::failure::{Failure, reason};
use crate::samples::{PageAligned, SEED, fill, room_for};
use crate::timing::{median, sample};
use crate::verify::{Placement, Verifier};
use dtc_compiler::layout::Layout;
use dtc_compiler::lower;
use dtc_compiler::plan::gpu::Footprint;
use dtc_runtime::{Committed, Engine, Memory, MemoryMut, Range};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::hint::black_box;

const POISON: u8 = 0xa5;

/// Bytes of a line of memory, which caches fetch and write whole.
pub const LINE: u64 = 64;

/// The longest that one sample of a slow peer may take, in nanoseconds.
const LONGEST_SAMPLE: f64 = 5e8;

/// The measurements of one type.
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Packed bytes of a transfer.
    pub packed_bytes: u64,
    /// Lines of memory that a pack touches; nothing where they could not be counted.
    pub lines: Option<u64>,
    /// Which code of dtc was measured.
    pub tier: String,
    /// Packing.
    pub pack: Comparison,
    /// Unpacking.
    pub unpack: Comparison,
    /// Building, committing and freeing, with all that dtc leaves to later calls. `dtc` knows no equal type; `dtc_known` does.
    pub commit: Comparison,
    /// The same without what is left to later calls; empty unless the measurement is a sparing one.
    pub bare_commit: Comparison,
    /// Time from the description to the specialised kernel, in nanoseconds; 0 where it was not wanted.
    pub kernel_ready: f64,
    /// Peers that gave up.
    pub notes: Vec<String>,
    /// Bytes that differ from those of dtc, or of the reference walker.
    pub mismatches: Vec<String>,
}

/// The peers in this process, which are dtc, memcpy and the loops, and the buffers of all.
struct Own {
    committed: Committed,
    count: u64,
    origin: usize,
    shared: Shared,
    contiguous: PageAligned,
    /// Source and destination of a copy of as much traffic as a transfer has; none where that is not known, or not wanted.
    limit: Option<[PageAligned; 2]>,
    loops: Vec<HandLoop>,
}

impl Own {
    /// The subject for `count` elements of `packed_bytes` bytes in all, beside a copy of `limit` bytes.
    fn new(
        committed: &Committed,
        (count, packed_bytes): (u64, usize),
        shared: Shared,
        limit: Option<u64>,
        loops: Vec<HandLoop>,
    ) -> Own {
        let filled = |bytes| {
            let mut buffer = PageAligned::new(bytes);
            fill(buffer.bytes_mut(), SEED);
            buffer
        };
        let limit = limit.map(|bytes| [(); 2].map(|()| filled(bytes as usize)));
        Own { committed: committed.clone(), count, origin: 0, shared, contiguous: filled(packed_bytes), limit, loops }
    }

    /// Fills the memory anew.
    fn place(&mut self, origin: usize) {
        self.origin = origin;
        fill(self.shared.sides().0, SEED);
    }

    /// Everyone in this process.
    fn names(&self) -> Vec<&'static str> {
        let limit = self.limit.is_some().then_some("limit");
        ["dtc", "memcpy"].into_iter().chain(limit).chain(self.loops.iter().map(|one| one.kind)).collect()
    }

    /// Nanoseconds of one call, over `calls` calls, by a peer in this process. Slices are made beforehand, as in a program.
    fn sample(&mut self, name: &str, pack: bool, calls: u64) -> Result<f64, String> {
        let Own { committed, count, origin, shared, contiguous, limit, loops } = self;
        let (memory, packed) = shared.sides();
        let contiguous = contiguous.bytes_mut();
        let (count, origin) = (*count, *origin);
        if let Some(hand_loop) = loops.iter().find(|one| one.kind == name) {
            return hand_loop.sample(Transfer { memory, origin, count, packed }, pack, calls);
        }
        if let (Some([source, destination]), "limit") = (limit, name) {
            return Ok(sample(calls, || {
                destination.bytes_mut().copy_from_slice(black_box(source.bytes()));
                black_box(destination.bytes_mut().as_mut_ptr());
            }));
        }
        let mut refused = None;
        // What the call before the clock answered, the others answer, too.
        let time = match (name, pack) {
            ("memcpy", true) => sample(calls, || {
                packed.copy_from_slice(contiguous);
                black_box(packed.as_mut_ptr());
            }),
            ("memcpy", false) => sample(calls, || {
                contiguous.copy_from_slice(packed);
                black_box(contiguous.as_mut_ptr());
            }),
            (_, true) => {
                refused = committed.pack(Memory::at(memory, origin), Range::elements(count), packed).err();
                sample(calls, move || _ = committed.pack(Memory::at(memory, origin), Range::elements(count), packed))
            }
            (_, false) => {
                refused = committed.unpack(packed, Range::elements(count), MemoryMut::at(memory, origin)).err();
                sample(calls, move || {
                    _ = committed.unpack(packed, Range::elements(count), MemoryMut::at(memory, origin))
                })
            }
        };
        refused.map_or(Ok(time), |error| Err(error.to_string()))
    }

    /// Nanoseconds of one call, over as many calls as take `least` nanoseconds.
    fn speed(&mut self, name: &str, pack: bool, least: f64) -> Result<f64, String> {
        let mut calls = 1;
        loop {
            let time = self.sample(name, pack, calls)?;
            if time * calls as f64 >= least {
                return Ok(time);
            }
            calls *= 4;
        }
    }

    /// Has someone pack the memory, or unpack the packed bytes into poison, after which the bytes are compared with the
    /// right ones. What was wrong, if anything.
    fn check(
        &mut self,
        pack: bool,
        right: &[u8],
        packed_bytes: &[u8],
        act: impl FnOnce(&mut Own) -> Result<(), String>,
    ) -> Result<Option<String>, String> {
        let (memory, packed) = self.shared.sides();
        if pack {
            packed.fill(POISON);
        } else {
            memory.fill(POISON);
            packed.copy_from_slice(packed_bytes);
        }
        act(self)?;
        let (memory, packed) = self.shared.sides();
        let found: &[u8] = if pack { packed } else { memory };
        if found == right {
            return Ok(None);
        }
        let what = if pack { "packed" } else { "buffer" };
        let wrong = found.iter().zip(right).position(|(found, right)| found != right).unwrap_or(0);
        Ok(Some(format!("{what} byte {wrong}: expected {}, found {}", right[wrong], found[wrong])))
    }
}

/// The loops of a type, and remarks on those that do not open.
fn open_loops(compiled: &Compiled, notes: &mut Vec<String>) -> Vec<HandLoop> {
    let mut loops = Vec::new();
    for (library, (kind, _)) in compiled.libraries.iter().zip(LOOPS) {
        match HandLoop::open(library, &compiled.prefix, kind) {
            Ok(found) => loops.extend(found),
            Err(note) => notes.push(note),
        }
    }
    loops
}

/// Has the MPIs read the type of a case.
fn start(peers: &mut Peers, case: &Case) {
    peers.start();
    let Some(calls) = peers.directory.as_ref().map(|directory| directory.join("type.calls")) else { return };
    match write_calls(&calls, case) {
        Ok(()) => drop(peers.each(|peer| peer.read(&calls))),
        Err(note) => {
            peers.notes.push(note);
            peers.end();
        }
    }
}

/// Copies of the memory and of the packed bytes that a measurement has at a time, with those that are compared.
const COPIES: u64 = 6;

/// Refuses a type that is too large to be measured: before loops are written for it, and memory is asked for.
///
/// # Errors
///
/// [`Failure::Data`], which names the type.
pub fn measurable(case: &Case) -> Result<(), Failure> {
    let committed = Engine::builder().background_thread(false).build().commit(&case.datatype);
    let fits = |origin| {
        let placement = Placement::of(&committed, case.count, origin, case.buffer)?;
        let packed = committed.packed_size(placement.count).unwrap_or(usize::MAX) as u64;
        room_for((placement.buffer as u64).saturating_add(packed).saturating_mul(COPIES))
    };
    let both = fits(case.pack_origin).and_then(|()| fits(case.unpack_origin));
    both.map_err(|failure| match failure {
        Failure::Data(text) => Failure::Data(format!("{}: {text}", case.name)),
        other => other,
    })
}

/// Measures one type beside its loops and the MPIs.
pub fn measure(case: &Case, loops: &Compiled, peers: &mut Peers, settings: &Settings) -> Result<Measured, Failure> {
    let name = &case.name;
    let named = |failure: Failure| match failure {
        Failure::Data(text) => Failure::Data(format!("{name}: {text}")),
        other => other,
    };
    let failed = |text: String| Failure::Data(format!("{name}: {text}"));
    let committed = Engine::new().commit(&case.datatype);
    let tier = committed.specialise().to_string();
    let place = |count, origin| Placement::of(&committed, count, origin, case.buffer).map_err(named);
    let most = place(case.count, case.pack_origin)?.count.min(place(case.count, case.unpack_origin)?.count);
    let (packing, unpacking) = (place(most, case.pack_origin)?, place(most, case.unpack_origin)?);
    let count = packing.count;
    let bytes = committed.packed_size(count).map_err(|error| Failure::Description(format!("{name}: {error}")))?;
    // One buffer for both placements, so that no peer has to map another.
    let buffer = packing.buffer.max(unpacking.buffer);
    let lowered = lower(&case.datatype);
    let touched = Footprint::of(committed.layout(), count, packing.origin as u64);
    let lines = touched.map(|touched| touched.granules);
    // Half is read and half written.
    let limit = lines.filter(|_| settings.sparing.is_none()).map(|lines| (lines * LINE + bytes as u64) / 2);
    let (mut pack, mut unpack) = (Comparison::default(), Comparison::default());
    let mut check = Check { lowered: &lowered, name, mismatches: Vec::new() };
    let mut notes: Vec<String> = packing.remark(case.count).into_iter().collect();
    for number in 0..settings.starts {
        if number > 0 {
            peers.end();
        }
        let shared = Shared::new(buffer, bytes).map_err(|error| {
            failed(format!("buffers: expected {buffer} and {bytes} bytes to share, found {}", reason(&error)))
        })?;
        let path = shared.path().to_owned();
        let setup = |peer: &mut Peer, origin| peer.setup(buffer, origin, count, &path);
        start(peers, case);
        let loops = open_loops(loops, &mut peers.notes);
        let mut own = Own::new(&committed, (count, bytes), shared, limit, loops);

        own.place(packing.origin);
        peers.each(|peer| setup(peer, packing.origin));
        own.shared.sides().1.fill(POISON);
        own.sample("dtc", true, 1).map_err(failed)?;
        let packed_bytes = own.shared.sides().1.to_vec();
        if number == 0 {
            check.pack(&mut own, peers, &packed_bytes);
        }
        pack.join(comparison(&mut own, peers, true, settings, number).map_err(failed)?);

        own.origin = unpacking.origin;
        if unpacking.origin != packing.origin {
            peers.each(|peer| setup(peer, unpacking.origin));
        }
        if number == 0 {
            check.unpack(&mut own, peers, &packed_bytes).map_err(failed)?;
        }
        unpack.join(comparison(&mut own, peers, false, settings, number).map_err(failed)?);
    }
    // Who has left the race has no figure.
    for comparison in [&mut pack, &mut unpack] {
        comparison.retain_complete();
    }

    let recipe = Recipe::of(&case.datatype);
    let mut commit_of = |extent| commits(&recipe, &case.datatype, extent, peers, settings);
    let commit = commit_of(Extent::Plan);
    let (bare_commit, wanted) = match settings.sparing {
        Some(_) => (commit_of(Extent::Call), 0),
        None => (Comparison::default(), settings.rounds),
    };
    let kernel_ready = median(&(0..wanted).map(|_| kernel_ready(&recipe)).collect::<Vec<_>>());
    notes.append(&mut peers.notes);
    let notes = notes.iter().map(|note| format!("{name}: {note}")).collect();
    let name = name.clone();
    let (packed_bytes, mismatches) = (bytes as u64, check.mismatches);
    Ok(Measured { name, packed_bytes, lines, tier, pack, unpack, commit, bare_commit, kernel_ready, notes, mismatches })
}

/// Checks of a type before it is measured, and what was wrong.
struct Check<'a> {
    lowered: &'a Layout,
    name: &'a str,
    mismatches: Vec<String>,
}

impl Check<'_> {
    /// Compares the packed bytes of dtc, which are there, with the reference walker, and those of all peers with them.
    fn pack(&mut self, own: &mut Own, peers: &mut Peers, packed_bytes: &[u8]) {
        let verifier = Verifier::new(self.lowered, own.origin, own.count);
        let (memory, packed) = own.shared.sides();
        if let Err(Failure::Data(text)) = verifier.check_packed("dtc pack", memory, packed) {
            self.mismatches.push(format!("{}: {text}", self.name));
        }
        self.agree(own, peers, (true, packed_bytes), packed_bytes);
    }

    /// Has dtc unpack into poison, and compares that with the reference walker, and with what all peers do.
    fn unpack(&mut self, own: &mut Own, peers: &mut Peers, packed_bytes: &[u8]) -> Result<(), String> {
        let (memory, packed) = own.shared.sides();
        memory.fill(POISON);
        packed.copy_from_slice(packed_bytes);
        own.sample("dtc", false, 1)?;
        let verifier = Verifier::new(self.lowered, own.origin, own.count);
        let (memory, packed) = own.shared.sides();
        if let Err(Failure::Data(text)) = verifier.check_memory("dtc unpack", memory, packed, POISON) {
            self.mismatches.push(format!("{}: {text}", self.name));
        }
        let right = memory.to_vec();
        self.agree(own, peers, (false, &right), packed_bytes);
        Ok(())
    }

    /// Has every peer move the bytes once and compares all of them with the right ones. Who fails leaves the race, with a note.
    fn agree(&mut self, own: &mut Own, peers: &mut Peers, (pack, right): (bool, &[u8]), packed_bytes: &[u8]) {
        let what = if pack { "pack" } else { "unpack" };
        let loops: Vec<&'static str> = own.loops.iter().map(|one| one.kind).collect();
        let mut found: Vec<(&'static str, Option<String>)> = Vec::new();
        for kind in loops {
            match own.check(pack, right, packed_bytes, |own| own.sample(kind, pack, 1).map(drop)) {
                Ok(wrong) => found.push((kind, wrong)),
                Err(note) => {
                    own.loops.retain(|one| one.kind != kind);
                    peers.notes.push(note);
                }
            }
        }
        found.extend(peers.each(|peer| own.check(pack, right, packed_bytes, |_| peer.time(what, 1).map(drop))));
        let wrong = found.into_iter().filter_map(|(kind, wrong)| Some((kind, wrong?)));
        self.mismatches.extend(wrong.map(|(kind, wrong)| format!("{}: {kind} {what}, {wrong}", self.name)));
    }
}

/// One direction: all peers, and those again whose ratio is doubtful.
fn comparison(
    own: &mut Own,
    peers: &mut Peers,
    pack: bool,
    settings: &Settings,
    start: usize,
) -> Result<Comparison, String> {
    let mut comparison = rounds(own, peers, pack, settings, &|_| true, start)?;
    let Some(sparing) = &settings.sparing else { return Ok(comparison) };
    if let Some(peer) = comparison.doubtful(sparing.doubtful) {
        let longer = Settings { rounds: settings.rounds * AGAIN, ..*settings };
        let again = rounds(own, peers, pack, &longer, &|name| name == "dtc" || name == peer, start + 1)?;
        comparison.again = Some(again.times);
    }
    Ok(comparison)
}

/// Interleaved rounds: everyone who is meant once a round.
fn rounds(
    own: &mut Own,
    peers: &mut Peers,
    pack: bool,
    settings: &Settings,
    meant: &dyn Fn(&str) -> bool,
    start: usize,
) -> Result<Comparison, String> {
    let what = if pack { "pack" } else { "unpack" };
    let mut speeds: Vec<(&'static str, f64)> = Vec::new();
    let names: Vec<&'static str> = own.names().into_iter().filter(|name| meant(name)).collect();
    for &name in &names {
        speeds.push((name, own.speed(name, pack, settings.least)?));
    }
    speeds.extend(peers.those(|peer| meant(peer.kind), |peer| peer.time(what, 1)));
    // As many calls for all, so that the fastest is still long enough; fewer for peers that are very slow.
    let fastest = speeds.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min).max(0.1);
    let calls = |speed: f64| (settings.least / fastest).min(LONGEST_SAMPLE / speed.max(0.1)).ceil().max(1.0);
    // One more call than is timed.
    let round: f64 = speeds.iter().map(|(_, speed)| (calls(*speed) + 1.0) * speed).sum();
    let number = settings.rounds_of(round);
    let mut comparison = Comparison::of_names(speeds.iter().map(|(name, _)| *name));
    let mut order = speeds;
    let mut random = SmallRng::seed_from_u64(SEED.wrapping_add(start as u64));
    for _ in 0..number {
        // Each finds the caches as another has left them, which one call before the clock does not make good.
        order.shuffle(&mut random);
        for &(name, speed) in &order {
            let calls = calls(speed) as u64;
            let time = if names.contains(&name) {
                Some(own.sample(name, pack, calls)?)
            } else {
                let times = peers.those(|peer| peer.kind == name, |peer| peer.time(what, calls));
                times.first().map(|(_, time)| *time)
            };
            comparison.record(name, time);
        }
    }
    comparison.retain_complete();
    Ok(comparison)
}
