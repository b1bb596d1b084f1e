//! Batches: the halo of a box in one launch, against its pieces alone and one after another.

use dtc_compiler::datatype::{Datatype, DatatypeError, Order, Predefined, TypeBuilder};
use dtc_compiler::plan::Direction;
use dtc_measure::bench::cuda::check::POISON;
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::bench::table::table;
use dtc_measure::device::{OnDevice, Repeated, enqueue_batch, fill, prepare_batch};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_measure::timing::median;
use dtc_runtime::TransferError;
use dtc_runtime::cuda::{CudaError, DeviceBuffer};
use dtc_runtime::{Committed, Engine, Memory, MemoryMut, Range, Tier};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;
use std::time::Instant;

/// Doubles along an edge of the box.
const EDGE: i64 = 512;

/// Packed bytes of the batches of items of different sizes.
const ITEMS_BYTES: u64 = 256 << 20;

/// Bytes of the largest item of those batches, over bytes of the smallest.
const SKEW: u64 = 1_000_000;

/// Alignment of items in the packed buffer, in bytes.
const ALIGNMENT: u64 = 256;

/// Medians of rounds, in microseconds of the device.
pub struct Figure {
    case: String,
    direction: Direction,
    what: &'static str,
    packed_bytes: u64,
    cold: f64,
    warm: f64,
}

impl Figure {
    /// The figure as a line of results, in the form of the peers' lines.
    pub fn to_json(&self) -> Value {
        let rounded = |time: f64| (time * 1e3).round() / 1e3;
        json!({
            "peer": format!("dtc {}", self.what),
            "case": self.case,
            "direction": self.direction.to_string(),
            "packed_bytes": self.packed_bytes,
            "cold_us": rounded(self.cold),
            "warm_us": rounded(self.warm),
        })
    }
}

const ONE_LAUNCH: &str = "one launch";
const GENERIC: &str = "one launch, generic kernel";
const HOST: &str = "enqueueing it again, on the host";
const PERSISTENT_HOST: &str = "the same, prepared";
const MOVED_HOST: &str = "the same, prepared, 100 addresses changed";
const GENERIC_HOST: &str = "enqueueing it again, generic kernel";
const GENERIC_PERSISTENT_HOST: &str = "the same, generic kernel, prepared";
const ONE_BY_ONE: &str = "one after another";
const ALONE: &str = "sum of each alone";

/// The pieces that a box sends to its 26 neighbours: `width` layers of doubles at faces, edges and corners.
fn pieces(width: i64) -> Result<Vec<Datatype>, DatatypeError> {
    let sides = [(0, width), (0, EDGE), (EDGE - width, width)];
    let mut pieces = Vec::new();
    for number in (0..27).filter(|&number| number != 13) {
        let [(x, x_size), (y, y_size), (z, z_size)] = [number % 3, number / 3 % 3, number / 9].map(|side| sides[side]);
        let mut types = TypeBuilder::new();
        let double = types.named(Predefined::DOUBLE);
        let piece = types.subarray(&[EDGE; 3], &[z_size, y_size, x_size], &[z, y, x], Order::C, double)?;
        pieces.push(types.finish(piece)?);
    }
    Ok(pieces)
}

/// Blocks of 8 bytes, 64 bytes apart, with `bytes` packed bytes in all.
fn strided(bytes: u64) -> Result<Datatype, DatatypeError> {
    let mut types = TypeBuilder::new();
    let double = types.named(Predefined::DOUBLE);
    let vector = types.vector((bytes / 8).max(1) as i64, 1, 8, double)?;
    types.finish(vector)
}

/// Measures halos of two widths, and items of equal and of very different sizes.
pub fn measure(arena: &Arena, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let refused = |error: DatatypeError| Failure::Description(error.to_string());
    let mut figures = Vec::new();
    for width in [1, 2] {
        let pieces = pieces(width).map_err(refused)?;
        let items: Vec<Item> = pieces.into_iter().map(|datatype| Item { datatype, origin: 0 }).collect();
        let name = format!("halo of {EDGE}^3 doubles, width {width}");
        Batch::new(arena, name, items, (EDGE * EDGE * EDGE * 8) as u64)?.measure(rounds, true, &mut figures)?;
    }
    // Sizes of a geometric series, each half as often as it is large, so that all sizes have their share of the bytes.
    let mut skewed = Vec::new();
    let classes = 21;
    for class in 0..classes {
        let bytes = (8.0 * (SKEW as f64).powf(f64::from(class) / f64::from(classes - 1))) as u64 / 8 * 8;
        // The cap on the smallest items gives the batch 100,000 items.
        let number = (ITEMS_BYTES / u64::from(classes as u32) / bytes).clamp(1, 9_000);
        skewed.extend(std::iter::repeat_n(bytes, number as usize));
    }
    let total: u64 = skewed.iter().sum();
    let equal = total / skewed.len() as u64 / 8 * 8;
    for (name, sizes) in
        [("items of equal size", vec![equal; skewed.len()]), ("items of 8 bytes to 8 MB", skewed.clone())]
    {
        let mut origin = 0;
        let mut items = Vec::new();
        let mut known: HashMap<u64, Datatype> = HashMap::new();
        for bytes in sizes {
            let datatype = match known.entry(bytes) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(strided(bytes).map_err(refused)?).clone(),
            };
            items.push(Item { datatype, origin });
            origin += (bytes * 8).next_multiple_of(ALIGNMENT) as i64;
        }
        let name = format!("{} {name}", items.len());
        Batch::new(arena, name, items, origin as u64)?.measure(rounds.min(5), false, &mut figures)?;
    }
    Ok(figures)
}

/// What was measured, and microseconds with the cache emptied and not.
type Samples = (&'static str, [Vec<f64>; 2]);

/// A type, and where address 0 is in the buffer.
struct Item {
    datatype: Datatype,
    origin: i64,
}

/// Items in one buffer, their packed bytes in another, and what the CPU makes of them.
struct Batch<'a> {
    arena: &'a Arena,
    name: String,
    /// Each type as committed by the engine that compiles, and by the one that does not.
    committed: Vec<[Committed; 2]>,
    origins: Vec<i64>,
    places: Vec<u64>,
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    bytes: u64,
}

impl Batch<'_> {
    fn new(arena: &Arena, name: String, items: Vec<Item>, buffer: u64) -> Result<Batch<'_>, Failure> {
        let (mut committed, mut origins, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let (mut at, mut bytes) = (0, 0);
        for Item { datatype, origin } in items {
            let both = [arena.specialised.commit(&datatype), arena.generic.commit(&datatype)];
            places.push(at);
            at += both[0].layout().size().next_multiple_of(ALIGNMENT);
            bytes += both[0].layout().size();
            committed.push(both);
            origins.push(origin);
        }
        let device = arena.gpu.device();
        let (memory, packed) = (DeviceBuffer::new(device, buffer as usize)?, DeviceBuffer::new(device, at as usize)?);
        Ok(Batch { arena, name, committed, origins, places, memory, packed, bytes })
    }

    fn calls(&self, generic: bool) -> Vec<OnDevice<'_>> {
        let places = self.origins.iter().zip(&self.places);
        let call = |(committed, (&origin, &at))| OnDevice {
            committed: {
                let both: &[Committed; 2] = committed;
                &both[usize::from(generic)]
            },
            count: 1,
            memory: &self.memory,
            origin,
            packed: &self.packed,
            at,
        };
        self.committed.iter().zip(places).map(call).collect()
    }

    fn engine(&self, generic: bool) -> &Engine {
        if generic { &self.arena.generic } else { &self.arena.specialised }
    }

    /// Checks every byte, and measures both directions. Alone only where there are few.
    fn measure(&self, rounds: usize, alone: bool, figures: &mut Vec<Figure>) -> Result<(), Failure> {
        let stream = &self.arena.clock.stream;
        let mut image = vec![0u8; self.memory.len()];
        self.arena.pattern.fill(&mut image, 0);
        let mut packed_image = vec![POISON; self.packed.len()];
        let refused = |error| Failure::Data(format!("{}: {error}", self.name));
        for ((committed, &origin), &at) in self.committed.iter().zip(&self.origins).zip(&self.places) {
            let range = at as usize..(at + committed[0].layout().size()) as usize;
            committed[0]
                .pack(Memory::at(&image, origin as usize), Range::elements(1), &mut packed_image[range])
                .map_err(refused)?;
        }
        for direction in [Direction::Pack, Direction::Unpack] {
            let mut samples: Vec<Samples> = Vec::new();
            for generic in [false, true] {
                let calls = self.calls(generic);
                if !generic {
                    for call in &calls {
                        call.committed.prepare(&self.arena.gpu)?;
                    }
                }
                let gpu = self.engine(generic).gpu(0)?;
                let tier = prepare_batch(self.engine(generic), &gpu, direction, &calls)?;
                if !generic && tier != Tier::Specialised {
                    let problem = gpu.problem().map_or_else(|| "no kernel".to_owned(), |error| error.to_string());
                    return Err(Failure::Data(format!("{}: {problem}", self.name)));
                }
                self.fill_sides(direction)?;
                let moved = enqueue_batch(self.engine(generic), stream, direction, &calls)?;
                stream.synchronize()?;
                if moved as u64 != self.bytes {
                    return Err(Failure::data(&self.name, format_args!("{} bytes", self.bytes), moved));
                }
                self.check(direction, &image, &packed_image)?;
                let one_launch = || enqueue_batch(self.engine(generic), stream, direction, &calls).map(drop);
                let name = if generic { GENERIC } else { ONE_LAUNCH };
                if alone {
                    samples.push((name, self.time(rounds, one_launch)?));
                } else {
                    // The host looks through every call of a batch at each launch; a prepared batch has done so once.
                    let repeated = RefCell::new(Repeated::new(self.engine(generic), &gpu, direction, &calls)?);
                    let prepared = || Ok(repeated.borrow_mut().enqueue(stream).map(drop)?);
                    samples.push((name, self.time(rounds, prepared)?));
                    let (again, once) =
                        if generic { (GENERIC_HOST, GENERIC_PERSISTENT_HOST) } else { (HOST, PERSISTENT_HOST) };
                    samples.push((again, self.host_time(rounds, one_launch)?));
                    samples.push((once, self.host_time(rounds, prepared)?));
                    if !generic {
                        let moved = || {
                            repeated.borrow_mut().touch(100)?;
                            prepared()
                        };
                        samples.push((MOVED_HOST, self.host_time(rounds, moved)?));
                    }
                    self.fill_sides(direction)?;
                    prepared()?;
                    stream.synchronize()?;
                    self.check(direction, &image, &packed_image)?;
                }
            }
            if alone {
                samples.extend(self.one_by_one(rounds, direction)?);
            }
            figures.extend(samples.into_iter().map(|(what, [cold, warm])| Figure {
                case: self.name.clone(),
                direction,
                what,
                packed_bytes: self.bytes,
                cold: median(&cold),
                warm: median(&warm),
            }));
        }
        Ok(())
    }

    /// Fills memory with the pattern and the packed bytes with poison, or memory with poison: the packed bytes of the packs are there still.
    fn fill_sides(&self, direction: Direction) -> Result<(), Failure> {
        let stream = &self.arena.clock.stream;
        match direction {
            Direction::Pack => {
                self.arena.pattern.enqueue_fill(stream, &self.memory, self.memory.len() as u64, 0)?;
                fill(stream, &self.packed, 0..self.packed.len() as u64, POISON)?;
            }
            Direction::Unpack => fill(stream, &self.memory, 0..self.memory.len() as u64, POISON)?,
        }
        Ok(stream.synchronize()?)
    }

    /// The calls in a row, and the sum of each by itself.
    fn one_by_one(&self, rounds: usize, direction: Direction) -> Result<[Samples; 2], Failure> {
        let (calls, stream) = (self.calls(false), &self.arena.clock.stream);
        let whole = |call: &OnDevice<'_>| call.enqueue(direction, stream, 0, call.committed.layout().size()).map(drop);
        let in_a_row = self.time(rounds, || calls.iter().try_for_each(whole))?;
        let mut sums = [0.0, 0.0];
        for call in &calls {
            let [cold, warm] = self.time(rounds, || whole(call))?;
            sums[0] += median(&cold);
            sums[1] += median(&warm);
        }
        Ok([(ONE_BY_ONE, in_a_row), (ALONE, sums.map(|sum| vec![sum]))])
    }

    /// Microseconds that the host takes to enqueue.
    fn host_time(
        &self,
        rounds: usize,
        enqueue: impl Fn() -> Result<(), TransferError>,
    ) -> Result<[Vec<f64>; 2], TransferError> {
        let stream = &self.arena.clock.stream;
        let mut times = Vec::new();
        for _ in 0..rounds {
            stream.synchronize()?;
            let start = Instant::now();
            enqueue()?;
            times.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        stream.synchronize()?;
        Ok([times.clone(), times])
    }

    fn time<E: From<CudaError>>(
        &self,
        rounds: usize,
        enqueue: impl Fn() -> Result<(), E>,
    ) -> Result<[Vec<f64>; 2], Failure>
    where
        Failure: From<E>,
    {
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (warm, samples) in samples.iter_mut().enumerate() {
                samples.push(self.arena.clock.time(warm == 1, &enqueue)?);
            }
        }
        Ok(samples)
    }

    /// Every byte of the side that was written.
    fn check(&self, direction: Direction, image: &[u8], packed_image: &[u8]) -> Result<(), Failure> {
        let mut found = vec![0u8; if direction == Direction::Pack { self.packed.len() } else { self.memory.len() }];
        let mut expected = packed_image.to_vec();
        match direction {
            Direction::Pack => self.packed.read(0, &mut found)?,
            Direction::Unpack => {
                self.memory.read(0, &mut found)?;
                expected = vec![POISON; image.len()];
                let refused = |error| Failure::Data(format!("{}: {error}", self.name));
                for ((committed, &origin), &at) in self.committed.iter().zip(&self.origins).zip(&self.places) {
                    let range = at as usize..(at + committed[0].layout().size()) as usize;
                    let packed = &packed_image[range];
                    committed[0]
                        .unpack(packed, Range::elements(1), MemoryMut::at(&mut expected, origin as usize))
                        .map_err(refused)?;
                }
            }
        }
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            None => Ok(()),
            Some(at) => {
                let place = format!("{}, {direction}: byte {at}", self.name);
                Err(Failure::data(place, expected[at], found[at]))
            }
        }
    }
}

/// Prints them.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\nbatches: device time with the cache emptied and not; every byte is checked")?;
    let mut table = table(&["batch", "direction", "how", "packed", "cold", "warm", "of one launch"]);
    let time = |microseconds: f64| report::time(microseconds * 1e3);
    for figure in figures {
        let same = |other: &&Figure| other.case == figure.case && other.direction == figure.direction;
        let launch = figures.iter().filter(same).find(|other| other.what == ONE_LAUNCH);
        table.add_row([
            figure.case.clone(),
            figure.direction.to_string(),
            figure.what.to_owned(),
            report::bytes(figure.packed_bytes),
            time(figure.cold),
            time(figure.warm),
            launch.map_or_else(|| "-".to_owned(), |launch| format!("{:.2}", figure.cold / launch.cold)),
        ]);
    }
    for left in [1, 2] {
        if let Some(column) = table.column_mut(left) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    Ok(writeln!(out, "{table}")?)
}
