//! Kernels as one writes them by hand, with the constants of a case.
#![expect(unsafe_code, reason = "launches kernels")]

use super::call::Call;
use super::cases::BY_HAND;
use dtc_compiler::plan::Direction;
use dtc_runtime::Gpu;
use dtc_runtime::cuda::{CudaError, Function, Stream};

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks on each multiprocessor, where the device moves its own memory.
const BLOCKS: u32 = 16;

/// Blocks in all that write to pinned memory: more are no faster (`bench/results`, cases of paged caches).
const WRITERS: u32 = 32;

/// Blocks on each multiprocessor that read pinned memory.
const READERS: u32 = 2;

/// How many blocks a call gets. `pinned`: whether the packed bytes are in pinned memory.
pub fn blocks(multiprocessors: u32, direction: Direction, pinned: bool) -> u32 {
    match (pinned, direction) {
        (false, _) => BLOCKS * multiprocessors,
        (true, Direction::Pack) => WRITERS,
        (true, Direction::Unpack) => READERS * multiprocessors,
    }
}

/// Such a kernel.
pub struct ByHand(Function);

impl ByHand {
    /// Compiles it.
    pub fn new(gpu: &Gpu, text: &str) -> Result<ByHand, CudaError> {
        let mut functions = gpu.compile(text, &[BY_HAND])?;
        functions.pop().map(ByHand).ok_or(CudaError::KernelMissing { kernel: BY_HAND })
    }

    /// Enqueues a call.
    pub fn enqueue(&self, stream: &Stream, blocks: u32, call: &Call, mut table: u64) -> Result<(), CudaError> {
        let (mut memory, mut packed) = (call.memory.address(), call.packed.address());
        let mut unpack = i32::from(call.direction == Direction::Unpack);
        let mut parameters =
            [(&raw mut memory).cast(), (&raw mut packed).cast(), (&raw mut table).cast(), (&raw mut unpack).cast()];
        // SAFETY: the kernel has these four parameters. It was written for the case whose buffers the call has, and the table has
        // all entries; both live until the stream was waited for.
        unsafe { self.0.launch(stream, [blocks, 1, 1], [THREADS, 1, 1], 0, &mut parameters) }
    }
}
