//! Index tables: axes whose elements a table of the call lists.

use crate::acquire;
use crate::array::{Array, Place};
use crate::described::Described;
use crate::dtype::name;
use crate::errors::{self, LayoutError, mismatch};
use crate::strided::Table;
use dtc_runtime::cuda::MemoryKind;
use dtc_runtime::{Endpoint, IndexTable, TabledError};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

/// An axis whose elements an index table of the call lists. `index` makes one.
#[pyclass(frozen, module = "libdtc")]
pub struct IndexAxis {
    /// The table.
    pub table: Arc<Table>,
}

#[pymethods]
impl IndexAxis {
    /// The name of the argument that calls pass the table as.
    #[getter]
    fn name(&self) -> &str {
        &self.table.name
    }

    /// Entries that a table has at most.
    #[getter]
    fn max(&self) -> i64 {
        self.table.most
    }

    fn __repr__(&self) -> String {
        format!("libdtc.index({:?}, max={})", self.table.name, self.table.most)
    }
}

/// Arguments of calls, which no table can have the name of.
const ARGUMENTS: [&str; 10] = ["self", "x", "out", "buf", "stream", "dst", "ld", "src", "ls", "op"];

/// An entry of an index, for an axis whose elements come with each call: `L[:, libdtc.index("rows", max=64)].pack(x, rows=table)` packs
/// the elements that the table lists, in its order, at most 64 of them. Axes stay where they are, and tables for several axes cross, as
/// those of `numpy.ix_` do.
///
/// A table is an array of int32 or int64 in any memory that the call reaches, or a list. Entries below 0 are skipped: what would be
/// moved for them stays as it is.
///
/// >>> import numpy as np, libdtc
/// >>> field = np.arange(12).reshape(3, 4)
/// >>> columns = libdtc.layout(field)[:, libdtc.index("columns", max=4)]
/// >>> columns.pack(field, columns=[3, 0])
/// array([[ 3,  0],
///        [ 7,  4],
///        [11,  8]])
#[pyfunction]
#[pyo3(signature = (name, *, max))]
pub fn index(name: String, max: i64) -> PyResult<IndexAxis> {
    let is_name = name.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_alphanumeric() || character == '_');
    if !is_name || ARGUMENTS.contains(&name.as_str()) {
        return Err(mismatch("name", "the name of an argument that calls do not have", format_args!("{name:?}")));
    }
    if max < 1 {
        return Err(mismatch("max", "at least 1 entry", max));
    }
    Ok(IndexAxis { table: Arc::new(Table { name, most: max }) })
}

/// The entries of one table.
enum Entries<'py> {
    /// Copied from memory of the host, so that no other thread changes them between their check and their use.
    Narrow(Vec<i32>),
    /// The same, of 64 bits.
    Wide(Vec<i64>),
    /// Read by a device, when the call runs there.
    Reached { array: Array<'py>, kind: MemoryKind, wide: bool },
}

impl Entries<'_> {
    fn table(&self) -> IndexTable<'_> {
        match self {
            Entries::Narrow(entries) => IndexTable::from(entries),
            Entries::Wide(entries) => IndexTable::from(entries),
            Entries::Reached { array, kind, wide } => {
                IndexTable::at(Endpoint::of_kind(*kind, array.address), *wide, array.elements.count() as u64)
            }
        }
    }
}

/// The tables of a call.
#[derive(Default)]
pub struct Tables<'py>(SmallVec<[Entries<'py>; 1]>);

impl<'py> Tables<'py> {
    /// The tables of a layout among the arguments of a call.
    pub fn of(described: &Described, arguments: Option<&Bound<'py, PyDict>>) -> PyResult<Tables<'py>> {
        if !described.has_tables() {
            return Ok(Tables::default());
        }
        let mut found = SmallVec::new();
        for table in described.tables() {
            let argument = arguments.map(|arguments| arguments.get_item(&table.name)).transpose()?.flatten();
            let Some(argument) = argument else {
                return Err(PyTypeError::new_err(format!("{}: expected a table of indices, found none", table.name)));
            };
            let given = entries(&table.name, &argument)?;
            match given.table().len() as i64 {
                length if length > table.most => {
                    return Err(mismatch(&table.name, format_args!("at most {} entries", table.most), length));
                }
                _ => found.push(given),
            }
        }
        Ok(Tables(found))
    }

    /// The tables as the engine takes them.
    pub fn list(&self) -> SmallVec<[IndexTable<'_>; 1]> {
        self.0.iter().map(Entries::table).collect()
    }

    /// Those that a device reads when the call runs there.
    pub fn reached(&self) -> impl Iterator<Item = &Array<'py>> {
        self.0.iter().filter_map(|entries| match entries {
            Entries::Reached { array, .. } => Some(array),
            _ => None,
        })
    }

    /// How many entries each has.
    pub fn lengths(&self) -> SmallVec<[i64; 1]> {
        self.list().iter().map(|table| table.len() as i64).collect()
    }
}

/// Refuses arguments that are tables of no layout of the call.
pub fn check_names(layouts: &[&Described], arguments: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    for name in arguments.iter().flat_map(|arguments| arguments.keys()) {
        let name: String = name.extract()?;
        if !layouts.iter().any(|layout| layout.tables().iter().any(|table| table.name == name)) {
            return Err(PyTypeError::new_err(format!(
                "{name}: expected an argument or a table of the layout, found neither"
            )));
        }
    }
    Ok(())
}

/// The exception for a transfer with tables that moved nothing. `layouts`: those of the transfer, whose tables follow each other.
pub fn not_moved(error: TabledError, layouts: &[&Described]) -> PyErr {
    item_not_moved("", error, layouts)
}

/// The same for one of several. `item`: what goes before the names of its tables.
pub fn item_not_moved(item: &str, error: TabledError, layouts: &[&Described]) -> PyErr {
    let name = |table: usize| {
        let mut names = layouts.iter().flat_map(|layout| layout.tables());
        names.nth(table).map_or_else(|| format!("{item}table {table}"), |table| format!("{item}{}", table.name))
    };
    match error {
        TabledError::Entry { table, index, places, found } => {
            PyIndexError::new_err(format!("{}[{index}]: expected an index below {places}, found {found}", name(table)))
        }
        TabledError::Length { table, most, found } => {
            mismatch(name(table), format_args!("at most {most} entries"), found)
        }
        TabledError::Kind { table, expected, found } => mismatch(name(table), expected, found),
        TabledError::Transfer(error) => errors::not_moved(error),
        TabledError::Cuda(error) => errors::refused(error),
        other => LayoutError::new_err(other.to_string()),
    }
}

fn entries<'py>(argument: &str, given: &Bound<'py, PyAny>) -> PyResult<Entries<'py>> {
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return Ok(Entries::Wide(given.extract()?));
    }
    let array = acquire::array(argument, given)?;
    let [count] = array.elements.shape[..] else {
        return Err(mismatch(argument, "a table with 1 axis", format_args!("{} axes", array.elements.shape.len())));
    };
    let wide = match array.dtype.as_ref().map(name).as_deref() {
        // The size is that of the protocol, which says where the bytes are.
        Some("int32") if array.item == 4 => false,
        Some("int64") if array.item == 8 => true,
        found => return Err(mismatch(argument, "a table of int32 or int64", found.unwrap_or("bytes without a type"))),
    };
    if let Place::Reached(kind) = array.place {
        array.packed_bytes(argument)?;
        return Ok(Entries::Reached { array, kind, wide });
    }
    let stride = array.elements.strides[0] as isize;
    // SAFETY: the array has `count` elements at this stride from its address on, each of 4 or 8 bytes as its type says; it is held, and its
    // producer keeps the memory.
    Ok(unsafe {
        match wide {
            true => Entries::Wide(gathered(array.address, count, stride)),
            false => Entries::Narrow(gathered(array.address, count, stride)),
        }
    })
}

/// # Safety
///
/// `count` values, aligned or not, lie at the stride, in bytes, from `first` on.
unsafe fn gathered<T: Copy>(first: *const u8, count: i64, stride: isize) -> Vec<T> {
    let at = |index| first.wrapping_offset(index as isize * stride).cast::<T>();
    // SAFETY: the contract of this function.
    (0..count).map(|index| unsafe { at(index).read_unaligned() }).collect()
}
