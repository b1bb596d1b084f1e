//! The stream that a call on a GPU goes on.

use crate::array::Array;
use crate::committed::engine;
use crate::cupy;
use crate::dlpack::family;
use crate::errors::{mismatch, refused};
use crate::exchange;
use dtc_runtime::cuda::Stream;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// The stream of a call on a device: the one that is given, or the current one of the framework of an array.
///
/// `given`: an int, a `CUstream` or one of CUDA's special handles; or an object with `__cuda_stream__`.
pub fn stream(given: Option<&Bound<'_, PyAny>>, array: &Array<'_>, ordinal: u32) -> PyResult<Stream> {
    let handle = match given {
        Some(given) => handle(given)?,
        None => current(array)?,
    };
    let gpu = engine().gpu(ordinal).map_err(refused)?;
    // SAFETY: null or a special handle, or a stream that the caller or the framework keeps during the call, which enqueues and returns.
    // A stream of another context is refused by the driver.
    Ok(unsafe { Stream::borrow(gpu.device(), std::ptr::with_exposed_provenance_mut(handle)) })
}

fn handle(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    if given.is_instance_of::<PyInt>() {
        return given.extract();
    }
    let py = given.py();
    match given.getattr_opt(intern!(py, "__cuda_stream__"))? {
        Some(protocol) => match protocol.call0()?.extract()? {
            (0, handle) => Ok(handle),
            (version, _) => Err(mismatch("stream", "version 0 of __cuda_stream__", version)),
        },
        None => Err(PyTypeError::new_err(format!(
            "stream: expected None, an int or an object with __cuda_stream__, found {}",
            given.get_type()
        ))),
    }
}

/// The stream that a framework enqueues work on now; the legacy default stream for those that have none.
fn current(array: &Array<'_>) -> PyResult<usize> {
    if let Some(stream) = array.stream {
        return Ok(stream);
    }
    let (py, object) = (array.object.py(), &array.object);
    if let (Some(current), Some(ordinal)) = (array.current_stream, array.place.device()) {
        return exchange::current_stream(py, current, ordinal);
    }
    // The array is there, so the framework is imported.
    match family(object)?.as_str() {
        "torch" => {
            let cuda = py.import(intern!(py, "torch.cuda"))?;
            let device = object.getattr(intern!(py, "device"))?;
            let stream = cuda.call_method1(intern!(py, "current_stream"), (device,))?;
            stream.getattr(intern!(py, "cuda_stream"))?.extract()
        }
        "cupy" => cupy::current_stream(py, array.place.device()),
        _ => Ok(0),
    }
}
