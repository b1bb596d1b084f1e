//! Arrays of CuPy, by their attributes: `__cuda_array_interface__`, which they have, too, takes seven times as long to read (CuPy 14.2).

use crate::array::{Array, Held, Place};
use crate::dlpack::family;
use crate::strided::{Axes, Strided};
use dtc_runtime::cuda::MemoryKind;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// `cupy.ndarray`, once an array has been seen.
static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Whether an object is an array of CuPy, no subclass.
fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, class) = (object.py(), object.get_type());
    if let Some(known) = NDARRAY.get(py) {
        return Ok(class.is(known));
    }
    let is_one = class.name()?.to_str()? == "ndarray" && family(object)? == "cupy";
    if is_one {
        let _ = NDARRAY.set(py, class.unbind());
    }
    Ok(is_one)
}

/// The elements of an array of CuPy; nothing for other objects.
pub fn array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Array<'py>>> {
    if !is_array(object)? {
        return Ok(None);
    }
    let py = object.py();
    let data = object.getattr(intern!(py, "data"))?;
    let address = std::ptr::with_exposed_provenance_mut::<u8>(data.getattr(intern!(py, "ptr"))?.extract()?);
    // Managed memory has a device there, too, whose streams CuPy's work goes on.
    let device = data.getattr(intern!(py, "device_id"))?.extract()?;
    let axes = |name| -> PyResult<Axes> { Ok(object.getattr(name)?.extract::<Vec<i64>>()?.into()) };
    Ok(Some(Array {
        object: object.clone(),
        dtype: Some(object.getattr(intern!(py, "dtype"))?),
        is_plain: false,
        address,
        elements: Strided { offset: 0, shape: axes(intern!(py, "shape"))?, strides: axes(intern!(py, "strides"))? },
        item: object.getattr(intern!(py, "itemsize"))?.extract()?,
        is_read_only: false,
        place: Place::Reached(MemoryKind::Device(device)),
        is_unordered: false,
        stream: None,
        current_stream: None,
        held: Held::Object(object.clone()),
    }))
}

/// The stream that CuPy enqueues work of a device on now.
pub fn current_stream(py: Python<'_>, ordinal: Option<u32>) -> PyResult<usize> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("cupy.cuda")?.getattr("get_current_stream")?.unbind()))?;
    current.bind(py).call1((ordinal,))?.getattr(intern!(py, "ptr"))?.extract()
}
