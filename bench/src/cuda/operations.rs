//! Unpacks with an operation against plain unpacks, and copies from type to type against a pack and an unpack.

use dtc_compiler::datatype::{Datatype, text};
use dtc_compiler::operation::{Element, Operation, Reduction};
use dtc_compiler::plan::Direction;
use dtc_measure::bench::cuda::check::{POISON, Pattern};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::bench::table::table;
use dtc_measure::device::{OnDevice, copy_elements, fill};
use dtc_measure::failure::Failure;
use dtc_measure::timing::median;
use dtc_runtime::cuda::{CudaError, DeviceBuffer};
use dtc_runtime::{Committed, Engine, Range, TransferError};
use serde_json::{Value, json};
use std::io::Write;

/// Packed bytes of every case.
const BYTES: u64 = 64 << 20;

/// Types that sums are accumulated in: name, text of the type, and element.
const SUMS: [(&str, &str, Element); 8] = [
    ("double 8/16", "vector 8388608 1 2 double", Element::F64),
    ("double 64/512", "vector 1048576 8 64 double", Element::F64),
    ("double 128/512", "vector 524288 16 64 double", Element::F64),
    ("double, contiguous", "contiguous 8388608 double", Element::F64),
    ("float 4/8", "vector 16777216 1 2 float", Element::F32),
    ("float 64/512", "vector 1048576 16 128 float", Element::F32),
    ("int 8/64", "vector 8388608 2 16 int", Element::I32),
    ("int 1024/2048", "vector 65536 256 512 int", Element::I32),
];

/// Copies from one of these to the other.
const COPIES: [(&str, &str, &str); 8] = [
    ("8/16 to 8/64", "vector 8388608 1 2 double", "vector 8388608 1 8 double"),
    ("8/64 to 8/16", "vector 8388608 1 8 double", "vector 8388608 1 2 double"),
    ("64/512 to 64/256", "vector 1048576 8 64 double", "vector 1048576 8 32 double"),
    ("64/512 to 8/16", "vector 1048576 8 64 double", "vector 8388608 1 2 double"),
    ("128/512 to 1024/2048", "vector 524288 16 64 double", "vector 65536 128 256 double"),
    ("4/8 to 12/64", "vector 16777216 1 2 int", "vector 5592405 3 16 int"),
    ("1024/2048 to contiguous", "vector 65536 128 256 double", "contiguous 8388608 double"),
    ("1001/1003 to 17/24", "vector 67042 1001 1003 byte", "vector 3947580 17 24 byte"),
];

/// The median of rounds, in microseconds of the device with the cache emptied.
pub struct Figure {
    case: String,
    what: &'static str,
    bytes: u64,
    cold: f64,
}

impl Figure {
    /// The figure as a line of results, in the form of the peers' lines.
    pub fn to_json(&self) -> Value {
        json!({
            "peer": format!("dtc {}", self.what),
            "case": self.case,
            "packed_bytes": self.bytes,
            "cold_us": (self.cold * 1e3).round() / 1e3,
        })
    }

    fn rate(&self) -> f64 {
        self.bytes as f64 / self.cold.max(1e-3) / 1e3
    }
}

/// A type on one engine, and its elements on the device and on the host.
struct Side {
    committed: Committed,
    device: DeviceBuffer,
    host: Vec<u8>,
    bytes: u64,
}

impl Side {
    fn new(arena: &Arena, engine: &Engine, notation: &str) -> Result<Side, Failure> {
        let datatype = parsed(notation)?;
        let committed = engine.commit(&datatype);
        let refused = |error: &dyn std::fmt::Display| Failure::Description(format!("{notation}: {error}"));
        let bytes = committed.packed_size(1).map_err(|error| refused(&error))? as u64;
        let (_, high) = committed.span(1).unwrap_or((0, 0));
        let length = usize::try_from(high).map_err(|error| refused(&error))?;
        committed.prepare(&engine.gpu(0)?)?;
        let device = DeviceBuffer::new(arena.gpu.device(), length)?;
        Ok(Side { committed, device, host: vec![POISON; length], bytes })
    }

    fn poison(&mut self, arena: &Arena) -> Result<(), CudaError> {
        self.host.fill(POISON);
        fill(&arena.clock.stream, &self.device, 0..self.device.len() as u64, POISON)
    }

    fn on_device<'a>(&'a self, committed: &'a Committed, packed: &'a DeviceBuffer) -> OnDevice<'a> {
        OnDevice { committed, count: 1, memory: &self.device, origin: 0, packed, at: 0 }
    }
}

fn parsed(notation: &str) -> Result<Datatype, Failure> {
    text::parse(notation).map_err(|error| Failure::Description(format!("{notation}: {error}")))
}

/// Measures and checks all.
pub fn measure(arena: &mut Arena, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    for (case, notation, element) in SUMS {
        let reduction =
            Reduction::new(Operation::Sum, element).map_err(|error| Failure::Description(error.to_string()))?;
        sums(arena, &format!("accumulate into {case}"), notation, reduction, rounds, &mut figures)?;
    }
    for (case, from, to) in COPIES {
        copies(arena, case, from, to, rounds, &mut figures)?;
    }
    Ok(figures)
}

/// What is measured, and what enqueues it.
type Call<'a> = (&'static str, &'a dyn Fn() -> Result<(), TransferError>);

/// Times of calls in turns.
fn in_turns(arena: &Arena, rounds: usize, calls: &[Call<'_>]) -> Result<Vec<(&'static str, f64)>, Failure> {
    let mut samples = vec![Vec::new(); calls.len()];
    for _ in 0..rounds {
        for ((_, call), samples) in calls.iter().zip(&mut samples) {
            samples.push(arena.clock.time(false, call)?);
        }
    }
    Ok(calls.iter().zip(&samples).map(|((what, _), samples)| (*what, median(samples))).collect())
}

fn sums(
    arena: &mut Arena,
    case: &str,
    notation: &str,
    reduction: Reduction,
    rounds: usize,
    figures: &mut Vec<Figure>,
) -> Result<(), Failure> {
    let mut side = Side::new(arena, &arena.specialised, notation)?;
    let generic = arena.generic.commit(&parsed(notation)?);
    let packed = DeviceBuffer::new(arena.gpu.device(), side.bytes as usize)?;
    // Small whole numbers, which every element can hold.
    let numbers: Vec<u8> = (0..side.bytes / reduction.element().size())
        .flat_map(|at| {
            let number = (at % 1021) as u32;
            match reduction.element() {
                Element::F64 => f64::from(number).to_ne_bytes().to_vec(),
                Element::F32 => (number as f32).to_ne_bytes().to_vec(),
                _ => number.to_ne_bytes().to_vec(),
            }
        })
        .collect();
    let stream = &arena.clock.stream;
    for committed in [&side.committed.clone(), &generic] {
        side.poison(arena)?;
        let refused = |error: &dyn std::fmt::Display| Failure::Data(format!("{case}: {error}"));
        let mut source = DeviceBuffer::new(arena.gpu.device(), numbers.len())?;
        source.write(0, &numbers)?;
        dtc_measure::device::copy(stream, &packed, 0, &source, 0, side.bytes)?;
        let call = side.on_device(committed, &packed);
        call.enqueue(Direction::Unpack, stream, 0, side.bytes)?;
        call.accumulate(reduction, stream, side.bytes)?;
        stream.synchronize()?;
        let Side { committed, host, .. } = &mut side;
        committed.unpack(&numbers, Range::elements(1), &mut **host).map_err(|error| refused(&error))?;
        committed.accumulate(reduction, &numbers, Range::elements(1), host).map_err(|error| refused(&error))?;
        check(&mut arena.pattern, case, &side)?;
    }
    let plain =
        |direction| side.on_device(&side.committed, &packed).enqueue(direction, stream, 0, side.bytes).map(drop);
    // What a sum reads of memory, a pack reads; what it writes, an unpack writes.
    let (pack, unpack) = (|| plain(Direction::Pack), || plain(Direction::Unpack));
    let accumulate = |committed| side.on_device(committed, &packed).accumulate(reduction, stream, side.bytes).map(drop);
    let (compiled, interpreted) = (|| accumulate(&side.committed), || accumulate(&generic));
    let calls: [Call<'_>; 4] = [(PACK, &pack), (UNPACK, &unpack), (ACCUMULATE, &compiled), (GENERIC, &interpreted)];
    for (what, cold) in in_turns(arena, rounds, &calls)? {
        figures.push(Figure { case: case.to_owned(), what, bytes: side.bytes, cold });
    }
    Ok(())
}

fn copies(
    arena: &mut Arena,
    case: &str,
    from: &str,
    to: &str,
    rounds: usize,
    figures: &mut Vec<Figure>,
) -> Result<(), Failure> {
    let mut source = Side::new(arena, &arena.specialised, from)?;
    let mut target = Side::new(arena, &arena.specialised, to)?;
    let generic = [arena.generic.commit(&parsed(from)?), arena.generic.commit(&parsed(to)?)];
    let bytes = source.bytes.min(target.bytes);
    let packed = DeviceBuffer::new(arena.gpu.device(), BYTES as usize)?;
    let stream = &arena.clock.stream;
    arena.pattern.fill(&mut source.host, 0);
    arena.pattern.enqueue_fill(stream, &source.device, source.host.len() as u64, 0)?;
    for [one, other] in [[&source.committed, &target.committed.clone()], [&generic[0], &generic[1]]] {
        target.poison(arena)?;
        copy_elements(stream, (one, &source.device), (other, &target.device), bytes)?;
        stream.synchronize()?;
        let one = Range::elements(1).bytes(..bytes);
        source
            .committed
            .copy(&source.host, one, other, one, &mut target.host)
            .map_err(|error| Failure::Data(format!("{case}: {error}")))?;
        check(&mut arena.pattern, case, &target)?;
    }
    let pack = || source.on_device(&source.committed, &packed).enqueue(Direction::Pack, stream, 0, bytes).map(drop);
    let unpack = || target.on_device(&target.committed, &packed).enqueue(Direction::Unpack, stream, 0, bytes).map(drop);
    let copy = |one, other| copy_elements(stream, (one, &source.device), (other, &target.device), bytes).map(drop);
    let compiled = || copy(&source.committed, &target.committed);
    let interpreted = || copy(&generic[0], &generic[1]);
    let calls: [Call<'_>; 4] = [(PACK, &pack), (UNPACK, &unpack), (COPY, &compiled), (GENERIC, &interpreted)];
    for (what, cold) in in_turns(arena, rounds, &calls)? {
        figures.push(Figure { case: case.to_owned(), what, bytes, cold });
    }
    Ok(())
}

fn check(pattern: &mut Pattern, case: &str, side: &Side) -> Result<(), Failure> {
    match pattern.difference(&side.device, &side.host)? {
        None => Ok(()),
        Some((at, expected, found)) => {
            Err(Failure::Data(format!("{case}: wrong bytes: byte {at}: expected {expected}, found {found}")))
        }
    }
}

const PACK: &str = "pack";
const UNPACK: &str = "unpack";
const ACCUMULATE: &str = "accumulate";
const COPY: &str = "copy";
const GENERIC: &str = "generic";

/// Prints both tables.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    let cases: Vec<&[Figure]> = figures.chunk_by(|one, other| one.case == other.case).collect();
    let of = |case: &[Figure], what| case.iter().find(|figure| figure.what == what).map(Figure::rate);
    let number = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
    let share = |rate: Option<f64>, of: Option<f64>| match (rate, of) {
        (Some(rate), Some(of)) => format!("{:.2}", rate / of),
        _ => "-".to_owned(),
    };
    writeln!(
        out,
        "\nunpacks with an operation: packed GB/s with the cache emptied; shares of the plain unpack's speed"
    )?;
    let mut sums = table(&["case", "pack", "unpack", "accumulate", "share", "generic"]);
    for case in cases.iter().filter(|case| of(case, ACCUMULATE).is_some()) {
        let (pack, unpack, accumulate) = (of(case, PACK), of(case, UNPACK), of(case, ACCUMULATE));
        let shares = [share(accumulate, unpack), number(of(case, GENERIC))];
        let row = [pack, unpack, accumulate].map(number).into_iter().chain(shares);
        sums.add_row([case[0].case.clone()].into_iter().chain(row));
    }
    writeln!(
        out,
        "{sums}\n\ncopies from type to type: GB/s with the cache emptied; shares of the slower of pack and unpack"
    )?;
    let mut copies = table(&["case", "pack", "unpack", "copy", "share", "generic"]);
    for case in cases.iter().filter(|case| of(case, COPY).is_some()) {
        let (pack, unpack, copy) = (of(case, PACK), of(case, UNPACK), of(case, COPY));
        let slower = pack.zip(unpack).map(|(pack, unpack)| pack.min(unpack));
        let row = [number(pack), number(unpack), number(copy), share(copy, slower), number(of(case, GENERIC))];
        copies.add_row([case[0].case.clone()].into_iter().chain(row));
    }
    writeln!(out, "{copies}")?;
    Ok(())
}
