//! Batches: packs and unpacks of many types in one launch.
//!
//! [`kernels`] holds the compiled kernels, one for each collection of types and alignments; [`prepared`] holds batches as they
//! were launched, which costs nothing but a comparison when they come again; a [`PersistentBatch`] needs none.

mod asked;
mod kernels;
mod persistent;
mod prepared;

pub use persistent::PersistentBatch;
pub(super) use prepared::Batches;

use super::Gpu;
use crate::committed::Committed;
use crate::engine::Engine;
use crate::policy::{Policy, Tier};
use crate::range::Range;
use asked::Asked;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use dtc_cuda::{CudaError, Stream};

/// One pack or unpack of a batch.
///
/// ```
/// use dtc_runtime::{BatchCall, Committed, Direction, Range};
/// fn face<'a>(face: &'a Committed, memory: *mut u8, packed: *mut u8, bytes: u64) -> BatchCall<'a> {
///     BatchCall { datatype: face, direction: Direction::Pack, memory, range: Range::elements(1).bytes(..bytes), packed }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BatchCall<'a> {
    /// The type of the elements.
    pub datatype: &'a Committed,
    /// Which way.
    pub direction: Direction,
    /// The address of element 0; only read by packs.
    pub memory: *mut u8,
    /// The packed bytes to move.
    pub range: Range,
    /// Where the first of them lies; only read by unpacks.
    pub packed: *mut u8,
}

impl Engine {
    /// Enqueues packs and unpacks on a CUDA stream as one launch, and returns at once. Returns how many packed bytes will be
    /// moved.
    ///
    /// The calls may be of different types, directions and sizes, and run in any order. May be captured into a graph. Calls of
    /// the same types at the same alignments share a compiled kernel, which is made as the policy says and until then
    /// replaced by a generic one; a batch of many calls that comes again finds its table on the device.
    ///
    /// # Errors
    ///
    /// CUDA refuses. Nothing was enqueued then.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), for every call, in memory that the device of the stream reaches, until the
    /// work is done; and no call writes what another one reads or writes.
    ///
    /// ```
    /// # use dtc_runtime::cuda::{CudaError, DeviceBuffer, Stream};
    /// use dtc_runtime::{BatchCall, Committed, Direction, Engine, Range};
    /// # fn pack(engine: &Engine, faces: &[Committed], grid: &DeviceBuffer, packed: &[DeviceBuffer], stream: &Stream) -> Result<u64, CudaError> {
    /// let calls: Vec<BatchCall> = faces.iter().zip(packed).map(|(face, packed)| BatchCall {
    ///     datatype: face,
    ///     direction: Direction::Pack,
    ///     memory: grid.address() as *mut u8,
    ///     range: Range::elements(1),
    ///     packed: packed.address() as *mut u8,
    /// }).collect();
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// unsafe { engine.enqueue_batch(stream, &calls) }
    /// # }
    /// ```
    pub unsafe fn enqueue_batch(&self, stream: &Stream, calls: &[BatchCall<'_>]) -> Result<u64, CudaError> {
        let gpu = self.gpu(stream.device().info().ordinal)?;
        let asked: Vec<Asked<'_>> = calls.iter().filter_map(|call| asked(&gpu, call)).collect();
        if !asked.is_empty() {
            let prepared = gpu.several.batches.prepared(&gpu.shared, &asked)?;
            // SAFETY: `prepared` addresses the bytes of `calls` and no others. Until the work is done, the device reaches them on
            // both sides (contract of this function).
            unsafe { prepared.launch(stream)? };
        }
        Ok(asked.iter().map(|asked| asked.call.bytes).sum())
    }

    /// Makes a device ready for a batch: brings the lists of its types there and, unless the policy is [`Policy::Off`], compiles
    /// the kernel now. Returns the tier that serves the batch from here on.
    ///
    /// # Errors
    ///
    /// CUDA refuses; a kernel that cannot be compiled is no error, [`Gpu::problem`] tells.
    ///
    /// ```
    /// # fn ready(engine: &dtc_runtime::Engine, gpu: &dtc_runtime::Gpu, calls: &[dtc_runtime::BatchCall]) -> Result<(), Box<dyn std::error::Error>> {
    /// println!("{}", engine.prepare_batch(gpu, calls)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_batch(&self, gpu: &Gpu, calls: &[BatchCall<'_>]) -> Result<Tier, CudaError> {
        gpu.load()?;
        let asked: Vec<Asked<'_>> = calls.iter().filter_map(|call| asked(gpu, call)).collect();
        for asked in &asked {
            asked.on_device.batch_program()?;
        }
        let Some((kernel, _)) = gpu.several.batches.kernel(&gpu.shared, &asked) else { return Ok(Tier::Generic) };
        if gpu.shared.policy != Policy::Off {
            kernel.compile(&gpu.shared);
        }
        Ok(if kernel.ready().is_some() { Tier::Specialised } else { Tier::Generic })
    }
}

/// What a call moves; `None` if that is nothing.
fn asked<'a>(gpu: &Gpu, call: &BatchCall<'a>) -> Option<Asked<'a>> {
    let &BatchCall { datatype, direction, memory, range, packed } = call;
    let range = datatype.exact(range);
    let (first, bytes) = (range.offset(), range.length());
    let call = Call { memory: memory as u64, packed: packed as u64, first, bytes };
    (bytes > 0).then(|| Asked { on_device: datatype.on_device(gpu), direction, count: range.count(), call })
}
