//! Batches that are enqueued again and again, with addresses that may change in between.

use super::batch_item;
use crate::device::{BatchItem, DeviceKernel, DeviceType, Gpu, Grid, Move, Prepared};
use crate::endpoint::Endpoint;
use crate::engine::Engine;
use crate::multiprocessors::Multiprocessors;
use crate::transfers::error::TransferError;
use crate::transfers::transfer::Transfer;
use dtc_compiler::codegen::cuda::Item;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use dtc_cuda::{CaptureStatus, CudaError, Stream, copy};
use std::fmt;
use std::sync::Arc;

/// Changed items this close to each other are written to the device by one copy.
const WRITTEN_TOGETHER: usize = 64;

/// A batch that is prepared once and enqueued often: what `MPI_Start` is to a persistent request.
///
/// Made by [`Engine::persistent_batch`]. Enqueueing costs one launch, however many calls the batch has; other addresses cost time
/// in proportion to the calls that changed, as long as they are aligned as the ones before.
///
/// # Example
///
/// ```
/// # use dtc_runtime::cuda::{DeviceBuffer, Stream};
/// use dtc_runtime::{Engine, Transfer};
/// # fn steps(engine: &Engine, packs: &[Transfer], grids: [&DeviceBuffer; 2], packed: &DeviceBuffer, stream: &Stream) -> Result<(), Box<dyn std::error::Error>> {
/// let mut batch = engine.persistent_batch(&engine.gpu(0)?, packs)?;
/// for step in 0..100 {
///     batch.move_to(0, grids[step % 2], packed);
///     // SAFETY: the buffers are on the device, large enough, and live until the stream was waited for.
///     unsafe { batch.enqueue(stream)? };
/// }
/// # Ok(())
/// # }
/// ```
pub struct PersistentBatch {
    gpu: Gpu,
    calls: Vec<Held>,
    /// The place of each transfer of the caller among those that move bytes.
    places: Vec<Option<u32>>,
    bytes: u64,
    launch: Option<PreparedLaunch>,
    /// Calls whose addresses changed since the last launch.
    changed: Vec<u32>,
}

impl fmt::Debug for PersistentBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, bytes) = (self.places.len(), self.bytes);
        f.debug_struct("PersistentBatch").field("calls", &calls).field("bytes", &bytes).finish_non_exhaustive()
    }
}

/// A call, and its type.
struct Held {
    device_type: Arc<DeviceType>,
    direction: Direction,
    count: u64,
    call: Call,
}

impl Held {
    fn requested(&self) -> BatchItem<'_> {
        let Held { device_type, direction, count, call } = self;
        BatchItem { device_type, direction: *direction, count: *count, call: *call }
    }
}

/// What is enqueued.
enum PreparedLaunch {
    /// The kernel of the only call's type.
    SingleType { kernel: Arc<DeviceKernel>, blocks: u32, threads: u32 },
    /// One kernel for all, and its items on the device.
    MultiType { prepared: Arc<Prepared>, items: Vec<Item> },
}

impl Engine {
    /// Prepares packs and unpacks to be enqueued again and again, as one launch.
    ///
    /// What [`Engine::enqueue_batch`] says of transfers and kernels holds here, too. One alone is moved by the kernels of its type.
    ///
    /// # Errors
    ///
    /// [`TransferError::Batch`] where a transfer is no pack or unpack; CUDA refuses.
    ///
    /// See [`PersistentBatch`] for an example.
    pub fn persistent_batch(&self, gpu: &Gpu, transfers: &[Transfer<'_>]) -> Result<PersistentBatch, TransferError> {
        gpu.load()?;
        let mut held = Vec::with_capacity(transfers.len());
        let mut places = Vec::with_capacity(transfers.len());
        for transfer in transfers {
            let requested = batch_item(gpu, transfer)?;
            places.push(requested.is_some().then_some(held.len() as u32));
            held.extend(requested.map(|BatchItem { device_type, direction, count, call }| Held {
                device_type: device_type.clone(),
                direction,
                count,
                call,
            }));
        }
        let bytes = held.iter().map(|held| held.call.bytes).sum();
        let gpu = gpu.clone();
        let mut batch = PersistentBatch { gpu, calls: held, places, bytes, launch: None, changed: Vec::new() };
        batch.prepare()?;
        Ok(batch)
    }
}

impl PersistentBatch {
    /// Has a transfer use other ends from the next launch on. `transfer` is its place in the list that the batch was prepared from;
    /// one that moves nothing, or that there is not, is ignored.
    ///
    /// See [`PersistentBatch`] for an example.
    pub fn move_to(&mut self, transfer: usize, memory: impl Into<Endpoint>, packed: impl Into<Endpoint>) {
        let Some(&Some(place)) = self.places.get(transfer) else { return };
        let held = &mut self.calls[place as usize].call;
        (held.memory, held.packed) = (memory.into().address() as u64, packed.into().address() as u64);
        self.changed.push(place);
    }

    /// Enqueues the batch on a CUDA stream of its device, and returns at once. Returns how many packed bytes will be moved. May be
    /// captured into a graph, which keeps the addresses of this moment.
    ///
    /// # Errors
    ///
    /// CUDA refuses. Nothing was enqueued then, and the next call tries again.
    ///
    /// # Safety
    ///
    /// As for [`Engine::enqueue_batch`]. If addresses were changed since it was enqueued last, that work is done, or comes before
    /// this on the stream.
    ///
    /// See [`PersistentBatch`] for an example.
    pub unsafe fn enqueue(&mut self, stream: &Stream) -> Result<usize, CudaError> {
        if !self.serves() || !self.update(stream)? {
            self.prepare()?;
        }
        match (&self.launch, self.calls.as_slice()) {
            (Some(PreparedLaunch::MultiType { prepared, .. }), _) => {
                // SAFETY: `prepared` was made for these calls, whose bytes the device reaches until the work is done (contract of
                // this function).
                unsafe { prepared.launch(stream)? };
            }
            (Some(PreparedLaunch::SingleType { kernel, blocks, threads }), [only]) => {
                let grid = Grid::all(*blocks, *threads);
                // SAFETY: the kernel was found for this call of this type, whose bytes the device reaches until the work is done
                // (contract of this function).
                unsafe { only.device_type.launch_compiled(stream, kernel, &only.call, only.count, grid)? };
            }
            (None, [only]) => {
                let (direction, count, call) = (only.direction, only.count, only.call);
                let call = Move { direction, call, count, multiprocessors: Multiprocessors::All };
                // SAFETY: the call is the only one of the batch, whose bytes the device reaches until the work is done (contract
                // of this function).
                unsafe { only.device_type.launch(stream, &call)? };
            }
            _ => {}
        }
        Ok(self.bytes as usize)
    }

    /// Whether what is prepared is the best there is: a compiled kernel may have come.
    fn serves(&self) -> bool {
        match &self.launch {
            Some(PreparedLaunch::SingleType { .. }) => true,
            Some(PreparedLaunch::MultiType { prepared, .. }) => !prepared.is_outdated(&self.gpu.state),
            None => self.calls.is_empty(),
        }
    }

    /// Brings changed addresses to where the kernel reads them. `false` where the batch must be prepared anew: other alignments
    /// need other kernels, and a graph keeps the addresses that it captured.
    fn update(&mut self, stream: &Stream) -> Result<bool, CudaError> {
        if self.changed.is_empty() {
            return Ok(true);
        }
        let Some(PreparedLaunch::MultiType { prepared, items }) = &mut self.launch else { return Ok(false) };
        let Some(prepared) = Arc::get_mut(prepared) else { return Ok(false) };
        if stream.capture_status()? != CaptureStatus::None {
            return Ok(false);
        }
        self.changed.sort_unstable();
        self.changed.dedup();
        for &place in &self.changed {
            let place = place as usize;
            let Some(moved) = prepared.moved(items, place, &self.calls[place].requested()) else { return Ok(false) };
            items[place] = moved;
        }
        if let Some(table) = prepared.table() {
            let near = |one: &u32, other: &u32| (other - one) as usize <= WRITTEN_TOGETHER;
            for together in self.changed.chunk_by(near) {
                let (first, last) = (together[0] as usize, together[together.len() - 1] as usize);
                let bytes: Vec<u8> = items[first..=last].iter().flat_map(Item::to_bytes).collect();
                let to = table.address() + (first * size_of::<Item>()) as u64;
                // SAFETY: the table holds all items. The driver takes a copy of pageable memory before it returns, and writes after
                // what the stream has; earlier launches come before that (contract of `enqueue`).
                unsafe { copy::between(stream, to, bytes.as_ptr().expose_provenance() as u64, bytes.len())? };
            }
        } else {
            prepared.set_own(items);
        }
        self.changed.clear();
        Ok(true)
    }

    /// Finds the kernel anew, and writes all items.
    fn prepare(&mut self) -> Result<(), CudaError> {
        let launch = match self.calls.as_slice() {
            [] => None,
            [only] => only
                .device_type
                .ready(only.direction, &only.call)
                .map(|(kernel, blocks, threads)| PreparedLaunch::SingleType { kernel, blocks, threads }),
            calls => {
                let requested: Vec<BatchItem<'_>> = calls.iter().map(Held::requested).collect();
                let (prepared, items) = self.gpu.shared_kernels.batches.prepare(&self.gpu.state, &requested)?;
                Some(PreparedLaunch::MultiType { prepared: Arc::new(prepared), items })
            }
        };
        self.changed.clear();
        self.retire();
        self.launch = launch;
        Ok(())
    }

    /// Launches of what was prepared may still be under way.
    fn retire(&mut self) {
        if let Some(PreparedLaunch::MultiType { prepared, .. }) = self.launch.take()
            && self.gpu.device().check_process().is_ok()
        {
            self.gpu.state.retire(prepared);
        }
    }
}

impl Drop for PersistentBatch {
    fn drop(&mut self) {
        self.retire();
    }
}
