//! Committed types on devices.

use super::Committed;
use crate::device::{DEVICES, DeviceType, FirstUse, Gpu};
use crate::policy::{Policy, Tier};
use crate::recorder::recorder;
use dtc_cuda::CudaError;
use std::sync::Arc;

impl Committed {
    /// Does at once what the first calls on a device would do: loads the generic kernels, brings lists to the device, and,
    /// unless the policy is [`Policy::Off`], compiles the kernels for whole elements. Returns which tier
    /// serves those.
    ///
    /// # Errors
    ///
    /// CUDA refuses. That a kernel cannot be compiled is no error: see [`Gpu::problem`].
    ///
    /// ```
    /// use dtc_runtime::datatype::{Predefined, TypeBuilder};
    /// let engine = dtc_runtime::Engine::new();
    /// let mut types = TypeBuilder::new();
    /// let int = types.named(Predefined::INT);
    /// let every_other = types.vector(3, 1, 2, int)?;
    /// let every_other = engine.commit(&types.finish(every_other)?);
    /// if let Ok(gpu) = engine.gpu(0) {
    ///     println!("{}", every_other.prepare(&gpu)?);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare(&self, gpu: &Gpu) -> Result<Tier, CudaError> {
        gpu.load()?;
        let device_type = self.device_type(gpu);
        device_type.interpreter()?;
        if gpu.state.policy != Policy::Off {
            device_type.compile_usual();
        }
        Ok(self.gpu_tier(gpu))
    }

    /// Which tier serves calls on a device: the specialised one as soon as kernels of both directions are there.
    ///
    /// ```
    /// # fn tier(column: &dtc_runtime::Committed, gpu: &dtc_runtime::Gpu) {
    /// println!("{}", column.gpu_tier(gpu));
    /// # }
    /// ```
    pub fn gpu_tier(&self, gpu: &Gpu) -> Tier {
        if gpu.device().check_process().is_err() {
            // In a forked child nothing is planned for a device.
            return Tier::Generic;
        }
        let device_type = self.device_type(gpu);
        if device_type.has_kernels() { Tier::Specialised } else { Tier::Generic }
    }

    /// The type as described on a device, if that serves a pack or an unpack there.
    fn described_on(&self, gpu: &Gpu) -> Option<&Arc<DeviceType>> {
        if self.found().is_some() || self.inner.ahead.made().is_some() {
            return None;
        }
        let engine = &self.engine().shared;
        // Bundles, the recorder and counted calls know types by their canonical form.
        let by_canonical_form = engine.has_bundles() || recorder().is_some();
        if by_canonical_form || !matches!(engine.policy, Policy::Background | Policy::Off) {
            return None;
        }
        let entries = self.inner.datatype.most_entries();
        match self.inner.on_devices.count(entries, engine.background_thread) {
            FirstUse::Canonical => return None,
            FirstUse::Described => {}
            FirstUse::DescribedAgain => self.inner.ahead.request(&self.inner.datatype, engine),
        }
        let described = self.described();
        Some(self.inner.on_devices.on(&gpu.state, described.layout(), *described.shape()))
    }

    /// This type on a device, for a pack or an unpack: as described where its canonical form takes longer than such a call.
    pub(crate) fn moved_by(&self, gpu: &Gpu) -> &Arc<DeviceType> {
        self.described_on(gpu).unwrap_or_else(|| self.device_type(gpu))
    }

    /// This type on a device, planned at the first use.
    pub(crate) fn device_type(&self, gpu: &Gpu) -> &Arc<DeviceType> {
        self.cached().device_type(gpu.device().info().ordinal as usize % DEVICES, || gpu.state.clone())
    }
}
