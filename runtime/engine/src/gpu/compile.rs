//! Compiling kernels: from a bundle or the store, or by NVRTC.

use super::error::without_source;
use super::kernel::Kernel;
use super::on_device::GpuType;
use super::state::DeviceState;
use crate::bundle::{self, PTX};
use dtc_compiler::codegen::cuda;
use dtc_compiler::plan::gpu::Variant;
use dtc_cuda::module::{Function, Module};
use dtc_cuda::{CudaError, Nvrtc};
use dtc_store::Claim;
use std::sync::Arc;
use std::time::Duration;

/// How long the background waits for another process that compiles the same kernel: ten times what it takes.
const PATIENCE: Duration = Duration::from_millis(500);

impl GpuType {
    /// Compiles variants of this type, at most one of each name, and puts them into their slots. What cannot be
    /// compiled stays with the generic kernels, and the reason is noted.
    pub(crate) fn compile(&self, variants: &[Variant]) {
        let missing: Vec<Variant> = variants
            .iter()
            .filter(|variant| self.slot(variant).is_some_and(|slot| slot.kernel.get().is_none()))
            .copied()
            .collect();
        if missing.is_empty() {
            return;
        }
        let kernels = self.load(&missing).unwrap_or_else(|error| {
            self.gpu.note(error);
            vec![None; missing.len()]
        });
        for (variant, kernel) in missing.iter().zip(kernels) {
            if let Some(slot) = self.slot(variant) {
                // Another thread may have been faster; its kernel is as good.
                let _ = slot.kernel.set(kernel);
            }
        }
    }

    fn load(&self, variants: &[Variant]) -> Result<Vec<Option<Arc<Kernel>>>, CudaError> {
        let program = cuda::program(&self.plan, variants).map_err(without_source)?;
        let entries: Vec<&str> = variants.iter().map(cuda::entry).collect();
        let functions = self.gpu.functions(&program.source, &entries)?;
        let tables = self.gpu.upload(&program.tables)?.map(Arc::new);
        let kernel = |function| Some(Arc::new(Kernel { function, tables: tables.clone() }));
        Ok(functions.into_iter().map(kernel).collect())
    }
}

impl DeviceState {
    /// The kernels of a text, from a bundle or the store, or compiled.
    pub(super) fn functions(&self, source: &str, entries: &[&str]) -> Result<Vec<Function>, CudaError> {
        let architecture = self.device.info().architecture();
        let target = format!("sm_{architecture}");
        let key = bundle::gpu_key(source, &target);
        let store = &self.store;
        let load = |code: &[u8]| self.loaded(code, entries);
        if !self.bundles.is_empty() {
            let keys = [key, bundle::gpu_key(source, PTX)];
            let bundled = keys.iter().find_map(|key| load(&self.bundles.get(key)?).ok());
            if let Some(functions) = bundled {
                return Ok(functions);
            }
        }
        // Code that the driver refuses, or that lacks a kernel, is compiled again.
        if let Some(functions) = store.get(&key).and_then(|code| load(&code).ok()) {
            return Ok(functions);
        }
        // Another process of the node may be at it; its claim is given back when this one is dropped.
        let claim = store.claim_within(&key, PATIENCE);
        if let Claim::Found(code) = &claim
            && let Ok(functions) = load(code)
        {
            return Ok(functions);
        }
        let nvrtc = Nvrtc::get()?;
        let target = nvrtc.architecture_for(architecture)?;
        let binary = nvrtc.compile(source, "dtc.cu", target, &[])?;
        store.put(&key, &binary.bytes);
        load(&binary.bytes)
    }

    /// Kernels of compiled code, loaded onto the device.
    fn loaded(&self, code: &[u8], entries: &[&str]) -> Result<Vec<Function>, CudaError> {
        self.idle.during(&self.device, || {
            let module = Module::load(&self.device, code)?;
            entries.iter().map(|entry| module.function(entry)).collect()
        })
    }
}
