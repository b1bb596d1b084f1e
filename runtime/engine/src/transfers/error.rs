//! What can be wrong with a call on data in any memory.

use crate::error::{AccumulateError, CopyError, ExternalError, PackError};
use dtc_cuda::{CudaError, MemoryKind};
use thiserror::Error;

/// Why a transfer moved nothing.
///
/// ```
/// use dtc_runtime::TransferError;
/// let error = TransferError::from(dtc_runtime::cuda::CudaError::Forked);
/// assert!(error.to_string().contains("forked"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The call is wrong whatever the memory.
    #[error(transparent)]
    Call(#[from] PackError),
    /// A range of a copy is wrong.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The reduction does not fit the call.
    #[error(transparent)]
    Accumulate(#[from] AccumulateError),
    /// A value does not fit `external32`.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// CUDA cannot do it.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A side lies nowhere. A null base is for types of absolute addresses.
    #[error("{side}: expected the address of the first byte, found {address:#x}")]
    Address {
        /// Which side.
        side: &'static str,
        /// The address.
        address: usize,
    },
    /// A call that is enqueued on a CUDA stream would have to move bytes that the stream's device does not reach.
    #[error(
        "{side}: expected memory that GPU {device} reaches, to enqueue the call, found {kind}; use pinned, managed or device \
         memory there, or a call that returns when the bytes are moved or with a request"
    )]
    OutOfReach {
        /// Which side.
        side: &'static str,
        /// Where it lies.
        kind: MemoryKind,
        /// The device of the stream.
        device: u32,
    },
    /// `external32` is converted by the processor.
    #[error("{side}: expected memory of the host, found {kind}")]
    NotHost {
        /// Which side, or the stream.
        side: &'static str,
        /// Where it lies.
        kind: MemoryKind,
    },
    /// Elements with gaps are accumulated through a buffer, which a call that is enqueued has none of.
    #[error(
        "source: expected elements without gaps, to enqueue their accumulation, found gaps; start the transfer instead"
    )]
    Buffered,
    /// A batch has kernels that pack and unpack, and no others.
    #[error("batch: expected packs and unpacks, found {0}")]
    Batch(
        /// What the transfer is.
        &'static str,
    ),
}
