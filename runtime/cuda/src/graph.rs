//! CUDA graphs: what streams are captured into, and what graphs keep alive.

use super::abi::*;
use super::device::Device;
use super::error::CudaError;
use super::stream::Stream;
use std::any::Any;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// A captured graph.
///
/// ```
/// use dtc_cuda::{CaptureMode, Device, Stream};
/// if let Ok(device) = Device::get(0) {
///     let stream = Stream::new(&device)?;
///     stream.begin_capture(CaptureMode::ThreadLocal)?;
///     let graph = stream.end_capture()?;
///     graph.instantiate()?.launch(&stream)?;
///     stream.synchronize()?;
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[derive(Debug)]
pub struct Graph {
    device: Device,
    handle: GraphHandle,
}

/// How many nodes a graph has.
///
/// ```
/// # use dtc_cuda::{CaptureMode, Device, Stream};
/// if let Ok(device) = Device::get(0) {
///     let stream = Stream::new(&device)?;
///     stream.begin_capture(CaptureMode::ThreadLocal)?;
///     assert_eq!(stream.end_capture()?.nodes()?.kernels, 0);
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeCounts {
    /// Nodes of any kind.
    pub all: usize,
    /// Kernel launches.
    pub kernels: usize,
    /// Copies.
    pub copies: usize,
    /// Fills.
    pub fills: usize,
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_scope) = self.device.scope_outside_capture() {
            // SAFETY: the graph was handed to this value, which is the last to use it.
            let _ = unsafe { self.device.driver().graph_destroy(self.handle) };
        }
    }
}

impl Graph {
    pub(super) fn own(device: Device, handle: GraphHandle) -> Graph {
        Graph { device, handle }
    }

    /// How many nodes it has.
    ///
    /// # Errors
    ///
    /// The driver refuses.
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
    pub fn nodes(&self) -> Result<NodeCounts, CudaError> {
        let _scope = self.device.scope()?;
        let driver = self.device.driver();
        let mut count = 0;
        // SAFETY: a null list asks for the number of nodes; the graph is alive.
        unsafe { driver.graph_get_nodes(self.handle, std::ptr::null_mut(), &mut count)? };
        let mut nodes = vec![GraphNodeHandle::NULL; count];
        if count > 0 {
            // SAFETY: the list has room for as many nodes as `count` says.
            unsafe { driver.graph_get_nodes(self.handle, nodes.as_mut_ptr(), &mut count)? };
        }
        let mut counts = NodeCounts { all: nodes.len(), ..NodeCounts::default() };
        for node in nodes {
            let mut kind = 0;
            // SAFETY: the node is one of the graph's, and the pointer is to a live integer.
            unsafe { driver.graph_node_get_type(node, &mut kind)? };
            match kind {
                NODE_KERNEL => counts.kernels += 1,
                NODE_MEMCPY => counts.copies += 1,
                NODE_MEMSET => counts.fills += 1,
                _ => {}
            }
        }
        Ok(counts)
    }

    /// Makes the graph ready to run.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureMode, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let stream = Stream::new(&device)?;
    ///     stream.begin_capture(CaptureMode::ThreadLocal)?;
    ///     stream.end_capture()?.instantiate()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn instantiate(&self) -> Result<GraphExecutable, CudaError> {
        let _scope = self.device.scope_outside_capture()?;
        let mut handle = GraphExecHandle::NULL;
        // SAFETY: the graph is alive and the pointer is to a live handle.
        unsafe { self.device.driver().graph_instantiate(&mut handle, self.handle, 0)? };
        Ok(GraphExecutable { device: self.device.clone(), handle })
    }
}

/// A graph that can be run, any number of times. What the graph keeps alive, it keeps alive too.
///
/// ```
/// # use dtc_cuda::{CaptureMode, Device, Stream};
/// if let Ok(device) = Device::get(0) {
///     let stream = Stream::new(&device)?;
///     stream.begin_capture(CaptureMode::ThreadLocal)?;
///     let executable = stream.end_capture()?.instantiate()?;
///     executable.launch(&stream)?;
///     stream.synchronize()?;
/// }
/// # Ok::<(), dtc_cuda::CudaError>(())
/// ```
#[derive(Debug)]
pub struct GraphExecutable {
    device: Device,
    handle: GraphExecHandle,
}

impl Drop for GraphExecutable {
    fn drop(&mut self) {
        if let Ok(_scope) = self.device.scope_outside_capture() {
            // SAFETY: the executable was created by this value, which is the last to use it.
            let _ = unsafe { self.device.driver().graph_executable_destroy(self.handle) };
        }
    }
}

impl GraphExecutable {
    /// Runs the graph on a CUDA stream, after what is enqueued there. Buffers that were captured must live on until it
    /// is done.
    ///
    /// # Errors
    ///
    /// The driver refuses.
    ///
    /// ```
    /// # use dtc_cuda::{CaptureMode, Device, Stream};
    /// if let Ok(device) = Device::get(0) {
    ///     let stream = Stream::new(&device)?;
    ///     stream.begin_capture(CaptureMode::ThreadLocal)?;
    ///     stream.end_capture()?.instantiate()?.launch(&stream)?;
    ///     stream.synchronize()?;
    /// }
    /// # Ok::<(), dtc_cuda::CudaError>(())
    /// ```
    pub fn launch(&self, stream: &Stream) -> Result<(), CudaError> {
        let _scope = stream.device().scope()?;
        // SAFETY: executable and stream are alive, and the stream's context is current.
        unsafe { self.device.driver().graph_launch(self.handle, stream.handle()) }
    }
}

/// What graphs let go. Their destructors run on a thread of the driver that must not call it, so they only put things
/// here, where [`release_dropped`] finds them.
static DROPPED: Mutex<Vec<Arc<dyn Any + Send + Sync>>> = Mutex::new(Vec::new());

/// Drops what graphs let go since the last call. For the background, while nothing runs on the device: freeing waits for
/// everything there.
pub fn release_dropped() {
    let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(dropped);
}

/// Keeps a value alive as long as the graph that the stream is being captured into, and everything instantiated from
/// it. Says whether the stream is being captured at all; if not, nothing is kept. Allocates no memory of its own.
pub fn keep_in_graph<T: Any + Send + Sync>(stream: &Stream, value: &Arc<T>) -> Result<bool, CudaError> {
    unsafe extern "C" fn let_go<T: Any + Send + Sync>(value: *mut c_void) {
        // SAFETY: the pointer came from `Arc::into_raw` below, and the driver calls this once.
        let value: Arc<T> = unsafe { Arc::from_raw(value.cast::<T>()) };
        DROPPED.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
    // The legacy default stream cannot be captured.
    if stream.handle() == StreamHandle::NULL {
        return Ok(false);
    }
    let _scope = stream.device().scope()?;
    let driver = stream.device().driver();
    let (mut status, mut id, mut graph) = (CAPTURE_NONE, 0, GraphHandle::NULL);
    let (mut dependencies, mut count) = (std::ptr::null(), 0);
    // SAFETY: the stream is alive, and all pointers are to live values of the declared types.
    unsafe {
        driver.stream_get_capture_info(
            stream.handle(),
            &mut status,
            &mut id,
            &mut graph,
            &mut dependencies,
            &mut count,
        )?;
    }
    if status != CAPTURE_ACTIVE {
        return Ok(false);
    }
    let raw = Arc::into_raw(value.clone()).cast_mut().cast::<c_void>();
    let mut object = UserObjectHandle::NULL;
    // SAFETY: the destructor takes exactly such a pointer and calls no CUDA function.
    let created =
        unsafe { driver.user_object_create(&mut object, raw, let_go::<T>, 1, USER_OBJECT_NO_DESTRUCTOR_SYNC) };
    if let Err(error) = created {
        // SAFETY: the driver did not take the reference, so it is still the one made above.
        drop(unsafe { Arc::from_raw(raw.cast::<T>()) });
        return Err(error);
    }
    // SAFETY: graph and object are alive; the graph takes over the only reference to the object.
    let retained = unsafe { driver.graph_retain_user_object(graph, object, 1, GRAPH_USER_OBJECT_MOVE) };
    if let Err(error) = retained {
        // SAFETY: the graph did not take the reference to the object, so it is given back, which runs `let_go`.
        let _ = unsafe { driver.user_object_release(object, 1) };
        return Err(error);
    }
    Ok(true)
}
