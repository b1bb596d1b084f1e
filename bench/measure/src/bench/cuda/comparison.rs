//! One case on a GPU: checks, then interleaved rounds.

use super::check::{GUARD, POISON, Pattern, in_parallel};
use super::gpu_peer::{Candidate, FamilyCandidate, GPU_PEERS, GpuPeer};
use crate::bench::case::Case;
use crate::device::{OnDevice, copy, fill};
use crate::device_clock::{DeviceClock, FLUSH_BYTES};
use crate::failure::Failure;
use crate::timing::median;
use dtc_compiler::codegen::cuda::GenericKernel;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, DeviceCopy, GpuPlan, Roofline};
use dtc_runtime::cuda::{CudaError, Device, DeviceBuffer};
use dtc_runtime::{Committed, Engine, Gpu, Memory, MemoryMut, Policy, Range, Tier, TransferError};
use std::time::{Duration, Instant};

/// Seconds of a call from which on three rounds are enough.
const SLOW: f64 = 0.5;

/// Where in the pattern the packed bytes of unpacks begin.
const PHASE: usize = 12_345;

/// What was found of a peer.
pub struct Line {
    /// Who.
    pub peer: GpuPeer,
    /// The case.
    pub case: String,
    /// Which way.
    pub direction: Direction,
    /// Packed bytes of a transfer.
    pub packed_bytes: u64,
    /// Which kernel served.
    pub variant: String,
    /// Microseconds with the cache emptied, and right after the same call; or what went wrong.
    pub times: Result<MedianTimes, String>,
    /// Whether it moved wrong bytes.
    pub wrong: bool,
    /// Microseconds of the least traffic that the transfer has, at the speed of a copy with the cache emptied; of whole transfers
    /// alone.
    pub least_us: Option<f64>,
}

/// Medians of rounds, in microseconds.
#[derive(Clone, Copy)]
pub struct MedianTimes {
    /// With the cache emptied.
    pub cold: f64,
    /// Right after the same call.
    pub warm: f64,
    /// How many rounds.
    pub rounds: usize,
}

/// The buffers and engines of all cases.
pub struct Arena {
    /// Waits for compilers.
    pub specialised: Engine,
    /// Never compiles.
    pub generic: Engine,
    /// The device of the first.
    pub gpu: Gpu,
    /// Seconds that the generic kernels took to load, the first time in the process.
    pub load_seconds: f64,
    other_gpu: Gpu,
    /// How fast the device copies its own memory.
    pub copy: DeviceCopy,
    /// MedianTimes of what is enqueued on the device.
    pub clock: DeviceClock,
    /// What fills buffers.
    pub pattern: Pattern,
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    contiguous: DeviceBuffer,
    image: Vec<u8>,
    packed_image: Vec<u8>,
}

/// Where the elements of a case are.
#[derive(Clone, Copy)]
struct Placed {
    origin: u64,
    buffer: u64,
    packed: u64,
}

/// A range of the packed bytes.
#[derive(Clone, Copy)]
pub struct Fragment {
    /// The first of them.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// Where in the packed buffer they are.
    pub at: u64,
}

impl Placed {
    fn of(case: &Case, committed: &Committed) -> Result<Placed, Failure> {
        let refused = |error: &dyn std::fmt::Display| Failure::Description(format!("{}: {error}", case.name));
        let packed = committed.packed_size(case.count).map_err(|error| refused(&error))? as u64;
        let (low, high) = committed.span(case.count).unwrap_or((0, 0));
        let before = u64::try_from((-low).max(0)).map_err(|error| refused(&error))?;
        // Allocations are aligned to 256 bytes; so is address 0, if it is not at the beginning.
        let origin = case.pack_origin.max(before.next_multiple_of(256));
        let end = u64::try_from(i128::from(origin) + high.max(0)).map_err(|error| refused(&error))?;
        Ok(Placed { origin, buffer: case.buffer.unwrap_or(0).max(end), packed })
    }
}

impl Arena {
    /// Engines and buffers for cases of at most `buffer` bytes of memory and `packed` packed bytes.
    pub fn new(buffer: u64, packed: u64) -> Result<Arena, Failure> {
        let specialised = Engine::builder().policy(Policy::Background).background_thread(false).build();
        let generic = Engine::builder().policy(Policy::Off).build();
        // The context is made before, so that opening a GPU is loading the generic kernels.
        let device = Device::get(0)?;
        let start = Instant::now();
        let gpu = specialised.gpu(0)?;
        gpu.load()?;
        let load_seconds = start.elapsed().as_secs_f64();
        let other_gpu = generic.gpu(0)?;
        other_gpu.load()?;
        let (free, _) = device.memory()?;
        let wanted = buffer + 2 * packed + 3 * GUARD + FLUSH_BYTES + (128 << 20);
        if wanted > free as u64 {
            let found = format!("{free} that are free; choose cases with --only");
            return Err(Failure::data("memory of the GPU", format_args!("{wanted} bytes"), found));
        }
        let allocate = |device: &Device, bytes: u64| DeviceBuffer::new(device, bytes as usize);
        Ok(Arena {
            clock: DeviceClock::new(&device)?,
            pattern: Pattern::new(&device)?,
            memory: allocate(&device, buffer + GUARD)?,
            packed: allocate(&device, packed + GUARD)?,
            contiguous: allocate(&device, packed + GUARD)?,
            image: vec![0; (buffer + GUARD) as usize],
            packed_image: vec![0; (packed + GUARD) as usize],
            specialised,
            generic,
            load_seconds,
            copy: gpu.measure_copy()?,
            gpu,
            other_gpu,
        })
    }

    /// Checks and measures a case in both directions.
    pub fn run(&mut self, case: &Case, rounds: usize) -> Result<Vec<Line>, Failure> {
        self.run_fragments(case, &[(case.name.clone(), None)], rounds)
    }

    /// The same of fragments of a case, or of the whole.
    pub fn run_fragments(
        &mut self,
        case: &Case,
        fragments: &[(String, Option<Fragment>)],
        rounds: usize,
    ) -> Result<Vec<Line>, Failure> {
        let committed = [self.specialised.commit(&case.datatype), self.generic.commit(&case.datatype)];
        let placed = Placed::of(case, &committed[0])?;
        self.make_room(&placed)?;
        committed[0].prepare(&self.gpu)?;
        committed[1].prepare(&self.other_gpu)?;
        let plan = GpuPlan::new(committed[0].layout());
        let mut lines = Vec::new();
        for direction in [Direction::Pack, Direction::Unpack] {
            for (name, fragment) in fragments {
                let fragment = fragment.unwrap_or(Fragment { offset: 0, bytes: placed.packed, at: 0 });
                let (committed, placed) = (&committed, &placed);
                let mut comparison =
                    CaseComparison { arena: self, name, case, placed, fragment, committed, direction, candidates: &[] };
                comparison.expect()?;
                lines.extend(comparison.run(&plan, &GPU_PEERS, rounds)?);
            }
        }
        Ok(lines)
    }

    /// Measures the kernel of a case, the driver's copy, and candidates. Those that are further than a tenth behind the fastest after a first
    /// measurement are not measured again.
    pub fn contend<C: Candidate>(
        &mut self,
        case: &Case,
        direction: Direction,
        rounds: usize,
        make: impl FnOnce(&FamilyCandidate<'_>) -> Result<Vec<C>, Failure>,
    ) -> Result<Vec<Line>, Failure> {
        let committed = [self.specialised.commit(&case.datatype), self.generic.commit(&case.datatype)];
        let placed = Placed::of(case, &committed[0])?;
        self.make_room(&placed)?;
        committed[0].prepare(&self.gpu)?;
        let plan = GpuPlan::new(committed[0].layout());
        let fragment = Fragment { offset: 0, bytes: placed.packed, at: 0 };
        let call = Call {
            memory: self.memory.address() + placed.origin,
            packed: self.packed.address(),
            first: 0,
            bytes: placed.packed,
        };
        // `make_room` found memory for both.
        let (low, high) = committed[0].span(case.count).unwrap_or((0, 0));
        let span = (low as i64, high as i64);
        let candidates = make(&FamilyCandidate { gpu: &self.gpu, plan: &plan, direction, call, span })?;
        let candidates: Vec<&dyn Candidate> = candidates.iter().map(|candidate| candidate as &dyn Candidate).collect();
        let (committed, name) = (&committed, case.name.as_str());
        let mut comparison = CaseComparison {
            arena: self,
            name,
            case,
            placed: &placed,
            fragment,
            committed,
            direction,
            candidates: &candidates,
        };
        comparison.expect()?;
        let all = (0..candidates.len()).map(GpuPeer::Candidate);
        let all: Vec<GpuPeer> = [GpuPeer::Specialised, GpuPeer::Memcpy].into_iter().chain(all).collect();
        let first = comparison.run(&plan, &all, rounds)?;
        let time = |line: &Line| line.times.as_ref().map_or(f64::INFINITY, |times| times.cold);
        let fastest = first[2..].iter().map(time).fold(time(&first[0]), f64::min);
        let near = |line: &Line| !matches!(line.peer, GpuPeer::Candidate(_)) || time(line) <= 1.1 * fastest;
        let again: Vec<GpuPeer> = first.iter().filter(|line| near(line)).map(|line| line.peer).collect();
        let mut again = comparison.run(&plan, &again, 3 * rounds)?;
        again.extend(first.into_iter().filter(|line| !near(line)));
        Ok(again)
    }

    /// Empties the cache of the device, and waits.
    pub fn flush(&self) -> Result<(), CudaError> {
        self.clock.enqueue_flush()?;
        self.clock.stream.synchronize()
    }

    /// Larger buffers, where an index or a file did not tell.
    fn make_room(&mut self, placed: &Placed) -> Result<(), Failure> {
        let device = self.gpu.device().clone();
        let larger = |buffer: &mut DeviceBuffer, bytes: u64| {
            if (buffer.len() as u64) < bytes {
                *buffer = DeviceBuffer::new(&device, 0)?;
                *buffer = DeviceBuffer::new(&device, bytes as usize)?;
            }
            Ok::<(), CudaError>(())
        };
        larger(&mut self.memory, placed.buffer + GUARD)?;
        larger(&mut self.packed, placed.packed + GUARD)?;
        larger(&mut self.contiguous, placed.packed + GUARD)?;
        let lacking = (placed.buffer + placed.packed + 2 * GUARD)
            .saturating_sub((self.image.len() + self.packed_image.len()) as u64);
        super::check::host_has(lacking)?;
        self.image.resize(self.image.len().max((placed.buffer + GUARD) as usize), 0);
        self.packed_image.resize(self.packed_image.len().max((placed.packed + GUARD) as usize), 0);
        Ok(())
    }
}

/// One direction of one case.
struct CaseComparison<'a> {
    arena: &'a mut Arena,
    name: &'a str,
    case: &'a Case,
    placed: &'a Placed,
    fragment: Fragment,
    /// By the engine that compiles, and by the one that does not.
    committed: &'a [Committed; 2],
    direction: Direction,
    candidates: &'a [&'a dyn Candidate],
}

impl CaseComparison<'_> {
    /// Prepares the source on the device, and what the call must make of it on the host.
    fn expect(&mut self) -> Result<(), Failure> {
        let CaseComparison { case, committed: [committed, _], .. } = *self;
        let (Placed { origin, buffer, .. }, Fragment { offset, bytes, at }) = (*self.placed, self.fragment);
        let (origin, threads) = (origin as usize, std::thread::available_parallelism().map_or(1, usize::from));
        let whole = offset == 0 && bytes == self.placed.packed;
        let Arena { pattern, clock, memory, packed, image, packed_image, .. } = &mut *self.arena;
        let stream = &clock.stream;
        let range = at as usize..(at + bytes) as usize;
        let refused = |error| Failure::Data(format!("{}: {error}", case.name));
        match self.direction {
            Direction::Pack => {
                let image = &mut image[..buffer as usize];
                pattern.fill(image, 0);
                pattern.enqueue_fill(stream, memory, buffer, 0)?;
                packed_image[..range.start].fill(POISON);
                packed_image[range.end..][..GUARD as usize].fill(POISON);
                let packed = &mut packed_image[range];
                match whole {
                    true => {
                        committed.pack_parallel(Memory::at(image, origin), Range::elements(case.count), packed, threads)
                    }
                    false => committed.pack(
                        Memory::at(image, origin),
                        Range::elements(case.count).fragment(offset, bytes),
                        packed,
                    ),
                }
            }
            Direction::Unpack => {
                pattern.fill(&mut packed_image[..range.end], PHASE);
                pattern.enqueue_fill(stream, packed, at + bytes, PHASE)?;
                let image = &mut image[..(buffer + GUARD) as usize];
                in_parallel(image, |_, part| part.fill(POISON));
                let packed = &packed_image[range];
                match whole {
                    true => committed.unpack_parallel(
                        packed,
                        Range::elements(case.count),
                        MemoryMut::at(image, origin),
                        threads,
                    ),
                    false => committed.unpack(
                        packed,
                        Range::elements(case.count).fragment(offset, bytes),
                        MemoryMut::at(image, origin),
                    ),
                }
            }
        }
        .map_err(refused)?;
        Ok(stream.synchronize()?)
    }

    /// Microseconds of the least traffic of the call; `None` for a fragment. A copy of the packed bytes, as it was measured beside the
    /// call, and what the call moves beyond that, at the rate of large copies: so both begin with the same state of the cache.
    fn least_us(&self, copy_us: f64) -> Option<f64> {
        let address = self.arena.memory.address() + self.placed.origin;
        let roofline = Roofline::of(self.committed[0].layout(), self.case.count, address)?;
        let beyond = roofline.traffic(self.direction).total() as f64 - 2.0 * self.placed.packed as f64;
        let whole = self.fragment.bytes == self.placed.packed;
        whole.then(|| copy_us + beyond / (self.arena.copy.gigabytes * 1e3))
    }

    fn run(&mut self, plan: &GpuPlan, peers: &[GpuPeer], rounds: usize) -> Result<Vec<Line>, Failure> {
        let mut rounds = rounds;
        let mut outcomes = Vec::new();
        // A first call asks for the kernel that is made for its length.
        if self.enqueue(GpuPeer::Specialised).is_ok() {
            self.arena.specialised.compile_pending(Duration::MAX);
        }
        for &peer in peers {
            let (outcome, wrong, seconds) = self.verify(peer, plan)?;
            if seconds > SLOW {
                rounds = rounds.min(3);
            }
            outcomes.push((peer, outcome, wrong));
        }
        let mut samples: Vec<[Vec<f64>; 2]> = outcomes.iter().map(|_| [Vec::new(), Vec::new()]).collect();
        for _ in 0..rounds {
            for ((peer, outcome, _), samples) in outcomes.iter().zip(&mut samples) {
                if outcome.is_ok() {
                    for (warm, samples) in samples.iter_mut().enumerate() {
                        let time = self.arena.clock.time(warm == 1, || self.enqueue(*peer));
                        samples.push(time?);
                    }
                }
            }
        }
        let copy = outcomes.iter().position(|(peer, ..)| *peer == GpuPeer::Memcpy);
        let copy_us = copy.map(|copy| &samples[copy][0]).filter(|cold| !cold.is_empty()).map(|cold| median(cold));
        let least_us = copy_us.and_then(|copy_us| self.least_us(copy_us));
        let lines = outcomes.into_iter().zip(&samples).map(|((peer, outcome, wrong), [cold, warm])| Line {
            peer,
            case: self.name.to_owned(),
            direction: self.direction,
            packed_bytes: self.fragment.bytes,
            variant: self.variant(peer, plan),
            times: outcome.map(|()| MedianTimes { cold: median(cold), warm: median(warm), rounds }),
            wrong,
            least_us: least_us.filter(|_| peer != GpuPeer::Memcpy),
        });
        Ok(lines.collect())
    }

    /// Calls once and looks at every byte: what is wrong, whether it is the bytes, and how long the call took.
    fn verify(&mut self, peer: GpuPeer, plan: &GpuPlan) -> Result<(Result<(), String>, bool, f64), Failure> {
        let specialised = &self.committed[0];
        if peer == GpuPeer::Specialised && plan.allows() && specialised.gpu_tier(&self.arena.gpu) != Tier::Specialised {
            let problem = self.arena.gpu.problem().map_or_else(|| "no kernel".to_owned(), |error| error.to_string());
            return Ok((Err(problem), false, 0.0));
        }
        let pack = self.direction == Direction::Pack;
        let (buffer, packed) = (self.placed.buffer, self.fragment.at + self.fragment.bytes);
        let arena = &mut *self.arena;
        if peer != GpuPeer::Memcpy {
            match self.direction {
                Direction::Pack => fill(&arena.clock.stream, &arena.packed, 0..packed + GUARD, POISON)?,
                Direction::Unpack => fill(&arena.clock.stream, &arena.memory, 0..buffer + GUARD, POISON)?,
            }
        }
        arena.clock.stream.synchronize()?;
        // The first call may load code; the second tells how slow it is.
        let mut seconds = 0.0;
        for _ in 0..2 {
            let start = Instant::now();
            if let Err(error) = self.enqueue(peer) {
                return Ok((Err(error.to_string()), false, 0.0));
            }
            self.arena.clock.stream.synchronize()?;
            seconds = start.elapsed().as_secs_f64();
        }
        if peer == GpuPeer::Memcpy {
            return Ok((Ok(()), false, seconds));
        }
        let arena = &mut *self.arena;
        let (found, expected) = if pack {
            (&arena.packed, &arena.packed_image[..(packed + GUARD) as usize])
        } else {
            (&arena.memory, &arena.image[..(buffer + GUARD) as usize])
        };
        let side = if pack { "packed" } else { "memory" };
        Ok(match arena.pattern.difference(found, expected)? {
            None => (Ok(()), false, seconds),
            Some((at, expected, found)) => {
                (Err(format!("wrong bytes: {side} byte {at}: expected {expected}, found {found}")), true, seconds)
            }
        })
    }

    fn on_device(&self, peer: GpuPeer) -> OnDevice<'_> {
        OnDevice {
            committed: &self.committed[usize::from(peer == GpuPeer::Generic)],
            count: self.case.count,
            memory: &self.arena.memory,
            origin: self.placed.origin as i64,
            packed: &self.arena.packed,
            at: self.fragment.at,
        }
    }

    fn enqueue(&self, peer: GpuPeer) -> Result<(), TransferError> {
        let Arena { clock, packed, contiguous, .. } = &*self.arena;
        let stream = &clock.stream;
        let Fragment { offset, bytes, .. } = self.fragment;
        match (peer, self.direction) {
            // The packed bytes of unpacks are a source, and stay as they are.
            (GpuPeer::Memcpy, Direction::Pack) => copy(stream, packed, 0, contiguous, 0, bytes),
            (GpuPeer::Memcpy, Direction::Unpack) => copy(stream, contiguous, 0, packed, 0, bytes),
            (GpuPeer::Candidate(number), _) => Ok(self.candidates[number].enqueue(stream)?),
            _ => self.on_device(peer).enqueue(self.direction, stream, offset, bytes).map(drop),
        }
    }

    /// Which kernel serves the call.
    fn variant(&self, peer: GpuPeer, plan: &GpuPlan) -> String {
        let call = Call {
            memory: self.arena.memory.address() + self.placed.origin,
            packed: self.arena.packed.address() + self.fragment.at,
            first: self.fragment.offset,
            bytes: self.fragment.bytes,
        };
        let text = match peer {
            GpuPeer::Memcpy => return "a copy by the driver".to_owned(),
            GpuPeer::Candidate(number) => self.candidates[number].name(),
            _ if call.bytes == 0 => return "nothing to move".to_owned(),
            _ if plan.is_contiguous() => return "contiguous: a copy by the driver".to_owned(),
            GpuPeer::Specialised if plan.allows() => plan.variant(self.direction, &call).to_string(),
            _ => GenericKernel::serving(plan, self.direction, &call).variant.to_string(),
        };
        // The direction has a field of its own.
        text.strip_prefix(&format!("{}: ", self.direction)).unwrap_or(&text).to_owned()
    }
}
