//! Launches: the kernel that serves a call, its parameters, and tables of the host on their way to the device.

use super::device_end::DeviceEnd;
use super::error::TabledError;
use super::upload::{Uploaded, tables_of};
use crate::cached_type::tabled::{TabledMove, TabledServing};
use crate::device::{Gpu, Grid, Launch};
use crate::engine::Engine;
use dtc_compiler::codegen::cuda::{GenericTabled, TabledEntries};
use dtc_compiler::plan::gpu::{Call, Granularity, TabledVariant};
use dtc_cuda::{CudaError, DeviceBuffer, Scope, Stream, graph};
use smallvec::SmallVec;

/// The other end.
#[derive(Clone, Copy)]
pub(super) enum Packed<'a> {
    /// The address of the first packed byte that is moved.
    Bytes(u64),
    /// Elements of another type.
    Elements(DeviceEnd<'a>),
}

/// A call as a device sees it.
pub(super) struct TabledLaunch<'a> {
    pub(super) elements: DeviceEnd<'a>,
    pub(super) packed: Packed<'a>,
    pub(super) moved: TabledMove<'a>,
    /// At least one.
    pub(super) bytes: u64,
    /// Blocks of the grid, at most.
    pub(super) most: u32,
    /// Where faults are noted, or 0.
    pub(super) report: u64,
}

impl TabledLaunch<'_> {
    /// Enqueues the call.
    ///
    /// # Safety
    ///
    /// The device reaches every byte that the entries lead to, on both ends, which do not overlap, until the work is done.
    pub(super) unsafe fn enqueue(&self, engine: &Engine, gpu: &Gpu, stream: &Stream) -> Result<(), TabledError> {
        let scope = stream.device().scope()?;
        let variant = self.variant();
        let work = variant.blocks(self.bytes).ok_or_else(|| self.too_large())?;
        let variant = if work > self.most { variant.capped() } else { variant };
        let served = self.elements.shared.serving(&gpu.state, self.moved, variant)?;
        let mut ends: SmallVec<[DeviceEnd<'_>; 2]> = SmallVec::new();
        ends.push(self.elements);
        if let Packed::Elements(end) = self.packed {
            ends.push(end);
        }
        let uploaded = Uploaded::new(&ends, gpu, stream)?;
        let launched =
            tables_of(&ends, engine, gpu, uploaded.as_ref().map_or(0, Uploaded::address)).and_then(|tables| {
                let tables: SmallVec<[&[TabledEntries]; 2]> = tables.iter().map(|tables| &tables[..]).collect();
                // SAFETY: the contract of this function; the kernel serves this call, and `tables_of` found tables that the device reaches.
                unsafe { self.launch(&scope, stream, (&served, variant), &tables) }.map_err(TabledError::from)
            });
        // Without a launch, the copy to the memory may still be under way.
        let given_back = uploaded.map_or(Ok(()), |uploaded| uploaded.launched(&scope, gpu, stream));
        launched?;
        Ok(given_back?)
    }

    /// Launches what serves the call: a compiled kernel of a variant, or a generic one.
    ///
    /// # Safety
    ///
    /// As for [`TabledLaunch::enqueue`]; the kernel serves these ends, and the device reaches the tables.
    unsafe fn launch(
        &self,
        scope: &Scope<'_>,
        stream: &Stream,
        (served, variant): (&TabledServing<'_>, TabledVariant),
        tables: &[&[TabledEntries]],
    ) -> Result<(), CudaError> {
        let DeviceEnd { shared, address: memory, first, .. } = self.elements;
        let (packed, target_first) = match self.packed {
            Packed::Bytes(address) => (address, 0),
            Packed::Elements(end) => (end.address, end.first),
        };
        let call = Call { memory, packed, first, bytes: self.bytes };
        let too_large = || self.too_large();
        match served {
            TabledServing::Compiled(kernel) => {
                // The kernel was made of the same sides, and the lengths of the tables were checked.
                let words = shared.sides(self.moved).parameter(variant.word, tables, target_first, self.report);
                let mut words = words.ok_or_else(too_large)?;
                graph::keep_in_graph(scope, stream, kernel)?;
                let lists = kernel.tables.as_ref().map_or(0, |lists| lists.address());
                let work = variant.blocks(self.bytes).ok_or_else(too_large)?;
                let grid = Grid::few(work, self.most, variant.shape.threads);
                let launch = Launch { function: &kernel.function, call: &call, tables: lists, grid };
                // SAFETY: the kernel was made for these types, and ends in as many words as `parameter` returns for them. It moves the bytes
                // of `call`, follows entries that lie below the places of their tables alone, and reads tables that the device reaches.
                unsafe { launch.enqueue(scope, stream, words.as_mut_ptr().cast()) }
            }
            TabledServing::Generic(kernel, program, interpreter) => {
                let parameter = program.parameter(&shared.layout, tables[0], self.report);
                let mut parameter = parameter.ok_or_else(too_large)?;
                graph::keep_in_graph(scope, stream, interpreter)?;
                let lists = interpreter.lists.as_ref().map_or(0, DeviceBuffer::address);
                let work = kernel.blocks(self.bytes).ok_or_else(too_large)?;
                let grid = Grid::few(work, self.most, GenericTabled::SHAPE.threads);
                let function = interpreter.generic.tabled(kernel)?;
                let launch = Launch { function, call: &call, tables: lists, grid };
                // SAFETY: the kernels end in a program, and this one is of the type and the tables of the call. They move the bytes of `call`
                // as a compiled one does.
                unsafe { launch.enqueue(scope, stream, parameter.as_mut_ptr().cast()) }
            }
        }
    }

    fn too_large(&self) -> CudaError {
        CudaError::GridTooLarge { bytes: self.bytes }
    }

    /// The kernel whose words are aligned on both ends, and in the packed bytes of both.
    fn variant(&self) -> TabledVariant {
        let DeviceEnd { shared, address, first, .. } = self.elements;
        let (bits, granularity, end) = match self.packed {
            Packed::Bytes(packed) => (address | packed.wrapping_sub(first), shared.granularity, 0),
            Packed::Elements(end) => {
                let bits = address | end.address | end.first.wrapping_sub(first);
                (bits, shared.granularity.min(end.shared.granularity), end.shared.most_bytes)
            }
        };
        let word = granularity.min(Granularity::of_bits(bits));
        TabledVariant::new(word, shared.most_bytes.max(end), self.report != 0)
    }
}
