//! Calls under way, and what can be wrong with a call.

use super::Shared;
use crate::cuda::{CudaError, Event};
use crate::error::PackError;
use std::sync::Arc;
use thiserror::Error;

/// Why a call on data in any memory did nothing.
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
    /// The two sides lie in memory between which dtc does not pack yet.
    #[error("memory: expected both sides on the host or on one device, found {memory} and packed bytes in {packed}")]
    Kinds {
        /// Where the elements lie.
        memory: String,
        /// Where the packed bytes lie.
        packed: String,
    },
}

/// A pack or unpack under way. Dropping it does not end the work.
///
/// # Example
///
/// ```
/// use dtc_compiler::datatype::{Predefined, TypeBuilder};
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let int = dtc_runtime::Engine::new().commit(&types.finish(int));
/// let (memory, mut packed) = (7i32, [0u8; 4]);
/// // SAFETY: both sides are as long as the type, and live until the request is done.
/// let request = unsafe { int.pack_start((&raw const memory).cast(), 1, 0, packed.as_mut_ptr(), 4)? };
/// assert_eq!(request.wait()?, 4);
/// assert_eq!(i32::from_ne_bytes(packed), 7);
/// # Ok::<(), dtc_runtime::TransferError>(())
/// ```
#[must_use = "the bytes are there when the request is done"]
pub struct Request {
    bytes: u64,
    /// Nothing when the work was done at once.
    pending: Option<(Event, Arc<Shared>)>,
}

impl Request {
    pub(super) fn done(bytes: u64) -> Request {
        Request { bytes, pending: None }
    }

    pub(super) fn pending(bytes: u64, event: Event, gpu: Arc<Shared>) -> Request {
        Request { bytes, pending: Some((event, gpu)) }
    }

    /// Whether the bytes are there.
    ///
    /// # Errors
    ///
    /// The device failed.
    ///
    /// ```
    /// # fn ready(request: &dtc_runtime::Request) -> Result<bool, dtc_runtime::TransferError> {
    /// request.test()
    /// # }
    /// ```
    pub fn test(&self) -> Result<bool, TransferError> {
        match &self.pending {
            None => Ok(true),
            Some((event, _)) => Ok(event.query()?),
        }
    }

    /// Waits until the bytes are there; returns how many were moved.
    ///
    /// # Errors
    ///
    /// The device failed.
    ///
    /// ```
    /// # fn finish(request: dtc_runtime::Request) -> Result<u64, dtc_runtime::TransferError> {
    /// request.wait()
    /// # }
    /// ```
    pub fn wait(mut self) -> Result<u64, TransferError> {
        if let Some((event, gpu)) = self.pending.take() {
            event.synchronize()?;
            gpu.give_back(event);
        }
        Ok(self.bytes)
    }
}
