//! CUDA graphs: results of captures, and values that a graph keeps alive.

use super::abi::*;
use super::device::{Device, Scope};
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

/// Number of nodes of a graph, by kind.
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
    /// Nodes of all kinds.
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
            // SAFETY: this value owns the graph (`own`), and `drop` runs once, after every other use.
            let _ = unsafe { self.device.driver().graph_destroy(self.handle) };
        }
    }
}

impl Graph {
    pub(super) fn own(device: Device, handle: GraphHandle) -> Graph {
        Graph { device, handle }
    }

    /// Counts its nodes.
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
        // SAFETY: with a null list the driver only writes the number of nodes to `count`; `self` keeps the graph alive.
        unsafe { driver.graph_get_nodes(self.handle, std::ptr::null_mut(), &mut count)? };
        let mut nodes = vec![GraphNodeHandle::NULL; count];
        if count > 0 {
            // SAFETY: `nodes` has room for `count` nodes, and `self` keeps the graph alive.
            unsafe { driver.graph_get_nodes(self.handle, nodes.as_mut_ptr(), &mut count)? };
        }
        let mut counts = NodeCounts { all: nodes.len(), ..NodeCounts::default() };
        for node in nodes {
            let mut kind = 0;
            // SAFETY: `node` belongs to the live graph, and `kind` is a live integer.
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

    /// Makes the graph executable.
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
        // SAFETY: `self` keeps the graph alive, and `handle` is a live handle to fill.
        unsafe { self.device.driver().graph_instantiate(&mut handle, self.handle, 0)? };
        Ok(GraphExecutable { device: self.device.clone(), handle })
    }
}

/// A graph that can be launched any number of times. It keeps alive what the graph keeps alive.
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
            // SAFETY: `instantiate` created the executable, and `drop` runs once, after every other use.
            let _ = unsafe { self.device.driver().graph_executable_destroy(self.handle) };
        }
    }
}

impl GraphExecutable {
    /// Runs the graph on `stream`, after the work enqueued there. Captured buffers must live until it is done.
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
        // SAFETY: `self` and `stream` keep both handles alive, and `_scope` has made the stream's context current.
        unsafe { self.device.driver().graph_launch(self.handle, stream.handle()) }
    }
}

/// Values that graphs have released. The driver calls their destructors on a thread that must not call the driver, so
/// the destructors only move the values here, for [`release_dropped`].
static DROPPED: Mutex<Vec<Arc<dyn Any + Send + Sync>>> = Mutex::new(Vec::new());

/// Drops the values that graphs have released since the last call. Freeing device memory waits for the device, so the
/// background thread calls this while nothing runs there.
pub fn release_dropped() {
    let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
    drop(dropped);
}

/// Keeps `value` alive as long as the graph that `stream` is being captured into, and every instance of that graph.
/// Returns false and keeps nothing if the stream is not being captured. Allocates no memory of its own. The scope is one of the
/// stream's device: a launch needs it too.
pub fn keep_in_graph<T: Any + Send + Sync>(_: &Scope<'_>, stream: &Stream, value: &Arc<T>) -> Result<bool, CudaError> {
    unsafe extern "C" fn let_go<T: Any + Send + Sync>(value: *mut c_void) {
        // SAFETY: the pointer is the one that `Arc::into_raw` returns below, and the driver calls the destructor once.
        let value: Arc<T> = unsafe { Arc::from_raw(value.cast::<T>()) };
        DROPPED.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
    // The legacy default stream cannot be captured.
    if stream.handle() == StreamHandle::NULL {
        return Ok(false);
    }
    let driver = stream.device().driver();
    let (mut status, mut id, mut graph) = (CAPTURE_NONE, 0, GraphHandle::NULL);
    let (mut dependencies, mut count) = (std::ptr::null(), 0);
    // SAFETY: `stream` is alive, and every out pointer is to a live local of the declared type.
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
    // SAFETY: `raw` is what `let_go::<T>` expects, and `let_go` calls no CUDA function.
    let created =
        unsafe { driver.user_object_create(&mut object, raw, let_go::<T>, 1, USER_OBJECT_NO_DESTRUCTOR_SYNC) };
    if let Err(error) = created {
        // SAFETY: the driver did not take the reference, so `raw` still owns the one made above.
        drop(unsafe { Arc::from_raw(raw.cast::<T>()) });
        return Err(error);
    }
    // SAFETY: the capture keeps `graph` alive, `object` was just created, and the graph takes over its only reference.
    let retained = unsafe { driver.graph_retain_user_object(graph, object, 1, GRAPH_USER_OBJECT_MOVE) };
    if let Err(error) = retained {
        // SAFETY: the graph did not take the reference to `object`, so this returns the only one, which runs `let_go`.
        let _ = unsafe { driver.user_object_release(object, 1) };
        return Err(error);
    }
    Ok(true)
}
