//! The tiers that most tests run on.

use dtc_runtime::cuda::CudaError;
use dtc_runtime::{Engine, Gpu, Policy};

/// An engine whose kernels are all of one tier, and its GPU.
#[derive(Clone)]
pub struct OnTier {
    pub name: &'static str,
    pub policy: Policy,
    pub engine: Engine,
    pub gpu: Gpu,
}

impl OnTier {
    pub fn new(name: &'static str, policy: Policy) -> Result<OnTier, CudaError> {
        let engine = Engine::builder().policy(policy).build();
        Ok(OnTier { name, policy, gpu: engine.gpu(0)?, engine })
    }

    /// Another engine of this tier, which has loaded nothing.
    pub fn fresh_engine(&self) -> Engine {
        Engine::builder().policy(self.policy).build()
    }

    pub fn is_compiled(&self) -> bool {
        self.policy != Policy::Off
    }
}
