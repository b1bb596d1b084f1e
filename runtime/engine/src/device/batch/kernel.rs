//! Compiled kernels for batches.

use super::super::device_type::DeviceType;
use super::super::multi_type::{KernelCache, KernelSpec, MultiTypeKernel};
use super::super::state::DeviceState;
use super::item::BatchItem;
use crate::error::{check_text, without_source};
use dtc_compiler::codegen::cuda::{self, BATCH_ENTRY, BATCH_KINDS, BatchPart};
use dtc_compiler::plan::gpu::Variant;
use dtc_cuda::module::Function;
use dtc_cuda::{CudaError, DeviceBuffer};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// What a compiled kernel was made for: a type on this device, and how its bytes are moved.
type Kind = (u64, Variant);

/// Which batches a kernel serves.
pub(crate) struct BatchKernelSpec {
    pub(crate) kinds: Box<[Kind]>,
    types: Vec<Weak<DeviceType>>,
}

/// A compiled kernel.
pub(crate) struct BatchKernel {
    pub(crate) function: Function,
    tables: Option<DeviceBuffer>,
    /// What the kernel does for each of its kinds.
    cases: Vec<u32>,
}

impl BatchKernel {
    /// Compiles and loads a kernel, or finds it in the store of compiled code.
    pub(crate) fn load(state: &DeviceState, parts: &[BatchPart<'_>]) -> Result<Option<BatchKernel>, CudaError> {
        let batch = cuda::batch_of(parts).map_err(without_source)?;
        if parts.iter().any(|part| matches!(part, BatchPart::Tabled(..))) {
            check_text(&batch.program.source)?;
        }
        let mut functions = state.functions(&batch.program.source, &[BATCH_ENTRY])?;
        let tables = state.upload(&batch.program.tables)?;
        Ok(functions.pop().map(|function| BatchKernel { function, tables, cases: batch.kinds }))
    }

    /// Where its lists lie.
    pub(crate) fn lists(&self) -> u64 {
        self.tables.as_ref().map_or(0, DeviceBuffer::address)
    }

    /// What the kernel does for a kind.
    pub(crate) fn case(&self, kind: usize) -> u32 {
        self.cases.get(kind).copied().unwrap_or(u32::MAX)
    }
}

/// The kernel for a batch's kinds, and the kind of each of its calls; nothing if no kernel is compiled for such.
pub(super) fn kernel_of(
    kernels: &KernelCache<BatchKernelSpec>,
    state: &Arc<DeviceState>,
    requested: &[BatchItem<'_>],
) -> Option<(Arc<MultiTypeKernel<BatchKernelSpec>>, Vec<u32>)> {
    let mut numbers: HashMap<Kind, u32> = HashMap::new();
    let mut types = Vec::new();
    let mut kinds = Vec::with_capacity(requested.len());
    for BatchItem { device_type, direction, call, .. } in requested {
        if !device_type.plan.allows_in_batch() {
            return None;
        }
        let kind = (device_type.id, device_type.plan.variant(*direction, call));
        let next = numbers.len() as u32;
        let number = *numbers.entry(kind).or_insert(next);
        if number == next {
            if types.len() == BATCH_KINDS {
                return None;
            }
            types.push((kind, Arc::downgrade(device_type)));
        }
        kinds.push(number);
    }
    let is = |known: &BatchKernelSpec| known.kinds.iter().eq(types.iter().map(|(kind, _)| kind));
    let new = || {
        let (kinds, types) = types.iter().cloned().unzip::<_, _, Vec<_>, _>();
        BatchKernelSpec { kinds: kinds.into(), types }
    };
    Some((kernels.get(state, is, new), kinds))
}

impl KernelSpec for BatchKernelSpec {
    type Code = BatchKernel;

    fn load(&self, state: &DeviceState) -> Result<Option<BatchKernel>, CudaError> {
        let Some(types) = self.types.iter().map(Weak::upgrade).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let parts = types.iter().zip(&self.kinds);
        let parts: Vec<BatchPart<'_>> =
            parts.map(|(device_type, (_, variant))| BatchPart::Fixed(&device_type.plan, *variant)).collect();
        BatchKernel::load(state, &parts)
    }
}
