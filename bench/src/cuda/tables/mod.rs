//! Types with index tables, beside the same types with the tables written into them, kernels by hand, and the driver's copy.

mod by_hand;
mod calls;
mod cases;
mod copies;
mod print;
mod shapes;
mod small;

pub use print::print;

use by_hand::ByHand;
use cases::TableCase;
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::datatype::text::parse;
use dtc_compiler::plan::Direction;
use dtc_compiler::tabled::TabledLayout;
use dtc_measure::bench::cuda::check::{GUARD, POISON, first_difference, host_has};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::device::fill;
use dtc_measure::failure::Failure;
use dtc_measure::samples::SEED;
use dtc_measure::timing::median;
use dtc_runtime::cuda::{DeviceBuffer, PinnedBuffer, Stream};
use dtc_runtime::{Committed, CommittedTabled, Endpoint, IndexTable};
use serde_json::{Value, json};
use shapes::Shaped;
use std::fmt::Display;
use std::time::Duration;

/// Where in the pattern the packed bytes of unpacks begin.
const PHASE: usize = 12_345;

/// Lengths of the runs of entries: every place on its own, and eight in a row.
const RUNS: [u64; 2] = [1, 8];

/// The longest that a kernel is waited for.
const COMPILER: Duration = Duration::from_secs(10);

/// Names of contenders.
const COPY: &str = "memcpy";
const LISTED: &str = "dtc, listed in the type";
const TABLED: &str = "dtc";
const GENERIC: &str = "dtc generic";
const HAND: &str = "by hand";

/// The memory of the packed bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PackedIn {
    Device,
    Pinned,
}

/// The median of rounds, in microseconds of the device with the cache emptied, or of the host.
pub struct Figure {
    case: String,
    peer: String,
    what: &'static str,
    bytes: u64,
    us: f64,
}

impl Figure {
    /// The figure as a line of results, in the form of the peers' lines.
    pub fn to_json(&self) -> Value {
        json!({
            "peer": self.peer,
            "case": self.case,
            "what": self.what,
            "packed_bytes": self.bytes,
            "cold_us": (self.us * 1e3).round() / 1e3,
        })
    }
}

/// One who moves the bytes of a call.
struct Contender<'a> {
    name: String,
    enqueue: Box<Enqueue<'a>>,
}

/// Enqueues a call on a stream.
type Enqueue<'a> = dyn Fn(&Stream) -> Result<(), Failure> + 'a;

/// A case, committed with and without its table, which lies on the device.
struct Subject {
    case: TableCase,
    name: String,
    entries: Vec<i32>,
    table: DeviceBuffer,
    layout: TabledLayout,
    tabled: CommittedTabled,
    generic: CommittedTabled,
    listed: Committed,
    by_hand: Option<ByHand>,
}

impl Subject {
    fn new(arena: &Arena, case: TableCase, run: u64) -> Result<Subject, Failure> {
        let entries = case.entries(run, SEED);
        let name = if run == 1 { case.name.to_owned() } else { format!("{}, in runs of {run}", case.name) };
        let described = |error: &dyn Display| Failure::Description(format!("{name}: {error}"));
        let datatype: TabledDatatype = case.tabled().parse().map_err(|error| described(&error))?;
        let listed = parse(&case.listed(&entries)).map_err(|error| described(&error))?;
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        let mut table = DeviceBuffer::new(arena.gpu.device(), bytes.len())?;
        table.write(0, &bytes)?;
        let (tabled, listed) = (arena.specialised.commit_tabled(&datatype), arena.specialised.commit(&listed));
        tabled.prepare(&arena.gpu).map_err(|error| described(&error))?;
        listed.prepare(&arena.gpu)?;
        let generic = arena.generic.commit_tabled(&datatype);
        let by_hand = case.by_hand().map(|text| ByHand::new(&arena.gpu, &text)).transpose()?;
        let layout = TabledLayout::new(&datatype);
        Ok(Subject { case, name, entries, table, layout, tabled, generic, listed, by_hand })
    }

    fn failed(&self, error: &dyn Display) -> Failure {
        Failure::Data(format!("{}: {error}", self.name))
    }

    /// The driver's copy of as many bytes, whose bytes are not those of the type; then the others.
    fn contenders<'a>(&'a self, call: calls::Call, blocks: u32, shapes: &'a [Shaped]) -> Vec<Contender<'a>> {
        let mut all = vec![
            Contender { name: COPY.to_owned(), enqueue: Box::new(move |stream| call.copy(stream)) },
            Contender { name: LISTED.to_owned(), enqueue: Box::new(move |stream| call.listed(self, stream)) },
            Contender { name: TABLED.to_owned(), enqueue: Box::new(move |stream| call.tabled(self, stream)) },
            Contender { name: GENERIC.to_owned(), enqueue: Box::new(move |stream| call.generic(self, stream)) },
        ];
        if let Some(kernel) = &self.by_hand {
            let table = self.table.address();
            let enqueue = move |stream: &Stream| Ok(kernel.enqueue(stream, blocks, &call, table)?);
            all.push(Contender { name: HAND.to_owned(), enqueue: Box::new(enqueue) });
        }
        for shaped in shapes {
            let enqueue = move |stream: &Stream| Ok(shaped.enqueue(stream, &call)?);
            all.push(Contender { name: shaped.name(), enqueue: Box::new(enqueue) });
        }
        all
    }
}

/// Measures and checks all cases whose name has a text.
pub fn measure(
    arena: &mut Arena,
    rounds: usize,
    only: &str,
    tell: impl Fn(&str),
    mut record: impl FnMut(&Figure) -> Result<(), Failure>,
) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for run in RUNS {
        for case in cases::cases().into_iter().filter(|case| case.name.contains(only)) {
            tell(&format!("{}, runs of {run}", case.name));
            let subject = Subject::new(arena, case, run)?;
            let mut buffers = Buffers::new(arena, &subject)?;
            for direction in [Direction::Pack, Direction::Unpack] {
                buffers.expect(arena, &subject, direction)?;
                for packed_in in [PackedIn::Device, PackedIn::Pinned] {
                    let found = buffers.contend(arena, &subject, (direction, packed_in), rounds)?;
                    found.iter().try_for_each(&mut record)?;
                    figures.extend(found);
                }
            }
        }
    }
    if only.is_empty() {
        tell("copies");
        let copies = copies::measure(arena, rounds)?;
        let small = small::measure(arena, rounds)?;
        copies.iter().chain(&small).try_for_each(&mut record)?;
        figures.extend(copies.into_iter().chain(small));
    }
    Ok(figures)
}

/// The buffers of a case.
struct Buffers {
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    pinned: PinnedBuffer,
    image: Vec<u8>,
    packed_image: Vec<u8>,
}

impl Buffers {
    fn new(arena: &Arena, subject: &Subject) -> Result<Buffers, Failure> {
        let (memory, packed) = (subject.layout.true_ub() as u64 + GUARD, subject.case.packed_bytes() + GUARD);
        host_has(memory + 2 * packed)?;
        let device = arena.gpu.device();
        Ok(Buffers {
            memory: DeviceBuffer::new(device, memory as usize)?,
            packed: DeviceBuffer::new(device, packed as usize)?,
            pinned: PinnedBuffer::new(device, packed as usize)?,
            image: vec![POISON; memory as usize],
            packed_image: vec![POISON; packed as usize],
        })
    }

    /// Prepares the source on the device, and what a call must make of it on the host.
    fn expect(&mut self, arena: &Arena, subject: &Subject, direction: Direction) -> Result<(), Failure> {
        let Buffers { memory, packed, pinned, image, packed_image } = self;
        let (pattern, stream, bytes) = (&arena.pattern, &arena.clock.stream, subject.case.packed_bytes());
        let (spanned, tables) = (image.len() - GUARD as usize, [IndexTable::from(&subject.entries)]);
        let moved = match direction {
            Direction::Pack => {
                pattern.fill(&mut image[..spanned], 0);
                pattern.enqueue_fill(stream, memory, spanned as u64, 0)?;
                packed_image.fill(POISON);
                subject.tabled.pack(&image[..spanned], &tables, .., &mut packed_image[..bytes as usize])
            }
            Direction::Unpack => {
                pattern.fill(&mut packed_image[..bytes as usize], PHASE);
                pattern.enqueue_fill(stream, packed, bytes, PHASE)?;
                pinned.as_mut_slice().copy_from_slice(packed_image);
                image.fill(POISON);
                subject.tabled.unpack(&packed_image[..bytes as usize], .., &tables, &mut image[..spanned])
            }
        };
        stream.synchronize()?;
        moved.map(drop).map_err(|error| subject.failed(&error))
    }

    /// Measures all who can move a case one way; every byte that they write is checked before.
    fn contend(
        &mut self,
        arena: &mut Arena,
        subject: &Subject,
        (direction, packed_in): (Direction, PackedIn),
        rounds: usize,
    ) -> Result<Vec<Figure>, Failure> {
        let packed = match packed_in {
            PackedIn::Device => Endpoint::from(&self.packed),
            PackedIn::Pinned => Endpoint::from(&self.pinned),
        };
        let bytes = subject.case.packed_bytes();
        let call = calls::Call { direction, memory: Endpoint::from(&self.memory), packed, bytes };
        let shapes = if packed_in == PackedIn::Device { Shaped::all(arena, subject, &call)? } else { Vec::new() };
        let multiprocessors = arena.gpu.device().info().multiprocessors;
        let contenders = subject.contenders(call, by_hand::blocks(multiprocessors, direction, packed_in), &shapes);
        for contender in contenders.iter().filter(|contender| contender.name != COPY) {
            // The first call may be served by the generic kernels.
            (contender.enqueue)(&arena.clock.stream)?;
            arena.specialised.compile_pending(COMPILER);
            self.poison(arena, direction)?;
            (contender.enqueue)(&arena.clock.stream)?;
            arena.clock.stream.synchronize()?;
            if let Some(at) = self.difference(arena, direction, packed_in)? {
                return Err(subject.failed(&format_args!("{direction} by {}: byte {at} is wrong", contender.name)));
            }
        }
        let mut samples = vec![Vec::new(); contenders.len()];
        for _ in 0..rounds {
            for (contender, samples) in contenders.iter().zip(&mut samples) {
                samples.push(arena.clock.time(false, || (contender.enqueue)(&arena.clock.stream))?);
            }
        }
        let what = match (direction, packed_in) {
            (Direction::Pack, PackedIn::Device) => "pack",
            (Direction::Unpack, PackedIn::Device) => "unpack",
            (Direction::Pack, PackedIn::Pinned) => "pack to pinned memory",
            (Direction::Unpack, PackedIn::Pinned) => "unpack from pinned memory",
        };
        let figure = |(contender, samples): (&Contender<'_>, &Vec<f64>)| {
            let (case, peer) = (subject.name.clone(), contender.name.clone());
            Figure { case, peer, what, bytes, us: median(samples) }
        };
        Ok(contenders.iter().zip(&samples).map(figure).collect())
    }

    fn poison(&mut self, arena: &Arena, direction: Direction) -> Result<(), Failure> {
        let stream = &arena.clock.stream;
        match direction {
            Direction::Pack => {
                fill(stream, &self.packed, 0..self.packed.len() as u64, POISON)?;
                self.pinned.as_mut_slice().fill(POISON);
            }
            Direction::Unpack => fill(stream, &self.memory, 0..self.memory.len() as u64, POISON)?,
        }
        Ok(stream.synchronize()?)
    }

    /// The first byte that is not as expected.
    fn difference(
        &self,
        arena: &mut Arena,
        direction: Direction,
        packed_in: PackedIn,
    ) -> Result<Option<usize>, Failure> {
        let difference = match (direction, packed_in) {
            (Direction::Pack, PackedIn::Device) => arena.pattern.difference(&self.packed, &self.packed_image)?,
            (Direction::Unpack, _) => arena.pattern.difference(&self.memory, &self.image)?,
            (Direction::Pack, PackedIn::Pinned) => {
                return Ok(first_difference(&self.packed_image, self.pinned.as_slice()));
            }
        };
        Ok(difference.map(|(at, _, _)| at))
    }
}
