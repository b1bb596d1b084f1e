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

/// What is brought to the device for a call: few tables are short.
pub(super) type TableBytes = SmallVec<[u8; 1024]>;

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
    pub(super) fn new(ends: &[DeviceEnd<'_>], gpu: &Gpu, stream: &Stream) -> Result<Option<Uploaded>, TabledError> {
        let bytes = host_tables(ends);
        if bytes.is_empty() {
            return Ok(None);
        }
        Uploaded::placed(bytes.len(), gpu, stream, |_| Ok(bytes)).map(Some)
    }

    /// Brings bytes there, at most `length`, in the order of the stream. `write` makes them for the address that they will have.
    pub(super) fn placed(
        length: usize,
        gpu: &Gpu,
        stream: &Stream,
        write: impl FnOnce(u64) -> Result<TableBytes, TabledError>,
    ) -> Result<Uploaded, TabledError> {
        // The legacy default stream is never captured, and may not be asked while others are.
        if stream.capture_status() == Ok(CaptureStatus::Active) {
            let mut buffer = DeviceBuffer::new(gpu.device(), length)?;
            let bytes = write(buffer.address())?;
            gpu.state.fill(&mut buffer, &bytes)?;
            return Ok(Uploaded::InGraph(Arc::new(buffer)));
        }
        let mut upload = gpu.state.table_upload(length)?;
        match write(upload.address()) {
            Ok(bytes) => upload.enqueue(stream, &bytes)?,
            Err(error) => {
                gpu.state.keep_upload(upload, stream)?;
                return Err(error);
            }
        }
        Ok(Uploaded::Kept(upload))
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
pub(super) const TABLE_BOUNDARY: usize = 16;

/// The tables in host memory, one after the other.
pub(super) fn host_tables(ends: &[DeviceEnd<'_>]) -> TableBytes {
    let mut bytes = TableBytes::new();
    for table in ends.iter().flat_map(|end| end.tables) {
        match table.source() {
            TableSource::Host(Entries::Narrow(entries)) => bytes.extend_from_slice(bytemuck::cast_slice(entries)),
            TableSource::Host(Entries::Wide(entries)) => bytes.extend_from_slice(bytemuck::cast_slice(entries)),
            TableSource::Anywhere { .. } => {}
        }
        bytes.resize(bytes.len().next_multiple_of(TABLE_BOUNDARY), 0);
    }
    bytes
}

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
