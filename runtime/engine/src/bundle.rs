//! What bundles hold of a type: its keys, and the entries under them.

use crate::gpu::without_source;
use dtc_compiler::Pipeline;
use dtc_compiler::codegen::cranelift::{self, CodegenError, Compiler, CpuTarget, Image};
use dtc_compiler::codegen::cuda;
use dtc_compiler::plan::gpu::{GpuPlan, Variant};
use dtc_compiler::plan::{Direction, Level};
use dtc_cuda::{Architecture, CudaError, Nvrtc};
use dtc_store::{Bundle, BundleEntry, Bundles, Key};
use std::collections::BTreeMap;

/// The revision of dtc: its version and, in a checkout, a digest of the sources that kernels come from. Bundles serve the revision
/// that made them.
///
/// ```
/// assert!(dtc_runtime::REVISION.starts_with(env!("CARGO_PKG_VERSION")));
/// ```
pub const REVISION: &str = env!("DTC_REVISION");

/// The target of PTX, which the driver compiles for any GPU from the oldest target of the bundle on.
const PTX: &str = "ptx";

/// What the lists of a program for GPUs are filed under, in the place of a target. All targets read the same.
const LISTS: &str = "lists";

/// What the kernels of a layout are found by: everything that they depend on beside the target. A type's hash does not suffice,
/// since two types with one hash can be constructed.
pub(crate) struct Name(Vec<u8>);

impl Name {
    fn of_cpu(digest: &[u8; 32]) -> Name {
        Name([digest, REVISION.as_bytes(), cranelift::VERSION.as_bytes()].join(&0))
    }

    /// Of these kernels for a GPU. No text is written for it: that is a function of the layout, of the variants, and of whether
    /// plans follow the order of memory.
    pub(crate) fn of_gpu(digest: &[u8; 32], plan: &GpuPlan, variants: &[Variant]) -> Name {
        let plan = format!("{variants:?} {}", plan.disordered());
        Name([digest, REVISION.as_bytes(), plan.as_bytes()].join(&0))
    }

    fn key(&self, target: &str) -> Key {
        Key::of(&[&self.0, target.as_bytes()])
    }
}

/// The kernels of a layout for a CPU of this level, for the best target that a bundle has.
pub(crate) fn cpu_kernel(bundles: &Bundles, digest: &[u8; 32], level: Level) -> Option<BundleEntry> {
    let name = Name::of_cpu(digest);
    CpuTarget::running_on(level).into_iter().find_map(|target| bundles.get(&name.key(&target.to_string())))
}

/// The code of a layout's kernels for a GPU, machine code before PTX for the oldest target, and the lists that all of it reads.
pub(crate) fn gpu_kernels(bundles: &Bundles, name: &Name, target: &str) -> Option<(Vec<BundleEntry>, BundleEntry)> {
    let lists = bundles.get(&name.key(LISTS))?;
    let code = [target, PTX].into_iter().filter_map(|target| bundles.get(&name.key(target)));
    Some((code.collect(), lists))
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
        let key = Name::of_cpu(&pipeline.layout().digest()).key(&target.to_string());
        self.entries.insert(key, image.to_bytes());
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
        let name = Name::of_gpu(&pipeline.layout().digest(), plan, &variants);
        let program = cuda::program(plan, &variants).map_err(without_source)?;
        let mut add = |target: &str, architecture| {
            let binary = nvrtc.compile(&program.source, "dtc.cu", architecture, &[])?;
            self.entries.insert(name.key(target), binary.bytes);
            Ok::<(), CudaError>(())
        };
        for &architecture in architectures {
            add(&format!("sm_{architecture}"), Architecture::Cubin(architecture))?;
        }
        add(PTX, Architecture::Ptx(oldest))?;
        self.entries.insert(name.key(LISTS), program.tables);
        Ok(true)
    }

    /// The bytes of the file. Equal types and targets give equal bytes.
    pub fn finish(&self) -> Vec<u8> {
        Bundle::write(REVISION, &self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtc_compiler::datatype::text;

    /// Bytes in one order, described in two ways. Some plans depend on how long the description is.
    #[test]
    fn what_has_one_name_has_one_program() {
        let places: Vec<i64> = (0..40).map(|at| (at * 7919 % 40) * 4000).collect();
        let blocks = |step: i64, count: i64| -> Vec<String> {
            let all = places.iter().flat_map(|place| (0..count).map(move |at| (place + at * step).to_string()));
            all.collect()
        };
        let nested = |step: i64, count: i64| {
            let places = places.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            format!("hindexed_block 1 [{places}] (hvector {count} 1 {step} int)")
        };
        let listed = |step: i64, count: i64| format!("hindexed_block 1 [{}] int", blocks(step, count).join(", "));
        let descriptions = [
            ("vector 50 2 3 int".to_owned(), "hvector 50 1 12 (contiguous 8 char)".to_owned(), true),
            (nested(12, 4), listed(12, 4), true),
            (nested(-200, 20), listed(-200, 20), true),
            ("vector 50 2 3 int".to_owned(), "vector 50 2 4 int".to_owned(), false),
        ];
        for (one, other, same) in descriptions {
            let [one, other] = [one, other].map(|text| Pipeline::new(text::parse(&text).unwrap()));
            let digests = [&one, &other].map(|pipeline| pipeline.layout().digest());
            assert_eq!(digests[0] == digests[1], same, "{} and {}", one.layout(), other.layout());
            let of = |pipeline: &Pipeline, digest| {
                let plan = pipeline.gpu_plan();
                let variants = [Direction::Pack, Direction::Unpack].map(|direction| plan.usual(direction));
                (Name::of_gpu(digest, plan, &variants).0, cuda::program(plan, &variants).unwrap().source)
            };
            let (one, other) = (of(&one, &digests[0]), of(&other, &digests[1]));
            assert!(one.0 != other.0 || one.1 == other.1, "{}", one.1);
        }
    }
}
