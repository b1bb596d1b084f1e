//! Kernels that copy from one type to another.

use super::device_type::DeviceType;
use super::kernel::DeviceKernel;
use super::multi_type::KernelSpec;
use super::state::DeviceState;
use crate::error::without_source;
use dtc_compiler::codegen::cuda::{self, COPY_ENTRY};
use dtc_compiler::plan::gpu::CopyVariant;
use dtc_cuda::CudaError;
use std::sync::{Arc, Weak};

/// Which copies a kernel serves.
pub(crate) struct CopyKernelSpec {
    /// The types of source and target on this device.
    pub(crate) types: [u64; 2],
    pub(super) variant: CopyVariant,
    pub(super) plans: [Weak<DeviceType>; 2],
}

impl KernelSpec for CopyKernelSpec {
    type Code = DeviceKernel;

    fn load(&self, state: &DeviceState) -> Result<Option<DeviceKernel>, CudaError> {
        let [Some(from), Some(to)] = self.plans.each_ref().map(Weak::upgrade) else { return Ok(None) };
        let program = cuda::copy(&from.plan, &to.plan, &self.variant).map_err(without_source)?;
        let mut functions = state.functions(&program.source, &[COPY_ENTRY])?;
        let tables = state.upload(&program.tables)?.map(Arc::new);
        Ok(functions.pop().map(|function| DeviceKernel { function, tables }))
    }
}
