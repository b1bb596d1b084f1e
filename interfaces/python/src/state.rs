//! Layouts as pickles, and when two are equal.

use crate::described::{Base, Described, Runs};
use crate::dtype::Element;
use crate::errors::mismatch;
use crate::strided::Strided;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// Offset, shape and strides.
type Numbers = (i64, Vec<i64>, Vec<i64>);

/// Whether two layouts pack the same bytes of the same arrays.
pub fn is_equal(one: &Described, other: &Described) -> bool {
    let bases = match (&one.base, &other.base) {
        (Base::Array(one), Base::Array(other)) => one == other,
        (Base::Records, Base::Records) => true,
        (Base::Memory(one), Base::Memory(other)) => one.to_string() == other.to_string(),
        _ => false,
    };
    let elements = |one: &Element, other: &Element| (one.name(), one.bytes) == (other.name(), other.bytes);
    bases
        && elements(&one.element, &other.element)
        && elements(one.packed_element(), other.packed_element())
        && (&one.runs, &one.view) == (&other.runs, &other.view)
}

fn numbers(strided: &Strided) -> Numbers {
    (strided.offset, strided.shape.to_vec(), strided.strides.to_vec())
}

fn strided((offset, shape, strides): Numbers) -> PyResult<Strided> {
    match shape.len() == strides.len() && !shape.iter().any(|&count| count < 0) {
        true => Ok(Strided { offset, shape: shape.into(), strides: strides.into() }),
        false => Err(mismatch("state", "a stride for each axis", "another number")),
    }
}

/// The function that makes a layout again, and its arguments.
pub fn reduced<'py>(py: Python<'py>, described: &Described) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let module = py.import("libdtc._libdtc")?;
    let base = match &described.base {
        Base::Memory(datatype) => return Ok((module.getattr("load")?, PyTuple::new(py, [datatype.to_string()])?)),
        Base::Array(base) => Some(numbers(base)),
        Base::Records => None,
    };
    let result = described.result.as_ref().map(|result| result.shown(py));
    let state = (base, described.element.shown(py), result, described.runs.to_vec(), numbers(&described.view));
    Ok((module.getattr("_restore")?, PyTuple::new(py, [state.into_pyobject(py)?])?))
}

/// What [`reduced`] has of a layout of an array or of records.
pub type State<'py> = (Option<Numbers>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Vec<(i64, i64)>, Numbers);

/// What a pickle describes. Bytes outside of the array are refused.
pub fn restored(state: State<'_>) -> PyResult<Described> {
    let (base, element, result, runs, view) = state;
    let element = Element::new(&element)?;
    let base = base.map(strided).transpose()?;
    let (view, runs): (Strided, Runs) = (strided(view)?, SmallVec::from_vec(runs));
    let reach = |strided: &Strided, item| strided.span(item).ok_or_else(|| mismatch("state", "fewer bytes", "2^63"));
    let end = runs.iter().try_fold(0i64, |end, &(offset, bytes)| match (offset, bytes) {
        (0.., 0..) => Some(end.max(offset.checked_add(bytes)?)),
        _ => None,
    });
    let end =
        end.filter(|&end| end <= element.bytes).ok_or_else(|| mismatch("state", "fields of the element", "others"))?;
    let (low, high) = reach(&view, end)?;
    let (first, last) = match &base {
        Some(base) => reach(base, element.bytes)?,
        None => (0, element.bytes),
    };
    if low < high && (low < first || high > last) {
        return Err(mismatch("state", format_args!("bytes from {first} to {last}"), format_args!("{low} to {high}")));
    }
    let base = base.map_or(Base::Records, Base::Array);
    let result = result.map(|result| Element::new(&result)).transpose()?;
    Ok(Described { base, element, result, runs, view })
}
