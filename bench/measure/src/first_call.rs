//! What the first call of a process on a GPU takes.

use crate::device::OnDevice;
use crate::failure::Failure;
use crate::report;
use crate::samples::{SEED, fill};
use dtc_compiler::datatype::Datatype;
use dtc_compiler::plan::Direction;
use dtc_runtime::cuda::{Device, DeviceBuffer};
use dtc_runtime::{Committed, Engine, GenericCode, Gpu, Policy, Range, Tier};
use std::fmt;
use std::time::{Duration, Instant};

/// The steps of a first call, each in nanoseconds.
#[derive(Debug)]
pub struct FirstCall {
    /// Opening the driver and initialising CUDA; next to nothing if the process has done so before.
    pub driver: f64,
    /// Creating the context of the device, or retaining it if the process has it.
    pub context: f64,
    /// Opening the device for an engine, of which loading the generic kernels is most.
    pub kernels: f64,
    /// What these were loaded from.
    pub code: GenericCode,
    /// The first pack, until it is done.
    pub first: f64,
    /// The second one.
    pub second: f64,
    /// Until the type has a kernel of its own, counted from the first pack on; `None` if it gets none.
    pub compiled: Option<f64>,
}

/// How often it is looked whether the kernel of the type is there.
const LOOK: Duration = Duration::from_micros(200);

/// How long it is waited for: a hundred times what compiling takes.
const PATIENCE: Duration = Duration::from_secs(10);

impl FirstCall {
    /// Packs an element twice in memory of a device, which is opened for it, and holds the bytes against those that the
    /// processor packs. The element begins at its address 0 or behind it.
    pub fn make(ordinal: u32, policy: Policy, datatype: &Datatype) -> Result<FirstCall, Failure> {
        let (driver, count) = timed(Device::count);
        count?;
        let (context, device) = timed(|| Device::get(ordinal));
        let device = device?;
        let engine = Engine::builder().policy(policy).build();
        let (kernels, gpu) = timed(|| engine.gpu(ordinal));
        let gpu = gpu?;
        let code = gpu.generic_code()?;
        let committed = engine.commit(datatype);
        let buffers = Buffers::new(&device, &committed)?;
        let (first, done) = timed(|| buffers.pack());
        done?;
        let begin = Instant::now();
        let (second, done) = timed(|| buffers.pack());
        done?;
        let compiled = compiled(&gpu, &committed, begin, policy).map(|waited| first + waited);
        buffers.check()?;
        Ok(FirstCall { driver, context, kernels, code, first, second, compiled })
    }
}

impl fmt::Display for FirstCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [context, kernels, first, second] = [self.context, self.kernels, self.first, self.second].map(report::time);
        write!(f, "context {context}, generic kernels {kernels}, pack {first}, another {second}; {}", self.code)
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed().as_nanos() as f64, done)
}

/// Nanoseconds from `begin` until a type has a kernel.
fn compiled(gpu: &Gpu, committed: &Committed, begin: Instant, policy: Policy) -> Option<f64> {
    if policy == Policy::Off {
        return None;
    }
    while begin.elapsed() < PATIENCE && gpu.problem().is_none() {
        if committed.gpu_tier(gpu) == Tier::Specialised {
            return Some(begin.elapsed().as_nanos() as f64);
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// An element from its address 0 on, and its packed bytes.
struct Buffers<'a> {
    committed: &'a Committed,
    host: Vec<u8>,
    memory: DeviceBuffer,
    packed: DeviceBuffer,
}

impl Buffers<'_> {
    fn new<'a>(device: &Device, committed: &'a Committed) -> Result<Buffers<'a>, Failure> {
        let end = committed.span(1).map_or(1, |(_, high)| high);
        let mut host = vec![0; usize::try_from(end).unwrap_or(1)];
        fill(&mut host, SEED);
        let mut memory = DeviceBuffer::new(device, host.len())?;
        memory.write(0, &host)?;
        let packed = DeviceBuffer::new(device, committed.layout().size().max(1) as usize)?;
        Ok(Buffers { committed, host, memory, packed })
    }

    fn pack(&self) -> Result<(), Failure> {
        let Buffers { committed, memory, packed, .. } = self;
        let call = OnDevice { committed, count: 1, memory, origin: 0, packed, at: 0 };
        Ok(call.call(Direction::Pack, 0, committed.layout().size()).map(drop)?)
    }

    fn check(&self) -> Result<(), Failure> {
        let mut expected = vec![0; self.packed.len()];
        let refused = |error| Failure::Data(format!("pack: {error}"));
        self.committed.pack(&self.host, Range::elements(1), &mut expected).map_err(refused)?;
        let mut found = vec![0; expected.len()];
        self.packed.read(0, &mut found)?;
        if expected == found { Ok(()) } else { Err(Failure::data("first pack", "the bytes of the CPU", "others")) }
    }
}
