//! Copies from type to type between two devices, beside copies of the driver of as many bytes, and beside a pack into memory
//! of the other device with an unpack there.

use super::transfers::{Clock, Clocks, Times, cells, in_turns, microseconds, on_host};
use dtc_compiler::datatype::text;
use dtc_compiler::plan::Direction;
use dtc_measure::bench::table::table;
use dtc_measure::buffer::{Between, FromTo, Memory, copy, time_of_copy};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_measure::samples::{SEED, fill};
use dtc_runtime::cuda::{Device, MemoryKind};
use dtc_runtime::{Committed, Engine, Policy, Range, TransferError};
use serde_json::{Value, json};
use std::io::Write;

/// Runs and how far apart they begin, in bytes: of the type that is read and of the one that is written.
const LAYOUTS: [[(u64, u64); 2]; 6] = [
    [(128, 512), (1024, 2048)],
    [(1024, 2048), (128, 512)],
    [(512, 4096), (512, 1024)],
    [(8, 64), (8, 16)],
    [(64, 512), (8, 16)],
    [(8, 16), (64, 512)],
];

/// Packed bytes of calls.
const SIZES: [u64; 2] = [4 << 20, 32 << 20];

/// Bytes of a run of the written type from which on runs go over the link one by one, by one launch that can be enqueued.
const LONG_RUN: u64 = 128;

/// What was measured.
pub struct Figure {
    layouts: [(u64, u64); 2],
    bytes: u64,
    dtc: Times,
    copy: Times,
    /// A pack and an unpack in turn.
    two_calls: Times,
}

impl Figure {
    /// One line for the file of figures.
    pub fn to_json(&self) -> Value {
        let [from, to] = self.layouts;
        json!({
            "what": "copy from type to type to another device",
            "from_run_bytes": from.0,
            "from_pitch_bytes": from.1,
            "to_run_bytes": to.0,
            "to_pitch_bytes": to.1,
            "packed_bytes": self.bytes,
            "dtc_us": microseconds(&self.dtc),
            "copy_us": microseconds(&self.copy),
            "pack_and_unpack_us": microseconds(&self.two_calls),
            "target": self.target(),
        })
    }

    fn is_long(&self) -> bool {
        self.layouts[1].0 >= LONG_RUN
    }

    fn target(&self) -> f64 {
        if self.is_long() { 0.92 } else { 0.8 }
    }

    fn reference(&self, clock: Clock) -> Option<f64> {
        if self.is_long() { self.copy[clock as usize] } else { self.two_calls[clock as usize] }
    }
}

/// Measures copies from GPU 0 to GPU 1; nothing where there is one only. Every byte is checked.
pub fn measure(rounds: usize, mut tell: impl FnMut(String)) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    if Device::count()? < 2 {
        return Ok(figures);
    }
    let engine = Engine::builder().policy(Policy::Eager).build();
    let clocks = Clocks::new()?;
    let [one, other] = [MemoryKind::Device(0), MemoryKind::Device(1)];
    for layouts in LAYOUTS {
        for bytes in SIZES {
            let [(from_run, from_pitch), (to_run, to_pitch)] = layouts;
            tell(format!("GPU to GPU, {from_run} of {from_pitch} to {to_run} of {to_pitch}"));
            let types = [committed(&engine, layouts[0], bytes)?, committed(&engine, layouts[1], bytes)?];
            let [read, written] =
                types.each_ref().map(|committed| committed.span(1).map_or(0, |(_, high)| high as usize));
            let mut bench = Bench {
                types: &types,
                clocks: &clocks,
                source: Memory::new(one, read)?,
                packed: Memory::new(one, bytes as usize)?,
                receive_buffer: Memory::new(other, bytes as usize)?,
                target: Memory::new(other, written)?,
                bytes,
                enqueued: to_run >= LONG_RUN,
            };
            bench.check(read, written)?;
            let [dtc, copy, two_calls] = bench.times(rounds)?;
            figures.push(Figure { layouts, bytes, dtc, copy, two_calls });
        }
    }
    Ok(figures)
}

fn committed(engine: &Engine, (run, pitch): (u64, u64), bytes: u64) -> Result<Committed, Failure> {
    let notation = format!("vector {} {run} {pitch} byte", bytes / run);
    let datatype = text::parse(&notation).map_err(|error| Failure::Description(format!("{notation}: {error}")))?;
    Ok(engine.commit(&datatype))
}

struct Bench<'a> {
    /// What is read, and what is written.
    types: &'a [Committed; 2],
    clocks: &'a Clocks,
    source: Memory,
    /// As many bytes on the first device.
    packed: Memory,
    /// As many bytes on the second.
    receive_buffer: Memory,
    target: Memory,
    bytes: u64,
    /// Whether one launch does it.
    enqueued: bool,
}

impl Bench<'_> {
    fn sides(&mut self) -> FromTo<'_> {
        FromTo { from: &self.types[0], source: &mut self.source, to: &self.types[1], target: &mut self.target }
    }

    fn pack_and_unpack(&mut self) -> Result<(), TransferError> {
        let Bench { types, source, receive_buffer, target, bytes, .. } = self;
        let mut pack = Between { committed: &types[0], count: 1, memory: source, origin: 0, packed: receive_buffer };
        pack.call(Direction::Pack, 0, *bytes)?;
        let mut unpack = Between { committed: &types[1], count: 1, memory: target, origin: 0, packed: receive_buffer };
        unpack.call(Direction::Unpack, 0, *bytes).map(drop)
    }

    fn times(&mut self, rounds: usize) -> Result<[Times; 3], Failure> {
        let clocks = self.clocks;
        in_turns(rounds, |clock, peer| {
            let warm = matches!(clock, Clock::Warm);
            if let Clock::Cold = clock {
                clocks.flush_others()?;
            }
            let bytes = self.bytes;
            let (receive_buffer, packed) = (&mut self.receive_buffer, &mut self.packed);
            Ok(match (clock, peer) {
                (Clock::Host, 0) => {
                    let mut call = self.sides();
                    Some(on_host(|| call.call(bytes).map(drop))?)
                }
                (_, 0) if self.enqueued => Some(self.sides().time(&clocks.device, warm, bytes)?),
                (Clock::Host, 1) => {
                    Some(on_host(|| copy(&clocks.device.stream, receive_buffer, packed, bytes as usize))?)
                }
                (_, 1) => Some(time_of_copy(&clocks.device, warm, receive_buffer, packed, bytes as usize)?),
                (Clock::Host, _) => Some(on_host(|| self.pack_and_unpack())?),
                _ => None,
            })
        })
    }

    fn check(&mut self, read: usize, written: usize) -> Result<(), Failure> {
        let mut host = vec![0; read];
        fill(&mut host, SEED);
        self.source.write(0, &host)?;
        let mut expected = vec![0x5a; written];
        self.target.write(0, &expected)?;
        let bytes = self.bytes;
        self.sides().call(bytes)?;
        let mut found = vec![0; written];
        self.target.read(0, &mut found)?;
        let (one, [from, to]) = (Range::elements(1).bytes(..bytes), self.types);
        from.copy(&host, one, to, one, &mut expected).map_err(|error| Failure::Data(error.to_string()))?;
        if found == expected {
            Ok(())
        } else {
            Err(Failure::data("copy to another device", "the bytes that the processor moves", "others"))
        }
    }
}

/// Prints figures.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    if figures.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\ncopies from type to type to another device, GB/s on the device's clock and of blocking calls, and shares of a \
         copy of the driver; for short runs, of a pack into memory of the other device and an unpack there"
    )?;
    let mut table =
        table(&["from runs", "to runs", "packed", "cold", "share", "warm", "share", "blocking", "share", "target"]);
    for figure in figures {
        let [from, to] = figure.layouts.map(|(run, pitch)| format!("{run} of {pitch}"));
        let cells = cells(figure.bytes, &figure.dtc, |clock| figure.reference(clock));
        let what = [from, to, report::bytes(figure.bytes)];
        table.add_row(what.into_iter().chain(cells).chain([format!("{:.2}", figure.target())]));
    }
    Ok(writeln!(out, "{table}")?)
}
