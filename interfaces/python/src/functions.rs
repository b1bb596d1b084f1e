//! The functions of the package.

use crate::acquire;
use crate::described::{Base, Described};
use crate::dtype::{Element, Fields};
use crate::errors::{LayoutError, mismatch};
use crate::layout::Layout;
use crate::moves;
use crate::state::{State, restored};
use crate::strided::{Axes, Strided};
use dtc_runtime::datatype::{Datatype, json, text};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use std::path::PathBuf;

/// The layout of all elements of an array.
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
        let element = match &array.dtype {
            Some(dtype) => Element::new(dtype)?,
            None => Element::unknown(array.item),
        };
        return Ok(Described::of_array(element, array.elements.clone())?.into());
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

/// The layout of fields of structured elements, for arrays of any shape without gaps between their elements.
#[pyfunction]
pub fn fields(dtype: &Bound<'_, PyAny>, names: Vec<Bound<'_, PyString>>) -> PyResult<Layout> {
    let element = Element::new(dtype)?;
    let found = Fields::several(&element, &names)?;
    let view = Strided { offset: 0, shape: Axes::new(), strides: Axes::new() };
    let (runs, result) = (SmallVec::from_vec(found.runs), Some(found.result));
    Ok(Described { base: Base::Records, element, result, runs, view }.into())
}

/// The layout of a datatype in the short notation or in JSON, or of the file that a path names.
#[pyfunction]
pub fn load(source: &Bound<'_, PyAny>) -> PyResult<Layout> {
    let written = match source.cast::<PyString>() {
        Ok(text) => text.to_str()?.to_owned(),
        Err(_) => {
            let path: PathBuf = source.extract()?;
            std::fs::read_to_string(&path)?
        }
    };
    let datatype: Datatype = if written.trim_start().starts_with('{') {
        json::read(&written).map_err(|error| LayoutError::new_err(error.to_string()))?.datatype
    } else {
        text::parse(&written).map_err(|error| LayoutError::new_err(error.to_string()))?
    };
    let view = Strided { offset: 0, shape: Axes::new(), strides: Axes::new() };
    let runs = SmallVec::from_elem((0, 1), 1);
    Ok(Described { base: Base::Memory(datatype), element: Element::unknown(1), result: None, runs, view }.into())
}

/// Copies what the layout `ls` packs of `src` to where the layout `ld` unpacks in `dst`, and returns `dst`.
#[pyfunction]
#[pyo3(signature = (dst, ld, src, ls, *, stream=None), text_signature = "(dst, ld, src, ls, *, stream=None)")]
pub fn copy<'py>(
    dst: &Bound<'py, PyAny>,
    ld: &Layout,
    src: &Bound<'py, PyAny>,
    ls: &Layout,
    stream: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    ld.check_written("dst")?;
    let (read, written) = (acquire::array("src", src)?, acquire::array_to_write("dst", dst)?);
    let (from, to) = (ls.end("src", &read)?, ld.end("dst", &written)?);
    let bytes = |layout: &Layout, end: &moves::End<'_, '_>| layout.described.bytes() * end.count() as i64;
    let (expected, found) = (bytes(ls, &from), bytes(ld, &to));
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
