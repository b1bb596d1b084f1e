//! The class `Layout`.

use crate::acquire;
use crate::array::Array;
use crate::described::{Base, Described, commit};
use crate::dtype::Fields;
use crate::errors::mismatch;
use crate::index::{Names, entries, names, order};
use crate::moves::{End, check_apart, move_packed};
use crate::results::{Wanted, new_array};
use crate::state;
use crate::strided::Tuple;
use dtc_runtime::Committed;
use dtc_runtime::plan::Direction;
use once_cell::race::OnceBox;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Which bytes of an array are packed, and in which order.
///
/// `layout`, `fields` and `load` make one. An index, `.T` and `.permute` make others of it, as they make views of arrays. A layout never
/// changes, may be used by any number of threads, and pickles.
#[pyclass(frozen, module = "libdtc")]
pub struct Layout {
    pub(crate) described: Described,
    committed: OnceBox<Committed>,
}

impl From<Described> for Layout {
    fn from(described: Described) -> Layout {
        Layout { described, committed: OnceBox::new() }
    }
}

impl Layout {
    /// The committed type, made at the first use.
    pub fn committed(&self) -> PyResult<&Committed> {
        self.committed.get_or_try_init(|| commit(&self.described).map(Box::new))
    }

    /// The array with the layout applied to it, if it fits.
    pub fn end<'a, 'py>(&'a self, argument: &'a str, array: &'a Array<'py>) -> PyResult<End<'a, 'py>> {
        let applied = self.described.apply(argument, array)?;
        Ok(End { argument, array, applied: Some((&self.described, self.committed()?, applied)) })
    }

    /// Refuses layouts that name a byte twice, where they are written.
    pub fn check_written(&self, argument: &str) -> PyResult<()> {
        match self.described.writes_twice() {
            true => Err(mismatch(argument, "a layout whose elements have no byte in common", "overlapping elements")),
            false => Ok(()),
        }
    }

    /// Refuses calls on the axes of layouts that have none.
    fn check_axes(&self) -> PyResult<()> {
        match self.described.base {
            Base::Array(_) => Ok(()),
            _ => Err(PyTypeError::new_err(
                "layout: expected one of an array, found one of records or one that was loaded",
            )),
        }
    }

    fn packed<'a, 'py>(&self, argument: &'a str, array: &'a Array<'py>, bytes: i64) -> PyResult<End<'a, 'py>> {
        match array.packed_bytes(argument)? {
            found if found != bytes => Err(mismatch(argument, format_args!("{bytes} bytes"), found)),
            _ => Ok(End { argument, array, applied: None }),
        }
    }

    fn new_packed<'py>(&self, x: &Array<'py>, count: u64) -> PyResult<Bound<'py, PyAny>> {
        let described = &self.described;
        let wanted = described.result.as_ref().map_or(Wanted::Same, Wanted::Of);
        match &described.base {
            _ if x.dtype.is_none() => new_array(x, &[described.bytes() * count as i64], &Wanted::Bytes, false),
            Base::Array(_) => new_array(x, &described.view.shape, &wanted, false),
            Base::Records => new_array(x, &x.elements.shape, &wanted, false),
            Base::Memory(_) => new_array(x, &[described.bytes()], &Wanted::Bytes, false),
        }
    }

    fn new_memory<'py>(&self, buf: &Array<'py>) -> PyResult<Bound<'py, PyAny>> {
        let described = &self.described;
        let same = match &buf.dtype {
            Some(dtype) if described.element.is(dtype)? => Wanted::Same,
            _ => Wanted::Of(&described.element),
        };
        match &described.base {
            Base::Array(base) if base.is_contiguous(described.element.bytes) => {
                new_array(buf, &base.shape, &same, true)
            }
            Base::Array(base) => {
                Err(mismatch("out", format_args!("an array with the strides {}", Tuple(&base.strides)), "None"))
            }
            Base::Records => {
                let records = buf.packed_bytes("buf")? / described.bytes().max(1);
                new_array(buf, &[records], &same, true)
            }
            Base::Memory(_) => new_array(buf, &[described.span(1).1], &Wanted::Bytes, true),
        }
    }
}

/// The array that a call writes: the one that is given, or else a new one, which needs the order of the framework's own stream.
fn written<'py>(
    given: Option<&Bound<'py, PyAny>>,
    has_stream: bool,
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Array<'py>> {
    match given {
        Some(out) => acquire::array_to_write("out", out),
        None if has_stream => Err(mismatch("out", "an array, since there is a stream", "None")),
        None => acquire::array_to_write("out", &make()?),
    }
}

#[pymethods]
impl Layout {
    /// Elements along each axis of the packed elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match &self.described.base {
            Base::Memory(_) => PyTuple::new(py, [self.described.bytes()]),
            _ => PyTuple::new(py, &self.described.view.shape),
        }
    }

    /// Bytes from an element to the next along each axis, in the array that is packed.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.described.view.strides)
    }

    /// The type of the packed elements: as it was given, or NumPy's.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.described.packed_element().shown(py)
    }

    /// Packed bytes; of one record, if the layout is that of `fields`.
    #[getter]
    fn nbytes(&self) -> i64 {
        self.described.bytes()
    }

    /// The layout with its axes reversed.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<Layout> {
        let reversed: Vec<usize> = (0..self.described.view.shape.len()).rev().collect();
        Ok(self.described.with_view(py, self.described.view.permuted(&reversed)).into())
    }

    /// The layout with its axes in another order: `axes` names each axis once.
    #[pyo3(signature = (*axes))]
    fn permute(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Layout> {
        self.check_axes()?;
        let py = axes.py();
        let axes: Vec<i64> = match axes.len() {
            1 => axes.get_item(0)?.extract().or_else(|_| axes.extract())?,
            _ => axes.extract()?,
        };
        let order = order(&axes, self.described.view.shape.len())?;
        Ok(self.described.with_view(py, self.described.view.permuted(&order)).into())
    }

    /// The part of the layout that an index names, as it names a view of an array: ints, slices, `...`, `None`, or fields of the
    /// elements, one name or a list of them.
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Layout> {
        self.check_axes()?;
        let py = index.py();
        let described = &self.described;
        match names(index)? {
            Some(Names::One(name)) => Ok(described.with_fields(py, Fields::one(&described.element, &name)?)?.into()),
            Some(Names::Several(names)) => {
                Ok(described.with_fields(py, Fields::several(&described.element, &names)?)?.into())
            }
            None => {
                let view = described.view.at(&entries(index, &described.view.shape)?);
                Ok(described.with_view(py, view).into())
            }
        }
    }

    /// Packs what the layout names of `x` into `out`, and returns it: a new array of the library of `x`, if it is left out.
    #[pyo3(signature = (x, out=None, *, stream=None))]
    fn pack<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = acquire::array("x", x)?;
        let memory = self.end("x", &array)?;
        let count = memory.count();
        let out = written(out, stream.is_some(), || self.new_packed(&array, count))?;
        let bytes = self.described.bytes() * count as i64;
        let packed = self.packed("out", &out, bytes)?;
        if bytes > 0 {
            check_apart(&memory, &packed)?;
            move_packed(Direction::Pack, &memory, &packed, stream)?;
        }
        Ok(out.object.clone())
    }

    /// Unpacks `buf` to where the layout says in `out`, and returns it: a new array of the library of `buf`, with zeros elsewhere, if it
    /// is left out.
    #[pyo3(signature = (buf, out=None, *, stream=None))]
    fn unpack<'py>(
        &self,
        buf: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_written("out")?;
        let array = acquire::array("buf", buf)?;
        let out = written(out, stream.is_some(), || self.new_memory(&array))?;
        let memory = self.end("out", &out)?;
        let count = memory.count();
        let bytes = self.described.bytes() * count as i64;
        let packed = self.packed("buf", &array, bytes)?;
        if bytes > 0 {
            check_apart(&packed, &memory)?;
            move_packed(Direction::Unpack, &memory, &packed, stream)?;
        }
        Ok(out.object.clone())
    }

    /// What the compiler makes of the layout, for people: the datatype, its canonical layout, the plan, and the tier that serves now.
    fn explain(&self) -> PyResult<String> {
        let committed = self.committed()?;
        let (datatype, tier) = (committed.datatype(), committed.tier());
        Ok(format!("{datatype}\n\n{}\n{}\ntier: {tier}\n", committed.layout(), committed.plan()))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Layout>().is_ok_and(|other| state::is_equal(&self.described, &other.get().described))
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Described { base, runs, view, .. } = &self.described;
        match base {
            // A type is equal to others with the same text, and hashes by its bytes.
            Base::Memory(datatype) => datatype.size().hash(&mut hasher),
            Base::Array(base) => base.hash(&mut hasher),
            Base::Records => {}
        }
        (runs, view).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let name = self.described.packed_element().name();
        match &self.described.base {
            Base::Array(base) => {
                format!(
                    "<libdtc.Layout of {name}, shape {} of {}>",
                    Tuple(&self.described.view.shape),
                    Tuple(&base.shape)
                )
            }
            Base::Records => format!(
                "<libdtc.Layout of records, {} bytes of {}>",
                self.described.bytes(),
                self.described.element.bytes
            ),
            Base::Memory(datatype) => format!("<libdtc.Layout of {} bytes: {datatype}>", self.described.bytes()),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        state::reduced(py, &self.described)
    }
}
