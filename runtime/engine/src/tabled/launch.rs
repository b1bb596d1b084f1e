//! Launches: the kernel that serves a call, its parameters, and tables of the host on their way to the device.

use super::error::TabledError;
use super::table::{IndexTable, TableSource};
use crate::cached_type::tabled::{TabledMove, TabledServing, TabledType};
use crate::device::{Gpu, Grid, Launch};
use crate::engine::Engine;
use dtc_compiler::codegen::cuda::{GenericTabled, TabledEntries};
use dtc_compiler::plan::gpu::{Call, Granularity, TabledVariant};
use dtc_compiler::tabled::Entries;
use dtc_cuda::{CudaError, DeviceBuffer, Stream, graph};
use smallvec::SmallVec;
use std::sync::Arc;

/// Elements as a device sees them.
#[derive(Clone, Copy)]
pub(super) struct DeviceEnd<'a> {
    pub(super) shared: &'a Arc<TabledType>,
    pub(super) tables: &'a [IndexTable<'a>],
    pub(super) address: u64,
    /// The first packed byte.
    pub(super) first: u64,
}

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

/// The tables of one end.
type DeviceTables = SmallVec<[TabledEntries; 4]>;

impl TabledLaunch<'_> {
    /// Enqueues the call.
    ///
    /// # Safety
    ///
    /// The device reaches every byte that the entries lead to, on both ends, which do not overlap, until the work is done.
    pub(super) unsafe fn enqueue(&self, engine: &Engine, gpu: &Gpu, stream: &Stream) -> Result<(), TabledError> {
        let scope = stream.device().scope()?;
        let variant = self.variant();
        let (packed, target_first) = match self.packed {
            Packed::Bytes(address) => (address, 0),
            Packed::Elements(end) => (end.address, end.first),
        };
        let too_large = || CudaError::GridTooLarge { bytes: self.bytes };
        let work = variant.blocks(self.bytes).ok_or_else(too_large)?;
        let variant = if work > self.most { variant.capped() } else { variant };
        let work = variant.blocks(self.bytes).ok_or_else(too_large)?;
        let served = self.elements.shared.serving(&gpu.state, self.moved, variant)?;
        let mut ends: SmallVec<[DeviceEnd<'_>; 2]> = SmallVec::new();
        ends.push(self.elements);
        if let Packed::Elements(end) = self.packed {
            ends.push(end);
        }
        let uploaded = upload(&ends, gpu)?;
        let tables = tables_of(&ends, engine, gpu, uploaded.as_deref())?;
        let tables: SmallVec<[&[TabledEntries]; 2]> = tables.iter().map(|tables| &tables[..]).collect();
        let call = Call { memory: self.elements.address, packed, first: self.elements.first, bytes: self.bytes };
        match &served {
            TabledServing::Compiled(kernel) => {
                let sides = self.elements.shared.sides(self.moved);
                // The kernel was made of the same sides, and the lengths of the tables were checked.
                let words = sides.parameter(variant.word, &tables, target_first, self.report);
                let mut words = words.ok_or_else(too_large)?;
                graph::keep_in_graph(&scope, stream, kernel)?;
                let lists = kernel.tables.as_ref().map_or(0, |lists| lists.address());
                let grid = Grid::few(work, self.most, variant.shape.threads);
                let launch = Launch { function: &kernel.function, call: &call, tables: lists, grid };
                // SAFETY: the kernel was made for these types, and ends in as many words as `parameter` returns for them. It moves the bytes
                // of `call`, follows entries that lie below the places of their tables alone, and reads tables that the device reaches.
                unsafe { launch.enqueue(&scope, stream, words.as_mut_ptr().cast())? };
            }
            TabledServing::Generic(kernel, program, interpreter) => {
                let parameter = program.parameter(&self.elements.shared.layout, tables[0], self.report);
                let mut parameter = parameter.ok_or_else(too_large)?;
                graph::keep_in_graph(&scope, stream, interpreter)?;
                let lists = interpreter.lists.as_ref().map_or(0, DeviceBuffer::address);
                let blocks = kernel.blocks(self.bytes).ok_or_else(too_large)?;
                let grid = Grid::few(blocks, self.most, GenericTabled::SHAPE.threads);
                let function = interpreter.generic.tabled(kernel)?;
                let launch = Launch { function, call: &call, tables: lists, grid };
                // SAFETY: the kernels end in a program, and this one is of the type and the tables of the call. They move the bytes of `call`
                // as a compiled one does.
                unsafe { launch.enqueue(&scope, stream, parameter.as_mut_ptr().cast())? };
            }
        }
        let captured = match &uploaded {
            Some(uploaded) => graph::keep_in_graph(&scope, stream, uploaded)?,
            None => false,
        };
        if let Some(uploaded) = uploaded.filter(|_| !captured) {
            // The kernel may still read it.
            gpu.state.retire(uploaded);
        }
        Ok(())
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

/// The entries of all tables in host memory, on the device, one table after the other, each on a boundary of 16 bytes.
fn upload(ends: &[DeviceEnd<'_>], gpu: &Gpu) -> Result<Option<Arc<DeviceBuffer>>, TabledError> {
    let mut bytes: Vec<u8> = Vec::new();
    for table in ends.iter().flat_map(|end| end.tables) {
        match table.source() {
            TableSource::Host(Entries::Narrow(entries)) => bytes.extend_from_slice(bytemuck::cast_slice(entries)),
            TableSource::Host(Entries::Wide(entries)) => bytes.extend_from_slice(bytemuck::cast_slice(entries)),
            TableSource::Anywhere { .. } => {}
        }
        bytes.resize(bytes.len().next_multiple_of(TABLE_BOUNDARY), 0);
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(gpu.state.uploaded(&bytes)?)))
}

/// Bytes on whose multiples the entries of a table begin: more than the widest entry has.
const TABLE_BOUNDARY: usize = 16;

/// The tables of each end, with those of the host in a buffer that `upload` made.
fn tables_of(
    ends: &[DeviceEnd<'_>],
    engine: &Engine,
    gpu: &Gpu,
    uploaded: Option<&DeviceBuffer>,
) -> Result<SmallVec<[DeviceTables; 2]>, TabledError> {
    let mut next = uploaded.map_or(0, DeviceBuffer::address);
    let mut all = SmallVec::new();
    for end in ends {
        let mut tables = DeviceTables::new();
        for table in end.tables {
            let (length, wide) = (table.len(), table.is_wide());
            let address = match table.located()? {
                Some(located) => {
                    engine.check_reach(gpu, "table", located.kind())?;
                    located.device_address()
                }
                None => {
                    // Slices were brought there in this order; a table without entries takes no bytes.
                    let bytes = (length as usize * if wide { 8 } else { 4 }).next_multiple_of(TABLE_BOUNDARY);
                    next += bytes as u64;
                    next - bytes as u64
                }
            };
            tables.push(TabledEntries { address, wide, length });
        }
        all.push(tables);
    }
    Ok(all)
}
