//! What `dtc build` made, on a GPU: its functions beside the runtime's kernels, and how soon a type of the bundle has its kernels.
#![expect(unsafe_code, reason = "functions of a library take addresses on a device")]

use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::GpuPlan;
use dtc_measure::bench::case::Case;
use dtc_measure::bench::cuda::check::{GUARD, POISON};
use dtc_measure::bench::cuda::comparison::Arena;
use dtc_measure::device::OnDevice;
use dtc_measure::failure::{Failure, reason};
use dtc_measure::report;
use dtc_measure::samples::{SEED, fill};
use dtc_measure::timing::{geometric_mean, median};
use dtc_runtime::cuda::{DeviceBuffer, Stream};
use dtc_runtime::store::Config;
use dtc_runtime::{Committed, Engine, Gpu, Tier};
use libloading::Library;
use serde_json::{Value, json};
use std::ffi::c_void;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What both functions of a type are: addresses, a count, a stream, and a `CUresult`.
type Launch = unsafe extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void) -> i32;

/// Microseconds of a type's pack or unpack.
pub struct Figure {
    case: String,
    direction: Direction,
    packed_bytes: u64,
    /// By the runtime's kernel, by the function, and by the runtime's kernel once more, with the cache emptied.
    cold: [f64; 3],
    /// The same right after the same call.
    warm: [f64; 3],
    /// The first call of the function, on the host's clock: it loads machine code and lists. Of the packs alone.
    first_call: Option<f64>,
    /// From a commit, in an engine with the bundle, until the type has its kernels. Of the packs alone.
    kernel_ready: Option<f64>,
}

impl Figure {
    /// The figure as a line of results.
    pub fn to_json(&self) -> Value {
        json!({
            "peer": "bundle",
            "case": self.case,
            "direction": self.direction.to_string(),
            "packed_bytes": self.packed_bytes,
            "runtime_us": [self.cold[0], self.warm[0]],
            "function_us": [self.cold[1], self.warm[1]],
            "runtime_again_us": [self.cold[2], self.warm[2]],
            "first_call_us": self.first_call,
            "kernel_ready_us": self.kernel_ready,
        })
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let optional = |time: Option<f64>| time.map_or_else(String::new, |time| report::time(time * 1e3));
        let [cold, cold_itself, warm, warm_itself] = self.ratios().map(|ratio| format!("{ratio:.3}"));
        let row = [
            self.case.clone(),
            self.direction.to_string(),
            report::bytes(self.packed_bytes),
            report::time(self.cold[0] * 1e3),
            cold,
            cold_itself,
            warm,
            warm_itself,
            optional(self.first_call),
            optional(self.kernel_ready),
        ];
        print_row(&row, out)
    }

    /// The function over the runtime, and the runtime over itself: cold, then warm.
    fn ratios(&self) -> [f64; 4] {
        let Figure { cold, warm, .. } = self;
        [cold[1] / cold[0], cold[2] / cold[0], warm[1] / warm[0], warm[2] / warm[0]]
    }
}

/// The library that a bundle has for GPUs.
struct Functions(Library);

impl Functions {
    fn open(bundle: &Path) -> Result<Functions, Failure> {
        let folder = bundle.join(format!("lib/{}-cuda", std::env::consts::ARCH));
        let is_library = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "so");
        let found = folder
            .read_dir()
            .ok()
            .and_then(|mut files| files.find_map(|file| Some(file.ok()?.path()).filter(is_library)));
        let missing = |found: &str| Failure::description(folder.display(), "a library of dtc build for GPUs", found);
        let path = found.ok_or_else(|| missing("none"))?;
        // SAFETY: libraries of `dtc build` have no initialiser.
        let library = unsafe { Library::new(path) };
        library.map(Functions).map_err(|error| missing(&error.to_string()))
    }

    fn get(&self, name: &str, direction: Direction) -> Result<Launch, Failure> {
        let symbol = format!("{name}_{direction}_cuda");
        // SAFETY: `dtc build` gives functions of these names this type. `self` outlives what it returns: `measure` keeps it.
        let found = unsafe { self.0.get::<Launch>(symbol.as_bytes()) };
        found.map(|function| *function).map_err(|error| Failure::description(symbol, "a function of the bundle", error))
    }
}

/// Measures the types of files, whose functions and kernels a bundle has. Every byte is held against the reference walker. Each figure
/// is printed, and given to `record`, as soon as it is known.
pub fn measure(
    arena: &mut Arena,
    bundle: &Path,
    files: &[PathBuf],
    rounds: usize,
    out: &mut dyn Write,
    mut record: impl FnMut(&Figure) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let cases: Vec<Case> = files.iter().map(|file| Case::read(file)).collect::<Result<_, _>>()?;
    // First what needs no compiler, so that none has been opened.
    let ready = ready(bundle, &cases)?;
    let opened = std::fs::read_to_string("/proc/self/maps").map_err(|error| Failure::Data(reason(&error)))?;
    let compiler = if opened.contains("libnvrtc") { "open" } else { "not open" };
    let number = ready.iter().flatten().count();
    writeln!(out, "{number} of {} types have kernels, all from the bundle; NVRTC is {compiler}", cases.len())?;
    writeln!(
        out,
        "functions of a bundle over the runtime's kernels, and these over themselves: times with the cache emptied, and not"
    )?;
    print_row(&COLUMNS.map(str::to_owned), out)?;
    let functions = Functions::open(bundle)?;
    let mut host = Host::default();
    let mut figures = Vec::new();
    for (case, ready) in cases.iter().zip(ready) {
        for direction in [Direction::Pack, Direction::Unpack] {
            let mut comparison = Comparison::new(arena, &functions, case, direction)?;
            let first_call = comparison.check(&mut host)?;
            let mut figure = comparison.times(rounds)?;
            if direction == Direction::Pack {
                (figure.first_call, figure.kernel_ready) = (Some(first_call), ready);
            }
            figure.print(out)?;
            record(&figure)?;
            figures.push(figure);
        }
    }
    print_summary(&figures, out)
}

/// Microseconds from the commit of each type until it has its kernels, in an engine that has the bundle and no store; nothing for
/// contiguous types, which need none.
fn ready(bundle: &Path, cases: &[Case]) -> Result<Vec<Option<f64>>, Failure> {
    let engine = Engine::builder().background_thread(false).store(Config::none()).build();
    engine.load_bundle(bundle).map_err(|finding| Failure::Data(finding.to_string()))?;
    let gpu: Gpu = engine.gpu(0)?;
    gpu.load()?;
    let ready = |case: &Case| {
        let start = Instant::now();
        let committed = engine.commit(&case.datatype);
        let tier = committed.prepare(&gpu)?;
        let time = start.elapsed().as_nanos() as f64 / 1e3;
        match tier {
            Tier::Specialised => Ok(Some(time)),
            _ if !GpuPlan::new(committed.layout()).allows() => Ok(None),
            tier => Err(Failure::data(&case.name, "kernels from the bundle", tier)),
        }
    };
    cases.iter().map(ready).collect()
}

/// One direction of a type.
struct Comparison<'a> {
    arena: &'a Arena,
    launch: Launch,
    case: &'a Case,
    committed: Committed,
    direction: Direction,
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    /// Where address 0 of the type is.
    origin: u64,
    /// Packed bytes.
    bytes: u64,
}

/// Both buffers on the host. They are kept from type to type: new pages would take longer than the call.
#[derive(Default)]
struct Host {
    /// What a call must leave in memory.
    memory: Vec<u8>,
    /// What a call must leave among the packed bytes.
    packed: Vec<u8>,
    /// What one of the buffers has.
    found: Vec<u8>,
}

/// Room before the elements and the packed bytes, for addresses of several alignments.
const SHIFT: u64 = 256;

impl<'a> Comparison<'a> {
    fn new(
        arena: &'a Arena,
        functions: &Functions,
        case: &'a Case,
        direction: Direction,
    ) -> Result<Comparison<'a>, Failure> {
        let name: String =
            case.name.chars().map(|each| if each.is_ascii_alphanumeric() { each } else { '_' }).collect();
        let launch = functions.get(&name, direction)?;
        let committed = arena.specialised.commit(&case.datatype);
        committed.prepare(&arena.gpu)?;
        let bytes = committed.layout().size() * case.count;
        let (low, high) = committed.span(case.count).unwrap_or_default();
        let origin = ((-low).max(0) as u64).next_multiple_of(SHIFT);
        let memory = origin + high.max(0) as u64 + SHIFT + GUARD;
        let device = arena.gpu.device();
        let memory = DeviceBuffer::new(device, memory as usize)?;
        let packed = DeviceBuffer::new(device, (bytes + SHIFT + GUARD) as usize)?;
        Ok(Comparison { arena, launch, case, committed, direction, memory, packed, origin, bytes })
    }

    /// Calls the function, the elements and the packed bytes `shift` bytes further than usual.
    fn call(&self, shift: u64) -> Result<(), Failure> {
        let (memory, packed) = (self.memory.address() + self.origin + shift, self.packed.address() + shift);
        let (from, to) = match self.direction {
            Direction::Pack => (memory, packed),
            Direction::Unpack => (packed, memory),
        };
        let stream: &Stream = &self.arena.clock.stream;
        let _scope = self.arena.gpu.device().scope()?;
        // SAFETY: `new` made both buffers of the device for all elements from `origin` on, and all packed bytes, and for `SHIFT` bytes
        // more; they are freed when the device has done its work. The stream is one of the current context.
        let status =
            unsafe { (self.launch)(from as *const c_void, to as *mut c_void, self.case.count as usize, stream.raw()) };
        if status == 0 {
            Ok(())
        } else {
            Err(Failure::data(&self.case.name, "a launch", format_args!("CUresult {status}")))
        }
    }

    /// Holds every byte of both buffers against the walker, for addresses of three alignments; microseconds of the first call.
    fn check(&mut self, host: &mut Host) -> Result<f64, Failure> {
        let layout = self.committed.layout().clone();
        let Host { memory, packed, found } = host;
        memory.resize(self.memory.len(), 0);
        packed.resize(self.packed.len(), 0);
        // A call that changes its source is found at once, so that the source is written once.
        if self.direction == Direction::Pack {
            fill(memory, SEED);
            self.memory.write(0, memory)?;
        } else {
            fill(packed, SEED);
            self.packed.write(0, packed)?;
        }
        let mut first_call = None;
        for shift in [0, self.case.datatype.facts().alignment.min(SHIFT), 1] {
            if self.direction == Direction::Pack {
                packed.fill(POISON);
                self.packed.write(0, packed)?;
            } else {
                memory.fill(POISON);
                self.memory.write(0, memory)?;
            }
            let mut next = shift as usize;
            for element in 0..self.case.count as i64 {
                for byte in layout.displacements() {
                    let at = ((self.origin + shift) as i64 + element * layout.extent() + byte) as usize;
                    match self.direction {
                        Direction::Pack => packed[next] = memory[at],
                        Direction::Unpack => memory[at] = packed[next],
                    }
                    next += 1;
                }
            }
            let start = Instant::now();
            self.call(shift)?;
            self.arena.clock.stream.synchronize()?;
            first_call.get_or_insert(start.elapsed().as_nanos() as f64 / 1e3);
            for (side, buffer, expected) in [("memory", &self.memory, &*memory), ("packed", &self.packed, &*packed)] {
                found.resize(expected.len(), 0);
                buffer.read(0, found)?;
                // All at once, which is many times as fast as byte by byte.
                if found == expected {
                    continue;
                }
                if let Some(at) = (0..found.len()).find(|&at| found[at] != expected[at]) {
                    let place =
                        format!("{} {}, {shift} bytes behind a line: {side} byte {at}", self.direction, self.case.name);
                    return Err(Failure::data(place, expected[at], found[at]));
                }
            }
        }
        Ok(first_call.unwrap_or_default())
    }

    /// Times in turns.
    fn times(&self, rounds: usize) -> Result<Figure, Failure> {
        let runtime = || {
            let Comparison { committed, memory, packed, .. } = self;
            let on = OnDevice { committed, count: self.case.count, memory, origin: self.origin as i64, packed, at: 0 };
            Ok::<(), Failure>(on.enqueue(self.direction, &self.arena.clock.stream, 0, self.bytes).map(drop)?)
        };
        let mut samples: [[Vec<f64>; 3]; 2] = Default::default();
        for _ in 0..rounds {
            for (warm, samples) in samples.iter_mut().enumerate() {
                let clock = &self.arena.clock;
                samples[0].push(clock.time(warm == 1, runtime)?);
                samples[1].push(clock.time(warm == 1, || self.call(0))?);
                samples[2].push(clock.time(warm == 1, runtime)?);
            }
        }
        let [cold, warm] = samples.each_ref().map(|samples| samples.each_ref().map(|times| median(times)));
        Ok(Figure {
            case: self.case.name.clone(),
            direction: self.direction,
            packed_bytes: self.bytes,
            cold,
            warm,
            first_call: None,
            kernel_ready: None,
        })
    }
}

/// What a line of figures has.
const COLUMNS: [&str; 10] =
    ["type", "direction", "packed", "runtime", "cold", "itself", "warm", "itself", "first call", "kernels ready"];

/// Prints one line, and sees that it is there if the process is ended by the next.
fn print_row(cells: &[String; 10], out: &mut dyn Write) -> Result<(), Failure> {
    let [name, rest @ ..] = cells;
    write!(out, "{name:<32}")?;
    rest.iter().try_for_each(|cell| write!(out, "{cell:>14}"))?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Prints what all figures say together.
fn print_summary(figures: &[Figure], out: &mut dyn Write) -> Result<(), Failure> {
    for (at, what) in ["cold", "runtime over itself, cold", "warm", "runtime over itself, warm"].into_iter().enumerate()
    {
        let ratios: Vec<f64> = figures.iter().map(|figure| figure.ratios()[at]).collect();
        let beyond = ratios.iter().filter(|&&ratio| ratio > 1.02).count();
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let mean = geometric_mean(&ratios);
        writeln!(out, "{what}: geometric mean {mean:.3}, most {most:.3}, above 1.02: {beyond} of {}", ratios.len())?;
    }
    let ready: Vec<f64> = figures.iter().filter_map(|figure| figure.kernel_ready).collect();
    let first: Vec<f64> = figures.iter().filter_map(|figure| figure.first_call).collect();
    for (what, times) in [("from a commit until the kernels are there", ready), ("first call of a function", first)] {
        let most = times.iter().copied().fold(0.0, f64::max);
        writeln!(out, "{what}: median {}, most {}", report::time(median(&times) * 1e3), report::time(most * 1e3))?;
    }
    Ok(())
}
