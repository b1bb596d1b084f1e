//! What calls cost on the clock of the host: small packs, launches, commits.

use super::cases::runs;
use dtc_compiler::datatype::{Datatype, text};
use dtc_compiler::plan::Direction;
use dtc_measure::bench::cuda::check::POISON;
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::bench::table::table;
use dtc_measure::device::{Nothing, OnDevice, Repeated, copy};
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_measure::samples::{SEED, fill};
use dtc_measure::timing::median;
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::store::Config;
use dtc_runtime::{Committed, Engine, Policy, Range};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Calls of a figure.
const CALLS: usize = 301;

/// Calls that are enqueued in a row.
const ROW: usize = 1000;

/// Types that are committed in a row.
const ROW_OF_COMMITS: u64 = 100;

/// Bytes of the buffers.
const BUFFER_BYTES: usize = 1 << 20;

/// Medians on the host's clock, in microseconds.
pub struct Figure {
    what: String,
    case: String,
    direction: Direction,
    packed_bytes: u64,
    cold: Option<f64>,
    warm: f64,
}

impl Figure {
    /// A figure without caches emptied, in microseconds.
    pub fn on_host(what: &str, case: &str, direction: Direction, packed_bytes: u64, warm: f64) -> Figure {
        Figure { what: what.to_owned(), case: case.to_owned(), direction, packed_bytes, cold: None, warm }
    }

    /// The figure as a line of results, in the form of the peers' lines.
    pub fn to_json(&self) -> Value {
        let rounded = |time: f64| (time * 1e3).round() / 1e3;
        json!({
            "peer": self.what,
            "case": self.case,
            "direction": self.direction.to_string(),
            "packed_bytes": self.packed_bytes,
            "cold_us": self.cold.map(rounded),
            "warm_us": rounded(self.warm),
            "clock": "host",
        })
    }
}

/// Prints figures.
pub fn print(title: &str, figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "\n{title}")?;
    let mut table = table(&["what", "case", "packed", "cold", "warm"]);
    let time = |microseconds: f64| report::time(microseconds * 1e3);
    for figure in figures {
        table.add_row([
            figure.what.clone(),
            figure.case.clone(),
            report::bytes(figure.packed_bytes),
            figure.cold.map_or_else(|| "-".to_owned(), time),
            time(figure.warm),
        ]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    Ok(writeln!(out, "{table}")?)
}

fn parse(notation: &str) -> Result<Datatype, Failure> {
    text::parse(notation).map_err(|error| Failure::Description(format!("{notation}: {error}")))
}

fn irregular(number: u64, seed: u64) -> Result<Datatype, Failure> {
    runs(number, 4, 32, seed, |_, _| {}).map_err(|error| Failure::Description(error.to_string()))
}

/// The buffers of small calls.
struct Bench<'a> {
    arena: &'a mut Arena,
    stream: Stream,
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    figures: Vec<Figure>,
}

/// Measures launches and small calls.
pub fn calls(arena: &mut Arena) -> Result<Vec<Figure>, Failure> {
    let device = arena.gpu.device().clone();
    let (stream, memory) = (Stream::new(&device)?, DeviceBuffer::new(&device, BUFFER_BYTES)?);
    let packed = DeviceBuffer::new(&device, BUFFER_BYTES)?;
    let mut bench = Bench { arena, stream, memory, packed, figures: Vec::new() };
    let nothing = Nothing::new(&bench.arena.gpu)?;
    let launch = |bench: &Bench<'_>| Ok::<(), Failure>(nothing.enqueue(&bench.stream)?);
    bench.time("empty kernel enqueued", "launch", Direction::Pack, 0, CALLS, launch)?;
    bench.time(&format!("{ROW} empty kernels synchronised"), "launch", Direction::Pack, 0, 9, |bench| {
        (0..ROW).try_for_each(|_| launch(bench))?;
        Ok(bench.stream.synchronize()?)
    })?;
    let smallest = bench.commit(&parse("vector 2 1 2 int")?)?;
    bench.enqueued("smallest pack", "launch", &smallest)?;
    let cases = [
        ("4 KiB", parse("vector 512 1 2 double")?),
        ("64 KiB", parse("vector 8192 1 2 double")?),
        ("runs int 1..32 1k", irregular(1000, 1)?),
    ];
    for (name, datatype) in cases {
        let committed = bench.commit(&datatype)?;
        bench.check(name, &committed)?;
        bench.blocking(name, &committed)?;
        if name == "4 KiB" {
            bench.enqueued("pack", name, &committed)?;
        }
    }
    Ok(bench.figures)
}

impl Bench<'_> {
    fn commit(&self, datatype: &Datatype) -> Result<Committed, Failure> {
        let committed = self.arena.specialised.commit(datatype);
        committed.prepare(&self.arena.gpu)?;
        Ok(committed)
    }

    fn call<'a>(&'a self, committed: &'a Committed) -> OnDevice<'a> {
        OnDevice { committed, count: 1, memory: &self.memory, origin: 0, packed: &self.packed, at: 0 }
    }

    /// Blocking calls give the bytes that the CPU gives.
    fn check(&mut self, name: &str, committed: &Committed) -> Result<(), Failure> {
        let refused = |error| Failure::Data(format!("{name}: {error}"));
        let bytes = committed.layout().size();
        let mut source = vec![0u8; BUFFER_BYTES];
        fill(&mut source, SEED);
        self.memory.write(0, &source)?;
        self.packed.fill(POISON)?;
        self.call(committed).call(Direction::Pack, 0, bytes)?;
        let (mut expected, mut found) = (vec![POISON; BUFFER_BYTES], vec![0u8; BUFFER_BYTES]);
        committed.pack(&source, Range::elements(1), &mut expected[..bytes as usize]).map_err(refused)?;
        self.packed.read(0, &mut found)?;
        if expected != found {
            return Err(Failure::data(format_args!("{name}, blocking pack"), "the bytes of the CPU", "others"));
        }
        self.memory.fill(POISON)?;
        self.call(committed).call(Direction::Unpack, 0, bytes)?;
        let packed = std::mem::replace(&mut expected, vec![POISON; BUFFER_BYTES]);
        committed.unpack(&packed[..bytes as usize], Range::elements(1), &mut expected).map_err(refused)?;
        self.memory.read(0, &mut found)?;
        if expected != found {
            return Err(Failure::data(format_args!("{name}, blocking unpack"), "the bytes of the CPU", "others"));
        }
        Ok(())
    }

    /// The median of calls with the cache emptied, and of calls in a row; the device is idle before each.
    fn time(
        &mut self,
        what: &str,
        case: &str,
        direction: Direction,
        bytes: u64,
        calls: usize,
        call: impl Fn(&Self) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for round in 0..2 * calls {
            if round < calls {
                self.arena.flush()?;
            }
            self.stream.synchronize()?;
            let start = Instant::now();
            call(self)?;
            let time = start.elapsed().as_nanos() as f64 / 1e3;
            if round < calls { &mut cold } else { &mut warm }.push(time);
        }
        self.stream.synchronize()?;
        self.figures.push(Figure {
            what: what.to_owned(),
            case: case.to_owned(),
            direction,
            packed_bytes: bytes,
            cold: Some(median(&cold)),
            warm: median(&warm),
        });
        Ok(())
    }

    /// One call until it is done, one call, and many calls until they are done.
    fn enqueued(&mut self, name: &str, case: &str, committed: &Committed) -> Result<(), Failure> {
        let bytes = committed.layout().size();
        let enqueue = |bench: &Self| {
            Ok::<(), Failure>(bench.call(committed).enqueue(Direction::Pack, &bench.stream, 0, bytes).map(drop)?)
        };
        self.time(&format!("{name} synchronised"), case, Direction::Pack, bytes, CALLS, |bench| {
            enqueue(bench)?;
            Ok(bench.stream.synchronize()?)
        })?;
        self.time(&format!("{name} enqueued"), case, Direction::Pack, bytes, CALLS, enqueue)?;
        let device = self.arena.gpu.device();
        let (memory, packed) = (DeviceBuffer::new(device, BUFFER_BYTES)?, DeviceBuffer::new(device, BUFFER_BYTES)?);
        let call = OnDevice { committed, count: 1, memory: &memory, origin: 0, packed: &packed, at: 0 };
        let repeated = Repeated::new(&self.arena.specialised, &self.arena.gpu, Direction::Pack, &[call])?;
        let repeated = RefCell::new(repeated);
        self.time(&format!("{name} enqueued, prepared"), case, Direction::Pack, bytes, CALLS, |bench| {
            Ok(repeated.borrow_mut().enqueue(&bench.stream).map(drop)?)
        })?;
        self.time(&format!("{ROW} of {name} synchronised, prepared"), case, Direction::Pack, bytes, 9, |bench| {
            (0..ROW).try_for_each(|_| repeated.borrow_mut().enqueue(&bench.stream).map(drop))?;
            Ok(bench.stream.synchronize()?)
        })?;
        self.time(&format!("{ROW} of {name} synchronised"), case, Direction::Pack, bytes, 9, |bench| {
            (0..ROW).try_for_each(|_| enqueue(bench))?;
            Ok(bench.stream.synchronize()?)
        })
    }

    /// Blocking calls, beside a copy of as many bytes.
    fn blocking(&mut self, name: &str, committed: &Committed) -> Result<(), Failure> {
        let bytes = committed.layout().size();
        for direction in [Direction::Pack, Direction::Unpack] {
            let what = format!("blocking {direction}");
            self.time(&what, name, direction, bytes, CALLS, |bench| {
                Ok(bench.call(committed).call(direction, 0, bytes).map(drop)?)
            })?;
        }
        self.time("memcpy synchronised", name, Direction::Pack, bytes, CALLS, |bench| {
            copy(&bench.stream, &bench.packed, 0, &bench.memory, 0, bytes)?;
            Ok(bench.stream.synchronize()?)
        })
    }
}

/// Makes types that no engine has seen before.
type Maker = fn(u64) -> Result<Datatype, Failure>;

const KINDS: [(&str, Maker); 5] = [
    ("strided", |index| parse(&format!("vector {} 1 2 double", 512 + index))),
    ("face of a 3-D array", |index| {
        parse(&format!("subarray c [64@1 of 66, 64@1 of 66, {}@1 of {}] double", 2 + index, 66 + index))
    }),
    ("struct", |index| parse(&format!("struct [1@0 double, 2@16 int, {}@40 (vector 7 3 5 float)]", 1 + index))),
    ("runs int 1..32 1k", |index| irregular(1000, 100 + index)),
    ("runs int 1..32 64k", |index| irregular(1 << 16, 200 + index)),
];

/// Measures what it takes until a type can be used on the device, and until its kernels are there.
pub fn commits(arena: &Arena, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let folder = std::env::temp_dir().join(format!("dtc-bench-{}", std::process::id()));
    let figures = commits_with(arena, rounds, &folder);
    // Whatever is left there is of no use.
    let _ = std::fs::remove_dir_all(&folder);
    figures
}

fn commits_with(arena: &Arena, rounds: usize, folder: &Path) -> Result<Vec<Figure>, Failure> {
    let device = arena.gpu.device();
    let (stream, memory) = (Stream::new(device)?, DeviceBuffer::new(device, 16 << 20)?);
    let packed = DeviceBuffer::new(device, 16 << 20)?;
    let engine = |policy| {
        // Nothing is compiled behind our back.
        let engine = Engine::builder().policy(policy).background_thread(false);
        let engine = engine.store(Config::none().directory(folder)).build();
        let gpu = engine.gpu(0)?;
        gpu.load()?;
        Ok::<_, Failure>((engine, gpu))
    };
    let (first, (empty, empty_gpu), (warm, warm_gpu)) =
        (engine(Policy::Background)?.0, engine(Policy::Eager)?, engine(Policy::Eager)?);
    let mut figures = Vec::new();
    for (name, make) in KINDS {
        let mut samples: [Vec<f64>; 4] = Default::default();
        let mut bytes = 0;
        // As a program does before its first step: one type after another.
        let (mut in_a_row, mut held) = (Vec::new(), Vec::new());
        for index in 0..ROW_OF_COMMITS {
            let datatype = make(rounds as u64 + index)?;
            let start = Instant::now();
            held.push(first.commit(&datatype));
            in_a_row.push(start.elapsed().as_nanos() as f64 / 1e3);
        }
        for round in 0..rounds as u64 {
            let datatype = make(round)?;
            let mut clock = |index: usize, start: Instant| samples[index].push(start.elapsed().as_nanos() as f64 / 1e3);
            let start = Instant::now();
            let committed = first.commit(&datatype);
            clock(0, start);
            bytes = committed.layout().size();
            let call = OnDevice { committed: &committed, count: 1, memory: &memory, origin: 0, packed: &packed, at: 0 };
            let start = Instant::now();
            call.enqueue(Direction::Pack, &stream, 0, bytes)?;
            clock(1, start);
            stream.synchronize()?;
            for (index, engine, gpu) in [(2, &empty, &empty_gpu), (3, &warm, &warm_gpu)] {
                let committed = engine.commit(&datatype);
                let start = Instant::now();
                committed.prepare(gpu)?;
                clock(index, start);
            }
        }
        let what = ["commit", "first pack enqueued", "kernels, empty store", "kernels, warm store"];
        figures.extend(what.iter().zip(&samples).enumerate().map(|(index, (what, samples))| Figure {
            what: (*what).to_owned(),
            case: name.to_owned(),
            direction: Direction::Pack,
            packed_bytes: bytes,
            // Kernels were compiled since the last commit, which leaves the caches of the processor to others.
            cold: (index == 0).then(|| median(samples)),
            warm: if index == 0 { median(&in_a_row) } else { median(samples) },
        }));
    }
    match empty_gpu.problem() {
        Some(problem) => Err(problem.into()),
        None => Ok(figures),
    }
}
