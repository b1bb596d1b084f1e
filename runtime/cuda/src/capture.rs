//! Captures of CUDA streams into graphs.

use super::abi::*;
use super::error::CudaError;
use super::graph::Graph;
use super::stream::Stream;

/// Whether a stream is being captured into a graph.
///
/// ```
/// use dtc_cuda::{CaptureStatus, Device, Stream};
/// if let Ok(device) = Device::get(0) {
///     assert_eq!(Stream::new(&device)?.capture_status()?, CaptureStatus::None);
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureStatus {
    /// It is not being captured.
    None,
    /// It is being captured: enqueued work becomes nodes of the graph.
    Active,
    /// It was being captured until a call invalidated the capture.
    Invalidated,
}

/// Threads whose potentially unsafe calls CUDA refuses during a capture.
///
/// ```
/// use dtc_cuda::CaptureMode;
/// assert_eq!(CaptureMode::default(), CaptureMode::Global);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// All threads.
    #[default]
    Global,
    /// The capturing thread.
    ThreadLocal,
    /// No thread.
    Relaxed,
}

impl Stream {
    /// Whether the stream is being captured into a graph.
    ///
    /// # Errors
    ///
    /// The driver refuses. It does so for the legacy default stream while another stream is being captured.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureStatus, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     assert_eq!(Stream::new(&device)?.capture_status()?, CaptureStatus::None);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn capture_status(&self) -> Result<CaptureStatus, CudaError> {
        let _scope = self.device().scope()?;
        let mut status = CAPTURE_NONE;
        // SAFETY: `self` keeps the stream alive, `_scope` has made its context current, and `status` is a live integer.
        unsafe { self.device().driver().stream_is_capturing(self.handle(), &mut status)? };
        Ok(match status {
            CAPTURE_NONE => CaptureStatus::None,
            CAPTURE_ACTIVE => CaptureStatus::Active,
            _ => CaptureStatus::Invalidated,
        })
    }

    /// Begins to capture enqueued work into a graph.
    ///
    /// # Errors
    ///
    /// The driver refuses: the stream is being captured already, or is the legacy default stream.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureMode, CaptureStatus, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let stream = Stream::new(&device)?;
    ///     stream.begin_capture(CaptureMode::ThreadLocal)?;
    ///     assert_eq!(stream.capture_status()?, CaptureStatus::Active);
    ///     stream.end_capture()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn begin_capture(&self, mode: CaptureMode) -> Result<(), CudaError> {
        let _scope = self.device().scope()?;
        let mode = match mode {
            CaptureMode::Global => CAPTURE_GLOBAL,
            CaptureMode::ThreadLocal => CAPTURE_THREAD_LOCAL,
            CaptureMode::Relaxed => CAPTURE_RELAXED,
        };
        // SAFETY: `self` keeps the stream alive, and `_scope` has made its context current.
        unsafe { self.device().driver().stream_begin_capture(self.handle(), mode) }
    }

    /// Ends the capture and returns its graph.
    ///
    /// # Errors
    ///
    /// The stream is not being captured, or a call invalidated the capture.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureMode, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let stream = Stream::new(&device)?;
    ///     stream.begin_capture(CaptureMode::ThreadLocal)?;
    ///     assert_eq!(stream.end_capture()?.nodes()?.all, 0);
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn end_capture(&self) -> Result<Graph, CudaError> {
        let _scope = self.device().scope()?;
        let mut graph = GraphHandle::NULL;
        // SAFETY: `self` keeps the stream alive, `_scope` has made its context current, and `graph` is a live handle to
        // fill.
        unsafe { self.device().driver().stream_end_capture(self.handle(), &mut graph)? };
        Ok(Graph::own(self.device().clone(), graph))
    }
}
