//! The generic kernels on one device.

use crate::cuda::module::{Function, Module};
use crate::cuda::{CudaError, Device};
use dtc_compiler::codegen::cuda::{GENERIC_KERNELS, GenericKernel};

/// Loaded from PTX, which needs no NVRTC.
pub(super) struct Generic {
    functions: Vec<(&'static str, Function)>,
}

impl Generic {
    pub(super) fn load(device: &Device) -> Result<Generic, CudaError> {
        let module = Module::load(device, dtc_templates::GENERIC_PTX.as_bytes())?;
        let load = |kernel: &GenericKernel| Ok((kernel.entry, module.function(kernel.entry)?));
        Ok(Generic { functions: GENERIC_KERNELS.iter().map(load).collect::<Result<_, CudaError>>()? })
    }

    pub(super) fn function(&self, kernel: &GenericKernel) -> Option<&Function> {
        self.functions.iter().find(|(entry, _)| *entry == kernel.entry).map(|(_, function)| function)
    }
}
