//! Packing and unpacking data in the memory of a GPU.
//!
//! The generic kernels serve every type at once. Kernels made for a type are compiled by NVRTC in the background, or found
//! in the store of compiled code, and take over when they are ready. A [`Gpu`] is one device as an engine uses it;
//! [`on_device`] is one type there; [`calls`] are the ways to ask, and [`transfer`] moves bytes between memory of all kinds.
#![expect(
    clippy::disallowed_types,
    reason = "CUDA is refused in a child of a process that used it, before any of these locks"
)]

mod accumulate;
mod batch;
mod calls;
mod combine;
mod compile;
mod copies;
mod generic;
mod idle;
mod joint;
mod kernel;
mod on_device;
mod request;
mod transfer;
mod type_to_type;

pub use batch::{BatchCall, PersistentBatch};
pub use request::{Request, TransferError};
pub use transfer::{Choice, Estimate, TransferCase, TransferModel, Way};

pub(crate) use accumulate::combines;
pub(crate) use joint::Pending;
pub(crate) use on_device::GpuType;

use crate::policy::Policy;
use crate::worker::{Job, Queue};
use batch::Batches;
use dtc_cuda::{CudaError, Device, DeviceBuffer, Event, PinnedBuffer, StagingAllocator, Stream};
use dtc_store::Store;
use generic::Generic;
use idle::Idle;
use joint::JointKernels;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use transfer::{Landings, Lanes, Ring, Stage};
use type_to_type::Pair;

/// Devices that an engine serves: ordinals from 0 on.
pub(crate) const DEVICES: usize = 16;

/// Kernels and lists that are freed at a time. Freeing waits for whatever runs on the device, which keeps the background
/// from compiling, so it is done rarely.
const RELEASED_TOGETHER: usize = 128;

/// One GPU as an engine uses it. Cheap to clone.
///
/// # Example
///
/// ```
/// match dtc_runtime::Engine::new().gpu(0) {
///     Ok(gpu) => println!("{}", gpu.device().info().name),
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone)]
pub struct Gpu {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    device: Device,
    /// Where blocking calls enqueue: it orders them after what other streams did.
    stream: Stream,
    policy: Policy,
    background_thread: bool,
    queue: Arc<Queue>,
    store: Arc<Store>,
    /// Where lists are brought to the device: it waits for no other stream.
    uploads: Stream,
    idle: Idle,
    generic: OnceLock<Arc<Generic>>,
    loading_generic: Mutex<()>,
    events: Mutex<Vec<Event>>,
    batches: Batches,
    /// Kernels for copies from type to type.
    copies: JointKernels<Pair>,
    landings: Landings,
    problem: Mutex<Option<CudaError>>,
    /// What types and batches left behind, held until it is dropped.
    retired: Mutex<Vec<Box<dyn Send>>>,
    /// Whether a job that frees them waits: more of them would hide the jobs behind them from each other.
    release_waits: AtomicBool,
    /// What transfers cost on this machine.
    model: TransferModel,
    /// Which devices' memory kernels of this one reach; found out at the first need.
    peers: [OnceLock<bool>; DEVICES],
    rings: Lanes<Ring>,
    stages: Lanes<Stage>,
    /// Where pinned buffers come from, if not from CUDA.
    staging: Option<Arc<dyn StagingAllocator>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A thread of the parent may hold what this would wait for, and nothing can be freed in a child.
        if self.device.check_process().is_ok() {
            // The generic kernels and what was retired go next, and may be running.
            self.idle.wait();
        }
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu").field("device", self.device()).finish_non_exhaustive()
    }
}

impl Gpu {
    /// Opens a device. Initialises CUDA in the process, if that did not happen before.
    pub(crate) fn open(
        ordinal: u32,
        policy: Policy,
        background_thread: bool,
        queue: Arc<Queue>,
        store: Arc<Store>,
        staging: Option<Arc<dyn StagingAllocator>>,
    ) -> Result<Gpu, CudaError> {
        let device = Device::get(ordinal)?;
        let stream = Stream::legacy_default(&device);
        let uploads = Stream::new(&device)?;
        let model = TransferModel::stored(&store, device.info()).unwrap_or_default();
        let shared = Shared {
            model,
            device,
            stream,
            policy,
            background_thread,
            queue,
            store,
            uploads,
            idle: Idle::default(),
            generic: OnceLock::new(),
            loading_generic: Mutex::default(),
            events: Mutex::default(),
            batches: Batches::default(),
            copies: JointKernels::default(),
            landings: Landings::default(),
            problem: Mutex::default(),
            retired: Mutex::default(),
            release_waits: AtomicBool::new(false),
            peers: Default::default(),
            rings: Lanes::default(),
            stages: Lanes::default(),
            staging,
        };
        let gpu = Gpu { shared: Arc::new(shared) };
        // The driver loads code only while no kernel runs, so it is better done now than under the first pack. If it fails,
        // that pack tries again and reports.
        let _ = gpu.load();
        Ok(gpu)
    }

    /// The device.
    ///
    /// ```
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     assert_eq!(gpu.device().info().ordinal, 0);
    /// }
    /// ```
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Why the last kernel of a type could not be compiled, if one could not: such types stay on the generic kernels.
    ///
    /// ```
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     assert_eq!(gpu.problem(), None);
    /// }
    /// ```
    pub fn problem(&self) -> Option<CudaError> {
        self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What transfers cost on this machine: as it was measured and stored, or the default.
    ///
    /// ```
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     println!("{}", gpu.model());
    /// }
    /// ```
    pub fn model(&self) -> &TransferModel {
        &self.shared.model
    }

    /// Loads the generic kernels, if that failed when the GPU was opened: the driver compiles them, or finds them in its own
    /// cache.
    ///
    /// # Errors
    ///
    /// The driver refuses them.
    ///
    /// ```
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     gpu.load()?;
    /// }
    /// # Ok::<(), dtc_runtime::cuda::CudaError>(())
    /// ```
    pub fn load(&self) -> Result<(), CudaError> {
        self.shared.generic().map(|_| ())
    }
}

impl Shared {
    /// The generic kernels, loaded at the first use; tried again at the next one if there was no memory.
    fn generic(&self) -> Result<&Arc<Generic>, CudaError> {
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

    /// An event to wait for, new or given back by an earlier request.
    fn event(&self) -> Result<Event, CudaError> {
        let known = self.events.lock().unwrap_or_else(PoisonError::into_inner).pop();
        known.map_or_else(|| Event::new(&self.device), Ok)
    }

    fn give_back(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Whether kernels reach the memory of another device, which is mapped at the first question. Where that is refused,
    /// transfers go another way.
    fn reaches(&self, other: &Device) -> bool {
        let Some(known) = self.peers.get(other.info().ordinal as usize) else { return false };
        *known.get_or_init(|| self.device.can_access(other).unwrap_or(false) && self.device.enable_peer(other).is_ok())
    }

    /// A pinned buffer for transfers.
    fn staging(&self, bytes: usize) -> Result<PinnedBuffer, CudaError> {
        PinnedBuffer::staging(&self.device, self.staging.as_ref(), bytes)
    }

    /// Lists on the device; nothing if there are none.
    fn upload(&self, tables: &[u8]) -> Result<Option<DeviceBuffer>, CudaError> {
        if tables.is_empty() { Ok(None) } else { DeviceBuffer::holding(&self.uploads, tables).map(Some) }
    }

    fn note(&self, error: CudaError) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Keeps what is no longer needed until nothing can be running it; has it freed when it is much.
    fn retire(self: &Arc<Shared>, retired: impl Send + 'static) {
        let mut all = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Box::new(retired));
        let due = all.len() >= RELEASED_TOGETHER;
        drop(all);
        if due && !self.release_waits.swap(true, Ordering::Relaxed) {
            self.queue.push(Job::Release(Arc::downgrade(self)), self.background_thread);
        }
    }

    /// Frees what was retired, after everything on the device; not on any thread that somebody waits for.
    pub(crate) fn release(&self) {
        self.release_waits.store(false, Ordering::Relaxed);
        self.idle.during(&self.device, || {
            drop(std::mem::take(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner)));
        });
    }
}
