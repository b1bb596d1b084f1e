//! Packing and unpacking data in the memory of a GPU.
//!
//! The generic kernels serve every type at once. Kernels made for a type are compiled by NVRTC in the background, or found
//! in the store of compiled code, and take over when they are ready. A [`Gpu`] is one device as an engine uses it;
//! [`on_device`] is one type there; [`calls`] are the ways to ask.

mod calls;
mod compile;
mod generic;
mod kernel;
mod on_device;
mod request;

pub use request::{Request, TransferError};

pub(crate) use on_device::GpuType;

use crate::cuda::{CudaError, Device, Event, Stream};
use crate::engine::Policy;
use crate::store::Store;
use crate::worker::Queue;
use generic::Generic;
use kernel::Retired;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Devices that an engine serves: ordinals from 0 on.
pub(crate) const DEVICES: usize = 16;

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
    generic: OnceLock<Result<Generic, CudaError>>,
    events: Mutex<Vec<Event>>,
    problem: Mutex<Option<CudaError>>,
    retired: Mutex<Vec<Retired>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.release();
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
    ) -> Result<Gpu, CudaError> {
        let device = Device::get(ordinal)?;
        let stream = Stream::legacy_default(&device);
        let shared = Shared {
            device,
            stream,
            policy,
            background_thread,
            queue,
            store,
            generic: OnceLock::new(),
            events: Mutex::default(),
            problem: Mutex::default(),
            retired: Mutex::default(),
        };
        Ok(Gpu { shared: Arc::new(shared) })
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

    /// Loads the generic kernels, which the first call on the device would do otherwise: the driver compiles them, or
    /// finds them in its own cache.
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
    fn generic(&self) -> Result<&Generic, CudaError> {
        self.generic.get_or_init(|| Generic::load(&self.device)).as_ref().map_err(Clone::clone)
    }

    /// An event to wait for, new or given back by an earlier request.
    fn event(&self) -> Result<Event, CudaError> {
        let known = self.events.lock().unwrap_or_else(PoisonError::into_inner).pop();
        known.map_or_else(|| Event::new(&self.device), Ok)
    }

    fn give_back(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn note(&self, error: CudaError) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Keeps code that a type no longer needs until nothing can be running it.
    fn retire(&self, retired: Retired) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(retired);
    }

    /// Frees what was retired, after everything on the device; not on any thread that somebody waits for.
    pub(crate) fn release(&self) {
        let retired = std::mem::take(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner));
        if retired.is_empty() {
            return;
        }
        match self.device.synchronize() {
            Ok(()) => drop(retired),
            // Something may still run: better kept than freed.
            Err(_) => retired.into_iter().for_each(std::mem::forget),
        }
    }
}
