//! Batches: packs and unpacks of many types in one launch.
//!
//! A batch that comes again is launched as it was prepared before; a [`PersistentBatch`] is prepared once.

mod persistent;

pub use persistent::PersistentBatch;

use crate::device::{BatchItem, Gpu};
use crate::endpoint::Endpoint;
use crate::engine::Engine;
use crate::policy::{Policy, Tier};
use crate::transfers::error::TransferError;
use crate::transfers::transfer::{Action, Transfer};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use dtc_cuda::Stream;

impl Engine {
    /// Enqueues packs and unpacks on a CUDA stream as one launch, and returns at once. Returns how many packed bytes will be
    /// moved.
    ///
    /// They may be of different types and sizes, and run in any order. May be captured into a graph. Batches of
    /// the same types at the same alignments share a compiled kernel, which is made as the policy says and until then
    /// replaced by a generic one; a batch of many transfers that comes again finds its table on the device. All multiprocessors
    /// take part, whatever a transfer asks for.
    ///
    /// # Errors
    ///
    /// [`TransferError::Batch`] where a transfer is no pack or unpack; CUDA refuses. Nothing was enqueued then.
    ///
    /// # Safety
    ///
    /// The contract of [`Transfer`](crate::Transfer), for every one, in memory that the device of the stream reaches, until the
    /// work is done; and none writes what another one reads or writes.
    ///
    /// ```
    /// # use dtc_runtime::cuda::{DeviceBuffer, Stream};
    /// use dtc_runtime::{Committed, Engine, Range, Transfer};
    /// # use dtc_runtime::TransferError;
    /// # fn pack(engine: &Engine, faces: &[Committed], grid: &DeviceBuffer, packed: &[DeviceBuffer], stream: &Stream) -> Result<usize, TransferError> {
    /// let packs: Vec<Transfer> =
    ///     faces.iter().zip(packed).map(|(face, packed)| face.at(grid, Range::elements(1)).pack(packed)).collect();
    /// // SAFETY: the buffers are on the device of the stream, large enough, and live until the stream was waited for.
    /// unsafe { engine.enqueue_batch(stream, &packs) }
    /// # }
    /// ```
    pub unsafe fn enqueue_batch(&self, stream: &Stream, transfers: &[Transfer<'_>]) -> Result<usize, TransferError> {
        let gpu = self.gpu(stream.device().info().ordinal)?;
        let requested = all_items(&gpu, transfers)?;
        if !requested.is_empty() {
            let prepared = gpu.shared_kernels.batches.prepared(&gpu.state, &requested)?;
            // SAFETY: `prepared` addresses the bytes of `transfers` and no others. Until the work is done, the device reaches them on
            // both sides (contract of this function).
            unsafe { prepared.launch(stream)? };
        }
        Ok(requested.iter().map(|requested| requested.call.bytes as usize).sum())
    }

    /// Makes a device ready for a batch: brings the lists of its types there and, unless the policy is [`Policy::Off`], compiles
    /// the kernel now. Returns the tier that serves the batch from here on.
    ///
    /// # Errors
    ///
    /// [`TransferError::Batch`] where a transfer is no pack or unpack; CUDA refuses. A kernel that cannot be compiled is no error,
    /// [`Gpu::problem`] tells.
    ///
    /// ```
    /// # fn ready(engine: &dtc_runtime::Engine, gpu: &dtc_runtime::Gpu, packs: &[dtc_runtime::Transfer]) -> Result<(), Box<dyn std::error::Error>> {
    /// println!("{}", engine.prepare_batch(gpu, packs)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_batch(&self, gpu: &Gpu, transfers: &[Transfer<'_>]) -> Result<Tier, TransferError> {
        gpu.load()?;
        let requested = all_items(gpu, transfers)?;
        for requested in &requested {
            requested.device_type.batch_program()?;
        }
        let Some((kernel, _)) = gpu.shared_kernels.batches.kernel(&gpu.state, &requested) else {
            return Ok(Tier::Generic);
        };
        if gpu.state.policy != Policy::Off {
            kernel.compile(&gpu.state);
        }
        Ok(if kernel.ready().is_some() { Tier::Specialised } else { Tier::Generic })
    }
}

/// What the transfers move, without those that move nothing.
fn all_items<'a>(gpu: &Gpu, transfers: &[Transfer<'a>]) -> Result<Vec<BatchItem<'a>>, TransferError> {
    transfers.iter().filter_map(|transfer| batch_item(gpu, transfer).transpose()).collect()
}

/// The direction of a pack or unpack, and its packed bytes.
fn moved(transfer: &Transfer<'_>) -> Result<(Direction, Endpoint), TransferError> {
    match transfer.action {
        Action::Move(direction, packed) => Ok((direction, packed)),
        Action::External(..) => Err(TransferError::Batch("a conversion")),
        Action::Accumulate(..) => Err(TransferError::Batch("an accumulation")),
        Action::Copy(..) => Err(TransferError::Batch("a copy")),
    }
}

/// The packed bytes of a pack or unpack.
pub(crate) fn packed_end(transfer: &Transfer<'_>) -> Result<Endpoint, TransferError> {
    moved(transfer).map(|(_, packed)| packed)
}

/// What a transfer moves; `None` if that is nothing.
pub(crate) fn batch_item<'a>(gpu: &Gpu, transfer: &Transfer<'a>) -> Result<Option<BatchItem<'a>>, TransferError> {
    let (direction, packed) = moved(transfer)?;
    let elements = transfer.elements.exact();
    let (first, bytes) = (elements.range.offset(), elements.range.length());
    let call = Call { memory: elements.memory.address() as u64, packed: packed.address() as u64, first, bytes };
    let requested =
        || BatchItem { device_type: elements.of.device_type(gpu), direction, count: elements.range.count(), call };
    Ok((bytes > 0).then(requested))
}
