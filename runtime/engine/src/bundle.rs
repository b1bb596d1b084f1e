//! What bundles hold of a type: its keys, and the entries under them. An engine looks for the type by its lowered layout, then for
//! kernels by the canonical one, which equal types have in common.

use crate::error::{check_text, without_source};
use dtc_compiler::codegen::cranelift::{self, CpuTarget};
#[cfg(feature = "jit")]
use dtc_compiler::codegen::cranelift::{CodegenError, Compiler, Image};
use dtc_compiler::codegen::cuda::{self, TabledSides};
use dtc_compiler::datatype::TabledDatatype;
use dtc_compiler::layout::Layout;
use dtc_compiler::plan::gpu::{GpuPlan, TabledVariant, Variant};
use dtc_compiler::plan::{Direction, Level};
use dtc_compiler::tabled::TabledLayout;
use dtc_compiler::{Pipeline, Shared};
use dtc_cuda::{Architecture, CudaError, Nvrtc};
use dtc_host::lock::Lock;
use dtc_store::{Bundle, BundleEntry, Bundles, Config, Finding, Key};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

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

/// What the types of a bundle are filed under.
const TYPES: &str = "types";

/// What a type shares with its equals, and the digest of its canonical layout, as a bundle has them.
#[derive(Clone)]
pub(crate) struct BundledType {
    pub(crate) shared: Shared,
    pub(crate) digest: Digest,
}

type Digest = [u8; 32];

/// Types of bundles, by the digests of their lowered layouts.
type Types = HashMap<Digest, BundledType>;

/// The bundles of an engine, and the types in them, which are read when a bundle is loaded.
pub(crate) struct LoadedBundles {
    bundles: Arc<Bundles>,
    types: Lock<Types>,
}

impl LoadedBundles {
    /// Loads the bundles that a configuration names.
    pub(crate) fn open(config: &Config) -> LoadedBundles {
        let bundles = Bundles::open(config, REVISION);
        LoadedBundles { types: Lock::new(types_of(&bundles)), bundles: Arc::new(bundles) }
    }

    /// Adds a bundle, which is searched after the others.
    pub(crate) fn load(&self, path: &Path) -> Result<(), Finding> {
        let mut types = self.types.lock();
        self.bundles.load(path)?;
        *types = types_of(&self.bundles);
        Ok(())
    }

    /// Where kernels are searched.
    pub(crate) fn kernels(&self) -> &Arc<Bundles> {
        &self.bundles
    }

    /// A type that was lowered to this layout.
    pub(crate) fn find(&self, lowered: &Layout) -> Option<BundledType> {
        let found = self.types.lock().get(&lowered.digest())?.clone();
        found.shared.is_of(lowered).then_some(found)
    }
}

/// The types of all bundles; of those that several have, the first.
fn types_of(bundles: &Bundles) -> Types {
    let mut types = Types::new();
    for entry in bundles.all(&key_of_types()) {
        let mut rest = &*entry;
        while let Some((lowered, found)) = next_type(&mut rest) {
            types.entry(lowered).or_insert(found);
        }
    }
    types
}

/// Reads a type, and the digest that it is found by. `None` at the end, and where the bytes are of none.
fn next_type(rest: &mut &[u8]) -> Option<(Digest, BundledType)> {
    let (lowered, after) = rest.split_first_chunk()?;
    let (digest, after) = after.split_first_chunk()?;
    let (length, after) = after.split_first_chunk()?;
    let (shared, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some((*lowered, BundledType { shared: Shared::decode(shared)?, digest: *digest }))
}

fn key_of_types() -> Key {
    Key::of(&[REVISION.as_bytes(), TYPES.as_bytes()])
}

/// What the kernels of a layout are found by: everything that they depend on beside the target. A type's hash does not suffice,
/// since two types with one hash can be constructed.
pub(crate) struct Name(Vec<u8>);

impl Name {
    fn of_cpu(digest: &Digest) -> Name {
        Name([digest, REVISION.as_bytes(), cranelift::SERIES.as_bytes()].join(&0))
    }

    /// Of these kernels for a GPU. No text is written for it: that is a function of the layout, of the variants, and of whether
    /// plans follow the order of memory.
    pub(crate) fn of_gpu(digest: &Digest, plan: &GpuPlan, variants: &[Variant]) -> Name {
        let plan = format!("{variants:?} {}", plan.disordered());
        Name([digest, REVISION.as_bytes(), plan.as_bytes()].join(&0))
    }

    /// Of a program for a GPU whose text is written at run time, too.
    fn of_source(source: &str) -> Name {
        Name([REVISION.as_bytes(), source.as_bytes()].join(&0))
    }

    fn key(&self, target: &str) -> Key {
        Key::of(&[&self.0, target.as_bytes()])
    }
}

/// The kernels of a layout for a CPU of this level, for the best target that a bundle has.
pub(crate) fn cpu_kernel(bundles: &Bundles, digest: &Digest, level: Level) -> Option<BundleEntry> {
    let name = Name::of_cpu(digest);
    CpuTarget::running_on(level).into_iter().find_map(|target| bundles.get(&name.key(&target.to_string())))
}

/// The code of a layout's kernels for a GPU, machine code before PTX for the oldest target, and the lists that all of it reads.
pub(crate) fn gpu_kernels(bundles: &Bundles, name: &Name, target: &str) -> Option<(Vec<BundleEntry>, BundleEntry)> {
    let lists = bundles.get(&name.key(LISTS))?;
    let code = [target, PTX].into_iter().filter_map(|target| bundles.get(&name.key(target)));
    Some((code.collect(), lists))
}

/// The code of a text for a GPU, machine code before PTX for the oldest target.
pub(crate) fn code_of_source(bundles: &Bundles, source: &str, target: &str) -> Vec<BundleEntry> {
    if bundles.is_empty() {
        return Vec::new();
    }
    let name = Name::of_source(source);
    [target, PTX].into_iter().filter_map(|target| bundles.get(&name.key(target))).collect()
}

/// Writes a bundle: kernels that engines take in place of compiling them, with [`Engine::load_bundle`](crate::Engine::load_bundle).
///
/// ```
/// use dtc_runtime::codegen::cranelift::CpuTarget;
/// use dtc_runtime::{Pipeline, datatype::text};
/// use dtc_runtime::BundleWriter;
/// let records = Pipeline::new(text::parse("struct [2@0 int, 1@16 double]").unwrap());
/// let mut writer = BundleWriter::default();
/// for target in CpuTarget::running_on(dtc_runtime::Engine::new().target().level) {
///     assert!(writer.add_cpu(&records, target)?);
/// }
/// assert!(writer.finish().starts_with(b"dtcbundl"));
/// # Ok::<(), dtc_runtime::codegen::cranelift::CodegenError>(())
/// ```
#[derive(Debug, Default)]
pub struct BundleWriter {
    /// Kernels by their keys.
    entries: BTreeMap<Key, Vec<u8>>,
    /// Types by the digests of their lowered layouts.
    types: BTreeMap<Digest, Vec<u8>>,
}

impl BundleWriter {
    /// Adds a type and its kernels for a CPU, unless engines would compile none: then microkernels alone are as fast. Says whether
    /// it added kernels. Needs the feature `jit`.
    ///
    /// # Errors
    ///
    /// Cranelift has no backend for the target: see the feature `objects` of `dtc-compiler`.
    #[cfg(feature = "jit")]
    pub fn add_cpu(&mut self, pipeline: &Pipeline, target: CpuTarget) -> Result<bool, CodegenError> {
        self.add_type(pipeline);
        let plan = pipeline.plan();
        if !plan.decision().specialise() {
            return Ok(false);
        }
        let image = Image::compile(&Compiler::for_target(target)?, plan)?;
        let key = Name::of_cpu(&pipeline.layout().digest()).key(&target.to_string());
        self.entries.insert(key, image.to_bytes());
        Ok(true)
    }

    /// Adds a type and its kernels for GPUs of these architectures, ten times their compute capability, and PTX for the oldest, from
    /// which the driver of any later GPU compiles. They serve whole elements between allocations. Says whether it added kernels:
    /// contiguous types, and too large ones, have none.
    ///
    /// # Errors
    ///
    /// NVRTC is absent, or does not compile for one of the architectures.
    pub fn add_gpu(&mut self, pipeline: &Pipeline, architectures: &[u32]) -> Result<bool, CudaError> {
        self.add_type(pipeline);
        let plan = pipeline.gpu_plan();
        let Some(&oldest) = architectures.iter().min() else { return Ok(false) };
        if !plan.allows() {
            return Ok(false);
        }
        let variants = [Direction::Pack, Direction::Unpack].map(|direction| plan.usual(direction));
        let name = Name::of_gpu(&pipeline.layout().digest(), plan, &variants);
        let program = cuda::program(plan, &variants).map_err(without_source)?;
        self.add_code(&name, &program.source, architectures, oldest)?;
        self.entries.insert(name.key(LISTS), program.tables);
        Ok(true)
    }

    /// Adds the kernels of a type with index tables for GPUs, as [`BundleWriter::add_gpu`] does: for tables of any entries and lengths. They serve
    /// packs and unpacks of memory that is aligned as allocations are.
    ///
    /// # Errors
    ///
    /// The type has too many parts whose sizes depend on tables; NVRTC is absent, or does not compile for one of the architectures.
    ///
    /// ```no_run
    /// let mut writer = dtc_runtime::BundleWriter::default();
    /// writer.add_gpu_tabled(&"table 0 2048 512 32768 (contiguous 32768 byte)".parse()?, &[80, 90])?;
    /// std::fs::write("kernels.dtc", writer.finish())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_gpu_tabled(&mut self, datatype: &TabledDatatype, architectures: &[u32]) -> Result<(), CudaError> {
        let Some(&oldest) = architectures.iter().min() else { return Ok(()) };
        let layout = TabledLayout::new(datatype);
        let variant = TabledVariant::new(layout.granularity(), layout.most_bytes(), false);
        for sides in [TabledSides::Pack(&layout), TabledSides::Unpack(&layout)] {
            // The lists are written anew with the text, which is what the code is found by.
            let source = cuda::tabled(sides, &variant).map_err(without_source)?.source;
            check_text(&source)?;
            self.add_code(&Name::of_source(&source), &source, architectures, oldest)?;
        }
        Ok(())
    }

    /// Compiles a text for each architecture, and to PTX for the oldest.
    fn add_code(&mut self, name: &Name, source: &str, architectures: &[u32], oldest: u32) -> Result<(), CudaError> {
        let nvrtc = Nvrtc::get()?;
        let machine_code = |&number: &u32| (format!("sm_{number}"), Architecture::Cubin(number));
        let ptx = (PTX.to_owned(), Architecture::Ptx(oldest));
        for (target, architecture) in architectures.iter().map(machine_code).chain([ptx]) {
            let binary = nvrtc.compile(source, "dtc.cu", architecture, &[])?;
            self.entries.insert(name.key(&target), binary.bytes);
        }
        Ok(())
    }

    /// Adds what the type shares with its equals, which an engine finds before it looks for kernels.
    fn add_type(&mut self, pipeline: &Pipeline) {
        self.types.entry(pipeline.lowered().digest()).or_insert_with(|| {
            let shared = Shared::encode(pipeline.hash(), pipeline.layout());
            let length = (shared.len() as u64).to_le_bytes();
            [&pipeline.layout().digest()[..], &length, &shared].concat()
        });
    }

    /// The bytes of the file. Equal types and targets give equal bytes.
    pub fn finish(&self) -> Vec<u8> {
        let types = self.types.iter().flat_map(|(lowered, found)| [&lowered[..], found]);
        let types = (key_of_types(), types.collect::<Vec<_>>().concat());
        Bundle::write(REVISION, &self.entries.clone().into_iter().chain([types]).collect())
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
