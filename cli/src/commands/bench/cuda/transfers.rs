//! Blocking calls between kinds of memory, beside copies of the driver of as many bytes between the same kinds.

use crate::anywhere::{Between, Memory, copy};
use crate::commands::bench::table::table;
use crate::failure::Failure;
use crate::report;
use crate::samples::{SEED, fill};
use crate::timing::median;
use dtc_compiler::datatype::text;
use dtc_compiler::plan::Direction;
use dtc_runtime::cuda::{Device, MemoryKind, Stream};
use dtc_runtime::{Committed, Engine, Policy};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

/// Runs and how far apart they begin, in bytes.
const LAYOUTS: [(u64, u64); 6] = [(8, 16), (8, 64), (32, 64), (128, 512), (1024, 2048), (4096, 4096)];

/// Packed bytes of calls.
const SIZES: [u64; 3] = [64 << 10, 4 << 20, 32 << 20];

/// Elements do not span more.
const LARGEST_SPAN: u64 = 64 << 20;

/// What was measured: medians on the host's clock.
pub struct Figure {
    memory: MemoryKind,
    packed: MemoryKind,
    layout: (u64, u64),
    bytes: u64,
    /// Gigabytes per second: packs, copies of the same way, unpacks, copies of that way.
    rates: [f64; 4],
}

impl Figure {
    /// One line for the file of figures.
    pub fn to_json(&self) -> Value {
        let rounded = self.rates.map(|rate| (rate * 100.0).round() / 100.0);
        json!({
            "memory": self.memory.to_string(),
            "packed": self.packed.to_string(),
            "run_bytes": self.layout.0,
            "pitch_bytes": self.layout.1,
            "packed_bytes": self.bytes,
            "pack_gb_s": rounded[0],
            "copy_out_gb_s": rounded[1],
            "unpack_gb_s": rounded[2],
            "copy_in_gb_s": rounded[3],
            "clock": "host",
        })
    }
}

/// Measures all pairs that a device takes part in. Every byte is checked.
pub fn measure(rounds: usize, mut tell: impl FnMut(String)) -> Result<Vec<Figure>, Failure> {
    let engine = Engine::builder().policy(Policy::Eager).build();
    engine.gpu(0)?;
    let device = MemoryKind::Device(0);
    let mut pairs = vec![
        (device, MemoryKind::Pinned),
        (device, MemoryKind::Pageable),
        (MemoryKind::Pinned, device),
        (MemoryKind::Pageable, device),
        (device, MemoryKind::Managed),
    ];
    if Device::count()? > 1 {
        engine.gpu(1)?;
        pairs.push((device, MemoryKind::Device(1)));
    }
    let most = LAYOUTS.iter().flat_map(|&layout| SIZES.map(|bytes| span(layout, bytes)));
    let most = most.filter(|&span| span <= LARGEST_SPAN).max().unwrap_or(0) as usize;
    let largest = SIZES.iter().max().map_or(0, |&bytes| bytes as usize);
    let mut host = vec![0; most];
    fill(&mut host, SEED);
    let mut figures = Vec::new();
    for (memory_kind, packed_kind) in pairs {
        let mut memory = Memory::new(memory_kind, most)?;
        let mut packed = Memory::new(packed_kind, largest)?;
        // For the copies, in place of the elements.
        let mut other = Memory::new(memory_kind, largest)?;
        for layout in LAYOUTS {
            for bytes in SIZES.into_iter().filter(|&bytes| span(layout, bytes) <= LARGEST_SPAN) {
                tell(format!("{memory_kind}, {packed_kind}, {} of {}", layout.0, layout.1));
                let committed = committed(&engine, layout)?;
                let mut bench = Bench {
                    committed: &committed,
                    host: &host,
                    memory: &mut memory,
                    packed: &mut packed,
                    other: &mut other,
                };
                let rates = bench.rates(bytes, rounds)?;
                figures.push(Figure { memory: memory_kind, packed: packed_kind, layout, bytes, rates });
            }
        }
    }
    Ok(figures)
}

fn span((run, pitch): (u64, u64), bytes: u64) -> u64 {
    bytes / run * pitch
}

fn committed(engine: &Engine, (run, pitch): (u64, u64)) -> Result<Committed, Failure> {
    let notation = format!("resized 0 {} (contiguous {run} byte)", pitch);
    let datatype = text::parse(&notation).map_err(|error| Failure::Description(format!("{notation}: {error}")))?;
    Ok(engine.commit(&datatype))
}

struct Bench<'a> {
    committed: &'a Committed,
    host: &'a [u8],
    memory: &'a mut Memory,
    packed: &'a mut Memory,
    other: &'a mut Memory,
}

impl Bench<'_> {
    fn call(&mut self, direction: Direction, bytes: u64) -> Result<(), Failure> {
        let count = bytes / self.committed.layout().size();
        let mut between =
            Between { committed: self.committed, count, memory: self.memory, origin: 0, packed: self.packed };
        between.call(direction, 0, bytes)?;
        Ok(())
    }

    /// Packs, copies, unpacks, copies: medians of interleaved rounds, after every byte was looked at.
    fn rates(&mut self, bytes: u64, rounds: usize) -> Result<[f64; 4], Failure> {
        self.check(bytes)?;
        let gpu = Device::get(0)?;
        let stream = Stream::new(&gpu)?;
        let mut times: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds {
            for (index, times) in times.iter_mut().enumerate() {
                let start = Instant::now();
                match index {
                    0 => self.call(Direction::Pack, bytes)?,
                    1 => copy(&stream, self.packed, self.other, bytes as usize)?,
                    2 => self.call(Direction::Unpack, bytes)?,
                    _ => copy(&stream, self.other, self.packed, bytes as usize)?,
                }
                times.push(start.elapsed().as_secs_f64());
            }
        }
        Ok(times.map(|times| bytes as f64 / median(&times) / 1e9))
    }

    fn check(&mut self, bytes: u64) -> Result<(), Failure> {
        let count = bytes / self.committed.layout().size();
        let length = self.committed.span(count).map_or(0, |(_, high)| high as usize);
        let host = &self.host[..length];
        let mut wanted = vec![0; bytes as usize];
        let refused = |error: dtc_runtime::PackError| Failure::Data(error.to_string());
        self.committed.pack(host, 0, count, 0, &mut wanted).map_err(refused)?;
        self.memory.write(0, host)?;
        self.call(Direction::Pack, bytes)?;
        let mut found = vec![0; bytes as usize];
        self.packed.read(0, &mut found)?;
        let wrong = |what: &str| Failure::data(what, "the bytes that the processor moves", "others");
        if found != wanted {
            return Err(wrong("pack"));
        }
        self.memory.write(0, &vec![0x5a; length])?;
        self.call(Direction::Unpack, bytes)?;
        let mut found = vec![0; length];
        self.memory.read(0, &mut found)?;
        let mut expected = vec![0x5a; length];
        self.committed.unpack(&wanted, 0, &mut expected, 0, count).map_err(refused)?;
        if found == expected { Ok(()) } else { Err(wrong("unpack")) }
    }
}

/// Prints figures.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "\nblocking calls between kinds of memory, GB/s on the clock of the host, and the share of a copy of the driver"
    )?;
    let mut table = table(&["elements", "packed bytes in", "runs", "packed", "pack", "of copy", "unpack", "of copy"]);
    for Figure { memory, packed, layout: (run, pitch), bytes, rates } in figures {
        table.add_row([
            memory.to_string(),
            packed.to_string(),
            format!("{run} of {pitch}"),
            report::bytes(*bytes),
            format!("{:.2}", rates[0]),
            format!("{:.2}", rates[0] / rates[1]),
            format!("{:.2}", rates[2]),
            format!("{:.2}", rates[2] / rates[3]),
        ]);
    }
    Ok(writeln!(out, "{table}")?)
}
