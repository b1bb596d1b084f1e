//! Calls between kinds of memory, beside copies of the driver of as many bytes between the same kinds.

use dtc_compiler::datatype::text;
use dtc_compiler::plan::Direction;
use dtc_measure::bench::table::table;
use dtc_measure::buffer::{Between, Memory, copy, time_of_copy};
use dtc_measure::device_clock::DeviceClock;
use dtc_measure::failure::Failure;
use dtc_measure::report;
use dtc_measure::samples::{SEED, fill};
use dtc_measure::timing::median;
use dtc_runtime::cuda::{Device, MemoryKind};
use dtc_runtime::{Committed, Engine, Policy, Range};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

/// Runs and how far apart they begin, in bytes.
const LAYOUTS: [(u64, u64); 4] = [(8, 16), (8, 64), (64, 512), (512, 4096)];

/// Packed bytes of calls.
const SIZES: [u64; 3] = [256 << 10, 4 << 20, 32 << 20];

/// Packed bytes from which on cases have targets.
const LARGE: u64 = 4 << 20;

/// Elements do not span more, on a device and on the host.
const LARGEST_SPANS: [u64; 2] = [256 << 20, 64 << 20];

/// A clock, and what the cache of the device holds when it starts.
#[derive(Clone, Copy)]
pub enum Clock {
    /// The device's, nothing of the call.
    Cold,
    /// The device's, what the same call left.
    Warm,
    /// The host's, around calls that wait.
    Host,
}

impl Clock {
    /// All of them.
    pub const ALL: [Clock; 3] = [Clock::Cold, Clock::Warm, Clock::Host];
}

/// What is measured.
#[derive(Clone, Copy)]
enum Peer {
    Dtc,
    /// The driver's copy between the same kinds.
    Copy,
    /// The same call with both sides on one device, where the packed bytes are on another.
    Local,
}

/// Medians, in microseconds: with the cache emptied, right after the same call, and on the host's clock. Nothing where that
/// was not measured.
pub type Times = [Option<f64>; Clock::ALL.len()];

/// The measured times of one direction.
pub struct Figure {
    memory: MemoryKind,
    packed: MemoryKind,
    layout: (u64, u64),
    bytes: u64,
    direction: Direction,
    dtc: Times,
    copy: Times,
    local: Times,
}

impl Figure {
    /// One line for the file of figures.
    pub fn to_json(&self) -> Value {
        json!({
            "memory": self.memory.to_string(),
            "packed": self.packed.to_string(),
            "run_bytes": self.layout.0,
            "pitch_bytes": self.layout.1,
            "packed_bytes": self.bytes,
            "direction": self.direction.to_string(),
            "dtc_us": microseconds(&self.dtc),
            "copy_us": microseconds(&self.copy),
            "local_us": microseconds(&self.local),
            "target": self.target(),
        })
    }

    /// The share of the copy that is aimed at; of the slower of the copy and the local call to another device.
    fn target(&self) -> Option<f64> {
        match (self.memory, self.packed, self.direction) {
            _ if self.bytes < LARGE => None,
            (MemoryKind::Device(one), MemoryKind::Device(other), _) if one != other => Some(0.92),
            (MemoryKind::Device(_), MemoryKind::Pinned, Direction::Pack) => Some(0.94),
            (MemoryKind::Device(_), MemoryKind::Pinned, Direction::Unpack) => Some(0.92),
            (MemoryKind::Device(_), MemoryKind::Pageable, _) => Some(0.9),
            _ => None,
        }
    }

    /// What the time on a clock is held against.
    fn reference(&self, clock: Clock) -> Option<f64> {
        let (copy, local) = (self.copy[clock as usize], self.local[clock as usize]);
        copy.map(|copy| local.map_or(copy, |local| copy.max(local)))
    }
}

/// Times in figures, by clock.
pub fn microseconds(times: &Times) -> Value {
    let rounded = times.map(|time| time.map(|time| (time * 1e3).round() / 1e3));
    json!({ "cold": rounded[0], "warm": rounded[1], "blocking": rounded[2] })
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
    let clocks = Clocks::new()?;
    let mut host = vec![0u8; LARGEST_SPANS[0] as usize];
    fill(&mut host, SEED);
    let largest = SIZES.iter().max().map_or(0, |&bytes| bytes as usize);
    let mut figures = Vec::new();
    for (memory_kind, packed_kind) in pairs {
        let most = LARGEST_SPANS[usize::from(memory_kind != device)];
        let mut memory = Memory::new(memory_kind, most as usize)?;
        let mut packed = Memory::new(packed_kind, largest)?;
        let mut other = Memory::new(memory_kind, largest)?;
        for layout in LAYOUTS {
            for bytes in SIZES.into_iter().filter(|&bytes| bytes / layout.0 * layout.1 <= most) {
                tell(format!("{memory_kind}, {packed_kind}, {} of {}", layout.0, layout.1));
                let committed = committed(&engine, layout)?;
                let mut bench = Bench {
                    committed: &committed,
                    clocks: &clocks,
                    host: &host,
                    memory: &mut memory,
                    packed: &mut packed,
                    other: &mut other,
                    bytes,
                };
                bench.check()?;
                for direction in [Direction::Pack, Direction::Unpack] {
                    let [dtc, copy, local] = bench.times(direction, rounds)?;
                    figures.push(Figure {
                        memory: memory_kind,
                        packed: packed_kind,
                        layout,
                        bytes,
                        direction,
                        dtc,
                        copy,
                        local,
                    });
                }
            }
        }
    }
    Ok(figures)
}

fn committed(engine: &Engine, (run, pitch): (u64, u64)) -> Result<Committed, Failure> {
    let notation = format!("resized 0 {} (contiguous {run} byte)", pitch);
    let datatype = text::parse(&notation).map_err(|error| Failure::Description(format!("{notation}: {error}")))?;
    Ok(engine.commit(&datatype))
}

/// The clock of GPU 0, and the caches of all devices whose memory is used.
pub struct Clocks {
    /// Of GPU 0.
    pub device: DeviceClock,
    others: Vec<DeviceClock>,
}

impl Clocks {
    /// Takes some memory of the first two devices.
    pub fn new() -> Result<Clocks, Failure> {
        let others = (1..Device::count()?.min(2)).map(|ordinal| Ok(DeviceClock::new(&Device::get(ordinal)?)?));
        Ok(Clocks { device: DeviceClock::new(&Device::get(0)?)?, others: others.collect::<Result<_, Failure>>()? })
    }

    /// Empties the caches of the other devices.
    pub fn flush_others(&self) -> Result<(), Failure> {
        for other in &self.others {
            other.enqueue_flush()?;
            other.stream.synchronize()?;
        }
        Ok(())
    }
}

/// Medians of interleaved rounds: `sample` gives microseconds by clock and peer, and nothing where none is measured.
pub fn in_turns<const N: usize>(
    rounds: usize,
    mut sample: impl FnMut(Clock, usize) -> Result<Option<f64>, Failure>,
) -> Result<[Times; N], Failure> {
    let mut samples: [[Vec<f64>; Clock::ALL.len()]; N] = std::array::from_fn(|_| Default::default());
    for _ in 0..rounds {
        for clock in Clock::ALL {
            for (peer, samples) in samples.iter_mut().enumerate() {
                samples[clock as usize].extend(sample(clock, peer)?);
            }
        }
    }
    Ok(samples.map(|samples| samples.map(|samples| (!samples.is_empty()).then(|| median(&samples)))))
}

/// Microseconds of what is done on the clock of the host.
pub fn on_host<E>(call: impl FnOnce() -> Result<(), E>) -> Result<f64, Failure>
where
    Failure: From<E>,
{
    let start = Instant::now();
    call()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

struct Bench<'a> {
    committed: &'a Committed,
    clocks: &'a Clocks,
    host: &'a [u8],
    memory: &'a mut Memory,
    packed: &'a mut Memory,
    /// As long as the packed bytes and where the elements are: the other side of copies, and packed bytes on the same device.
    other: &'a mut Memory,
    bytes: u64,
}

impl Bench<'_> {
    fn between(&mut self, peer: Peer) -> Between<'_> {
        let count = self.bytes / self.committed.layout().size();
        let packed = if let Peer::Local = peer { &mut *self.other } else { &mut *self.packed };
        Between { committed: self.committed, count, memory: self.memory, origin: 0, packed }
    }

    fn times(&mut self, direction: Direction, rounds: usize) -> Result<[Times; 3], Failure> {
        let peers = [Peer::Dtc, Peer::Copy, Peer::Local];
        in_turns(rounds, |clock, index| self.sample(clock, peers[index], direction))
    }

    fn sample(&mut self, clock: Clock, peer: Peer, direction: Direction) -> Result<Option<f64>, Failure> {
        let (clocks, bytes) = (self.clocks, self.bytes);
        let (memory, packed) = (self.memory.kind(), self.packed.kind());
        let on_devices = |kind| matches!(kind, MemoryKind::Device(_));
        let peers = on_devices(packed) && on_devices(memory);
        // Kernels move these, so they can be enqueued.
        let enqueued = peers || on_devices(memory) && packed == MemoryKind::Pinned;
        if matches!(peer, Peer::Local) && !peers || !matches!(clock, Clock::Host) && !enqueued {
            return Ok(None);
        }
        let warm = matches!(clock, Clock::Warm);
        if let Clock::Cold = clock {
            clocks.flush_others()?;
        }
        let time = match (clock, peer) {
            (Clock::Host, Peer::Copy) => {
                let (to, from) = copied(direction, self.packed, self.other);
                on_host(|| copy(&clocks.device.stream, to, from, bytes as usize))?
            }
            (_, Peer::Copy) => {
                let (to, from) = copied(direction, self.packed, self.other);
                time_of_copy(&clocks.device, warm, to, from, bytes as usize)?
            }
            (Clock::Host, _) => {
                let mut between = self.between(peer);
                on_host(|| between.call(direction, 0, bytes).map(drop))?
            }
            _ => self.between(peer).time(&clocks.device, warm, direction, bytes)?,
        };
        Ok(Some(time))
    }

    fn check(&mut self) -> Result<(), Failure> {
        let bytes = self.bytes;
        let count = bytes / self.committed.layout().size();
        let length = self.committed.span(count).map_or(0, |(_, high)| high as usize);
        let host = &self.host[..length];
        let mut wanted = vec![0u8; bytes as usize];
        let refused = |error: dtc_runtime::PackError| Failure::Data(error.to_string());
        self.committed.pack(host, Range::elements(count), &mut wanted).map_err(refused)?;
        self.memory.write(0, host)?;
        self.between(Peer::Dtc).call(Direction::Pack, 0, bytes)?;
        let mut found = vec![0u8; bytes as usize];
        self.packed.read(0, &mut found)?;
        let wrong = |what: &str| Failure::data(what, "the bytes that the processor moves", "others");
        if found != wanted {
            return Err(wrong("pack"));
        }
        self.memory.write(0, &vec![0x5a; length])?;
        self.between(Peer::Dtc).call(Direction::Unpack, 0, bytes)?;
        let mut found = vec![0u8; length];
        self.memory.read(0, &mut found)?;
        let mut expected = vec![0x5a_u8; length];
        self.committed.unpack(&wanted, Range::elements(count), &mut expected).map_err(refused)?;
        if found == expected { Ok(()) } else { Err(wrong("unpack")) }
    }
}

/// Where a copy in place of a call goes, and where it comes from.
fn copied<'a>(direction: Direction, packed: &'a mut Memory, other: &'a mut Memory) -> (&'a mut Memory, &'a mut Memory) {
    if direction == Direction::Pack { (packed, other) } else { (other, packed) }
}

/// Gigabytes per second and the share of a reference's speed, for each clock, as cells of a table.
pub fn cells(bytes: u64, times: &Times, reference: impl Fn(Clock) -> Option<f64>) -> impl Iterator<Item = String> {
    let cell =
        |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"));
    let cells = Clock::ALL.map(|clock| {
        let time = times[clock as usize];
        let share = time.zip(reference(clock)).map(|(time, reference)| reference / time.max(1e-3));
        [cell(time.map(|time| bytes as f64 / time.max(1e-3) / 1e3), 1), cell(share, 2)]
    });
    cells.into_iter().flatten()
}

/// Prints figures.
pub fn print(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "\ncalls between kinds of memory, GB/s on the device's clock and of blocking calls, and shares of a copy of the \
         driver; to another device, of the slower of that and the call within a device"
    )?;
    let mut table = table(&[
        "elements",
        "packed bytes in",
        "runs",
        "packed",
        "",
        "cold",
        "share",
        "warm",
        "share",
        "blocking",
        "share",
        "target",
    ]);
    for figure in figures {
        let (run, pitch) = figure.layout;
        let what = [
            figure.memory.to_string(),
            figure.packed.to_string(),
            format!("{run} of {pitch}"),
            report::bytes(figure.bytes),
            figure.direction.to_string(),
        ];
        let target = figure.target().map_or_else(|| "-".to_owned(), |target| format!("{target:.2}"));
        table.add_row(
            what.into_iter().chain(cells(figure.bytes, &figure.dtc, |clock| figure.reference(clock))).chain([target]),
        );
    }
    Ok(writeln!(out, "{table}")?)
}
