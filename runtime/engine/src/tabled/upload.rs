//! Tables in host memory on their way to the device, and where kernels find those of a call.

use super::device_end::DeviceEnd;
use super::error::TabledError;
use super::table::TableSource;
use crate::device::{Gpu, TableUpload};
use crate::engine::Engine;
use dtc_compiler::codegen::cuda::TabledEntries;
use dtc_compiler::tabled::Entries;
use dtc_cuda::{CaptureStatus, CudaError, DeviceBuffer, Scope, Stream, graph};
use smallvec::SmallVec;
use std::sync::Arc;

/// The tables of one end.
pub(super) type DeviceTables = SmallVec<[TabledEntries; 4]>;

/// The entries of all tables of a call in host memory, on the device: one table after the other, each on a boundary of 16 bytes.
pub(super) enum Uploaded {
    /// In memory that the next calls use again.
    Kept(TableUpload),
    /// In memory of their own: a graph reads them at every replay.
    InGraph(Arc<DeviceBuffer>),
}

impl Uploaded {
    /// Brings the tables there, in the order of the stream; nothing if none lies in host memory.
    pub(super) fn new(ends: &[DeviceEnd<'_>], gpu: &Gpu, stream: &Stream) -> Result<Option<Uploaded>, CudaError> {
        let mut bytes: SmallVec<[u8; 1024]> = SmallVec::new();
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
        // The legacy default stream is never captured, and may not be asked while others are.
        if stream.capture_status() == Ok(CaptureStatus::Active) {
            return Ok(Some(Uploaded::InGraph(Arc::new(gpu.state.uploaded(&bytes)?))));
        }
        let mut upload = gpu.state.table_upload(bytes.len())?;
        upload.enqueue(stream, &bytes)?;
        Ok(Some(Uploaded::Kept(upload)))
    }

    pub(super) fn address(&self) -> u64 {
        match self {
            Uploaded::Kept(upload) => upload.address(),
            Uploaded::InGraph(buffer) => buffer.address(),
        }
    }

    /// Gives the memory back once the kernel has read it, which was enqueued on the stream.
    pub(super) fn launched(self, scope: &Scope<'_>, gpu: &Gpu, stream: &Stream) -> Result<(), CudaError> {
        match self {
            Uploaded::Kept(upload) => gpu.state.keep_upload(upload, stream),
            Uploaded::InGraph(buffer) => {
                if !graph::keep_in_graph(scope, stream, &buffer)? {
                    gpu.state.retire(buffer);
                }
                Ok(())
            }
        }
    }
}

/// Bytes on whose multiples the entries of a table begin: more than the widest entry has.
const TABLE_BOUNDARY: usize = 16;

/// The tables of each end, with those of the host one after the other from an address on.
pub(super) fn tables_of(
    ends: &[DeviceEnd<'_>],
    engine: &Engine,
    gpu: &Gpu,
    uploaded: u64,
) -> Result<SmallVec<[DeviceTables; 2]>, TabledError> {
    let mut next = uploaded;
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
