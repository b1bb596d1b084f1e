//! Calls under way.

use super::error::TransferError;
use super::pipeline::Pipeline;
use crate::device::{DeviceState, Gpu};
use dtc_cuda::Event;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A transfer under way. Dropping it does not end the work: if the processor takes part, as it does for pageable memory, the drop
/// does the rest of the work and waits.
///
/// # Example
///
/// ```
/// use dtc_runtime::datatype::{Predefined, TypeBuilder};
/// use dtc_runtime::Range;
/// let mut types = TypeBuilder::new();
/// let int = types.named(Predefined::INT);
/// let int = dtc_runtime::Engine::new().commit(&types.finish(int)?);
/// let (memory, mut packed) = (7i32, [0u8; 4]);
/// let pack = int.at(&raw const memory, Range::elements(1)).pack(packed.as_mut_ptr());
/// // SAFETY: both ends are as long as the type, and live until the request is done.
/// let request = unsafe { pack.start()? };
/// assert_eq!(request.wait()?, 4);
/// assert_eq!(i32::from_ne_bytes(packed), 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the bytes are there when the request is done"]
pub struct Request {
    bytes: u64,
    /// Empty if the work is done; several for elements in several kinds of memory.
    parts: SmallVec<[Part; 1]>,
}

/// Work under way.
pub(super) enum Part {
    /// A device does it.
    Device(Event, Arc<DeviceState>),
    /// The processor takes part.
    Pipeline(Box<Pipeline>),
}

impl Part {
    /// The work that the default stream of a device was given last; with `wait`, it is waited for here.
    pub(super) fn enqueued(gpu: &Gpu, wait: bool) -> Result<Option<Part>, TransferError> {
        let state = &gpu.state;
        if wait {
            state.stream.synchronize()?;
            return Ok(None);
        }
        let event = state.event()?;
        event.record(&state.stream)?;
        Ok(Some(Part::Device(event, state.clone())))
    }

    fn test(&mut self) -> Result<bool, TransferError> {
        match self {
            Part::Device(event, _) => Ok(event.query()?),
            Part::Pipeline(pipeline) => pipeline.advance(),
        }
    }

    fn wait(self) -> Result<(), TransferError> {
        match self {
            Part::Device(event, gpu) => {
                event.synchronize()?;
                gpu.give_back(event);
                Ok(())
            }
            Part::Pipeline(mut pipeline) => pipeline.finish(),
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("bytes", &self.bytes).field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}

impl Request {
    /// A call that is done.
    pub(super) fn done(bytes: u64) -> Request {
        Request { bytes, parts: SmallVec::new() }
    }

    /// A call of `bytes` bytes, whose parts are started one after another. If one cannot be started, it waits for those before it:
    /// the caller may free the buffers after an error.
    pub(super) fn start(
        bytes: u64,
        parts: impl Iterator<Item = Result<Option<Part>, TransferError>>,
    ) -> Result<Request, TransferError> {
        let mut request = Request::done(bytes);
        for part in parts {
            match part {
                Ok(part) => request.parts.extend(part),
                Err(error) => {
                    // The first error is the one that is reported.
                    let _ = request.wait();
                    return Err(error);
                }
            }
        }
        Ok(request)
    }

    /// Whether the bytes were there when the call returned. It does not ask the device: a request that is finished meanwhile is
    /// done once [`Request::test`] or [`Request::wait`] has found out.
    ///
    /// ```
    /// # fn ready(request: &dtc_runtime::Request) -> bool {
    /// request.is_done()
    /// # }
    /// ```
    pub fn is_done(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the bytes are there. Where the processor takes part, this does some of its work, as much as there is to do
    /// without waiting, and some tens of microseconds at most.
    ///
    /// # Errors
    ///
    /// The device failed.
    ///
    /// ```
    /// # fn ready(request: &mut dtc_runtime::Request) -> Result<bool, dtc_runtime::TransferError> {
    /// request.test()
    /// # }
    /// ```
    pub fn test(&mut self) -> Result<bool, TransferError> {
        let mut all = true;
        for part in &mut self.parts {
            all &= part.test()?;
        }
        Ok(all)
    }

    /// Waits until the bytes are there; returns how many were moved.
    ///
    /// # Errors
    ///
    /// The device failed.
    ///
    /// ```
    /// # fn finish(request: dtc_runtime::Request) -> Result<usize, dtc_runtime::TransferError> {
    /// request.wait()
    /// # }
    /// ```
    pub fn wait(self) -> Result<usize, TransferError> {
        self.parts.into_iter().try_for_each(Part::wait)?;
        Ok(self.bytes as usize)
    }
}
