//! The class `Layout`.

use crate::acquire;
use crate::array::Array;
use crate::committed::{LayoutType, Moved};
use crate::described::{Base, Described};
use crate::dtype::{Element, Fields};
use crate::errors::mismatch;
use crate::index::{Names, entries, names, order};
use crate::moves::{End, Movement, Part, check_apart, move_packed};
use crate::operation::reduction;
use crate::ordered::handed_over;
use crate::results::{Wanted, new_array};
use crate::source::source;
use crate::state;
use crate::strided::Tuple;
use crate::tables::{Tables, check_names};
use crate::view::view;
use dtc_runtime::CommittedTabled;
use dtc_runtime::plan::Direction;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Which bytes of an array are packed, and in which order.
///
/// `layout`, `fields`, `load` and `from_mpi` make one. An index, `.T` and `.permute` make others of it, as they make views of arrays. A
/// layout never changes, may be used by any number of threads, and pickles.
#[pyclass(frozen, module = "libdtc")]
pub struct Layout {
    pub(crate) made: LayoutType,
}

impl From<Described> for Layout {
    fn from(described: Described) -> Layout {
        Layout { made: described.into() }
    }
}

impl Layout {
    /// What it is.
    pub fn described(&self) -> &Described {
        &self.made.described
    }

    /// The array with the layout applied to it, if it fits.
    pub fn end<'a, 'py>(
        &'a self,
        argument: &'a str,
        array: &'a Array<'py>,
        tables: &'a Tables<'py>,
    ) -> PyResult<End<'a, 'py>> {
        let applied = self.described().apply(argument, array)?;
        let bytes = match self.described().has_tables() {
            false => self.described().bytes() * applied.count as i64,
            true => self.described().packed(&tables.lengths()).0,
        };
        Ok(End {
            argument,
            array,
            part: Some(Part { made: &self.made, ready: self.made.ready()?, tables, applied, bytes }),
        })
    }

    /// Refuses layouts that name a byte twice, where they are written.
    pub fn check_written(&self, argument: &str) -> PyResult<()> {
        match self.made.ready()?.writes_twice {
            true => Err(mismatch(argument, "a layout whose elements have no byte in common", "overlapping elements")),
            false => Ok(()),
        }
    }

    /// Refuses calls on the axes of layouts that have none.
    fn check_axes(&self) -> PyResult<()> {
        match self.described().whole.base {
            Base::Array(_) => Ok(()),
            _ => Err(PyTypeError::new_err(
                "layout: expected one of an array, found one of records or one that was loaded",
            )),
        }
    }

    /// The array that packed bytes are in, as long as they are.
    pub fn packed<'a, 'py>(&self, argument: &'a str, array: &'a Array<'py>, bytes: i64) -> PyResult<End<'a, 'py>> {
        match array.packed_bytes(argument)? {
            found if found != bytes => Err(mismatch(argument, format_args!("{bytes} bytes"), found)),
            _ => Ok(End { argument, array, part: None }),
        }
    }

    fn new_packed<'py>(&self, x: &Array<'py>, bytes: i64, tables: &Tables<'py>) -> PyResult<Bound<'py, PyAny>> {
        let described = self.described();
        let wanted = described.result.as_deref().map_or(Wanted::Same, Wanted::Of);
        // Skipped entries leave what is there.
        let zeroed = described.has_tables();
        match &described.whole.base {
            _ if x.dtype.is_none() => new_array(x, &[bytes], &Wanted::Bytes, zeroed),
            Base::Array(_) if zeroed => new_array(x, &described.packed(&tables.lengths()).1, &wanted, true),
            Base::Array(_) => new_array(x, &described.view.shape, &wanted, false),
            Base::Records => new_array(x, &x.elements.shape, &wanted, false),
            Base::Memory(_) | Base::Tabled(_) => new_array(x, &[bytes], &Wanted::Bytes, zeroed),
        }
    }

    fn explain_tabled(&self, committed: &CommittedTabled) -> String {
        let datatype = committed.datatype();
        let mut text = format!("{datatype}\n\n");
        for (table, facts) in self.described().tables().iter().zip(datatype.tables()) {
            text += &format!("{}: {facts}\n", table.name);
        }
        text += &format!("\n{}\n", committed.layout());
        for (number, plan) in committed.plans().enumerate() {
            text += &format!("layout {number}, for each entry in host memory: {plan}\n");
        }
        let kernel =
            committed.kernel().map_or_else(|| "none, generic ones serve".to_owned(), |kernel| kernel.to_string());
        text + &format!("kernel on a GPU: {kernel}\n")
    }

    fn new_memory<'py>(&self, buf: &Array<'py>) -> PyResult<Bound<'py, PyAny>> {
        let described = self.described();
        let same = match &buf.dtype {
            Some(dtype) if described.element().is(dtype)? => Wanted::Same,
            _ => Wanted::Of(described.element()),
        };
        match &described.whole.base {
            Base::Array(base) if base.is_contiguous(described.element().bytes) => {
                new_array(buf, &base.shape, &same, true)
            }
            Base::Array(base) => {
                Err(mismatch("out", format_args!("an array with the strides {}", Tuple(&base.strides)), "None"))
            }
            Base::Records => {
                let records = buf.packed_bytes("buf")? / described.bytes().max(1);
                new_array(buf, &[records], &same, true)
            }
            Base::Memory(_) | Base::Tabled(_) => new_array(buf, &[described.span(1).1], &Wanted::Bytes, true),
        }
    }
}

/// The array that a call writes: the one that is given, or else a new one, which needs the order of the framework's own stream. A new one
/// is written even if its framework never changes arrays, since nothing else has seen it.
fn written<'py>(
    given: Option<&Bound<'py, PyAny>>,
    has_stream: bool,
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    element: Option<&Element>,
) -> PyResult<Array<'py>> {
    match given {
        Some(out) => acquire::array_to_write("out", out, element),
        None if has_stream => Err(mismatch("out", "an array, since there is a stream", "None")),
        None => acquire::array_of("out", &make()?, element),
    }
}

/// What a call returns: the array that was given, or the new one as its framework takes it.
fn returned<'py>(given: Option<&Bound<'py, PyAny>>, written: Array<'py>) -> PyResult<Bound<'py, PyAny>> {
    match given {
        Some(_) => Ok(written.object),
        None => handed_over(written),
    }
}

#[pymethods]
impl Layout {
    /// Elements along each axis of the packed elements.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match &self.described().whole.base {
            Base::Memory(_) | Base::Tabled(_) => PyTuple::new(py, [self.described().bytes()]),
            _ => PyTuple::new(py, &self.described().view.shape),
        }
    }

    /// Bytes from an element to the next along each axis, in the array that is packed.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.described().view.strides)
    }

    /// The type of the packed elements: as it was given, or NumPy's.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.described().packed_element().shown(py)
    }

    /// Packed bytes; of one record, if the layout is that of `fields`.
    #[getter]
    fn nbytes(&self) -> i64 {
        self.described().bytes()
    }

    /// The layout with its axes reversed.
    #[getter(T)]
    fn transposed(&self) -> Layout {
        let reversed: Vec<usize> = (0..self.described().view.shape.len()).rev().collect();
        self.described().permuted(&reversed).into()
    }

    /// The layout with its axes in another order: `axes` names each axis once.
    ///
    /// >>> import libdtc
    /// >>> libdtc.layout((2, 3, 4), "f8").permute(2, 0, 1).shape
    /// (4, 2, 3)
    #[pyo3(signature = (*axes))]
    fn permute(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Layout> {
        self.check_axes()?;
        let axes: Vec<i64> = match axes.len() {
            1 => axes.get_item(0)?.extract().or_else(|_| axes.extract())?,
            _ => axes.extract()?,
        };
        let order = order(&axes, self.described().view.shape.len())?;
        Ok(self.described().permuted(&order).into())
    }

    /// The part of the layout that an index names, as it names a view of an array: ints, slices, `...`, `None`, axes of `index`, or fields
    /// of the elements, one name or a list of them.
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Layout> {
        self.check_axes()?;
        let described = self.described();
        match names(index)? {
            Some(Names::One(name)) => Ok(described.with_fields(Fields::one(described.element(), &name)?)?.into()),
            Some(Names::Several(names)) => {
                Ok(described.with_fields(Fields::several(described.element(), &names)?)?.into())
            }
            None => Ok(described.at(&entries(index, &described.view.shape)?)?.into()),
        }
    }

    /// Packs what the layout names of `x` into `out`, and returns it: a new array of the library of `x`, if it is left out. `tables`: one
    /// for each name of an index axis.
    ///
    /// `x` has the shape, strides and dtype that the layout was made with; `out` is C-contiguous, of any dtype, and has `nbytes` bytes. On a
    /// GPU the work is enqueued on `stream`, an int or an object with `__cuda_stream__`, or else on the current stream of the framework.
    ///
    /// Raises `LayoutError` where an array does not fit, `IndexError` for an entry of a table beyond the axis, `TypeError` for what is no
    /// array, and `CudaError` if CUDA refuses.
    ///
    /// >>> import numpy as np, libdtc
    /// >>> field = np.arange(12).reshape(3, 4)
    /// >>> libdtc.layout(field)[:, 1].pack(field)
    /// array([1, 5, 9])
    #[pyo3(signature = (x, out=None, *, stream=None, **tables))]
    fn pack<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
        tables: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check_names(&[self.described()], tables)?;
        let array = acquire::array_of("x", x, Some(self.described().element()))?;
        let tables = Tables::of(self.described(), tables)?;
        let memory = self.end("x", &array, &tables)?;
        let bytes = memory.bytes();
        let make = || self.new_packed(&array, bytes, &tables);
        let written = written(out, stream.is_some(), make, Some(self.described().packed_element()))?;
        let packed = self.packed("out", &written, bytes)?;
        if bytes > 0 {
            check_apart(&memory, &packed)?;
            move_packed(Movement::Plain(Direction::Pack), &memory, &packed, stream)?;
        }
        returned(out, written)
    }

    /// Unpacks `buf` to where the layout says in `out`, and returns it: a new array of the library of `buf`, with zeros elsewhere, if it
    /// is left out. `tables`: one for each name of an index axis; where one lists an element twice, one of both stays.
    ///
    /// With `op`, each element of `out` becomes itself op the packed one: "sum", "prod", "min", "max", or of MPI's "land", "lor", "lxor", "band", "bor"
    /// and "bxor". The layout is one of numbers.
    ///
    /// Arrays, `stream` and errors are as for `pack`, with `buf` in place of its `out`. Layouts that name a byte twice are refused.
    ///
    /// >>> import numpy as np, libdtc
    /// >>> libdtc.layout((3, 2), "i8")[:, 1].unpack(np.array([7, 8, 9]))
    /// array([[0, 7],
    ///        [0, 8],
    ///        [0, 9]])
    /// >>> libdtc.layout((3, 2), "i8")[:, 1].unpack(np.array([7, 8, 9]), np.ones((3, 2), int), op="sum")
    /// array([[ 1,  8],
    ///        [ 1,  9],
    ///        [ 1, 10]])
    #[pyo3(signature = (buf, out=None, *, op=None, stream=None, **tables))]
    fn unpack<'py>(
        &self,
        buf: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        op: Option<&str>,
        stream: Option<&Bound<'py, PyAny>>,
        tables: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check_names(&[self.described()], tables)?;
        self.check_written("out")?;
        let movement = match op {
            Some(_) if out.is_none() => return Err(mismatch("out", "an array, since there is an op", "None")),
            Some(op) => Movement::Combined(reduction(buf.py(), op, self.described().packed_element())?),
            None => Movement::Plain(Direction::Unpack),
        };
        let array = acquire::array_of("buf", buf, Some(self.described().packed_element()))?;
        let written = written(out, stream.is_some(), || self.new_memory(&array), Some(self.described().element()))?;
        let tables = Tables::of(self.described(), tables)?;
        let memory = self.end("out", &written, &tables)?;
        let bytes = memory.bytes();
        let packed = self.packed("buf", &array, bytes)?;
        if bytes > 0 {
            check_apart(&packed, &memory)?;
            move_packed(movement, &memory, &packed, stream)?;
        }
        returned(out, written)
    }

    /// What the compiler makes of the layout, for people: the datatype, its canonical layout, the plan, and the tier that serves now; with
    /// index axes, the datatype, what its tables hold, the layout above and below them, plans, and the kernel on a GPU.
    ///
    /// >>> import libdtc
    /// >>> print(libdtc.layout((3, 4), "f8")[:, 1].explain().splitlines()[0])
    /// hvector 3 1 32 (contiguous 8 byte)
    fn explain(&self) -> PyResult<String> {
        let committed = match &self.made.ready()?.moved {
            Moved::Fixed(committed) => committed,
            Moved::Tabled(committed) => return Ok(self.explain_tabled(committed)),
        };
        let (datatype, tier) = (committed.datatype(), committed.tier());
        Ok(format!("{datatype}\n\n{}\n{}\ntier: {tier}\n", committed.layout(), committed.plan()))
    }

    /// The layout as text that a program takes along, and that needs nothing of dtc, with functions named after `name`: `c`, `c-header`,
    /// `cuda-header` for kernels of one's own, or `mpi-c`, which builds the datatype by calls of MPI. It begins at the first byte that is
    /// packed.
    ///
    /// Raises `LayoutError` for another form, for a layout whose text would be too large, and for one with index axes.
    ///
    /// >>> import libdtc
    /// >>> "hvector" in libdtc.layout((3, 4), "f8")[:, 1].source("mpi-c")
    /// True
    #[pyo3(signature = (form, name="layout"))]
    fn source(&self, form: &str, name: &str) -> PyResult<String> {
        source(&self.made, form, name)
    }

    /// The layout as a page of HTML that loads nothing, for a file or a notebook: memory and packed bytes, the layout after each pass, plans, and the
    /// sectors and cache lines that they touch. With `svg`, one picture of memory and packed bytes instead. It begins at the first byte that is
    /// packed.
    ///
    /// >>> import libdtc
    /// >>> libdtc.layout((3, 4), "f8")[:, 1].view(svg=True).startswith("<svg")
    /// True
    #[pyo3(signature = (*, svg=false))]
    fn view(&self, py: Python<'_>, svg: bool) -> PyResult<String> {
        let name = self.__repr__(py);
        view(&self.made, name.trim_matches(['<', '>']).to_owned(), svg)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Layout>() {
            Ok(found) => state::is_equal(other.py(), self.described(), found.get().described()),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Described { whole, runs, view, tabled, .. } = self.described();
        match &whole.base {
            // A type is equal to others with the same text, and hashes by its bytes.
            Base::Memory(datatype) => datatype.size().hash(&mut hasher),
            Base::Tabled(loaded) => loaded.datatype().facts().size.hash(&mut hasher),
            Base::Array(base) => base.hash(&mut hasher),
            Base::Records => {}
        }
        (runs, view, tabled).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name = self.described().packed_element().name(py);
        match &self.described().whole.base {
            Base::Array(base) => {
                format!(
                    "<libdtc.Layout of {name}, shape {} of {}>",
                    Tuple(&self.described().view.shape),
                    Tuple(&base.shape)
                )
            }
            Base::Records => format!(
                "<libdtc.Layout of records, {} bytes of {}>",
                self.described().bytes(),
                self.described().element().bytes
            ),
            Base::Memory(datatype) => format!("<libdtc.Layout of {} bytes: {datatype}>", self.described().bytes()),
            Base::Tabled(loaded) => {
                format!("<libdtc.Layout of at most {} bytes: {}>", self.described().bytes(), loaded.datatype())
            }
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        state::reduced(py, self.described())
    }
}
