//! Times of packs while other work uses the device: the experiments of Jenkins et al. 2014, section 4.4, and the gain
//! of leaving multiprocessors to the other work. Prints a table; every byte is checked.

use crate::buffers::{Buffers, POISON};
use crate::harness::{expect, text};
use crate::raw::{Spinner, StreamKind};
use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::cuda::{DeviceBuffer, PinnedBuffer, Stream, copy};
use dtc_runtime::{Committed, Engine, Gpu, Multiprocessors, Policy, Range};
use std::time::{Duration, Instant};

/// Rounds for each figure.
const ROUNDS: usize = 9;

/// Time limit for a pack that itself waits for multiprocessors.
const LIMIT: Duration = Duration::from_millis(30);

/// Bytes that the other work copies; this takes longer than any pack.
const COPY: usize = 256 << 20;

/// Packed bytes of each layout.
const PACKED: i64 = 16 << 20;

/// A layout on the device, with packed bytes there and in pinned memory.
struct Layout {
    name: String,
    committed: Committed,
    buffers: Buffers,
    pinned: PinnedBuffer,
}

#[derive(Clone, Copy, PartialEq)]
enum Target {
    Device,
    Pinned,
}

impl Layout {
    fn new(gpu: &Gpu, engine: &Engine, block: i64, stride: i64) -> Result<Layout, String> {
        let committed = engine.commit(&rows(block, stride)?);
        committed.prepare(gpu).map_err(text)?;
        let buffers = Buffers::new(gpu, &committed, 1, block as u64)?;
        let pinned = PinnedBuffer::new(gpu.device(), PACKED as usize).map_err(text)?;
        Ok(Layout { name: format!("rows of {block} bytes, {stride} apart"), committed, buffers, pinned })
    }

    fn enqueue(&self, stream: &Stream, target: Target, on: Multiprocessors) -> Result<(), String> {
        match target {
            Target::Device => self.buffers.enqueue_on(&self.committed, stream, on),
            Target::Pinned => self.buffers.enqueue_to(&self.committed, stream, &self.pinned, on),
        }
    }

    fn check(&mut self, target: Target) -> Result<(), String> {
        match target {
            Target::Device => {
                self.buffers.check()?;
                self.buffers.poison()
            }
            Target::Pinned => {
                expect(self.pinned.as_slice() == self.buffers.expected, || "pinned memory has other bytes".to_owned())?;
                self.pinned.as_mut_slice().fill(POISON);
                Ok(())
            }
        }
    }
}

fn rows(block: i64, stride: i64) -> Result<Datatype, String> {
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let rows = types.vector(PACKED / block, block, stride, byte).map_err(text)?;
    types.finish(rows).map_err(|error| error.to_string())
}

/// Waits for a stream. Returns the time since `start`, or `None` after the limit.
fn wait(stream: &Stream, start: Instant) -> Result<Option<f64>, String> {
    while !stream.query().map_err(text)? {
        if start.elapsed() > LIMIT {
            return Ok(None);
        }
    }
    Ok(Some(start.elapsed().as_nanos() as f64 / 1e3))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Other work on the device.
struct Others {
    stream: Stream,
    host: PinnedBuffer,
    device: DeviceBuffer,
    /// A kernel that uses every multiprocessor and the memory system: 8 bytes of every 512.
    scattered: Committed,
    memory: DeviceBuffer,
}

#[derive(Clone, Copy)]
enum Other {
    Nothing,
    ToDevice,
    ToHost,
    Kernel,
}

impl Others {
    fn new(gpu: &Gpu, engine: &Engine) -> Result<Others, String> {
        let mut types = TypeBuilder::new();
        let double = types.named(Predefined::DOUBLE);
        let scattered = types.vector(COPY as i64 / 8, 1, 8, double).map_err(text)?;
        let scattered = engine.commit(&types.finish(scattered).unwrap());
        scattered.prepare(gpu).map_err(text)?;
        Ok(Others {
            stream: Stream::new(gpu.device()).map_err(text)?,
            host: PinnedBuffer::new(gpu.device(), COPY).map_err(text)?,
            device: DeviceBuffer::new(gpu.device(), COPY).map_err(text)?,
            memory: DeviceBuffer::new(gpu.device(), COPY * 8).map_err(text)?,
            scattered,
        })
    }

    fn enqueue(&self, other: Other) -> Result<(), String> {
        let (host, device) = (self.host.address(), self.device.address());
        // SAFETY: the buffers have equal lengths, and live until the stream is synchronised.
        unsafe {
            match other {
                Other::Nothing => Ok(()),
                Other::ToDevice => copy::between(&self.stream, device, host, COPY).map_err(text),
                Other::ToHost => copy::between(&self.stream, host, device, COPY).map_err(text),
                Other::Kernel => {
                    let (from, to) = (self.memory.address() as *const u8, device as *mut u8);
                    self.scattered
                        .at(from, Range::elements(1).bytes(..COPY as u64))
                        .pack(to)
                        .enqueue(&self.stream)
                        .map_err(text)
                        .map(drop)
                }
            }
        }
    }
}

/// Runs all experiments and prints the table.
pub fn measure() -> Result<(), String> {
    let engine = Engine::builder().policy(Policy::Eager).build();
    let gpu = engine.gpu(0).map_err(text)?;
    let info = gpu.device().info();
    let quarter = info.multiprocessors / 4;
    println!(
        "{}, {} multiprocessors; medians of {ROUNDS} rounds on the host's clock, in us",
        info.name, info.multiprocessors
    );
    let others = Others::new(&gpu, &engine)?;
    let stream = Stream::new(gpu.device()).map_err(text)?;
    let ways = [
        ("kernel", Multiprocessors::All),
        ("kernel on a quarter", Multiprocessors::AtMost(quarter)),
        ("copies", Multiprocessors::None),
    ];
    println!(
        "{:34} {:8} {:20} {:>9} {:>11} {:>9} {:>9} {:>9} | {:>9} {:>9} {:>9}",
        "16 MiB of",
        "to",
        "by",
        "idle",
        "held by all",
        "H2D first",
        "D2H first",
        "kernel 1st",
        "H2D last",
        "D2H last",
        "kernel last"
    );
    for (block, stride) in [(32, 64), (512, 4096), (4096, 8192), (65_536, 131_072)] {
        let mut layout = Layout::new(&gpu, &engine, block, stride)?;
        for (target, to) in [(Target::Device, "device"), (Target::Pinned, "pinned")] {
            for (by, on) in ways {
                let mut cells = Vec::new();
                for (other, first) in [
                    (Other::Nothing, true),
                    (Other::ToDevice, true),
                    (Other::ToHost, true),
                    (Other::Kernel, true),
                    (Other::ToDevice, false),
                    (Other::ToHost, false),
                    (Other::Kernel, false),
                ] {
                    let mut times = Vec::new();
                    for _ in 0..ROUNDS {
                        stream.synchronize().map_err(text)?;
                        let start;
                        if first {
                            others.enqueue(other)?;
                            start = Instant::now();
                            layout.enqueue(&stream, target, on)?;
                            times.push(wait(&stream, start)?.unwrap_or(f64::INFINITY));
                            stream.synchronize().map_err(text)?;
                            others.stream.synchronize().map_err(text)?;
                        } else {
                            layout.enqueue(&stream, target, on)?;
                            start = Instant::now();
                            others.enqueue(other)?;
                            times.push(wait(&others.stream, start)?.unwrap_or(f64::INFINITY));
                            others.stream.synchronize().map_err(text)?;
                            stream.synchronize().map_err(text)?;
                        }
                        layout.check(target).map_err(|fault| format!("{}, {by}: {fault}", layout.name))?;
                    }
                    cells.push(median(times));
                }
                let held = held(&gpu, &mut layout, &stream, target, on)?;
                println!(
                    "{:34} {to:8} {by:20} {:9.0} {held:>11} {:9.0} {:9.0} {:9.0} | {:9.0} {:9.0} {:9.0}",
                    layout.name, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]
                );
            }
        }
    }
    let alone = |other| -> Result<f64, String> {
        let times: Result<Vec<f64>, String> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                others.enqueue(other)?;
                others.stream.synchronize().map_err(text)?;
                Ok(start.elapsed().as_nanos() as f64 / 1e3)
            })
            .collect();
        Ok(median(times?))
    };
    println!(
        "the others alone, 256 MiB: H2D {:.0}, D2H {:.0}, a kernel that packs 8 of every 64 bytes {:.0}",
        alone(Other::ToDevice)?,
        alone(Other::ToHost)?,
        alone(Other::Kernel)?
    );
    Ok(())
}

/// The time of a pack while a kernel holds every multiprocessor and ends only afterwards.
fn held(
    gpu: &Gpu,
    layout: &mut Layout,
    stream: &Stream,
    target: Target,
    on: Multiprocessors,
) -> Result<String, String> {
    // Each multiprocessor can hold 32 blocks of one warp.
    let blocks = gpu.device().info().multiprocessors * 32;
    let mut times = Vec::new();
    for _ in 0..3 {
        let spinner = Spinner::start(gpu, blocks, StreamKind::NonBlocking)?;
        let start = Instant::now();
        layout.enqueue(stream, target, on)?;
        let time = wait(stream, start)?;
        spinner.finish()?;
        stream.synchronize().map_err(text)?;
        layout.check(target)?;
        match time {
            Some(time) => times.push(time),
            None => return Ok("waits".to_owned()),
        }
    }
    Ok(format!("{:.0}", median(times)))
}
