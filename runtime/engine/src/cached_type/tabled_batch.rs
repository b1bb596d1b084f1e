//! Compiled kernels for batches in which types with index tables are.

use super::tabled::{MoveOf, TabledMove, TabledType};
use crate::device::{BatchKernel, DeviceState, DeviceType, KernelCache, KernelSpec, MultiTypeKernel};
use dtc_compiler::codegen::cuda::{BATCH_KINDS, BatchPart, TabledSides};
use dtc_compiler::plan::gpu::{TabledVariant, Variant};
use dtc_cuda::CudaError;
use dtc_host::lock::Lock;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// How a kernel moves a call of a batch.
#[derive(Clone, Copy)]
pub(crate) enum TabledBatchCall<'a> {
    /// A type without index tables, as a variant does.
    Fixed(&'a Arc<DeviceType>, Variant),
    /// A type with some.
    Tabled(&'a Arc<TabledType>, TabledMove<'a>, TabledVariant),
}

/// By what a kernel knows such calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CallKind {
    Fixed(u64, Variant),
    Tabled([u8; 32], MoveOf, TabledVariant),
}

/// The types of such calls.
enum KindTypes {
    Fixed(Weak<DeviceType>),
    Tabled(Weak<TabledType>),
    Copy(Weak<TabledType>, Weak<TabledType>),
}

/// The same while a kernel is compiled.
enum LiveTypes {
    Fixed(Arc<DeviceType>),
    Tabled(Arc<TabledType>),
    Copy(Arc<TabledType>, Arc<TabledType>),
}

/// Which batches a kernel serves.
pub(crate) struct TabledBatchSpec {
    kinds: Box<[CallKind]>,
    types: Vec<KindTypes>,
}

/// A kernel for a batch, as soon as it is there.
pub(crate) type TabledBatchKernel = MultiTypeKernel<TabledBatchSpec>;

impl TabledBatchCall<'_> {
    fn kind(&self) -> CallKind {
        match *self {
            TabledBatchCall::Fixed(device_type, variant) => CallKind::Fixed(device_type.id, variant),
            TabledBatchCall::Tabled(of, moved, variant) => CallKind::Tabled(of.digest, moved.into(), variant),
        }
    }

    fn types(&self) -> KindTypes {
        match *self {
            TabledBatchCall::Fixed(device_type, _) => KindTypes::Fixed(Arc::downgrade(device_type)),
            TabledBatchCall::Tabled(of, TabledMove::CopyTo(target), _) => {
                KindTypes::Copy(Arc::downgrade(of), Arc::downgrade(target))
            }
            TabledBatchCall::Tabled(of, ..) => KindTypes::Tabled(Arc::downgrade(of)),
        }
    }
}

impl KindTypes {
    fn live(&self) -> Option<LiveTypes> {
        Some(match self {
            KindTypes::Fixed(device_type) => LiveTypes::Fixed(device_type.upgrade()?),
            KindTypes::Tabled(of) => LiveTypes::Tabled(of.upgrade()?),
            KindTypes::Copy(source, target) => LiveTypes::Copy(source.upgrade()?, target.upgrade()?),
        })
    }
}

impl LiveTypes {
    /// What the kernel does for them; nothing for a kind that is not theirs.
    fn part(&self, kind: CallKind) -> Option<BatchPart<'_>> {
        Some(match (self, kind) {
            (LiveTypes::Fixed(device_type), CallKind::Fixed(_, variant)) => {
                BatchPart::Fixed(&device_type.plan, variant)
            }
            (LiveTypes::Tabled(of), CallKind::Tabled(_, MoveOf::Pack, variant)) => {
                BatchPart::Tabled(TabledSides::Pack(&of.layout), variant)
            }
            (LiveTypes::Tabled(of), CallKind::Tabled(_, MoveOf::Unpack, variant)) => {
                BatchPart::Tabled(TabledSides::Unpack(&of.layout), variant)
            }
            (LiveTypes::Copy(source, target), CallKind::Tabled(_, MoveOf::Copy(_), variant)) => {
                BatchPart::Tabled(TabledSides::Copy { source: &source.layout, target: &target.layout }, variant)
            }
            _ => return None,
        })
    }
}

impl KernelSpec for TabledBatchSpec {
    type Code = BatchKernel;

    fn load(&self, state: &DeviceState) -> Result<Option<BatchKernel>, CudaError> {
        let Some(types) = self.types.iter().map(KindTypes::live).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let parts: Option<Vec<_>> = types.iter().zip(&self.kinds).map(|(types, kind)| types.part(*kind)).collect();
        parts.map_or(Ok(None), |parts| BatchKernel::load(state, &parts))
    }
}

/// The kernels for such batches on a device.
type BatchKernels = Arc<KernelCache<TabledBatchSpec>>;

/// The kernels of an engine for such batches, by device.
#[derive(Default)]
pub(crate) struct TabledBatches(Lock<Vec<(Arc<DeviceState>, BatchKernels)>>);

impl TabledBatches {
    /// The kernel for a batch's kinds, and the kind of each of its calls; nothing if no kernel is compiled for such.
    pub(crate) fn kernel(
        &self,
        state: &Arc<DeviceState>,
        calls: &[TabledBatchCall<'_>],
    ) -> Option<(Arc<TabledBatchKernel>, Vec<u32>)> {
        let mut numbers: HashMap<CallKind, u32> = HashMap::new();
        let (mut kinds, mut types) = (Vec::new(), Vec::new());
        let mut of_calls = Vec::with_capacity(calls.len());
        for call in calls {
            let kind = call.kind();
            let next = numbers.len() as u32;
            let number = *numbers.entry(kind).or_insert(next);
            if number == next {
                if kinds.len() == BATCH_KINDS {
                    return None;
                }
                kinds.push(kind);
                types.push(call.types());
            }
            of_calls.push(number);
        }
        let is = |known: &TabledBatchSpec| *known.kinds == *kinds;
        let kernel = self.of(state).get(state, is, || TabledBatchSpec { kinds: kinds.clone().into(), types });
        Some((kernel, of_calls))
    }

    fn of(&self, state: &Arc<DeviceState>) -> BatchKernels {
        let mut all = self.0.lock();
        if let Some((_, known)) = all.iter().find(|(known, _)| Arc::ptr_eq(known, state)) {
            return known.clone();
        }
        let made = BatchKernels::default();
        all.push((state.clone(), made.clone()));
        made
    }
}

impl Drop for TabledBatches {
    fn drop(&mut self) {
        for (state, kernels) in std::mem::take(self.0.get_mut()) {
            // Launches may still be running; in a forked child nothing can be freed.
            if state.device.check_process().is_ok() {
                state.retire(kernels);
            } else {
                std::mem::forget(kernels);
            }
        }
    }
}
