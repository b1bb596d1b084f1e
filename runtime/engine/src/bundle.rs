//! What bundles hold of a type: its keys, and the entries under them.

use crate::gpu::without_source;
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cranelift::{self, CodegenError, Compiler, CpuTarget, Image};
use dtc_compiler::codegen::cuda;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::{Direction, Level};
use dtc_cuda::{Architecture, CudaError, Nvrtc};
use dtc_store::{Bundle, Bundles, Key};
use std::collections::BTreeMap;

/// The version of dtc that bundles are made by and for.
pub(crate) const MAKER: &str = env!("CARGO_PKG_VERSION");

/// The target of PTX, which the driver compiles for any GPU from the oldest target of the bundle on.
pub(crate) const PTX: &str = "ptx";

/// The key of a program for GPUs. `target` is `sm_90` and the like.
pub(crate) fn gpu_key(source: &str, target: &str) -> Key {
    Key::of(&[source.as_bytes(), target.as_bytes(), MAKER.as_bytes()])
}

/// The key of the kernels of a layout for CPUs. The hash of a type does not suffice: two types with one hash can be constructed.
fn cpu_key(layout: &Layout, target: CpuTarget) -> Key {
    let parts = [layout.to_string(), target.to_string(), MAKER.to_owned(), cranelift::VERSION.to_owned()];
    Key::of(&parts.each_ref().map(|part| part.as_bytes()))
}

/// The kernels of a layout for a CPU of this level, for the best target that a bundle has.
pub(crate) fn cpu_kernel(bundles: &Bundles, layout: &Layout, level: Level) -> Option<Vec<u8>> {
    CpuTarget::running_on(level).into_iter().find_map(|target| bundles.get(&cpu_key(layout, target)))
}

/// Writes a bundle: kernels that engines take in place of compiling them, with [`Engine::load_bundle`](crate::Engine::load_bundle).
///
/// ```
/// use dtc_compiler::codegen::cranelift::CpuTarget;
/// use dtc_compiler::{Pipeline, datatype::text};
/// use dtc_runtime::BundleWriter;
/// let records = Pipeline::new(text::parse("struct [2@0 int, 1@16 double]").unwrap());
/// let mut writer = BundleWriter::default();
/// for target in CpuTarget::running_on(dtc_runtime::Engine::new().target().level) {
///     assert!(writer.add_cpu(&records, target)?);
/// }
/// assert!(writer.finish().starts_with(b"dtcbundl"));
/// # Ok::<(), dtc_compiler::codegen::cranelift::CodegenError>(())
/// ```
#[derive(Debug, Default)]
pub struct BundleWriter {
    entries: BTreeMap<Key, Vec<u8>>,
}

impl BundleWriter {
    /// Adds the kernels of a type for a CPU, unless engines would compile none: then microkernels alone are as fast. Says whether it
    /// did.
    ///
    /// # Errors
    ///
    /// Cranelift has no backend for the target: see the feature `objects` of `dtc-compiler`.
    pub fn add_cpu(&mut self, pipeline: &Pipeline, target: CpuTarget) -> Result<bool, CodegenError> {
        let plan = pipeline.plan();
        if !plan.decision().specialise() {
            return Ok(false);
        }
        let image = Image::compile(&Compiler::for_target(target)?, plan)?;
        self.entries.insert(cpu_key(pipeline.layout(), target), image.to_bytes());
        Ok(true)
    }

    /// Adds the kernels of a type for GPUs of these architectures, ten times their compute capability, and PTX for the oldest, from
    /// which the driver of any later GPU compiles. They serve whole elements between allocations. Says whether it did: contiguous
    /// types, and too large ones, have no kernels.
    ///
    /// # Errors
    ///
    /// NVRTC is absent, or does not compile for one of the architectures.
    pub fn add_gpu(&mut self, pipeline: &Pipeline, architectures: &[u32]) -> Result<bool, CudaError> {
        let plan = pipeline.gpu_plan();
        let Some(&oldest) = architectures.iter().min() else { return Ok(false) };
        if !plan.allows() {
            return Ok(false);
        }
        let nvrtc = Nvrtc::get()?;
        let variants = [Direction::Pack, Direction::Unpack].map(|direction| plan.usual(direction));
        let source = cuda::program(plan, &variants).map_err(without_source)?.source;
        let mut add = |target: &str, architecture| {
            let binary = nvrtc.compile(&source, "dtc.cu", architecture, &[])?;
            self.entries.insert(gpu_key(&source, target), binary.bytes);
            Ok::<(), CudaError>(())
        };
        for &architecture in architectures {
            add(&format!("sm_{architecture}"), Architecture::Cubin(architecture))?;
        }
        add(PTX, Architecture::Ptx(oldest))?;
        Ok(true)
    }

    /// The bytes of the file. Equal types and targets give equal bytes.
    pub fn finish(&self) -> Vec<u8> {
        Bundle::write(MAKER, &self.entries)
    }
}
