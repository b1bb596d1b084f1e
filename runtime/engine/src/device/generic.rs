//! The generic kernels on one device.

use dtc_compiler::codegen::cuda::{
    GENERIC_ACCUMULATE_ENTRY, GENERIC_BATCH_ENTRY, GENERIC_COPY_ENTRY, GENERIC_KERNELS, GENERIC_TABLED, GenericKernel,
    GenericTabled, InterpreterProgram,
};
use dtc_cuda::module::{Function, Module};
use dtc_cuda::{CudaError, Device, DeviceBuffer};
use dtc_templates::{GENERIC_MACHINE_CODE, GENERIC_PTX, MachineCode};
use std::fmt;
use std::sync::Arc;

/// What the generic kernels of a device were loaded from.
///
/// ```
/// if let Ok(gpu) = dtc_runtime::Engine::new().gpu(0) {
///     println!("generic kernels: {}", gpu.generic_code()?);
/// }
/// # Ok::<(), dtc_runtime::cuda::CudaError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GenericCode {
    /// Machine code that dtc brings along, which loads in milliseconds.
    Machine {
        /// Ten times the compute capability that it is for: 90 is sm_90.
        architecture: u32,
    },
    /// PTX, which the driver compiles in seconds unless its own cache has the result.
    Ptx {
        /// Ten times the compute capability of the device.
        device: u32,
        /// Why the driver refused the machine code; `None` if dtc brings none for the device.
        refused: Option<CudaError>,
    },
}

impl fmt::Display for GenericCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GenericCode::Machine { architecture } => write!(f, "machine code of sm_{architecture}"),
            GenericCode::Ptx { device, refused: None } => {
                write!(f, "PTX that the driver compiles, since dtc has no machine code for sm_{device}")
            }
            GenericCode::Ptx { device, refused: Some(error) } => {
                write!(f, "PTX that the driver compiles, since it refuses the machine code for sm_{device}: {error}")
            }
        }
    }
}

/// Loaded from machine code or PTX, which needs no NVRTC. All kernels are loaded at once: the driver loads code only while
/// nothing runs, so none is loaded in a call that moves bytes.
pub(crate) struct Generic {
    functions: Vec<(&'static str, Function)>,
    batch: Function,
    accumulate: Function,
    copy: Function,
    code: GenericCode,
}

impl Generic {
    pub(crate) fn load(device: &Device) -> Result<Generic, CudaError> {
        let number = device.info().architecture();
        let mut refused = None;
        let known = MachineCode::serving(GENERIC_MACHINE_CODE, number);
        if let Some((known, code)) = known.and_then(|known| Some((known, known.unpack()?))) {
            match Generic::of(device, &code, GenericCode::Machine { architecture: known.architecture() }) {
                // It would be lacking for PTX, too.
                Err(error) if !error.is_out_of_memory() => refused = Some(error),
                loaded => return loaded,
            }
        }
        Generic::of(device, GENERIC_PTX.as_bytes(), GenericCode::Ptx { device: number, refused })
    }

    fn of(device: &Device, image: &[u8], code: GenericCode) -> Result<Generic, CudaError> {
        let module = Module::load(device, image)?;
        let load = |kernel: &GenericKernel| Ok((kernel.entry, module.function(kernel.entry)?));
        let mut functions = GENERIC_KERNELS.iter().map(load).collect::<Result<Vec<_>, CudaError>>()?;
        for kernel in GENERIC_TABLED {
            functions.push((kernel.entry, module.function(kernel.entry)?));
        }
        Ok(Generic {
            functions,
            batch: module.function(GENERIC_BATCH_ENTRY)?,
            accumulate: module.function(GENERIC_ACCUMULATE_ENTRY)?,
            copy: module.function(GENERIC_COPY_ENTRY)?,
            code,
        })
    }

    /// What they were loaded from.
    pub(crate) fn code(&self) -> &GenericCode {
        &self.code
    }

    /// The kernel for batches.
    pub(crate) fn batch(&self) -> &Function {
        &self.batch
    }

    /// The kernel that unpacks with an operation.
    pub(crate) fn accumulate(&self) -> &Function {
        &self.accumulate
    }

    /// The kernel that copies from type to type.
    pub(crate) fn copy(&self) -> &Function {
        &self.copy
    }

    pub(crate) fn function(&self, kernel: &GenericKernel) -> Result<&Function, CudaError> {
        self.named(kernel.entry)
    }

    /// A kernel for types with index tables.
    pub(crate) fn tabled(&self, kernel: &GenericTabled) -> Result<&Function, CudaError> {
        self.named(kernel.entry)
    }

    fn named(&self, kernel: &'static str) -> Result<&Function, CudaError> {
        let known = self.functions.iter().find(|(entry, _)| *entry == kernel);
        known.map(|(_, function)| function).ok_or(CudaError::KernelMissing { kernel })
    }
}

/// What the generic kernels need for one type. A graph keeps it, and so the code that its nodes run.
pub(crate) struct Interpreter {
    pub(crate) generic: Arc<Generic>,
    pub(crate) program: InterpreterProgram,
    /// Nothing for types without lists.
    pub(crate) tables: Option<DeviceBuffer>,
}
