//! Compiling kernels: from a bundle or the store, or by NVRTC.

use super::device_type::DeviceType;
use super::kernel::DeviceKernel;
use super::state::DeviceState;
use crate::bundle::{self, Name};
use crate::error::without_source;
use dtc_compiler::codegen::cuda;
use dtc_compiler::plan::gpu::Variant;
use dtc_cuda::module::{Function, Module};
use dtc_cuda::{CudaError, Nvrtc};
use dtc_store::{BundleEntry, Claim, Key};
use std::sync::Arc;
use std::time::Duration;

/// How long the background waits for another process that compiles the same kernel: ten times what it takes.
const PATIENCE: Duration = Duration::from_millis(500);

impl DeviceType {
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
            self.state.note(error);
            vec![None; missing.len()]
        });
        for (variant, kernel) in missing.iter().zip(kernels) {
            if let Some(slot) = self.slot(variant) {
                // Another thread may have been faster; its kernel is as good.
                let _ = slot.kernel.set(kernel);
            }
        }
    }

    fn load(&self, variants: &[Variant]) -> Result<Vec<Option<Arc<DeviceKernel>>>, CudaError> {
        let entries: Vec<&str> = variants.iter().map(cuda::entry).collect();
        let (functions, tables) = match self.bundled(variants, &entries) {
            Some((functions, lists)) => (functions, self.state.upload(&lists)?),
            None => {
                let program = cuda::program(&self.plan, variants).map_err(without_source)?;
                (self.state.functions(&program.source, &entries)?, self.state.upload(&program.tables)?)
            }
        };
        let tables = tables.map(Arc::new);
        let kernel = |function| Some(Arc::new(DeviceKernel { function, tables: tables.clone() }));
        Ok(functions.into_iter().map(kernel).collect())
    }

    /// The usual kernels and their lists from a bundle, if one has them and the driver takes the code.
    fn bundled(&self, variants: &[Variant], entries: &[&str]) -> Option<(Vec<Function>, BundleEntry)> {
        if self.state.bundles.is_empty() || variants != self.usual() {
            return None;
        }
        let name = Name::of_gpu(&self.layout.digest(), &self.plan, variants);
        let (code, lists) = bundle::gpu_kernels(&self.state.bundles, &name, &self.state.target())?;
        let functions = code.iter().find_map(|code| self.state.loaded(code, entries).ok())?;
        Some((functions, lists))
    }
}

impl DeviceState {
    /// What machine code for the device is compiled for.
    fn target(&self) -> String {
        format!("sm_{}", self.device.info().architecture())
    }

    /// The kernels of a text, from a bundle or the store, or compiled.
    pub(crate) fn functions(&self, source: &str, entries: &[&str]) -> Result<Vec<Function>, CudaError> {
        let key = Key::of(&[source.as_bytes(), self.target().as_bytes(), env!("CARGO_PKG_VERSION").as_bytes()]);
        let store = &self.store;
        let load = |code: &[u8]| self.loaded(code, entries);
        let bundled = bundle::code_of_source(&self.bundles, source, &self.target());
        if let Some(functions) = bundled.iter().find_map(|code| load(code).ok()) {
            return Ok(functions);
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
        let target = nvrtc.architecture_for(self.device.info().architecture())?;
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
