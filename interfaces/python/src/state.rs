//! Layouts as pickles, and when two are equal.

use crate::described::{Base, Described, Runs, TabledAxis, Whole};
use crate::dtype::Element;
use crate::errors::mismatch;
use crate::strided::{Strided, Table};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::sync::Arc;

/// Offset, shape and strides.
type Numbers = (i64, Vec<i64>, Vec<i64>);

/// Whether two layouts pack the same bytes of the same arrays.
pub fn is_equal(py: Python<'_>, one: &Described, other: &Described) -> PyResult<bool> {
    let bases = match (&one.whole.base, &other.whole.base) {
        (Base::Array(one), Base::Array(other)) => one == other,
        (Base::Records, Base::Records) => true,
        (Base::Memory(one), Base::Memory(other)) => one.to_string() == other.to_string(),
        (Base::Tabled(one), Base::Tabled(other)) => one.datatype().to_string() == other.datatype().to_string(),
        _ => false,
    };
    let parts = |described: &Described| (described.runs.clone(), described.view.clone(), described.tabled.clone());
    Ok(bases
        && parts(one) == parts(other)
        && one.element().is_same(py, other.element())?
        && one.packed_element().is_same(py, other.packed_element())?)
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
    let base = match &described.whole.base {
        Base::Memory(datatype) => return Ok((module.getattr("load")?, PyTuple::new(py, [datatype.to_string()])?)),
        Base::Tabled(loaded) => {
            return Ok((module.getattr("load")?, PyTuple::new(py, [loaded.datatype().to_string()])?));
        }
        Base::Array(base) => Some(numbers(base)),
        Base::Records => None,
    };
    let result = described.result.as_ref().map(|result| result.shown(py));
    let tabled: Vec<Tabled> =
        described.tabled.iter().map(|by| (by.axis, by.table.name.clone(), by.table.most, by.places)).collect();
    let packed = (described.runs.to_vec(), numbers(&described.view), tabled);
    let state = (base, described.element().shown(py), result, packed);
    Ok((module.getattr("_restore")?, PyTuple::new(py, [state.into_pyobject(py)?])?))
}

/// An axis of the view, the name of its table, entries of the longest table, and how many elements it chooses from.
type Tabled = (usize, String, i64, i64);

/// What [`reduced`] has of a layout of an array or of records: the array, its type and that of the packed elements; what is packed of each
/// element, which elements, and the axes that tables list.
pub type State<'py> =
    (Option<Numbers>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, (Vec<(i64, i64)>, Numbers, Vec<Tabled>));

/// What a pickle describes. Bytes outside of the array are refused.
pub fn restored(state: State<'_>) -> PyResult<Described> {
    let (base, element, result, (runs, view, tabled)) = state;
    let element = Element::new(&element)?;
    let base = base.map(strided).transpose()?.map_or(Base::Records, Base::Array);
    let (view, runs): (Strided, Runs) = (strided(view)?, SmallVec::from_vec(runs));
    let end = runs.iter().try_fold(0i64, |end, &(offset, bytes)| match (offset, bytes) {
        (0.., 0..) => Some(end.max(offset.checked_add(bytes)?)),
        _ => None,
    });
    let end =
        end.filter(|&end| end <= element.bytes).ok_or_else(|| mismatch("state", "fields of the element", "others"))?;
    let mut described = Described::new(Whole { base, element }, runs, view);
    described.tabled = tabled.into_iter().map(restored_axis).collect();
    if described.tabled.iter().any(|by| by.axis >= described.view.shape.len() || by.places < 1 || by.table.most < 1) {
        return Err(mismatch("state", "index axes of the layout", "others"));
    }
    check_within(&described, end)?;
    let result = result.map(|result| Element::new(&result)).transpose()?;
    Ok(Described { result: result.map(Arc::new), ..described })
}

fn restored_axis((axis, name, most, places): Tabled) -> TabledAxis {
    TabledAxis { axis, table: Arc::new(Table { name, most }), places }
}

/// Refuses elements outside of the array. `end`: one past the last byte that is packed of an element.
fn check_within(described: &Described, end: i64) -> PyResult<()> {
    let reach = |strided: &Strided, item| strided.span(item).ok_or_else(|| mismatch("state", "fewer bytes", "2^63"));
    reach(&described.view, end)?;
    let (low, high) = reach(&described.reached(), end)?;
    let (first, last) = match &described.whole.base {
        Base::Array(base) => reach(base, described.element().bytes)?,
        _ => (0, described.element().bytes),
    };
    if low < high && (low < first || high > last) {
        return Err(mismatch("state", format_args!("bytes from {first} to {last}"), format_args!("{low} to {high}")));
    }
    Ok(())
}
