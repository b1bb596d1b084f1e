//! Compiling the kernels of a type: from the store, or by NVRTC.

use super::kernel::Kernel;
use super::on_device::GpuType;
use crate::cuda::module::{Function, Module};
use crate::cuda::{CudaError, Nvrtc};
use crate::store::{Claim, Key};
use dtc_compiler::codegen::cuda;
use dtc_compiler::plan::gpu::Variant;
use std::sync::Arc;
use std::time::Duration;

/// How long the background waits for another process that compiles the same kernel: ten times what it takes.
const PATIENCE: Duration = Duration::from_millis(500);

impl GpuType {
    /// Compiles variants of this type, at most one for each direction, and puts them into their slots. What cannot be
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
        let program = cuda::program(&self.plan, variants).map_err(|error| CudaError::Compile {
            compiler: "dtc",
            name: "no kernel text".to_owned(),
            log: error.to_string(),
        })?;
        let architecture = self.gpu.device.info().architecture();
        let target = format!("sm_{architecture}");
        let key = Key::of(&[program.source.as_bytes(), target.as_bytes(), env!("CARGO_PKG_VERSION").as_bytes()]);
        let store = &self.gpu.store;
        let load = |code: &[u8]| self.functions(code, variants);
        // Code that the driver refuses, or that lacks a kernel, is compiled again.
        let functions = match store.get(&key).and_then(|code| load(&code).ok()) {
            Some(functions) => functions,
            None => {
                // Another process of the node may be at it; its claim is given back when this one is dropped.
                let claim = store.claim_within(&key, PATIENCE);
                let found = if let Claim::Found(code) = &claim { load(code).ok() } else { None };
                match found {
                    Some(functions) => functions,
                    None => {
                        let nvrtc = Nvrtc::get()?;
                        let target = nvrtc.architecture_for(architecture)?;
                        let binary = nvrtc.compile(&program.source, "dtc.cu", target, &[])?;
                        store.put(&key, &binary.bytes);
                        load(&binary.bytes)?
                    }
                }
            }
        };
        let tables = self.upload(&program.tables)?.map(Arc::new);
        let kernel = |function| Some(Arc::new(Kernel { function, tables: tables.clone() }));
        Ok(functions.into_iter().map(kernel).collect())
    }

    /// The kernels of the variants, loaded onto the device.
    fn functions(&self, code: &[u8], variants: &[Variant]) -> Result<Vec<Function>, CudaError> {
        let device = &self.gpu.device;
        self.gpu.idle.during(device, || {
            let module = Module::load(device, code)?;
            variants.iter().map(|variant| module.function(cuda::entry(variant.direction))).collect()
        })
    }
}
