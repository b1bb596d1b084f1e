//! A device as everything on it shares it: streams, stores, buffers, and what is to be freed.

use super::buffers::{DoubleBuffers, Pool, Ring, Stage};
use super::generic::Generic;
use super::idle::Idle;
use super::model::TransferModel;
use super::pass_buffers::{PassBuffer, PassBuffers};
use super::table_uploads::{TableUpload, TableUploads};
use crate::policy::Policy;
use crate::worker::{Job, Queue};
use dtc_cuda::{CudaError, Device, Event, PinnedBuffer, StagingAllocator, Stream};
use dtc_store::{Bundles, Store};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Devices that an engine serves: ordinals from 0 on.
pub(crate) const DEVICES: usize = 16;

/// Kernels and lists that are freed at a time. Freeing waits for the work on the device, and the background thread compiles
/// nothing meanwhile, so it is done rarely.
const RELEASED_TOGETHER: usize = 128;

/// Where compiled code is found, in the order of search.
pub(crate) struct CodeSources {
    pub(crate) bundles: Arc<Bundles>,
    pub(crate) store: Arc<Store>,
}

/// A device, and what every use of it needs. Types hold it, and requests.
pub(crate) struct DeviceState {
    pub(crate) device: Device,
    /// The stream of blocking calls, which orders them after the work of other streams.
    pub(crate) stream: Stream,
    pub(crate) policy: Policy,
    pub(crate) background_thread: bool,
    pub(crate) queue: Arc<Queue>,
    pub(crate) bundles: Arc<Bundles>,
    pub(crate) store: Arc<Store>,
    /// The stream that copies lists to the device: it waits for no other stream.
    pub(super) uploads: Stream,
    /// Host memory of lists that are on the device, for the next ones.
    pub(super) spare_lists: Mutex<Vec<u8>>,
    pub(crate) idle: Idle,
    generic: OnceLock<Arc<Generic>>,
    loading_generic: Mutex<()>,
    events: Mutex<Vec<Event>>,
    pub(super) double_buffers: DoubleBuffers,
    problem: Mutex<Option<CudaError>>,
    /// Kernels and lists that no type or batch uses any more, until they are freed.
    retired: Mutex<Vec<Box<dyn Send>>>,
    /// Whether a job that frees them waits in the queue, which looks through a limited number of jobs: one is enough.
    release_waits: AtomicBool,
    /// What transfers cost on this machine.
    pub(crate) model: TransferModel,
    /// Whether kernels of this device reach the memory of each other one; asked for at the first need.
    peers: [OnceLock<bool>; DEVICES],
    pub(super) rings: Pool<Ring>,
    pub(super) stages: Pool<Stage>,
    /// Memory for the index tables of calls.
    table_uploads: TableUploads,
    /// Memory that the bytes of copies pass through.
    pass_buffers: PassBuffers,
    /// Where pinned buffers come from, if not from CUDA.
    staging: Option<Arc<dyn StagingAllocator>>,
}

impl Drop for DeviceState {
    fn drop(&mut self) {
        // The generic kernels and what was retired go next, and may be running.
        if self.device.check_process().is_ok() {
            self.idle.wait_last();
        }
    }
}

impl DeviceState {
    /// Opens a device. Initialises CUDA in the process, if that did not happen before.
    pub(crate) fn open(
        ordinal: u32,
        policy: Policy,
        background_thread: bool,
        queue: Arc<Queue>,
        CodeSources { bundles, store }: CodeSources,
        staging: Option<Arc<dyn StagingAllocator>>,
    ) -> Result<Arc<DeviceState>, CudaError> {
        let device = Device::get(ordinal)?;
        let stream = Stream::legacy_default(&device);
        let uploads = Stream::new(&device)?;
        let model = TransferModel::stored(&store, device.info()).unwrap_or_default();
        Ok(Arc::new(DeviceState {
            model,
            device,
            stream,
            policy,
            background_thread,
            queue,
            bundles,
            store,
            uploads,
            spare_lists: Mutex::default(),
            idle: Idle::default(),
            generic: OnceLock::new(),
            loading_generic: Mutex::default(),
            events: Mutex::default(),
            double_buffers: DoubleBuffers::default(),
            problem: Mutex::default(),
            retired: Mutex::default(),
            release_waits: AtomicBool::new(false),
            peers: Default::default(),
            rings: Pool::default(),
            stages: Pool::default(),
            table_uploads: TableUploads::default(),
            pass_buffers: PassBuffers::default(),
            staging,
        }))
    }

    /// Waits until what runs now has ended, before code is unloaded; not in a forked child.
    pub(super) fn wait_until_idle(&self) {
        // A forked child can free nothing, and a lock may be held by a thread that exists in the parent alone.
        if self.device.check_process().is_ok() {
            self.idle.wait(&self.device);
        }
    }

    /// The generic kernels, loaded at the first use; tried again at the next one if there was no memory.
    pub(crate) fn generic(&self) -> Result<&Arc<Generic>, CudaError> {
        self.device.check_process()?;
        if let Some(generic) = self.generic.get() {
            return Ok(generic);
        }
        let _loading = self.loading_generic.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(generic) = self.generic.get() {
            return Ok(generic);
        }
        let loaded = Arc::new(self.idle.during(&self.device, || Generic::load(&self.device))?);
        Ok(self.generic.get_or_init(|| loaded))
    }

    /// An event, new or given back by an earlier request.
    pub(crate) fn event(&self) -> Result<Event, CudaError> {
        let known = self.events.lock().unwrap_or_else(PoisonError::into_inner).pop();
        known.map_or_else(|| Event::new(&self.device), Ok)
    }

    pub(crate) fn give_back(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Whether kernels reach the memory of another device, which is mapped at the first question. Where that is refused,
    /// transfers go another way.
    pub(crate) fn reaches(&self, other: &Device) -> bool {
        let Some(known) = self.peers.get(other.info().ordinal as usize) else { return false };
        *known.get_or_init(|| self.device.can_access(other).unwrap_or(false) && self.device.enable_peer(other).is_ok())
    }

    /// A pinned buffer for transfers.
    pub(crate) fn staging(&self, bytes: usize) -> Result<PinnedBuffer, CudaError> {
        PinnedBuffer::staging(&self.device, self.staging.as_ref(), bytes)
    }

    /// Memory for the index tables of a call.
    pub(crate) fn table_upload(&self, bytes: usize) -> Result<TableUpload, CudaError> {
        self.table_uploads.take(&self.device, bytes, |bytes| self.staging(bytes))
    }

    /// Keeps it for the next call, behind the kernel that was enqueued on the stream.
    pub(crate) fn keep_upload(self: &Arc<DeviceState>, upload: TableUpload, stream: &Stream) -> Result<(), CudaError> {
        if let Some(oldest) = self.table_uploads.keep(upload, stream)? {
            // Its kernel may still be running.
            self.retire(oldest);
        }
        Ok(())
    }

    /// Memory that the bytes of a copy pass through.
    pub(crate) fn pass_buffer(&self, bytes: usize) -> Result<PassBuffer, CudaError> {
        self.pass_buffers.take(&self.device, bytes)
    }

    /// Keeps it for the next copy, behind the kernels that were enqueued on the stream.
    pub(crate) fn keep_pass_buffer(
        self: &Arc<DeviceState>,
        buffer: PassBuffer,
        stream: &Stream,
    ) -> Result<(), CudaError> {
        if let Some(oldest) = self.pass_buffers.keep(buffer, stream)? {
            // Its kernels may still be running.
            self.retire(oldest);
        }
        Ok(())
    }

    pub(crate) fn note(&self, error: CudaError) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The error that was noted last.
    pub(super) fn problem(&self) -> Option<CudaError> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a kernel or list that may still be in use, and schedules the release once [`RELEASED_TOGETHER`] are kept.
    pub(crate) fn retire(self: &Arc<DeviceState>, retired: impl Send + 'static) {
        let mut all = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Box::new(retired));
        let full = all.len() >= RELEASED_TOGETHER;
        drop(all);
        if full && !self.release_waits.swap(true, Ordering::Relaxed) {
            self.queue.push(Release(Arc::downgrade(self)), self.background_thread);
        }
    }

    /// Frees what was retired, after all work on the device. It may wait long, so it runs in threads that no call waits for.
    fn release(&self) {
        self.release_waits.store(false, Ordering::Relaxed);
        self.idle.during(&self.device, || {
            drop(std::mem::take(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner)));
        });
    }
}

/// The background's freeing what no type needs any more.
struct Release(Weak<DeviceState>);

impl Job for Release {
    fn priority(&self) -> u32 {
        0
    }

    fn run(&self) {
        if let Some(state) = self.0.upgrade() {
            state.release();
        }
    }
}
