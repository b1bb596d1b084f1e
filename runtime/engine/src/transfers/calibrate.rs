//! Measuring what transfers cost on this machine.

use super::error::TransferError;
use super::path::TransferPath;
use super::place::{Located, Place, Placed};
use super::placed_move::PlacedMove;
use super::request::Request;
use crate::committed::Committed;
use crate::device::{Gpu, MeasuredPath, PathCost, RUNS, TransferModel};
use crate::engine::Engine;
use crate::multiprocessors::Multiprocessors;
use crate::policy::Policy;
use crate::range::Range;
use dtc_compiler::datatype::{DatatypeError, Predefined, TypeBuilder};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::DeviceCopy;
use dtc_cuda::{CudaError, DeviceBuffer, Event, MemoryKind, PinnedBuffer, Stream, copy};
use std::time::Instant;

/// Packed bytes of a large call.
const LARGE: u64 = 16 << 20;

/// Packed bytes of a small call.
const SMALL: u64 = 1 << 10;

/// Bytes of a large copy within the device, several times its cache.
const DEVICE_LARGE: u64 = 128 << 20;

/// Bytes of a small one.
const DEVICE_SMALL: u64 = 8 << 20;

/// Copies within the device, of which the fastest counts.
const DEVICE_ROUNDS: usize = 9;

/// Runs lie this many times their length apart.
const SPREAD: u64 = 2;

/// Calls of each sort, of which the fastest counts: others are disturbed.
const ROUNDS: usize = 5;

/// Buffers for calls of every length of runs.
struct Bench<'a> {
    gpu: &'a Gpu,
    engine: Engine,
    device_memory: DeviceBuffer,
    device_packed: DeviceBuffer,
    pinned_memory: PinnedBuffer,
    pinned_packed: PinnedBuffer,
    /// The address of as many bytes of pageable memory.
    pageable: u64,
}

impl Gpu {
    /// Measures what transfers cost on this machine. Takes a second or two, 130 MiB of host memory and 50 MiB of the device's;
    /// the figures mean something when nothing else runs. What is returned changes nothing before it is stored and the GPU
    /// opened anew: [`TransferModel::store`].
    ///
    /// # Errors
    ///
    /// CUDA refuses, or there is no memory.
    ///
    /// ```no_run
    /// let gpu = dtc_runtime::Engine::new().gpu(0)?;
    /// println!("{}", gpu.calibrate()?);
    /// # Ok::<(), dtc_runtime::TransferError>(())
    /// ```
    pub fn calibrate(&self) -> Result<TransferModel, TransferError> {
        let device = self.device();
        let mut pageable = vec![1u8; LARGE as usize];
        let bench = Bench {
            gpu: self,
            engine: Engine::builder().policy(Policy::Eager).build(),
            device_memory: DeviceBuffer::new(device, (LARGE * SPREAD) as usize)?,
            device_packed: DeviceBuffer::new(device, LARGE as usize)?,
            pinned_memory: PinnedBuffer::new(device, (LARGE * SPREAD) as usize)?,
            pinned_packed: PinnedBuffer::new(device, LARGE as usize)?,
            pageable: pageable.as_mut_ptr().expose_provenance() as u64,
        };
        bench.run()
    }

    /// Measures how fast the device copies its own memory, with its cache emptied. Takes 256 MiB of the device's memory, and some
    /// milliseconds.
    ///
    /// # Errors
    ///
    /// CUDA refuses, or there is no memory.
    ///
    /// ```no_run
    /// println!("{:.0} GB/s", dtc_runtime::Engine::new().gpu(0)?.measure_copy()?.gigabytes);
    /// # Ok::<(), dtc_runtime::cuda::CudaError>(())
    /// ```
    pub fn measure_copy(&self) -> Result<DeviceCopy, CudaError> {
        let device = self.device();
        let stream = Stream::new(device)?;
        let (from, to) =
            (DeviceBuffer::new(device, DEVICE_LARGE as usize)?, DeviceBuffer::new(device, DEVICE_LARGE as usize)?);
        let (start, end) = (Event::timed(device)?, Event::timed(device)?);
        // SAFETY: both buffers hold `DEVICE_LARGE` bytes, and no length is larger; they live until the stream was waited for.
        let copy = |bytes: u64| unsafe { copy::between(&stream, to.address(), from.address(), bytes as usize) };
        let fastest = |bytes: u64| -> Result<f64, CudaError> {
            let mut best = f64::INFINITY;
            for _ in 0..DEVICE_ROUNDS {
                // The large copy sweeps the cache, and keeps the device busy while the host enqueues the rest.
                copy(DEVICE_LARGE)?;
                start.record(&stream)?;
                copy(bytes)?;
                end.record(&stream)?;
                end.synchronize()?;
                best = best.min(f64::from(start.elapsed_ms(&end)?) * 1e3);
            }
            Ok(best)
        };
        let (small, large) = (fastest(DEVICE_SMALL)?, fastest(DEVICE_LARGE)?);
        let traffic = 2.0 * (DEVICE_LARGE - DEVICE_SMALL) as f64;
        let gigabytes = (traffic / (large - small).max(1e-3) / 1e3).max(1e-3);
        let latency_us = (small - 2.0 * DEVICE_SMALL as f64 / (gigabytes * 1e3)).max(0.01);
        Ok(DeviceCopy { latency_us, gigabytes })
    }
}

impl Bench<'_> {
    fn run(&self) -> Result<TransferModel, TransferError> {
        // The same device, on an engine that compiles what it is about to run.
        let gpu = self.engine.gpu(self.gpu.device().info().ordinal)?;
        let mut types = Vec::new();
        for run in RUNS {
            types.push(self.engine.commit(&rows(run).map_err(|error| CudaError::Compile {
                compiler: "dtc",
                name: "no type to measure with".to_owned(),
                log: error.to_string(),
            })?));
        }
        let line = |path: MeasuredPath, direction| -> Result<PathCost, TransferError> {
            let mut rates = [0.0; RUNS.len()];
            for (rate, committed) in rates.iter_mut().zip(&types) {
                *rate = gigabytes(LARGE, self.fastest(&gpu, committed, path, direction, LARGE)?);
            }
            let longest = &types[types.len() - 1];
            let latency = self.fastest(&gpu, longest, path, direction, SMALL)?;
            Ok(PathCost { latency_us: (latency * 1e6).max(0.01), rates })
        };
        let mut lines = [[PathCost { latency_us: 1.0, rates: [1.0; RUNS.len()] }; 2]; MeasuredPath::ALL.len()];
        for path in MeasuredPath::ALL {
            for direction in [Direction::Pack, Direction::Unpack] {
                lines[path as usize][direction as usize] = line(path, direction)?;
            }
        }
        Ok(TransferModel::new(lines, self.copies()?, self.gpu.measure_copy()?))
    }

    /// Seconds of the fastest of some calls.
    fn fastest(
        &self,
        gpu: &Gpu,
        committed: &Committed,
        path: MeasuredPath,
        direction: Direction,
        bytes: u64,
    ) -> Result<f64, TransferError> {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            self.call(gpu, committed, path, direction, bytes)?.wait()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    }

    fn call(
        &self,
        gpu: &Gpu,
        committed: &Committed,
        path: MeasuredPath,
        direction: Direction,
        bytes: u64,
    ) -> Result<Request, TransferError> {
        let device = MemoryKind::Device(gpu.device().info().ordinal);
        let pinned = MemoryKind::Pinned;
        let (device_memory, device_packed) = (self.device_memory.address(), self.device_packed.address());
        let (memory, memory_kind, packed, packed_kind) = match path {
            MeasuredPath::OneShot | MeasuredPath::Staged => {
                (device_memory, device, self.pinned_packed.address(), pinned)
            }
            MeasuredPath::Ring | MeasuredPath::StagedPageable => {
                (device_memory, device, self.pageable, MemoryKind::Pageable)
            }
            MeasuredPath::Mapped | MeasuredPath::HostPacked => {
                (self.pinned_memory.address(), pinned, device_packed, device)
            }
        };
        let located = |address: u64, kind| Located {
            address: std::ptr::with_exposed_provenance_mut(address as usize),
            place: Place::known(kind),
        };
        let range = Range::elements(LARGE / committed.layout().size()).fragment(0, bytes);
        let placed = PlacedMove {
            direction,
            elements: Placed { of: committed, memory: located(memory, memory_kind), range },
            packed: located(packed, packed_kind),
            multiprocessors: Multiprocessors::All,
        };
        let path = TransferPath::from(path);
        // SAFETY: the buffers are as long as the elements and their packed bytes, and of these kinds; nobody looks at what
        // is written there. Each caller waits.
        let part = unsafe { placed.start_on(gpu, None, path, path == TransferPath::Kernel)? };
        Request::start(bytes, std::iter::once(Ok(part)))
    }

    /// Gigabytes per second of the driver's copies: to pinned and to pageable memory, and from both.
    fn copies(&self) -> Result<[f64; 4], TransferError> {
        let stream = Stream::new(self.gpu.device())?;
        let (device, pinned) = (self.device_packed.address(), self.pinned_packed.address());
        let mut rates = [0.0; 4];
        let ways = [(pinned, device), (self.pageable, device), (device, pinned), (device, self.pageable)];
        for (rate, (to, from)) in rates.iter_mut().zip(ways) {
            let mut best = f64::INFINITY;
            for _ in 0..ROUNDS {
                let start = Instant::now();
                // SAFETY: all buffers are this long, and the copy is waited for.
                unsafe { copy::between(&stream, to, from, LARGE as usize)? };
                stream.synchronize()?;
                best = best.min(start.elapsed().as_secs_f64());
            }
            *rate = gigabytes(LARGE, best);
        }
        Ok(rates)
    }
}

fn gigabytes(bytes: u64, seconds: f64) -> f64 {
    (bytes as f64 / seconds.max(1e-9) / 1e9).max(0.001)
}

/// Runs of one length, as many as make 64 KiB: a count continues them.
fn rows(run: u64) -> Result<dtc_compiler::datatype::Datatype, DatatypeError> {
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let number = ((64 << 10) / run) as i64;
    let (run, pitch) = (run as i64, (run * SPREAD) as i64);
    let rows = types.vector(number, run, pitch, byte)?;
    let rows = types.resized(0, number * pitch, rows)?;
    types.finish(rows)
}
