//! What equal types with index tables share.

use crate::cpu::{self, Program};
use crate::device::{DeviceKernel, DeviceState};
use crate::error::without_source;
use dtc_compiler::codegen::cuda::{TABLED_ENTRY, TabledSides, tabled};
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::plan::Plan;
use dtc_compiler::plan::gpu::TabledVariant;
use dtc_compiler::tabled::TabledLayout;
use dtc_cuda::CudaError;
use dtc_host::lock::Lock;
use once_cell::race::OnceBox;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The types of an engine, by their digests. It does not keep them alive.
#[derive(Default)]
pub(crate) struct TabledTypes(Lock<HashMap<[u8; 32], Weak<TabledType>>>);

impl TabledTypes {
    /// What all types of the same normal form share.
    pub(crate) fn get(&self, datatype: &TabledDatatype) -> Arc<TabledType> {
        let made = TabledType::of(datatype);
        let digest = made.digest;
        let mut known = self.0.lock();
        if let Some(found) = known.get(&digest).and_then(Weak::upgrade) {
            return found;
        }
        // Those that are gone go before the table would grow.
        if known.len() == known.capacity() {
            known.retain(|_, known| known.strong_count() > 0);
        }
        let made = Arc::new(made);
        known.insert(digest, Arc::downgrade(&made));
        made
    }
}

/// A type with index tables: its layout, and what moves it.
pub(crate) struct TabledType {
    pub(crate) layout: TabledLayout,
    /// Packed bytes for the longest tables.
    pub(crate) most_bytes: u64,
    /// What the places and lengths of all runs are multiples of.
    pub(crate) granularity: u32,
    digest: [u8; 32],
    /// Of each fixed layout, made at the first call in host memory.
    programs: OnceBox<Vec<Program>>,
    kernels: Lock<Vec<TabledKernel>>,
}

/// A kernel of a type on a device.
struct TabledKernel {
    key: TabledKey,
    state: Arc<DeviceState>,
    kernel: Arc<DeviceKernel>,
}

/// What a kernel is for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TabledKey {
    ordinal: u32,
    move_of: MoveOf,
    variant: TabledVariant,
}

/// Which way a kernel moves the type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MoveOf {
    Pack,
    Unpack,
    /// To the type with this digest.
    Copy([u8; 32]),
}

impl Drop for TabledType {
    fn drop(&mut self) {
        for TabledKernel { state, kernel, .. } in self.kernels.get_mut().drain(..) {
            // Launches may still be running; in a forked child nothing can be freed.
            if state.device.check_process().is_ok() {
                state.retire(kernel);
            }
        }
    }
}

/// A move of a type, as kernels are made for it.
#[derive(Clone, Copy)]
pub(crate) enum TabledMove<'a> {
    /// From elements to packed bytes.
    Pack,
    /// From packed bytes to elements.
    Unpack,
    /// To elements of another type.
    CopyTo(&'a TabledType),
}

impl TabledType {
    /// A type of its own, which shares nothing with equal ones.
    pub(crate) fn of(datatype: &TabledDatatype) -> TabledType {
        let layout = TabledLayout::new(datatype);
        let digest = layout.digest();
        let (most_bytes, granularity) = (layout.most_bytes(), layout.granularity());
        let (programs, kernels) = Default::default();
        TabledType { layout, most_bytes, granularity, digest, programs, kernels }
    }

    /// What moves each fixed layout in host memory.
    pub(crate) fn programs(&self) -> &[Program] {
        self.programs.get_or_init(|| {
            let fixed_layouts = self.layout.fixed_layouts().iter();
            Box::new(fixed_layouts.map(|fixed| Program::new(Plan::new(fixed), cpu::host())).collect())
        })
    }

    /// The layouts of both sides of a move.
    pub(crate) fn sides<'a>(&'a self, moved: TabledMove<'a>) -> TabledSides<'a> {
        match moved {
            TabledMove::Pack => TabledSides::Pack(&self.layout),
            TabledMove::Unpack => TabledSides::Unpack(&self.layout),
            TabledMove::CopyTo(target) => TabledSides::Copy { source: &self.layout, target: &target.layout },
        }
    }

    /// The kernel for a move on a device: known, from the store of compiled code, or compiled now.
    pub(crate) fn kernel(
        &self,
        state: &Arc<DeviceState>,
        moved: TabledMove<'_>,
        variant: TabledVariant,
    ) -> Result<Arc<DeviceKernel>, CudaError> {
        let move_of = match moved {
            TabledMove::Pack => MoveOf::Pack,
            TabledMove::Unpack => MoveOf::Unpack,
            TabledMove::CopyTo(target) => MoveOf::Copy(target.digest),
        };
        // In a forked child, a thread of the parent may have held the lock.
        state.device.check_process()?;
        let key = TabledKey { ordinal: state.device.info().ordinal, move_of, variant };
        let find = |kernels: &[TabledKernel]| Some(kernels.iter().find(|known| known.key == key)?.kernel.clone());
        if let Some(kernel) = find(&self.kernels.lock()) {
            return Ok(kernel);
        }
        // No lock is held meanwhile: another thread may compile the same, and its kernel is as good.
        let program = tabled(self.sides(moved), &variant).map_err(without_source)?;
        let functions = state.functions(&program.source, &[TABLED_ENTRY])?;
        let tables = state.upload(&program.tables)?.map(Arc::new);
        let made =
            functions.into_iter().map(|function| Arc::new(DeviceKernel { function, tables: tables.clone() })).next();
        let mut kernels = self.kernels.lock();
        let (kernel, forgotten) = match (find(&kernels), made) {
            (Some(known), made) => (known, made),
            (None, Some(made)) => {
                kernels.push(TabledKernel { key, state: state.clone(), kernel: made.clone() });
                (made, None)
            }
            (None, None) => return Err(without_source(TABLED_ENTRY)),
        };
        drop(kernels);
        if let Some(forgotten) = forgotten {
            // Freeing it at once might wait for the device.
            state.retire(forgotten);
        }
        Ok(kernel)
    }
}
