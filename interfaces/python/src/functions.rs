//! The functions of the package.

use crate::acquire;
use crate::array::Array;
use crate::described::{Base, Described, LoadedTabled, Whole};
use crate::dtype::{Element, Fields};
use crate::errors::{LayoutError, mismatch};
use crate::layout::Layout;
use crate::moves;
use crate::state::{State, restored};
use crate::strided::{Axes, Strided};
use crate::tables::{Tables, check_names};
use dtc_runtime::datatype::{Datatype, TabledDatatype, json, text};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use std::path::PathBuf;
use std::sync::Arc;

/// The layout of all elements of an array: of the array `shape`, or of those with a shape, a dtype and strides in bytes, which are those of
/// C order if left out.
///
/// Raises `LayoutError` for types with Python objects, and for shapes of 2^63 bytes and more.
///
/// >>> import libdtc
/// >>> libdtc.layout((8, 16), "f4").nbytes
/// 512
/// >>> libdtc.layout((2, 3), "u1", strides=(-3, 1)).strides
/// (-3, 1)
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, *, strides=None))]
pub fn layout(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Vec<i64>>,
) -> PyResult<Layout> {
    let is_shape =
        [shape.is_instance_of::<PyTuple>(), shape.is_instance_of::<PyList>(), shape.is_instance_of::<PyInt>()];
    if !is_shape.contains(&true) {
        if dtype.is_some() || strides.is_some() {
            return Err(PyTypeError::new_err("layout: expected an array alone, found dtype or strides beside it"));
        }
        let array = acquire::array("array", shape)?;
        return Ok(Described::of_array(element_of(&array)?, array.elements)?.into());
    }
    let dtype = dtype.ok_or_else(|| PyTypeError::new_err("dtype: expected the type of the elements, found none"))?;
    let element = Element::new(dtype)?;
    let shape: Axes = match shape.extract::<i64>() {
        Ok(one) => SmallVec::from_elem(one, 1),
        Err(_) => shape.extract::<Vec<i64>>()?.into(),
    };
    if let Some((axis, count)) = shape.iter().enumerate().find(|(_, count)| **count < 0) {
        return Err(mismatch(format_args!("shape axis {axis}"), "at least 0 elements", count));
    }
    let base = match strides {
        Some(strides) if strides.len() != shape.len() => {
            return Err(mismatch("strides", format_args!("one for each of {} axes", shape.len()), strides.len()));
        }
        Some(strides) => Strided { offset: 0, shape, strides: strides.into() },
        None => Strided::contiguous(shape, element.bytes)
            .ok_or_else(|| mismatch("shape", "fewer than 2^63 bytes", "more"))?,
    };
    Ok(Described::of_array(element, base)?.into())
}

fn element_of(array: &Array<'_>) -> PyResult<Element> {
    match &array.dtype {
        Some(dtype) if array.is_plain => Ok(Element::plain(dtype, array.item)),
        Some(dtype) if dtype.hasattr(intern!(dtype.py(), "itemsize"))? => Element::new(dtype),
        // Of a library whose types do not say how large they are.
        Some(dtype) => Ok(Element::plain(dtype, array.item)),
        None => Ok(Element::unknown(array.item)),
    }
}

/// The layout of fields of structured elements, for arrays of any shape without gaps between their elements. Fields are packed in the order
/// of `names`, without padding.
///
/// Raises `LayoutError` for a name that the type does not have.
///
/// >>> import numpy as np, libdtc
/// >>> records = np.zeros(4, [("x", "f8"), ("tag", "i4"), ("z", "f8")])
/// >>> records["z"] = np.arange(4)
/// >>> libdtc.fields(records.dtype, ["z", "tag"]).pack(records)["z"]
/// array([0., 1., 2., 3.])
#[pyfunction]
pub fn fields(dtype: &Bound<'_, PyAny>, names: Vec<Bound<'_, PyString>>) -> PyResult<Layout> {
    let element = Element::new(dtype)?;
    let found = Fields::several(&element, &names)?;
    let view = Strided { offset: 0, shape: Axes::new(), strides: Axes::new() };
    let whole = Described::new(Whole { base: Base::Records, element }, SmallVec::from_vec(found.runs), view);
    Ok(Described { result: Some(Arc::new(found.result)), ..whole }.into())
}

/// The layout of a datatype in the short notation or in JSON, or of the file that a `pathlib.Path` names. It is applied to the first byte of
/// an array. Calls pass the index tables of the datatype as `table0`, `table1` and so on.
///
/// Raises `LayoutError` for text that describes no datatype, and `OSError` for a file that cannot be read.
///
/// >>> import libdtc
/// >>> libdtc.load("vector 3 1 4 byte").pack(b"abcdefghi")
/// bytearray(b'aei')
#[pyfunction]
pub fn load(source: &Bound<'_, PyAny>) -> PyResult<Layout> {
    let written = match source.cast::<PyString>() {
        Ok(text) => text.to_str()?.to_owned(),
        Err(_) => {
            let path: PathBuf = source.extract()?;
            std::fs::read_to_string(&path)?
        }
    };
    let datatype: TabledDatatype = if written.trim_start().starts_with('{') {
        json::read_tabled(&written).map_err(|error| LayoutError::new_err(error.to_string()))?.datatype
    } else {
        text::parse_tabled(&written).map_err(|error| LayoutError::new_err(error.to_string()))?
    };
    match datatype.without_tables() {
        Some(datatype) => Ok(of_datatype(datatype)),
        None => Ok(of_memory(Base::Tabled(Box::new(LoadedTabled::new(datatype)?)))),
    }
}

/// The layout of a datatype, applied to bytes.
pub fn of_datatype(datatype: Datatype) -> Layout {
    of_memory(Base::Memory(datatype))
}

fn of_memory(base: Base) -> Layout {
    let view = Strided { offset: 0, shape: Axes::new(), strides: Axes::new() };
    let whole = Whole { base, element: Element::unknown(1) };
    Described::new(whole, SmallVec::from_elem((0, 1), 1), view).into()
}

/// Copies what the layout `ls` packs of `src` to where the layout `ld` unpacks in `dst`, and returns `dst`. Both have as many packed bytes.
/// `tables`: one for each name of an index axis of either.
///
/// Raises `LayoutError` where an array does not fit its layout, and `CudaError` if CUDA refuses.
///
/// >>> import numpy as np, libdtc
/// >>> source, target = np.arange(6).reshape(2, 3), np.zeros((3, 2), int)
/// >>> libdtc.copy(target, libdtc.layout(target), source, libdtc.layout(source).T)
/// array([[0, 3],
///        [1, 4],
///        [2, 5]])
#[pyfunction]
#[pyo3(signature = (dst, ld, src, ls, *, stream=None, **tables))]
pub fn copy<'py>(
    dst: &Bound<'py, PyAny>,
    ld: &Layout,
    src: &Bound<'py, PyAny>,
    ls: &Layout,
    stream: Option<&Bound<'py, PyAny>>,
    tables: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    check_names(&[ld.described(), ls.described()], tables)?;
    ld.check_written("dst")?;
    let (read, written) = (
        acquire::array_of("src", src, Some(ls.described().element()))?,
        acquire::array_to_write("dst", dst, Some(ld.described().element()))?,
    );
    let (sources, destinations) = (Tables::of(ls.described(), tables)?, Tables::of(ld.described(), tables)?);
    let (from, to) = (ls.end("src", &read, &sources)?, ld.end("dst", &written, &destinations)?);
    let (expected, found) = (from.bytes(), to.bytes());
    if expected != found {
        return Err(mismatch("ld", format_args!("the {expected} packed bytes of ls"), found));
    }
    if expected > 0 {
        moves::copy(&from, &to, stream)?;
    }
    Ok(dst.clone())
}

/// Makes the layout that a pickle has.
#[pyfunction]
#[pyo3(name = "_restore")]
pub fn restore(state: State<'_>) -> PyResult<Layout> {
    Ok(restored(state)?.into())
}
