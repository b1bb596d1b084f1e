//! Arrays of others by the protocols that they have. No framework is imported.

use crate::array::{Array, Buffer, Held, Place};
use crate::cuda_array;
use crate::cupy;
use crate::dlpack;
use crate::dtype::Element;
use crate::errors::mismatch;
use crate::exchange;
use crate::numpy;
use crate::strided::{Axes, Strided};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

/// The elements of an object, by the first protocol that it has: DLPack's functions, buffers (of those that have
/// one, `__cuda_array_interface__` before), `__dlpack__`, `__cuda_array_interface__`. Arrays of NumPy are read where they are.
///
/// `argument`: what errors call it.
#[inline]
pub fn array<'py>(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    array_of(argument, object, None)
}

/// As [`array`]. `element`: the type that its elements most often have.
#[inline]
pub fn array_of<'py>(argument: &str, object: &Bound<'py, PyAny>, element: Option<&Element>) -> PyResult<Array<'py>> {
    if let Some(array) = numpy::array(object, element) {
        return Ok(array);
    }
    by_protocol(argument, object)
}

fn by_protocol<'py>(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    if let Some(array) = exchange::array(argument, object)? {
        return Ok(array);
    }
    if let Some(array) = cupy::array(object)? {
        return Ok(array);
    }
    let py = object.py();
    let interface = || object.getattr_opt(intern!(py, "__cuda_array_interface__"));
    // SAFETY: any object may be asked.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0 {
        // Arrays of a device's memory may say that they have buffers, and refuse to give one.
        match interface()? {
            // The other protocol does not say that they are never written, and who waits for whom.
            Some(_) if dlpack::never_changes(object)? => return dlpack::array(argument, object),
            Some(interface) => return cuda_array::array(argument, object, &interface),
            None => {}
        }
        match of_buffer(argument, object) {
            // Buffers of JAX have no formats for some types, and DLPack has.
            Err(error) if error.is_instance_of::<PyBufferError>(py) && has_dlpack(object)? => {}
            found => return found,
        }
    }
    if has_dlpack(object)? {
        return match dlpack::array(argument, object) {
            // DLPack has no structured types, and the other protocol has.
            Err(error) => match interface() {
                Ok(Some(interface)) => cuda_array::array(argument, object, &interface),
                _ => Err(error),
            },
            found => found,
        };
    }
    match interface()? {
        Some(interface) => cuda_array::array(argument, object, &interface),
        None => Err(PyTypeError::new_err(format!(
            "{argument}: expected an array, with the buffer protocol, __dlpack__ or __cuda_array_interface__, found {}",
            object.get_type()
        ))),
    }
}

/// Whether an object has DLPack's functions: arrays that JAX traces have one of both alone.
fn has_dlpack(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    Ok(object.hasattr(intern!(py, "__dlpack__"))? && object.hasattr(intern!(py, "__dlpack_device__"))?)
}

/// As [`array_of`], of an array that is written.
#[inline]
pub fn array_to_write<'py>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    element: Option<&Element>,
) -> PyResult<Array<'py>> {
    let array = array_of(argument, object, element)?;
    if array.is_read_only {
        return Err(mismatch(argument, "an array that may be written", "a read-only one"));
    }
    Ok(array)
}

fn of_buffer<'py>(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let py = object.py();
    let dtype = object.getattr_opt(intern!(py, "dtype"))?;
    // NumPy has no format for its times and for types of others, and is asked for its dtype instead.
    let flags = if dtype.is_some() { ffi::PyBUF_STRIDES } else { ffi::PyBUF_STRIDES | ffi::PyBUF_FORMAT };
    let buffer = Buffer::of(object, flags)?;
    let view = buffer.view();
    let elements = elements(argument, view)?;
    if dtype.is_none() && !view.format.is_null() {
        // SAFETY: the exporter's format is a string that lives as long as the view.
        let format = unsafe { std::ffi::CStr::from_ptr(view.format) }.to_string_lossy();
        if format.contains('O') {
            return Err(mismatch(argument, "elements without Python objects", format_args!("the format {format}")));
        }
    }
    numpy::learn(object, dtype.as_ref(), view)?;
    Ok(Array {
        object: object.clone(),
        dtype,
        is_plain: false,
        address: view.buf.cast(),
        elements,
        item: view.itemsize as i64,
        is_read_only: view.readonly != 0,
        place: Place::Host,
        is_unordered: false,
        stream: None,
        current_stream: None,
        held: Held::Buffer(buffer),
    })
}

/// Shape and strides of a view. Some exporters leave them out: scalars of NumPy do, for one axis and for C order.
fn elements(argument: &str, view: &ffi::Py_buffer) -> PyResult<Strided> {
    let axes = |numbers: *const ffi::Py_ssize_t| -> Axes {
        match view.ndim {
            0 => Axes::new(),
            // SAFETY: the exporter has filled it, with as many numbers as there are axes, and it lives as long as the view.
            axes => unsafe { std::slice::from_raw_parts(numbers, axes as usize) }.iter().map(|&n| n as i64).collect(),
        }
    };
    let item = view.itemsize as i64;
    let shape = match view.shape.is_null() && view.ndim != 0 {
        true => Axes::from_elem(view.len as i64 / item.max(1), 1),
        false => axes(view.shape),
    };
    match view.strides.is_null() && view.ndim != 0 {
        true => Strided::contiguous(shape, item).ok_or_else(|| mismatch(argument, "fewer than 2^63 bytes", "more")),
        false => Ok(Strided { offset: 0, shape, strides: axes(view.strides) }),
    }
}
