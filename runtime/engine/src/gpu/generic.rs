//! The generic kernels on one device.

use dtc_compiler::codegen::cuda::{
    GENERIC_ACCUMULATE_ENTRY, GENERIC_BATCH_ENTRY, GENERIC_COPY_ENTRY, GENERIC_KERNELS, GenericKernel,
    InterpreterProgram,
};
use dtc_cuda::module::{Function, Module};
use dtc_cuda::{CudaError, Device, DeviceBuffer};
use std::sync::Arc;

/// Loaded from PTX, which needs no NVRTC.
pub(super) struct Generic {
    functions: Vec<(&'static str, Function)>,
    batch: Function,
    accumulate: Function,
    copy: Function,
}

impl Generic {
    pub(super) fn load(device: &Device) -> Result<Generic, CudaError> {
        let module = Module::load(device, dtc_templates::GENERIC_PTX.as_bytes())?;
        let load = |kernel: &GenericKernel| Ok((kernel.entry, module.function(kernel.entry)?));
        let functions = GENERIC_KERNELS.iter().map(load).collect::<Result<_, CudaError>>()?;
        Ok(Generic {
            functions,
            batch: module.function(GENERIC_BATCH_ENTRY)?,
            accumulate: module.function(GENERIC_ACCUMULATE_ENTRY)?,
            copy: module.function(GENERIC_COPY_ENTRY)?,
        })
    }

    /// The kernel for batches.
    pub(super) fn batch(&self) -> &Function {
        &self.batch
    }

    /// The kernel that unpacks with an operation.
    pub(super) fn accumulate(&self) -> &Function {
        &self.accumulate
    }

    /// The kernel that copies from type to type.
    pub(super) fn copy(&self) -> &Function {
        &self.copy
    }

    pub(super) fn function(&self, kernel: &GenericKernel) -> Result<&Function, CudaError> {
        let known = self.functions.iter().find(|(entry, _)| *entry == kernel.entry);
        known.map(|(_, function)| function).ok_or(CudaError::KernelMissing { kernel: kernel.entry })
    }
}

/// What the generic kernels need for one type. A graph keeps it, and so the code that its nodes run.
pub(crate) struct Interpreter {
    pub(super) generic: Arc<Generic>,
    pub(super) program: InterpreterProgram,
    /// Nothing for types without lists.
    pub(super) tables: Option<DeviceBuffer>,
}
