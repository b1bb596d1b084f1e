//! Cranelift's backends, with the settings that kernels are compiled with.

use crate::codegen::error::CodegenError;
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use std::fmt;
use target_lexicon::Triple;

/// What code is compiled for.
pub(super) struct Backend {
    pub(super) triple: Triple,
    /// Whether code may use AVX2, on x86-64.
    pub(super) avx2: bool,
    /// Whether the code goes into an object. Otherwise it refers to microkernels by addresses of 8 bytes.
    pub(super) object: bool,
}

impl Backend {
    /// The backend with an algorithm of register allocation.
    pub(super) fn build(&self, allocation: &str) -> Result<OwnedTargetIsa, CodegenError> {
        let target = |error: &dyn fmt::Display| CodegenError::Target(error.to_string());
        let mut flags = settings::builder();
        // The emitter writes what it means: optimising took a third of the time and left the same loops.
        flags.set("opt_level", "none").map_err(|error| target(&error))?;
        flags.set("regalloc_algorithm", allocation).map_err(|error| target(&error))?;
        flags.set("is_pic", if self.object { "true" } else { "false" }).map_err(|error| target(&error))?;
        let checked = if cfg!(debug_assertions) { "true" } else { "false" };
        flags.set("enable_verifier", checked).map_err(|error| target(&error))?;
        let mut isa = isa::lookup(self.triple.clone()).map_err(|error| target(&error))?;
        if self.avx2 {
            for feature in ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_avx", "has_avx2"] {
                isa.enable(feature).map_err(|error| target(&error))?;
            }
        }
        isa.finish(settings::Flags::new(flags)).map_err(|error| target(&error))
    }
}
