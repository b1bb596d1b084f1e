//! Launches: the kernel that serves a call, its parameters, and tables of the host on their way to the device.

use super::device_end::{DeviceEnd, Packed};
use super::driver_copies;
use super::error::TabledError;
use super::generic::{self, GenericEnd, Launched};
use super::upload::{Uploaded, tables_of};
use crate::cached_type::tabled::{TabledMove, TabledServing};
use crate::device::{Gpu, Grid, Launch};
use crate::engine::Engine;
use dtc_compiler::codegen::cuda::{TabledEntries, TabledReport};
use dtc_compiler::operation::Reduction;
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Granularity, TabledVariant};
use dtc_cuda::{CudaError, Scope, Stream, graph};
use smallvec::SmallVec;

/// A call as a device sees it.
pub(super) struct TabledLaunch<'a> {
    pub(super) elements: DeviceEnd<'a>,
    pub(super) packed: Packed<'a>,
    pub(super) moved: TabledMove<'a>,
    /// What an unpack does with its elements, which a kernel does.
    pub(super) reduction: Option<Reduction>,
    /// At least one.
    pub(super) bytes: u64,
    /// Blocks of the grid, at most.
    pub(super) most: u32,
    /// Whether the caller keeps the multiprocessors for others.
    pub(super) copied: bool,
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
        let unpacks = matches!(self.moved, TabledMove::Unpack);
        if self.reduction.is_none()
            && let Some(copies) = driver_copies::of((&self.elements, &self.packed), self.bytes, unpacks, self.copied)
        {
            // SAFETY: the copies move the bytes of the call and no others (contract of this function).
            return unsafe { driver_copies::enqueue(stream, &copies) }.map_err(TabledError::from);
        }
        let scope = stream.device().scope()?;
        let variant = self.variant();
        let work = variant.blocks(self.bytes).ok_or_else(|| self.too_large())?;
        let variant = if work > self.most { variant.capped() } else { variant };
        let served = self.elements.shared.serving(&gpu.state, self.moved, variant)?;
        let ends = self.ends();
        let uploaded = Uploaded::new(&ends, gpu, stream)?;
        let launched =
            tables_of(&ends, engine, gpu, uploaded.as_ref().map_or(0, Uploaded::address)).and_then(|tables| {
                let tables: SmallVec<[&[TabledEntries]; 2]> = tables.iter().map(|tables| &tables[..]).collect();
                // SAFETY: the contract of this function; the kernel serves this call, and `tables_of` found tables that the device reaches.
                unsafe { self.launch(&scope, (gpu, stream), (&served, variant), &tables) }.map_err(TabledError::from)
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
        (gpu, stream): (&Gpu, &Stream),
        (served, variant): (&TabledServing<'_>, TabledVariant),
        tables: &[&[TabledEntries]],
    ) -> Result<(), CudaError> {
        let shared = self.elements.shared;
        let (call, target_first) = self.call();
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
            TabledServing::Generic(generic) => {
                let report = TabledReport { address: self.report, tables_before: 0 };
                let end = GenericEnd { end: self.elements, generic, tables: tables[0], report };
                let direction =
                    if matches!(self.moved, TabledMove::Pack) { Direction::Pack } else { Direction::Unpack };
                let to = Launched { scope, stream, most: self.most };
                // SAFETY: the contract of this function.
                unsafe { end.launch(to, direction, (call.first, call.bytes, call.packed)) }
            }
            TabledServing::Passes(generics) => {
                let Packed::Elements(target) = self.packed else { return Err(too_large()) };
                let before = [0, tables[0].len() as u32];
                let of = |at: usize, end| {
                    let report = TabledReport { address: self.report, tables_before: before[at] };
                    GenericEnd { end, generic: &generics[at], tables: tables[at], report }
                };
                let to = Launched { scope, stream, most: self.most };
                // SAFETY: the contract of this function.
                unsafe { generic::copy(to, gpu, [of(0, self.elements), of(1, target)], self.bytes) }
            }
        }
    }

    /// The ends that have tables.
    pub(super) fn ends(&self) -> SmallVec<[DeviceEnd<'_>; 2]> {
        let mut ends = SmallVec::new();
        ends.push(self.elements);
        if let Packed::Elements(end) = self.packed {
            ends.push(end);
        }
        ends
    }

    /// What the kernel has of the call, and the first packed byte of the target of a copy.
    pub(super) fn call(&self) -> (Call, u64) {
        let DeviceEnd { address: memory, first, .. } = self.elements;
        let (packed, target_first) = match self.packed {
            Packed::Bytes(address) => (address, 0),
            Packed::Elements(end) => (end.address, end.first),
        };
        (Call { memory, packed, first, bytes: self.bytes }, target_first)
    }

    pub(super) fn too_large(&self) -> CudaError {
        CudaError::GridTooLarge { bytes: self.bytes }
    }

    /// The kernel whose words are aligned on both ends, and in the packed bytes of both.
    pub(super) fn variant(&self) -> TabledVariant {
        let DeviceEnd { shared, address, first, .. } = self.elements;
        let (bits, granularity, end) = match self.packed {
            Packed::Bytes(packed) => (address | packed.wrapping_sub(first), shared.granularity, 0),
            Packed::Elements(end) => {
                let bits = address | end.address | end.first.wrapping_sub(first);
                (bits, shared.granularity.min(end.shared.granularity), end.shared.most_bytes)
            }
        };
        let (word, end, checked) =
            (granularity.min(Granularity::of_bits(bits)), shared.most_bytes.max(end), self.report != 0);
        let combining = self.reduction.and_then(|reduction| {
            TabledVariant::accumulating(reduction, shared.granularity, shared.most_bytes, checked)
        });
        combining.unwrap_or_else(|| TabledVariant::new(word, end, checked))
    }
}
