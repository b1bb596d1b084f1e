//! Copying from type to type, by one kernel.

use super::copy_kernel::CopyKernelSpec;
use super::device_type::DeviceType;
use super::launch::{Grid, Launch, Move};
use super::multi_type::KernelCache;
use crate::multiprocessors::Multiprocessors;
use dtc_compiler::codegen::cuda::{CopyTarget, GENERIC_COPY};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::{Call, CopyCall, CopyVariant};
use dtc_cuda::{CudaError, Stream, graph};
use std::sync::Arc;

/// A copy from type to type as a device sees it.
#[derive(Clone, Copy)]
pub(crate) struct CopyMove {
    /// At least one byte, by the addresses that kernels use.
    pub(crate) call: CopyCall,
    /// How many elements the source and the destination have.
    pub(crate) counts: [u64; 2],
}

impl CopyMove {
    /// The pack that it is where the destination is contiguous: its packed bytes begin at `packed`.
    fn pack(&self, packed: u64) -> Move {
        let CopyCall { source, source_first, bytes, .. } = self.call;
        let call = Call { memory: source, packed, first: source_first, bytes };
        let (count, multiprocessors) = (self.counts[0], Multiprocessors::All);
        Move { direction: Direction::Pack, call, count, multiprocessors }
    }

    /// The unpack that it is where the source is contiguous: its packed bytes begin at `packed`.
    fn unpack(&self, packed: u64) -> Move {
        let CopyCall { target, target_first, bytes, .. } = self.call;
        let call = Call { memory: target, packed, first: target_first, bytes };
        let (count, multiprocessors) = (self.counts[1], Multiprocessors::All);
        Move { direction: Direction::Unpack, call, count, multiprocessors }
    }
}

impl DeviceType {
    /// Enqueues a copy to elements of another type, as one kernel or one copy.
    ///
    /// # Safety
    ///
    /// The device can read the source and write the destination, which do not overlap, until the work is done.
    pub(crate) unsafe fn copy(
        self: &Arc<DeviceType>,
        stream: &Stream,
        to: &Arc<DeviceType>,
        requested: &CopyMove,
        kernels: &KernelCache<CopyKernelSpec>,
    ) -> Result<(), CudaError> {
        let CopyCall { source, source_first, target, target_first, bytes } = requested.call;
        if to.plan.is_contiguous() {
            let packed = target.wrapping_add(to.origin() as u64).wrapping_add(target_first);
            // SAFETY: the bytes of a contiguous destination are the packed bytes of the source, and they begin at `packed`. The
            // device reaches both, which do not overlap (contract of this function).
            return unsafe { self.launch(stream, &requested.pack(packed)) };
        }
        if self.plan.is_contiguous() {
            let packed = source.wrapping_add(self.origin() as u64).wrapping_add(source_first);
            // SAFETY: the bytes of a contiguous source are the packed bytes of the destination, and they begin at `packed`. The
            // device reaches both, which do not overlap (contract of this function).
            return unsafe { to.launch(stream, &requested.unpack(packed)) };
        }
        let call = Call { memory: source, packed: target, first: source_first, bytes };
        let bounds = self.bounds(requested.counts[0]);
        let scope = stream.device().scope()?;
        let mut last = CopyTarget { low: bounds.low, high: bounds.high, first: target_first, ..CopyTarget::default() };
        if let Some(variant) = CopyVariant::serving(&self.plan, &to.plan, &requested.call)
            && let Some(blocks) = variant.blocks(bytes)
        {
            let types = [self.id, to.id];
            let is = |pair: &CopyKernelSpec| pair.types == types && pair.variant == variant;
            let new = || CopyKernelSpec { types, variant, plans: [Arc::downgrade(self), Arc::downgrade(to)] };
            if let Some(kernel) = kernels.get(&self.state, is, new).serving(&self.state) {
                graph::keep_in_graph(&scope, stream, kernel)?;
                let tables = kernel.tables.as_ref().map_or(0, |tables| tables.address());
                let last = (&raw mut last).cast();
                // SAFETY: the kernel was compiled for these two types, and ends in a `CopyTarget`. It reads the `bytes` of the source
                // and writes those of the destination, which the device reaches (contract of this function).
                return unsafe {
                    let grid = Grid::all(blocks, variant.threads());
                    Launch { function: &kernel.function, call: &call, tables, grid }.enqueue(&scope, stream, last)
                };
            }
        }
        let blocks = GENERIC_COPY.blocks(bytes).ok_or(CudaError::GridTooLarge { bytes })?;
        let (program, other) = (self.batch_program()?, to.batch_program()?);
        let generic = self.state.generic()?;
        graph::keep_in_graph(&scope, stream, generic)?;
        graph::keep_in_graph(&scope, stream, program)?;
        graph::keep_in_graph(&scope, stream, other)?;
        last.tables = other.tables;
        last.programs = [program.program.address(), other.program.address()];
        let (grid, last) = (Grid::all(blocks, GENERIC_COPY.threads()), (&raw mut last).cast());
        // SAFETY: the generic kernel interprets the programs of these two types, and ends in a `CopyTarget`. It reads the `bytes` of
        // the source and writes those of the destination, which the device reaches (contract of this function).
        unsafe {
            Launch { function: generic.copy(), call: &call, tables: program.tables, grid }.enqueue(&scope, stream, last)
        }
    }
}
