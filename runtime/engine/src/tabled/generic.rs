//! Launches of the generic kernels: packs and unpacks, and copies through kept memory, until a kernel is compiled.

use super::device_end::DeviceEnd;
use crate::cached_type::tabled::TabledGeneric;
use crate::device::{Gpu, Grid, Launch, PassBuffer};
use dtc_compiler::codegen::cuda::{GenericTabled, TabledEntries, TabledReport};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, Granularity};
use dtc_cuda::{CaptureStatus, CudaError, DeviceBuffer, Scope, Stream, graph};
use std::sync::Arc;

/// Packed bytes of a copy that pass through the kept memory at a time: large enough that the time of three launches does not matter.
const PASSED_BYTES: u64 = 8 << 20;

/// Words are aligned to this at most, and so are the packed bytes in the kept memory.
const WIDEST: u64 = 16;

/// One end of a call, with what its generic kernels need.
#[derive(Clone, Copy)]
pub(super) struct GenericEnd<'a> {
    pub(super) end: DeviceEnd<'a>,
    pub(super) generic: &'a TabledGeneric<'a>,
    /// Where they are for the device.
    pub(super) tables: &'a [TabledEntries],
    pub(super) report: TabledReport,
}

/// Where a launch goes.
#[derive(Clone, Copy)]
pub(super) struct Launched<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) stream: &'a Stream,
    /// Blocks of the grid, at most.
    pub(super) most: u32,
}

impl GenericEnd<'_> {
    /// Launches a pack or an unpack of `bytes` packed bytes from `first` on, which lie at an address.
    ///
    /// # Safety
    ///
    /// The device reaches the bytes that the entries lead to, as many packed bytes, and the tables, until the work is done.
    pub(super) unsafe fn launch(
        &self,
        to: Launched<'_>,
        direction: Direction,
        (first, bytes, packed): (u64, u64, u64),
    ) -> Result<(), CudaError> {
        let DeviceEnd { shared, address: memory, .. } = self.end;
        let TabledGeneric { program, interpreter } = self.generic;
        let too_large = || CudaError::GridTooLarge { bytes };
        let word = shared.granularity.min(Granularity::of_bits(memory | packed.wrapping_sub(first)));
        let kernel = GenericTabled::serving(direction, word);
        let parameter = program.parameter(&shared.layout, self.tables, self.report);
        let mut parameter = parameter.ok_or_else(too_large)?;
        graph::keep_in_graph(to.scope, to.stream, interpreter)?;
        let lists = interpreter.lists.as_ref().map_or(0, DeviceBuffer::address);
        let work = kernel.blocks(bytes).ok_or_else(too_large)?;
        let grid = Grid::few(work, to.most, GenericTabled::SHAPE.threads);
        let function = interpreter.generic.tabled(kernel)?;
        let call = Call { memory, packed, first, bytes };
        let launch = Launch { function, call: &call, tables: lists, grid };
        // SAFETY: the kernels end in a program, and this one is of the type and the tables of the call. They move the bytes of `call`, which the
        // device reaches (contract of this function), and follow entries below the places of their tables alone.
        unsafe { launch.enqueue(to.scope, to.stream, parameter.as_mut_ptr().cast()) }
    }
}

/// Memory that the bytes of a copy pass through.
enum Passed {
    /// Used again by the next copies.
    Kept(PassBuffer),
    /// Of its own: a graph writes and reads it at every replay.
    InGraph(Arc<DeviceBuffer>),
}

impl Passed {
    fn address(&self) -> u64 {
        match self {
            Passed::Kept(buffer) => buffer.address(),
            Passed::InGraph(buffer) => buffer.address(),
        }
    }
}

/// Copies packed bytes of one end to those of another: each part is packed from the destination, so that what the source skips stays as it is, then from
/// the source, and unpacked.
///
/// # Safety
///
/// The device reaches the bytes that the entries of both ends lead to, which do not overlap, and the tables, until the work is done.
pub(super) unsafe fn copy(
    to: Launched<'_>,
    gpu: &Gpu,
    [source, target]: [GenericEnd<'_>; 2],
    bytes: u64,
) -> Result<(), CudaError> {
    let room = (bytes.min(PASSED_BYTES) + WIDEST) as usize;
    // The legacy default stream is never captured, and may not be asked while others are.
    let passed = if to.stream.capture_status() == Ok(CaptureStatus::Active) {
        Passed::InGraph(Arc::new(DeviceBuffer::new(gpu.device(), room)?))
    } else {
        Passed::Kept(gpu.state.pass_buffer(room)?)
    };
    // SAFETY: the contract of this function; the memory has room for each part.
    let launched = unsafe { copy_parts(to, [source, target], bytes, passed.address()) };
    // Some of the launches may be under way.
    let given_back = match passed {
        Passed::Kept(buffer) => gpu.state.keep_pass_buffer(buffer, to.stream),
        Passed::InGraph(buffer) => match graph::keep_in_graph(to.scope, to.stream, &buffer) {
            Ok(kept) => {
                if !kept {
                    gpu.state.retire(buffer);
                }
                Ok(())
            }
            Err(error) => Err(error),
        },
    };
    launched?;
    given_back
}

/// # Safety
///
/// As for [`copy`]; `passed` has room for the largest part and 16 bytes more.
unsafe fn copy_parts(
    to: Launched<'_>,
    [source, target]: [GenericEnd<'_>; 2],
    bytes: u64,
    passed: u64,
) -> Result<(), CudaError> {
    let mut at = 0;
    while at < bytes {
        let part = PASSED_BYTES.min(bytes - at);
        let (from, into) = (source.end.first + at, target.end.first + at);
        // As its positions are, so that words of the destination are aligned.
        let packed = passed + into % WIDEST;
        let silent = GenericEnd { report: TabledReport::default(), ..target };
        // SAFETY: the contract of this function; the passes follow each other on the stream.
        unsafe {
            silent.launch(to, Direction::Pack, (into, part, packed))?;
            source.launch(to, Direction::Pack, (from, part, packed))?;
            target.launch(to, Direction::Unpack, (into, part, packed))?;
        }
        at += part;
    }
    Ok(())
}
