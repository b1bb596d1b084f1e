//! Arrays of NumPy, read where they are: the buffer protocol takes 100 ns more for each array (x86-64, CPython 3.11).

use crate::array::{Array, Held, Place};
use crate::dtype::Element;
use crate::strided::{Axes, Strided};
use once_cell::race::OnceBox;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::c_int;

/// The structure of `numpy.ndarray`, `PyArrayObject_fields` of NumPy's C API: part of its ABI in versions 1 and 2.
#[repr(C)]
struct ArrayFields {
    object: ffi::PyObject,
    data: *mut u8,
    axes: c_int,
    shape: *const ffi::Py_ssize_t,
    strides: *const ffi::Py_ssize_t,
    base: *mut ffi::PyObject,
    dtype: *mut ffi::PyObject,
    flags: c_int,
}

/// `NPY_ARRAY_WRITEABLE`.
const WRITEABLE: c_int = 0x400;
/// The codes of NumPy's types of numbers, each of which is one object.
const NUMBERS: &str = "?bBhHiIlLqQefdgFDG";

/// What is known of the NumPy of this process. It is imported for good, so its addresses stay those of the same objects.
struct NumPy {
    /// The address of `numpy.ndarray`; 0 if arrays cannot be read where they are.
    ndarray: usize,
    /// The addresses of the types of numbers, and their bytes.
    numbers: Vec<(usize, i64)>,
    empty: Py<PyAny>,
    zeros: Py<PyAny>,
}

static NUMPY: OnceBox<NumPy> = OnceBox::new();

/// The NumPy of an array that is read where it is.
#[inline]
fn known(object: &Bound<'_, PyAny>) -> Option<&'static NumPy> {
    // SAFETY: the object is alive.
    NUMPY.get().filter(|numpy| unsafe { ffi::Py_TYPE(object.as_ptr()) }.addr() == numpy.ndarray)
}

/// Whether an object is an array of NumPy that is read where it is.
pub fn is_array(object: &Bound<'_, PyAny>) -> bool {
    known(object).is_some()
}

/// The elements of an array of NumPy, no subclass; nothing for other objects, and before [`learn`] has seen an array.
/// `element`: the type that its elements most often have.
#[inline]
pub fn array<'py>(object: &Bound<'py, PyAny>, element: Option<&Element>) -> Option<Array<'py>> {
    let numpy = known(object)?;
    // SAFETY: the object's type is `numpy.ndarray` itself, whose instances begin with these fields: `learn` saw a version of which that is so.
    let fields = unsafe { &*object.as_ptr().cast::<ArrayFields>() };
    // SAFETY: an array has a type of elements as long as it lives, and the thread is attached to the interpreter.
    let dtype = unsafe { Bound::from_borrowed_ptr(object.py(), fields.dtype) };
    let known = match element.filter(|element| element.object(object.py()).is_some_and(|own| own.is(&dtype))) {
        Some(element) => Some(element.bytes),
        None => numpy.numbers.iter().find(|(address, _)| *address == fields.dtype.addr()).map(|(_, item)| *item),
    };
    let item = match known {
        Some(item) => item,
        None => dtype.getattr(intern!(object.py(), "itemsize")).ok()?.extract().ok()?,
    };
    let numbers = |first: *const ffi::Py_ssize_t| -> Axes {
        if fields.axes < 1 {
            return Axes::new();
        }
        // SAFETY: an array has as many numbers as axes in both lists, as long as it lives.
        unsafe { std::slice::from_raw_parts(first, fields.axes as usize) }.iter().map(|&number| number as i64).collect()
    };
    Some(Array {
        object: object.clone(),
        dtype: Some(dtype),
        is_plain: known.is_some(),
        address: fields.data,
        elements: Strided { offset: 0, shape: numbers(fields.shape), strides: numbers(fields.strides) },
        item,
        is_read_only: fields.flags & WRITEABLE == 0,
        place: Place::Host,
        is_unordered: false,
        stream: None,
        current_stream: None,
        held: Held::Object(object.clone()),
    })
}

/// Remembers NumPy from the first of its arrays, and whether its arrays can be read where they are. `view`: what the array exports.
pub fn learn(object: &Bound<'_, PyAny>, dtype: Option<&Bound<'_, PyAny>>, view: &ffi::Py_buffer) -> PyResult<()> {
    let Some(dtype) = dtype.filter(|_| NUMPY.get().is_none()) else { return Ok(()) };
    let class = object.get_type();
    if class.module()?.to_str()? != "numpy" || class.name()?.to_str()? != "ndarray" {
        return Ok(());
    }
    let numpy = object.py().import("numpy")?;
    let version: String = numpy.getattr("__version__")?.extract()?;
    let has_fields = matches!(version.split('.').next(), Some("1" | "2")) && {
        // SAFETY: `ndarray` of NumPy 1 and 2 begins with these fields.
        let fields = unsafe { &*object.as_ptr().cast::<ArrayFields>() };
        let found = (fields.data.cast(), fields.axes, fields.dtype);
        found == (view.buf, view.ndim, dtype.as_ptr())
    };
    let mut numbers = Vec::with_capacity(NUMBERS.len());
    for code in NUMBERS.chars() {
        let number = numpy.call_method1("dtype", (code,))?;
        let item = number.getattr("itemsize")?.extract()?;
        // Kept for good, so that no other type takes its address.
        numbers.push((number.into_ptr().addr(), item));
    }
    let ndarray = if has_fields { class.into_ptr().addr() } else { 0 };
    let (empty, zeros) = (numpy.getattr("empty")?.unbind(), numpy.getattr("zeros")?.unbind());
    // Another thread may have been first, with the same.
    let _ = NUMPY.set(Box::new(NumPy { ndarray, numbers, empty, zeros }));
    Ok(())
}

/// A new array of NumPy, with zeros or anything in it.
pub fn new_array<'py>(
    shape: &Bound<'py, PyTuple>,
    dtype: &Bound<'py, PyAny>,
    zeroed: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = shape.py();
    match NUMPY.get() {
        Some(numpy) => (if zeroed { &numpy.zeros } else { &numpy.empty }).bind(py).call1((shape, dtype)),
        None => py.import("numpy")?.call_method1(if zeroed { "zeros" } else { "empty" }, (shape, dtype)),
    }
}
