//! New arrays of frameworks whose arrays never change, JAX's: written by a stream, and handed over behind it.

use crate::array::Array;
use crate::committed::engine;
use crate::dlpack::NO_ORDER;
use crate::errors::refused;
use dtc_runtime::cuda::{CudaError, Event, Stream};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An array that the legacy default stream of a device writes, as DLPack hands it over: the stream of who takes it waits.
#[pyclass(frozen, module = "libdtc")]
struct Ordered {
    array: Py<PyAny>,
    ordinal: u32,
}

#[pymethods]
impl Ordered {
    fn __dlpack_device__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.array.bind(py).call_method0(intern!(py, "__dlpack_device__"))
    }

    #[pyo3(signature = (*, stream=None, **options))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let taker = stream.unwrap_or(0);
        if taker != NO_ORDER {
            wait(self.ordinal, taker).map_err(refused)?;
        }
        let options = options.unwrap_or_else(|| PyDict::new(py));
        options.set_item(intern!(py, "stream"), stream)?;
        self.array.bind(py).call_method(intern!(py, "__dlpack__"), (), Some(&options))
    }
}

/// Has a stream wait for what the legacy default stream has enqueued.
fn wait(ordinal: u32, taker: i64) -> Result<(), CudaError> {
    let gpu = engine().gpu(ordinal)?;
    let written = Event::new(gpu.device())?;
    written.record(&Stream::legacy_default(gpu.device()))?;
    // SAFETY: null or a special handle, or a stream that who takes the array keeps during the call.
    let taker = unsafe { Stream::borrow(gpu.device(), std::ptr::with_exposed_provenance_mut(taker as usize)) };
    taker.wait_event(&written)
}

/// A new array whose bytes are written, or enqueued on the legacy default stream, as its framework uses it. `array`: one that
/// [`crate::results::new_array`] has made.
pub fn handed_over<'py>(array: Array<'py>) -> PyResult<Bound<'py, PyAny>> {
    let Array { object, place, is_unordered, .. } = array;
    let Some(ordinal) = place.device().filter(|_| is_unordered) else { return Ok(object) };
    let py = object.py();
    let namespace = object.call_method0(intern!(py, "__array_namespace__"))?;
    let ordered = Ordered { array: object.unbind(), ordinal };
    namespace.call_method1(intern!(py, "from_dlpack"), (ordered,))
}
