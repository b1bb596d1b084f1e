//! Indices as Python gives them: ints, slices, `...`, `None`, and names of fields.

use crate::errors::mismatch;
use crate::strided::Index;
use crate::tables::IndexAxis;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

/// The entries of an index for axes of these lengths, one for each axis: those that the index leaves out are whole.
pub fn entries(index: &Bound<'_, PyAny>, shape: &[i64]) -> PyResult<SmallVec<[Index; 6]>> {
    let given: SmallVec<[Bound<'_, PyAny>; 6]> = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => SmallVec::from_iter([index.clone()]),
    };
    let is_ellipsis = |entry: &Bound<'_, PyAny>| entry.is_instance_of::<PyEllipsis>();
    let named = given.iter().filter(|entry| !entry.is_none() && !is_ellipsis(entry)).count();
    if named > shape.len() {
        return Err(PyIndexError::new_err(format!("index: expected at most {} axes, found {named}", shape.len())));
    }
    if given.iter().filter(|entry| is_ellipsis(entry)).count() > 1 {
        return Err(PyIndexError::new_err("index: expected at most one ..., found several"));
    }
    let whole = |axis: usize| Index::Slice { start: 0, step: 1, count: shape[axis] };
    let mut entries = SmallVec::new();
    let mut axis = 0;
    for entry in &given {
        if entry.is_none() {
            entries.push(Index::NewAxis);
        } else if is_ellipsis(entry) {
            let left_out = shape.len() - named;
            entries.extend((axis..axis + left_out).map(whole));
            axis += left_out;
        } else {
            entries.push(self::entry(entry, axis, shape[axis])?);
            axis += 1;
        }
    }
    entries.extend((axis..shape.len()).map(whole));
    Ok(entries)
}

/// The entry of an index for an axis of that length.
fn entry(entry: &Bound<'_, PyAny>, axis: usize, length: i64) -> PyResult<Index> {
    if let Ok(table) = entry.cast::<IndexAxis>() {
        return Ok(Index::Table(table.get().table.clone()));
    }
    if let Ok(slice) = entry.cast::<PySlice>() {
        let found = slice.indices(length as isize)?;
        return Ok(Index::Slice {
            start: found.start as i64,
            step: found.step as i64,
            count: found.slicelength as i64,
        });
    }
    let number = match entry.is_exact_instance_of::<PyInt>() {
        true => Some(entry.clone()),
        false if entry.is_instance_of::<PyBool>() => None,
        false => entry.call_method0("__index__").ok(),
    };
    let Some(number) = number else {
        return Err(PyTypeError::new_err(format!(
            "axis {axis}: expected an int, a slice, ..., None or an axis of libdtc.index, found {}",
            entry.get_type()
        )));
    };
    let at = number.extract::<i64>().ok().map(|at| if at < 0 { at + length } else { at });
    match at.filter(|at| (0..length).contains(at)) {
        Some(at) => Ok(Index::At(at)),
        None if length == 0 => {
            Err(PyIndexError::new_err(format!("axis {axis}: expected no index of its 0 elements, found {number}")))
        }
        None => Err(PyIndexError::new_err(format!(
            "axis {axis}: expected an index from {} to {}, found {number}",
            -length,
            length - 1
        ))),
    }
}

/// The names of fields that an index has in place of entries for axes.
pub enum Names<'py> {
    /// `x["a"]`.
    One(Bound<'py, PyString>),
    /// `x[["a", "b"]]`.
    Several(Vec<Bound<'py, PyString>>),
}

/// The names, if the index is a name or a list of names.
pub fn names<'py>(index: &Bound<'py, PyAny>) -> PyResult<Option<Names<'py>>> {
    if let Ok(one) = index.cast::<PyString>() {
        return Ok(Some(Names::One(one.clone())));
    }
    let Ok(list) = index.cast::<PyList>() else { return Ok(None) };
    // A list of anything else is an entry for an axis, and refused as such.
    let names = list.iter().map(|name| name.cast_into::<PyString>().ok()).collect::<Option<_>>();
    Ok(names.map(Names::Several))
}

/// The order that `axes` names, each of `count` axes once. Negative ones count from the last.
pub fn order(axes: &[i64], count: usize) -> PyResult<Vec<usize>> {
    if axes.len() != count {
        return Err(mismatch("axes", format_args!("{count} axes"), axes.len()));
    }
    let mut found = Vec::with_capacity(count);
    for (at, &axis) in axes.iter().enumerate() {
        let known = usize::try_from(if axis < 0 { axis + count as i64 } else { axis }).ok();
        match known.filter(|axis| *axis < count && !found.contains(axis)) {
            Some(axis) => found.push(axis),
            None => {
                return Err(mismatch(format_args!("axes[{at}]"), format_args!("one of {count} axes, each once"), axis));
            }
        }
    }
    Ok(found)
}
