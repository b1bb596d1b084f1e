//! New arrays of the library that an array is from.

use crate::array::Array;
use crate::dlpack::family;
use crate::dtype::Element;
use crate::numpy;
use crate::strided::Tuple;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyString, PyTuple};
use std::borrow::Cow;

/// The type of the elements of a new array.
pub enum Wanted<'a> {
    /// That of the array it is like.
    Same,
    /// Bytes.
    Bytes,
    /// Another one, which NumPy has.
    Of(&'a Element),
}

/// A new array of the library of another array, on the same device. `zeroed`: whether its bytes are 0; they are anything otherwise.
/// Of buffers that are no arrays, such as `bytes`, it is a `bytearray`, if no type of elements is wanted.
pub fn new_array<'py>(
    like: &Array<'py>,
    shape: &[i64],
    wanted: &Wanted<'_>,
    zeroed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = like.object.py();
    let shape_tuple = PyTuple::new(py, shape)?;
    let name = if zeroed { "zeros" } else { "empty" };
    let Some(dtype) = &like.dtype else {
        return match wanted {
            Wanted::Of(element) => py.import("numpy")?.call_method1(name, (shape_tuple, element.shown(py))),
            _ => Ok(PyByteArray::new_with(py, shape.iter().product::<i64>() as usize, |_| Ok(()))?.into_any()),
        };
    };
    let dtype_of = |module: &Bound<'py, PyAny>| match wanted {
        Wanted::Same => Ok(dtype.clone()),
        Wanted::Bytes => module.getattr("uint8"),
        Wanted::Of(element) => Ok(element.shown(py)),
    };
    let family: Cow<'_, str> = match numpy::is_array(&like.object) {
        true => "numpy".into(),
        false => family(&like.object)?.into(),
    };
    match &*family {
        "numpy" => match wanted {
            Wanted::Bytes => numpy::new_array(&shape_tuple, &PyString::intern(py, "u1"), zeroed),
            Wanted::Same => numpy::new_array(&shape_tuple, dtype, zeroed),
            Wanted::Of(element) => numpy::new_array(&shape_tuple, &element.shown(py), zeroed),
        },
        "cupy" => {
            let module = py.import(intern!(py, "cupy"))?.into_any();
            let make = || module.call_method1(name, (&shape_tuple, dtype_of(&module)?));
            // CuPy makes arrays on its current device.
            let device = like.object.getattr(intern!(py, "device"))?;
            device.call_method0("__enter__")?;
            let made = make();
            device.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
            made
        }
        "torch" => {
            let options = PyDict::new(py);
            options.set_item("dtype", dtype_of(&py.import("torch")?.into_any())?)?;
            like.object.call_method(if zeroed { "new_zeros" } else { "new_empty" }, (shape_tuple,), Some(&options))
        }
        _ => match like.object.getattr_opt("__array_namespace__")? {
            Some(namespace) => {
                let module = namespace.call0()?;
                let options = PyDict::new(py);
                options.set_item("dtype", dtype_of(&module)?)?;
                options.set_item("device", like.object.getattr("device")?)?;
                module.call_method(name, (shape_tuple,), Some(&options))
            }
            None => Err(PyTypeError::new_err(format!(
                "out: expected an array of shape {}, since {} makes none, found None",
                Tuple(shape),
                like.object.get_type()
            ))),
        },
    }
}
