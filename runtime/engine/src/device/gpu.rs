//! One GPU as an engine uses it.

use super::generic::GenericCode;
use super::model::TransferModel;
use super::shared_kernels::SharedKernels;
use super::state::{CodeSources, DeviceState};
use crate::policy::Policy;
use crate::worker::Queue;
use dtc_cuda::module::Function;
use dtc_cuda::{CudaError, Device, StagingAllocator};
use std::fmt;
use std::sync::Arc;

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
    pub(crate) state: Arc<DeviceState>,
    pub(crate) shared_kernels: Arc<SharedKernels>,
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
        sources: CodeSources,
        staging: Option<Arc<dyn StagingAllocator>>,
    ) -> Result<Gpu, CudaError> {
        let state = DeviceState::open(ordinal, policy, background_thread, queue, sources, staging)?;
        let gpu = Gpu { shared_kernels: Arc::new(SharedKernels::new(&state)), state };
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
        &self.state.device
    }

    /// Why the last kernel of a type could not be compiled, if one could not: such types stay on the generic kernels.
    ///
    /// ```
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     assert_eq!(gpu.problem(), None);
    /// }
    /// ```
    pub fn problem(&self) -> Option<CudaError> {
        self.state.problem()
    }

    /// Costs of transfers on this machine: as measured and stored, or the default.
    ///
    /// ```
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     println!("{}", gpu.model());
    /// }
    /// ```
    pub fn model(&self) -> &TransferModel {
        &self.state.model
    }

    /// The kernels of a CUDA C++ text by their names, as those of types are compiled: from the store, or by NVRTC.
    ///
    /// # Errors
    ///
    /// NVRTC is missing or refuses the text, or the driver refuses the code.
    ///
    /// ```
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     let text = "extern \"C\" __global__ void __launch_bounds__(32)\nnothing() {}";
    ///     assert_eq!(gpu.compile(text, &["nothing"])?.len(), 1);
    /// }
    /// # Ok::<(), dtc_runtime::cuda::CudaError>(())
    /// ```
    pub fn compile(&self, source: &str, entries: &[&str]) -> Result<Vec<Function>, CudaError> {
        self.state.functions(source, entries)
    }

    /// Loads the generic kernels, if that failed when the GPU was opened.
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
        self.state.generic().map(|_| ())
    }

    /// What the generic kernels were loaded from; loads them, if that failed when the GPU was opened.
    ///
    /// # Errors
    ///
    /// The driver refuses them.
    ///
    /// ```
    /// use dtc_runtime::GenericCode;
    /// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
    ///     match gpu.generic_code()? {
    ///         GenericCode::Machine { architecture } => println!("sm_{architecture}"),
    ///         other => println!("{other}"),
    ///     }
    /// }
    /// # Ok::<(), dtc_runtime::cuda::CudaError>(())
    /// ```
    pub fn generic_code(&self) -> Result<GenericCode, CudaError> {
        Ok(self.state.generic()?.code().clone())
    }
}
