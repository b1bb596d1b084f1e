//! Launches: the kernel or the copy that serves a call, and its parameters.

use super::copies;
use super::device_type::DeviceType;
use super::generic::Interpreter;
use super::kernel::DeviceKernel;
use crate::multiprocessors::Multiprocessors;
use crate::range::Range;
use dtc_compiler::codegen::cuda::{GenericKernel, Parameter};
use dtc_compiler::plan::Direction;
use dtc_compiler::plan::gpu::Call;
use dtc_cuda::module::Function;
use dtc_cuda::{CudaError, DeviceBuffer, Scope, Stream, copy, graph};
use std::ffi::c_void;
use std::sync::Arc;

/// A pack or unpack as a device sees it.
#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub(crate) direction: Direction,
    /// At least one byte, by the addresses that kernels use.
    pub(crate) call: Call,
    /// How many elements there are.
    pub(crate) count: u64,
    pub(crate) multiprocessors: Multiprocessors,
}

impl Move {
    /// `bytes` of it, from byte `at` on, with packed bytes that lie elsewhere.
    pub(crate) fn part(&self, at: u64, bytes: u64, packed: u64) -> Move {
        Move { call: Call { packed, first: self.call.first + at, bytes, ..self.call }, ..*self }
    }

    /// The bytes of the call.
    pub(crate) fn range(&self) -> Range {
        Range::elements(self.count).fragment(self.call.first, self.call.bytes)
    }
}

impl DeviceType {
    /// Enqueues a call on a CUDA stream, as at most one kernel or one copy. Returns at once.
    ///
    /// # Safety
    ///
    /// The device can read and write both sides, which do not overlap, until the work is done.
    pub(crate) unsafe fn launch(self: &Arc<DeviceType>, stream: &Stream, requested: &Move) -> Result<(), CudaError> {
        let Move { direction, call, .. } = *requested;
        let Call { memory, packed, first, bytes } = call;
        if self.plan.is_contiguous() {
            let place = memory.wrapping_add(self.origin() as u64).wrapping_add(first);
            let (to, from) = if direction == Direction::Pack { (packed, place) } else { (place, packed) };
            // SAFETY: contiguous elements lie at `place` as their packed bytes do: the device reaches `bytes` bytes there and at
            // `packed`, and they do not overlap (contract of this function).
            return unsafe { copy::between(stream, to, from, bytes as usize) };
        }
        let most = match requested.multiprocessors {
            Multiprocessors::None => {
                if let Some(copies) = self.plan.copies(&call) {
                    // SAFETY: the copies move the bytes of `call` and no others, which the device reaches on both sides (contract
                    // of this function).
                    return unsafe { copies::enqueue(stream, direction, &copies, memory, packed) };
                }
                u32::MAX
            }
            Multiprocessors::AtMost(most) => most.max(1),
            Multiprocessors::All => u32::MAX,
        };
        if self.plan.allows() {
            let mut variant = self.plan.variant(direction, &call);
            let mut blocks = self.plan.blocks(&variant, &call);
            if blocks.is_some_and(|blocks| blocks > most) {
                variant = variant.capped();
                blocks = self.plan.blocks(&variant, &call);
            }
            if blocks.is_some()
                && let Some((serving, kernel)) = self.serving(&variant)
                && let Some(blocks) = if serving == variant { blocks } else { self.plan.blocks(&serving, &call) }
            {
                let variant = serving;
                let grid = Grid { work: blocks, blocks: blocks.min(most), threads: variant.threads() };
                // SAFETY: `serving` found the kernel among those of this type, and `blocks` is the grid for the bytes of `call`,
                // which the contract of this function covers.
                return unsafe { self.launch_compiled(stream, kernel, &call, requested.count, grid) };
            }
        }
        // SAFETY: the contract of `launch_generic` is that of this function.
        unsafe { self.launch_generic(stream, requested, most) }
    }

    /// Launches the generic kernel that serves a call, on at most `most` multiprocessors.
    ///
    /// # Safety
    ///
    /// As for [`DeviceType::launch`].
    unsafe fn launch_generic(&self, stream: &Stream, requested: &Move, most: u32) -> Result<(), CudaError> {
        let Move { direction, call, .. } = *requested;
        let too_large = CudaError::GridTooLarge { bytes: call.bytes };
        let mut kernel = GenericKernel::serving(&self.plan, direction, &call);
        let mut blocks = self.plan.blocks(&kernel.variant, &call).ok_or_else(|| too_large.clone())?;
        if blocks > most {
            kernel = GenericKernel::capped(direction);
            blocks = self.plan.blocks(&kernel.variant, &call).ok_or(too_large)?;
        }
        let interpreter = self.interpreter()?;
        let function = interpreter.generic.function(kernel)?;
        let bounds = self.bounds(requested.count);
        let program = interpreter.program.parameter(&kernel.variant, &call, bounds.low, bounds.high);
        // Only the capped kernels take several blocks of the work.
        let grid = if kernel.variant.capped { blocks.min(most) } else { blocks };
        let grid = Grid { work: blocks, blocks: grid, threads: kernel.variant.threads() };
        // SAFETY: generic kernels end in a program, and this is that of the type. The kernel moves the bytes of `call`, which the
        // contract of this function covers.
        unsafe { interpreter.launch(function, stream, &call, grid, program) }
    }

    /// Launches a kernel that was compiled for this type.
    ///
    /// # Safety
    ///
    /// As for [`DeviceType::launch`]; the kernel is one of this type.
    pub(crate) unsafe fn launch_compiled(
        &self,
        stream: &Stream,
        kernel: &Arc<DeviceKernel>,
        call: &Call,
        count: u64,
        grid: Grid,
    ) -> Result<(), CudaError> {
        let scope = stream.device().scope()?;
        graph::keep_in_graph(&scope, stream, kernel)?;
        let tables = kernel.tables.as_ref().map_or(0, |tables| tables.address());
        let mut bounds = self.bounds(count);
        // SAFETY: a compiled kernel ends in bounds, to which the last parameter points. The kernel moves the bytes of `call`,
        // which the contract of `DeviceType::launch` covers.
        unsafe {
            Launch { function: &kernel.function, call, tables, grid }.enqueue(&scope, stream, (&raw mut bounds).cast())
        }
    }
}

impl Interpreter {
    /// Launches a generic kernel for the type whose program this is.
    ///
    /// # Safety
    ///
    /// As for [`DeviceType::launch`]; the kernel ends in a program.
    pub(crate) unsafe fn launch(
        self: &Arc<Interpreter>,
        function: &Function,
        stream: &Stream,
        call: &Call,
        grid: Grid,
        mut program: Parameter,
    ) -> Result<(), CudaError> {
        let scope = stream.device().scope()?;
        graph::keep_in_graph(&scope, stream, self)?;
        let tables = self.tables.as_ref().map_or(0, DeviceBuffer::address);
        // SAFETY: the function ends in a program (contract of this function), to which the last parameter points. The function
        // moves the bytes of `call`, which the contract of `DeviceType::launch` covers.
        unsafe { Launch { function, call, tables, grid }.enqueue(&scope, stream, (&raw mut program).cast()) }
    }
}

/// The shape of a launch.
pub(crate) struct Grid {
    /// Blocks of the work.
    work: u32,
    /// Blocks of the grid.
    blocks: u32,
    /// Threads of a block.
    threads: u32,
}

impl Grid {
    /// At most `most` blocks for the work of more.
    pub(crate) fn few(work: u32, most: u32, threads: u32) -> Grid {
        Grid { work, blocks: work.min(most), threads }
    }

    /// As many blocks as the work has.
    pub(crate) fn all(blocks: u32, threads: u32) -> Grid {
        Grid { work: blocks, blocks, threads }
    }
}

/// A kernel, and what all kernels have of parameters.
pub(crate) struct Launch<'a> {
    pub(crate) function: &'a Function,
    pub(crate) call: &'a Call,
    /// The address of the lists that the kernel reads, or zero.
    pub(crate) tables: u64,
    pub(crate) grid: Grid,
}

impl Launch<'_> {
    /// Enqueues the kernel on a stream, with its last parameter.
    ///
    /// # Safety
    ///
    /// The scope is of the stream's device. `last` points at the kernel's last parameter. Until the kernel is done, the device reaches
    /// every byte that it reads or writes for the call.
    pub(crate) unsafe fn enqueue(self, scope: &Scope<'_>, stream: &Stream, last: *mut c_void) -> Result<(), CudaError> {
        let Launch { function, call, mut tables, grid } = self;
        let Call { mut memory, mut packed, mut first, mut bytes } = *call;
        let Grid { mut work, blocks, threads } = grid;
        let mut parameters: [*mut c_void; 7] = [
            (&raw mut memory).cast(),
            (&raw mut packed).cast(),
            (&raw mut tables).cast(),
            (&raw mut first).cast(),
            (&raw mut bytes).cast(),
            (&raw mut work).cast(),
            last,
        ];
        // SAFETY: the first six parameters have the types that every kernel declares, and `last` points at the seventh (contract of
        // this function). All of them live until `launch_within` has copied them. The scope is of the device of stream and module.
        unsafe { function.launch_within(scope, stream, [blocks, 1, 1], [threads, 1, 1], 0, &mut parameters) }
    }
}
