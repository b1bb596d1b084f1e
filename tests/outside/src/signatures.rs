//! Functions of a user whose signatures have the types of dtc-runtime's own.
//!
//! `tests/tests/structure/outside.rs` holds this file against the signatures of dtc-runtime.

use dtc_runtime::codegen::cranelift::{CodegenError, CpuTarget};
use dtc_runtime::cuda::{
    CudaError, Device, DeviceBuffer, DeviceInfo, Function, MemoryKind, PinnedBuffer, StagingAllocator, Stream,
};
use dtc_runtime::datatype::{Datatype, DatatypeError, Facts, Predefined, Signature, TabledDatatype};
use dtc_runtime::layout::{Layout, TypeHash};
use dtc_runtime::operation::{Element, Operation, OperationError, Reduction};
use dtc_runtime::plan::gpu::{DeviceCopy, TabledVariant};
use dtc_runtime::plan::{Plan, Target};
use dtc_runtime::store::{Config, Finding, Store};
use dtc_runtime::{
    BundleWriter, Committed, CommittedTabled, Direction, Elements, Endpoint, Engine, Gpu, IndexTable, PackError,
    PersistentBatch, Pipeline, Policy, Range, Record, RecordError, Records, Request, TabledError, TabledLayout,
    TabledRoofline, TextError, Tier, Transfer, TransferCase, TransferError, TransferModel, UncommittedPlan,
};
use std::path::Path;
use std::sync::Arc;

/// A type in the notation.
///
/// # Errors
///
/// The text is not one.
pub fn described(notation: &str) -> Result<(Datatype, Signature, Facts), TextError> {
    let datatype: Datatype = notation.parse()?;
    let (signature, facts) = (datatype.signature(), *datatype.facts());
    Ok((datatype, signature, facts))
}

/// The stages of a committed type.
pub fn stages(committed: &Committed) -> (Pipeline, &Layout, &Plan, TypeHash, Tier) {
    (committed.pipeline(), committed.layout(), committed.plan(), committed.type_hash(), committed.tier())
}

/// A layout that is moved as it is.
pub fn as_described(layout: &Layout) -> UncommittedPlan {
    UncommittedPlan::new(layout.clone())
}

/// An engine for a processor.
pub fn engine(policy: Policy, store: Config, staging: Arc<dyn StagingAllocator>) -> (Engine, Target) {
    let engine = Engine::builder().policy(policy).store(store).staging(staging).build();
    let target = engine.target();
    (engine, target)
}

/// A bundle of a type for a processor, loaded.
///
/// # Errors
///
/// The type has no code there.
pub fn bundle(pipeline: &Pipeline, target: CpuTarget) -> Result<Vec<u8>, CodegenError> {
    let mut writer = BundleWriter::default();
    writer.add_cpu(pipeline, target)?;
    Ok(writer.finish())
}

/// Loads a bundle.
///
/// # Errors
///
/// The file is none.
pub fn load(engine: &Engine, path: &Path) -> Result<(), Finding> {
    engine.load_bundle(path)
}

/// Whether a sum is computed between two kinds of memory.
///
/// # Errors
///
/// Elements of the predefined type have no sums.
pub fn sums(
    engine: &Engine,
    predefined: Predefined,
    [memory, packed]: [MemoryKind; 2],
) -> Result<bool, OperationError> {
    let element = Element::of(predefined).unwrap_or(Element::I32);
    Reduction::new(Operation::Sum, element).map(|sum| engine.computes(sum, memory, packed))
}

/// Enqueues a pack of device memory, and starts one to pinned memory.
///
/// # Errors
///
/// The device refuses.
pub fn transfers(
    committed: &Committed,
    stream: &Stream,
    [memory, packed]: [&DeviceBuffer; 2],
    pinned: &mut PinnedBuffer,
) -> Result<(usize, Request), TransferError> {
    let range = Range::elements(1).at_most(packed.len().min(pinned.as_slice().len()) as u64);
    assert!(committed.span(1).is_some_and(|(low, high)| low >= 0 && high <= memory.len() as i128));
    let elements: Elements = committed.at(memory, range);
    let (enqueued, started): (Transfer, Transfer) = (elements.pack(packed), elements.pack(Endpoint::from(&*pinned)));
    // SAFETY: `span` found all elements inside `memory`, and `at_most` ended the range inside the two other buffers. The caller frees
    // none of them before the stream and the request were waited for.
    let (bytes, request) = unsafe { (enqueued.enqueue(stream)?, started.start()?) };
    Ok((bytes, request))
}

/// A batch of transfers on a GPU.
///
/// # Errors
///
/// The device refuses.
pub fn batch(engine: &Engine, gpu: &Gpu, transfers: &[Transfer<'_>]) -> Result<PersistentBatch, TransferError> {
    engine.persistent_batch(gpu, transfers)
}

/// A kernel of the user's, compiled for a device.
///
/// # Errors
///
/// The device refuses.
pub fn kernels<'a>(gpu: &'a Gpu, source: &str) -> Result<(&'a Device, Vec<Function>), CudaError> {
    Ok((gpu.device(), gpu.compile(source, &["kernel"])?))
}

/// What is known of a device's transfers.
pub fn model(store: &Store, info: &DeviceInfo) -> Option<(TransferModel, DeviceCopy)> {
    let model = TransferModel::stored(store, info)?;
    let copy = model.device_copy();
    Some((model, copy))
}

/// How long a pack on the processor takes, and what it would write, in bytes.
///
/// # Errors
///
/// The packed bytes cannot be counted.
pub fn estimate(committed: &Committed, case: &TransferCase) -> Result<(f64, usize), PackError> {
    let direction: Direction = case.direction;
    let estimate = committed.estimate(direction, case.memory, case.packed, case.bytes);
    Ok((estimate.map_or(f64::INFINITY, |estimate| estimate.nanoseconds), committed.packed_size(1)?))
}

/// Commits a type with index tables.
pub fn tabled(engine: &Engine, datatype: &TabledDatatype) -> CommittedTabled {
    engine.commit_tabled(datatype)
}

/// What is known of such a type, and of a call.
///
/// # Errors
///
/// The tables do not fit the type.
pub fn facts_of_tabled<'a>(
    committed: &'a CommittedTabled,
    tables: &[IndexTable<'_>],
) -> Result<(&'a TabledLayout, Option<TabledVariant>, Option<TabledRoofline>), TabledError> {
    Ok((committed.layout(), committed.kernel(), committed.roofline(tables, 0)?))
}

/// A struct with padding.
#[derive(Clone, Copy, Debug, Record)]
pub struct Particle {
    /// Where it is.
    pub position: [f64; 3],
    /// Elementary charges.
    pub charge: i32,
}

/// The types of particles, by one function for all of this program's structs.
///
/// # Errors
///
/// See [`RecordError`].
pub fn particles(engine: &Engine) -> Result<Records<Particle>, RecordError> {
    fn datatype<T: Record>() -> Result<Datatype, DatatypeError> {
        T::datatype()
    }
    engine.commit(&datatype::<Particle>()?).of()
}
