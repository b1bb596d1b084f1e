//! Engines and GPUs on machines that lack something: on stubs of the driver and of NVRTC, whose kernels do nothing. Each test
//! has a process of its own, since libraries are loaded once per process.
#![expect(clippy::disallowed_types, reason = "tests that lock fork no child")]

mod child;
mod kernels;
mod lacking;
mod lifetimes;
mod memory;
mod operations;
mod staging;
mod transfers;

use dtc_compiler::datatype::{Datatype, Predefined, TypeBuilder};
use dtc_runtime::cuda::{CudaError, DeviceBuffer, Stream};
use dtc_runtime::store::Config;
use dtc_runtime::{Committed, Engine, EngineBuilder, Gpu, Policy, Range, TransferError};

/// An engine without a store, and without a thread so that a test says when something is compiled.
fn builder(policy: Policy) -> EngineBuilder {
    Engine::builder().policy(policy).background_thread(false).store(Config::none())
}

/// A type that needs lists on a device. Another number makes another type.
fn listed(number: i64) -> Datatype {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let places: Vec<i64> = (0..50).map(|at| at * 5 + at * at % 3 + at / 49 * number).collect();
    let lengths: Vec<i64> = (0..50).map(|at| 1 + at % 2).collect();
    let list = types.indexed(&lengths, &places, int).unwrap();
    types.finish(list).unwrap()
}

/// A list whose canonical form takes longer than its first call.
fn long_list() -> Datatype {
    list_of(600)
}

/// A list of as many entries, which come back to the same places.
fn list_of(entries: i64) -> Datatype {
    let mut types = TypeBuilder::new();
    let byte = types.named(Predefined::BYTE);
    let places: Vec<i64> = (0..entries).map(|at| (at * 13 + at * at % 5) % 16_000).collect();
    let list = types.hindexed_block(8, &places, byte).unwrap();
    types.finish(list).unwrap()
}

/// A type that needs none.
fn rows() -> Datatype {
    let mut types = TypeBuilder::new();
    let int = types.named(Predefined::INT);
    let rows = types.vector(50, 2, 3, int).unwrap();
    types.finish(rows).unwrap()
}

/// Elements and packed bytes on a device, and a stream.
struct Buffers {
    memory: DeviceBuffer,
    packed: DeviceBuffer,
    stream: Stream,
}

impl Buffers {
    fn new(gpu: &Gpu) -> Buffers {
        let buffer = || DeviceBuffer::new(gpu.device(), 1 << 14).unwrap();
        Buffers { memory: buffer(), packed: buffer(), stream: Stream::new(gpu.device()).unwrap() }
    }

    /// Enqueues a pack of one element.
    fn enqueue(&self, committed: &Committed) -> Result<usize, CudaError> {
        assert!(committed.span(1).is_some_and(|(low, high)| low >= 0 && high <= 1 << 14));
        let elements = committed.at(&self.memory, Range::elements(1).bytes(..4096));
        // SAFETY: both buffers are long enough.
        unsafe { elements.pack(&self.packed).enqueue(&self.stream) }.map_err(|error| match error {
            TransferError::Cuda(error) => error,
            error => panic!("{error}"),
        })
    }
}

/// A pack of host memory is right whatever there is of CUDA.
fn packs_on_the_host(engine: &Engine) {
    let committed = engine.commit(&listed(0));
    let memory: Vec<u8> = (0..4096).map(|at| (at * 7 / 3) as u8).collect();
    let total = committed.packed_size(1).unwrap();
    let (mut packed, mut any) = (vec![0u8; total], vec![0u8; total]);
    assert_eq!(committed.pack(&memory, Range::elements(1), &mut packed), Ok(total));
    // SAFETY: both sides are long enough.
    let moved =
        unsafe { committed.at(memory.as_ptr(), Range::elements(1).bytes(..total as u64)).pack(any.as_mut_ptr()).run() };
    assert_eq!(moved, Ok(total));
    assert_eq!(packed, any);
}
