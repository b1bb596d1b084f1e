//! One type, all contestants: checks, then interleaved rounds.
//!
//! dtc is called through its safe interface, as a program would: the default engine, the kernel ready. Buffers are those
//! of the peers: page aligned, the same fill, the same placement.

use super::Case;
use super::peer::Peer;
use crate::failure::Failure;
use crate::judge::{Judge, Placement};
use crate::samples::{PageAligned, SEED, checksum, fill};
use crate::timing::{median, repetitions, sample};
use dtc_compiler::datatype::{Constructor, Datatype, GivenBounds, TypeBuilder, TypeId};
use dtc_compiler::lower;
use dtc_runtime::{Committed, Engine};
use serde_json::{Map, Value, json};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

const POISON: u8 = 0xa5;

/// The longest that one sample of a slow peer may take, in nanoseconds.
const LONGEST_SAMPLE: f64 = 5e8;

/// How to measure.
pub struct Settings<'a> {
    /// Interleaved rounds.
    pub rounds: usize,
    /// The least nanoseconds of a sample.
    pub least: f64,
    /// Where peers are built.
    pub peers: Option<&'a Path>,
}

/// The times of one contestant, one of each round, in nanoseconds per call.
pub struct Times {
    /// `dtc`, `memcpy`, or a kind of peer.
    pub name: &'static str,
    /// In the order of the rounds.
    pub samples: Vec<f64>,
}

impl Times {
    /// The median.
    pub fn median(&self) -> f64 {
        median(&self.samples)
    }

    /// The median of how many times as long as another this one took, round by round.
    fn over(&self, other: &Times) -> f64 {
        let ratios: Vec<f64> =
            self.samples.iter().zip(&other.samples).map(|(mine, other)| mine / other.max(0.01)).collect();
        median(&ratios)
    }
}

/// One direction of one type, or its commit.
pub struct Contest(pub Vec<Times>);

impl Contest {
    /// A contestant's times.
    pub fn of(&self, name: &str) -> Option<&Times> {
        self.0.iter().find(|times| times.name == name)
    }

    fn fastest(&self, names: &[&str]) -> Option<&Times> {
        let present = names.iter().filter_map(|name| self.of(name));
        present.min_by(|one, other| one.median().total_cmp(&other.median()))
    }

    /// The hand-written loop: the faster of its two compilations.
    pub fn hand_loop(&self) -> Option<&Times> {
        self.fastest(&["loop", "loop_o2"])
    }

    /// The faster MPI over dtc.
    pub fn mpi_ratio(&self) -> Option<f64> {
        Some(self.fastest(&["mpich", "openmpi"])?.over(self.of("dtc")?))
    }

    /// The fastest of MPIs and loops over dtc.
    pub fn peer_ratio(&self) -> Option<f64> {
        Some(self.fastest(&["mpich", "openmpi", "loop", "loop_o2"])?.over(self.of("dtc")?))
    }

    /// memcpy of the same bytes over dtc.
    pub fn memcpy_ratio(&self) -> Option<f64> {
        Some(self.of("memcpy")?.over(self.of("dtc")?))
    }

    fn to_json(&self) -> Value {
        let medians: Map<String, Value> =
            self.0.iter().map(|times| (times.name.to_owned(), times.median().into())).collect();
        let samples: Map<String, Value> =
            self.0.iter().map(|times| (times.name.to_owned(), times.samples.clone().into())).collect();
        json!({
            "medians": medians,
            "peer_over_dtc": self.peer_ratio(),
            "mpi_over_dtc": self.mpi_ratio(),
            "memcpy_over_dtc": self.memcpy_ratio(),
            "rounds": samples,
        })
    }
}

/// What was found of one type.
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Packed bytes of a transfer.
    pub packed_bytes: u64,
    /// Which code of dtc was measured.
    pub tier: String,
    /// Packing.
    pub pack: Contest,
    /// Unpacking.
    pub unpack: Contest,
    /// Building, committing and freeing. `dtc` knows no equal type; `dtc_known` does.
    pub commit: Contest,
    /// From the description to the specialised kernel, in nanoseconds.
    pub kernel_ready: f64,
    /// Peers that gave up.
    pub notes: Vec<String>,
    /// Bytes that differ from those of dtc, or of the reference walker.
    pub mismatches: Vec<String>,
}

impl Measured {
    /// All figures.
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "packed_bytes": self.packed_bytes,
            "tier": self.tier,
            "pack": self.pack.to_json(),
            "unpack": self.unpack.to_json(),
            "commit": self.commit.to_json(),
            "kernel_ready_ns": self.kernel_ready,
            "notes": self.notes,
            "mismatches": self.mismatches,
        })
    }
}

/// dtc's side: a committed type with its buffers.
struct Own {
    committed: Committed,
    count: u64,
    origin: usize,
    memory: PageAligned,
    packed: PageAligned,
    contiguous: PageAligned,
}

impl Own {
    /// Fills the buffer anew and packs once, as the peers' `setup` does.
    fn setup(&mut self, origin: usize) -> Result<(), Failure> {
        self.origin = origin;
        fill(self.memory.bytes_mut(), SEED);
        self.packed.bytes_mut().fill(0);
        let packed = self.packed.bytes_mut();
        let done = self.committed.pack(self.memory.bytes(), origin, self.count, 0, packed);
        done.map(drop).map_err(|error| Failure::Data(error.to_string()))
    }

    /// Nanoseconds of one call of `memcpy` or `dtc`, of so many. Slices are at hand, as they are in a program.
    fn sample(&mut self, name: &str, pack: bool, calls: u64) -> f64 {
        let Own { committed, count, origin, memory, packed, contiguous } = self;
        let (memory, packed, contiguous) = (memory.bytes_mut(), packed.bytes_mut(), contiguous.bytes_mut());
        let (count, origin) = (*count, *origin);
        match (name, pack) {
            // Pointers and flags alone pass through `black_box`: slices and results would be stored in halves and loaded
            // whole, a stall longer than a short pack.
            ("memcpy", true) => sample(calls, || {
                packed.copy_from_slice(contiguous);
                black_box(packed.as_mut_ptr());
            }),
            ("memcpy", false) => sample(calls, || {
                contiguous.copy_from_slice(packed);
                black_box(contiguous.as_mut_ptr());
            }),
            // The calls have succeeded in `setup`.
            (_, true) => sample(calls, || {
                black_box(black_box(&*committed).pack(memory, origin, count, 0, packed).is_ok());
            }),
            (_, false) => sample(calls, || {
                black_box(black_box(&*committed).unpack(packed, 0, memory, origin, count).is_ok());
            }),
        }
    }

    /// The same, of as many calls as take so many nanoseconds.
    fn speed(&mut self, name: &str, pack: bool, least: f64) -> f64 {
        let mut calls = 1;
        loop {
            let time = self.sample(name, pack, calls);
            if time * calls as f64 >= least {
                return time;
            }
            calls *= 4;
        }
    }
}

/// The peers that are still in the race.
struct Peers {
    running: Vec<Peer>,
    notes: Vec<String>,
}

impl Peers {
    fn start(case: &Case, directory: Option<&Path>) -> Peers {
        let mut peers = Peers { running: Vec::new(), notes: Vec::new() };
        let Some(directory) = directory else { return peers };
        for kind in ["loop", "loop_o2", "mpich", "openmpi"] {
            match Peer::start(directory, &case.name, kind) {
                Ok(Some(peer)) => peers.running.push(peer),
                Ok(None) => {}
                Err(note) => peers.notes.push(note),
            }
        }
        peers
    }

    /// Asks everyone; who fails leaves the race, with a note.
    fn each<T>(&mut self, mut ask: impl FnMut(&mut Peer) -> Result<T, String>) -> Vec<(&'static str, T)> {
        let mut answers = Vec::new();
        let notes = &mut self.notes;
        self.running.retain_mut(|peer| match ask(peer) {
            Ok(answer) => {
                answers.push((peer.kind, answer));
                true
            }
            Err(note) => {
                notes.push(note);
                false
            }
        });
        answers
    }
}

/// Measures one type.
pub fn measure(case: &Case, settings: &Settings) -> Result<Measured, Failure> {
    let name = &case.name;
    let named = |failure: Failure| match failure {
        Failure::Data(text) => Failure::Data(format!("{name}: {text}")),
        other => other,
    };
    let committed = Engine::new().commit(&case.datatype);
    let tier = committed.specialise().to_string();
    let total = committed.packed_size(case.count).map_err(|error| Failure::Description(format!("{name}: {error}")))?;
    let place = |origin| Placement::of(&committed, case.count, origin, case.buffer).map_err(named);
    let (packing, unpacking) = (place(case.pack_origin)?, place(case.unpack_origin)?);
    // One buffer for both placements, so that no peer has to allocate again.
    let buffer = packing.buffer.max(unpacking.buffer);
    let bytes = usize::try_from(total).unwrap_or(usize::MAX);
    let mut own = Own {
        committed: committed.clone(),
        count: case.count,
        origin: packing.origin,
        memory: PageAligned::new(buffer),
        packed: PageAligned::new(bytes),
        contiguous: PageAligned::new(bytes),
    };
    fill(own.contiguous.bytes_mut(), SEED);
    let mut peers = Peers::start(case, settings.peers);
    let mut mismatches = Vec::new();
    let lowered = lower(&case.datatype);

    own.setup(packing.origin).map_err(named)?;
    peers.each(|peer| peer.setup(buffer, packing.origin, case.count, SEED));
    let judge = Judge::new(&lowered, packing.origin, case.count);
    if let Err(Failure::Data(text)) = judge.check_packed("dtc pack", own.memory.bytes(), own.packed.bytes()) {
        mismatches.push(format!("{name}: {text}"));
    }
    let right = checksum(own.packed.bytes());
    compare(name, "packed bytes", right, peers.each(|peer| peer.checksum("packed")), &mut mismatches);
    let pack = rounds(&mut own, &mut peers, true, settings);

    // The memcpy of the rounds before has overwritten the packed bytes.
    own.setup(unpacking.origin).map_err(named)?;
    if unpacking.origin != packing.origin {
        peers.each(|peer| peer.setup(buffer, unpacking.origin, case.count, SEED));
    }
    own.memory.bytes_mut().fill(POISON);
    own.sample("dtc", false, 1);
    peers.each(|peer| peer.poison(POISON).and_then(|()| peer.time("unpack", 1)));
    let judge = Judge::new(&lowered, unpacking.origin, case.count);
    let checked = judge.check_memory("dtc unpack", own.memory.bytes(), own.packed.bytes(), POISON);
    if let Err(Failure::Data(text)) = checked {
        mismatches.push(format!("{name}: {text}"));
    }
    let right = checksum(own.memory.bytes());
    compare(name, "memory", right, peers.each(|peer| peer.checksum("memory")), &mut mismatches);
    let unpack = rounds(&mut own, &mut peers, false, settings);

    let commit = commits(&case.datatype, &mut peers, settings);
    let recipe = Recipe::of(&case.datatype);
    let kernel_ready = median(&(0..settings.rounds).map(|_| kernel_ready(&recipe)).collect::<Vec<_>>());
    let notes = peers.notes.iter().map(|note| format!("{name}: {note}")).collect();
    let name = name.clone();
    Ok(Measured { name, packed_bytes: total, tier, pack, unpack, commit, kernel_ready, notes, mismatches })
}

fn compare(name: &str, what: &str, right: u64, answers: Vec<(&'static str, u64)>, mismatches: &mut Vec<String>) {
    for (kind, found) in answers {
        if found != right {
            mismatches.push(format!("{name}: {what} of {kind}: expected checksum {right:016x}, found {found:016x}"));
        }
    }
}

/// One direction: everyone once a round.
fn rounds(own: &mut Own, peers: &mut Peers, pack: bool, settings: &Settings) -> Contest {
    let what = if pack { "pack" } else { "unpack" };
    let mut contest = Contest(Vec::new());
    let mut speeds: Vec<(&'static str, f64)> = Vec::new();
    for name in ["dtc", "memcpy"] {
        speeds.push((name, own.speed(name, pack, settings.least)));
    }
    speeds.extend(peers.each(|peer| peer.time(what, 1)));
    // As many calls for all, so that the fastest is still long enough; fewer for peers that are very slow.
    let fastest = speeds.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min).max(0.1);
    let calls = |name: &str| {
        let speed = speeds.iter().find(|(other, _)| *other == name).map_or(fastest, |(_, time)| *time).max(0.1);
        (settings.least / fastest).min(LONGEST_SAMPLE / speed).ceil().max(1.0) as u64
    };
    contest.0.extend(["dtc", "memcpy"].map(|name| Times { name, samples: Vec::new() }));
    contest.0.extend(peers.running.iter().map(|peer| Times { name: peer.kind, samples: Vec::new() }));
    for _ in 0..settings.rounds {
        let mut times: Vec<(&str, f64)> = Vec::new();
        for name in ["dtc", "memcpy"] {
            times.push((name, own.sample(name, pack, calls(name))));
        }
        times.extend(peers.each(|peer| peer.time(what, calls(peer.kind))));
        for (name, time) in times {
            contest.0.iter_mut().filter(|other| other.name == name).for_each(|other| other.samples.push(time));
        }
    }
    // Who has left the race has no figure.
    contest.0.retain(|times| times.samples.len() == settings.rounds);
    contest
}

/// The calls of constructors that make a type: what a program writes down.
struct Recipe(Vec<Call>);

/// One call: the constructor, its children as places of earlier calls, and bounds given as facts.
struct Call {
    constructor: Constructor,
    children: Vec<usize>,
    given: Option<GivenBounds>,
}

impl Recipe {
    fn of(datatype: &Datatype) -> Recipe {
        let nodes = datatype.nodes();
        let place = |child: &TypeId| nodes.iter().position(|node| node == child).unwrap_or(0);
        let call = |id: &TypeId| {
            let node = datatype.node(*id);
            let children = datatype.children(*id).iter().map(place).collect();
            Call { constructor: node.constructor.clone(), children, given: node.given }
        };
        Recipe(nodes.iter().map(call).collect())
    }

    /// Calls the constructors.
    fn build(&self) -> Option<Datatype> {
        let mut types = TypeBuilder::new();
        let mut built = Vec::with_capacity(self.0.len());
        for Call { constructor, children, given } in &self.0 {
            let children: Vec<TypeId> = children.iter().map(|&child| built[child]).collect();
            let made = types.construct(constructor, &children).ok()?;
            if let Some(given) = *given {
                types.give_bounds(made, given).ok()?;
            }
            built.push(made);
        }
        built.last().map(|&root| types.finish(root))
    }
}

/// A commit by an engine that has never seen the type: nanoseconds of building, committing and dropping it. Creating
/// the engine is not counted, and no thread is started.
fn first_commit(recipe: &Recipe) -> f64 {
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    drop(black_box(recipe.build().map(|datatype| engine.commit(&datatype))));
    start.elapsed().as_nanos() as f64
}

/// The same until the kernel is there, if the type wants one.
fn kernel_ready(recipe: &Recipe) -> f64 {
    let engine = Engine::builder().background_thread(false).build();
    let start = Instant::now();
    black_box(recipe.build().map(|datatype| engine.commit(&datatype).specialise()));
    start.elapsed().as_nanos() as f64
}

/// Interleaved rounds of building, committing and freeing the type.
fn commits(datatype: &Datatype, peers: &mut Peers, settings: &Settings) -> Contest {
    let recipe = Recipe::of(datatype);
    let known = Engine::new();
    let _held = known.commit(datatype);
    let again = || drop(black_box(recipe.build().map(|datatype| known.commit(&datatype))));
    let calls = repetitions(settings.least, again);
    let mut contest = Contest(["dtc", "dtc_known"].map(|name| Times { name, samples: Vec::new() }).into());
    peers.running.retain(|peer| !peer.kind.starts_with("loop"));
    contest.0.extend(peers.running.iter().map(|peer| Times { name: peer.kind, samples: Vec::new() }));
    for _ in 0..settings.rounds {
        let first: Vec<f64> = (0..5).map(|_| first_commit(&recipe)).collect();
        let mut times = vec![("dtc", median(&first)), ("dtc_known", sample(calls, again))];
        times.extend(peers.each(|peer| {
            let one = peer.time("commit", 1)?;
            peer.time("commit", (settings.least / one.max(1.0)).ceil().max(1.0) as u64)
        }));
        for (name, time) in times {
            contest.0.iter_mut().filter(|other| other.name == name).for_each(|other| other.samples.push(time));
        }
    }
    contest.0.retain(|times| times.samples.len() == settings.rounds);
    contest
}
