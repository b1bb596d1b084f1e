//! Unpacking with an operation, by one kernel.

use super::device_type::DeviceType;
use super::launch::{Grid, Move};
use dtc_compiler::codegen::cuda::GENERIC_ACCUMULATE_THREADS;
use dtc_compiler::operation::{Operation, Reduction};
use dtc_cuda::{CudaError, Stream};
use std::sync::Arc;

impl DeviceType {
    /// Enqueues an unpack with an operation, as one kernel.
    ///
    /// # Safety
    ///
    /// As for [`DeviceType::launch`]. The call is an unpack of whole elements, and kernels compute the reduction or it replaces.
    pub(crate) unsafe fn accumulate(
        self: &Arc<DeviceType>,
        stream: &Stream,
        requested: &Move,
        reduction: Reduction,
    ) -> Result<(), CudaError> {
        let Move { call, count, .. } = *requested;
        if reduction.operation() == Operation::Replace {
            // SAFETY: a replacement is an unpack of the same bytes, under the contract of `launch`, which is part of this
            // function's.
            return unsafe { self.launch(stream, requested) };
        }
        if let Some(variant) = self.plan.accumulation(reduction, &call)
            && let Some((_, kernel)) = self.serving(&variant)
            && let Some(blocks) = self.plan.blocks(&variant, &call)
        {
            // SAFETY: `serving` found the kernel among those of this type. The bytes are those of `call`, for which the contract
            // of `launch` holds.
            return unsafe { self.launch_compiled(stream, kernel, &call, count, Grid::all(blocks, variant.threads())) };
        }
        let threads = GENERIC_ACCUMULATE_THREADS;
        let blocks = call.bytes.div_ceil(reduction.element().size() * u64::from(threads));
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks < 1 << 31);
        let blocks = blocks.ok_or(CudaError::GridTooLarge { bytes: call.bytes })?;
        let interpreter = self.interpreter()?;
        let program = interpreter.program.accumulating(reduction);
        // SAFETY: the generic kernel for accumulations ends in a program, and this one is for the type and the reduction. The
        // bytes are those of `call`, for which the contract of `launch` holds.
        unsafe {
            interpreter.launch(interpreter.generic.accumulate(), stream, &call, Grid::all(blocks, threads), program)
        }
    }
}
