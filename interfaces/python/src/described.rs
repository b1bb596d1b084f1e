//! What a layout is: the memory that it is applied to, and the bytes of it that are packed.

use crate::array::Array;
use crate::dtype::{Element, Fields};
use crate::errors::{LayoutError, mismatch};
use crate::strided::{Axes, Index, Strided, Table, Tuple};
use dtc_runtime::TabledLayout;
use dtc_runtime::datatype::{Datatype, TableFacts, TableKind, TabledDatatype};
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a layout is applied to.
#[derive(Debug)]
pub enum Base {
    /// An array with this shape and these strides.
    Array(Strided),
    /// The elements, one after another, of an array of any shape.
    Records,
    /// Bytes of a type that was loaded: the least that an array has.
    Memory(Datatype),
    /// The same of a type with index tables.
    Tabled(Box<LoadedTabled>),
}

/// A type with index tables that was loaded.
#[derive(Debug)]
pub struct LoadedTabled {
    datatype: TabledDatatype,
    layout: TabledLayout,
    tables: Vec<Arc<Table>>,
}

impl LoadedTabled {
    /// Names its tables `table0` and so on. Tables of addresses are refused: what they lead to cannot be checked.
    pub fn new(datatype: TabledDatatype) -> PyResult<LoadedTabled> {
        let named = |(number, facts): (usize, &TableFacts)| match facts.kind {
            TableKind::Places(_) => {
                let most = i64::try_from(facts.most).unwrap_or(i64::MAX);
                Ok(Arc::new(Table { name: format!("table{number}"), most }))
            }
            TableKind::Addresses(_) => Err(mismatch(format_args!("table {number}"), "a table of indices", facts)),
        };
        let tables = datatype.tables().iter().enumerate().map(named).collect::<PyResult<_>>()?;
        Ok(LoadedTabled { layout: TabledLayout::new(&datatype), datatype, tables })
    }

    /// The type.
    pub fn datatype(&self) -> &TabledDatatype {
        &self.datatype
    }
}

/// The memory that a layout is applied to: that of layouts of its parts, too.
#[derive(Debug)]
pub struct Whole {
    /// How its elements are arranged.
    pub base: Base,
    /// Their type.
    pub element: Element,
}

/// First bytes and lengths of what is packed of an element.
pub type Runs = SmallVec<[(i64, i64); 1]>;

/// An axis of the packed elements that an index table of the call lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TabledAxis {
    /// Which axis of the view. Its length there is that of the longest table, and its stride that of the axis that the table is for.
    pub axis: usize,
    /// The table.
    pub table: Arc<Table>,
    /// How many elements the axis that it is for has: entries are below.
    pub places: i64,
}

/// What a layout is.
#[derive(Clone, Debug)]
pub struct Described {
    /// What it is applied to.
    pub whole: Arc<Whole>,
    /// The type of the packed elements, where it is another: fields of the elements.
    pub result: Option<Arc<Element>>,
    /// What is packed of each element.
    pub runs: Runs,
    /// The elements that are packed, of those of an array.
    pub view: Strided,
    /// The axes of the view that tables list.
    pub tabled: SmallVec<[TabledAxis; 1]>,
}

/// A layout applied to an array.
pub struct Applied {
    /// Where the type is applied.
    pub address: *mut u8,
    /// How many elements of the type there are.
    pub count: u64,
}

impl Described {
    /// All elements of an array with these strides. An error if their bytes do not fit 63 bits.
    pub fn of_array(element: Element, base: Strided) -> PyResult<Described> {
        if base.span(element.bytes).is_none() {
            let shape = Tuple(&base.shape);
            return Err(mismatch("shape", "fewer than 2^63 bytes between first and last", format_args!("{shape}")));
        }
        let runs = SmallVec::from_elem((0, element.bytes), 1);
        let view = Strided { offset: 0, ..base.clone() };
        Ok(Described::new(Whole { base: Base::Array(base), element }, runs, view))
    }

    /// A layout of whole elements, none of whose axes a table lists.
    pub fn new(whole: Whole, runs: Runs, view: Strided) -> Described {
        Described { whole: Arc::new(whole), result: None, runs, view, tabled: SmallVec::new() }
    }

    /// The elements that an index names, which has an entry for every axis and lies within the shape.
    pub fn at(&self, index: &[Index]) -> PyResult<Described> {
        let view = self.view.at(index);
        if view.span(self.reach()).is_none() {
            return Err(mismatch("index", "fewer than 2^63 packed bytes", Tuple(&view.shape)));
        }
        let mut tabled = SmallVec::new();
        // The next axis of this layout, and of the one that is made.
        let (mut from, mut to) = (0, 0);
        for entry in index {
            let known = self.tabled.iter().find(|tabled| tabled.axis == from);
            match entry {
                Index::NewAxis => {
                    to += 1;
                    continue;
                }
                Index::Table(table) if known.is_none() && self.view.shape[from] > 0 => {
                    tabled.push(TabledAxis { axis: to, table: table.clone(), places: self.view.shape[from] });
                }
                Index::Table(_) if known.is_none() => {
                    return Err(mismatch(format_args!("axis {from}"), "at least 1 element for an index axis", 0));
                }
                Index::Slice { start: 0, step: 1, count } if *count == self.view.shape[from] => {
                    tabled.extend(known.map(|known| TabledAxis { axis: to, ..known.clone() }));
                }
                _ => {
                    if let Some(known) = known {
                        let expected = format_args!("':' for the index axis {}", known.table.name);
                        return Err(mismatch(format_args!("axis {from}"), expected, "another index"));
                    }
                }
            }
            from += 1;
            to += usize::from(!matches!(entry, Index::At(_)));
        }
        Ok(Described { view, tabled, ..self.clone() })
    }

    /// The same with its axes in another order. `axes`: each axis once.
    pub fn permuted(&self, axes: &[usize]) -> Described {
        let mut permuted = Described { view: self.view.permuted(axes), ..self.clone() };
        for tabled in &mut permuted.tabled {
            tabled.axis = axes.iter().position(|&axis| axis == tabled.axis).unwrap_or(tabled.axis);
        }
        permuted
    }

    /// The same with fields of the elements alone.
    pub fn with_fields(&self, fields: Fields) -> PyResult<Described> {
        if self.result.is_some() {
            return Err(mismatch("fields", "a layout of whole elements", "one of fields"));
        }
        let Fields { runs, result, inner } = fields;
        let mut described = self.clone();
        match runs.as_slice() {
            // The elements begin where the field does, so that fields at other places share a type.
            &[(offset, bytes)] => {
                described.view =
                    self.view.divided(&inner, bytes).ok_or_else(|| mismatch("fields", "fewer bytes", "2^63"))?;
                described.view.offset += offset;
                described.runs = SmallVec::from_elem((0, bytes), 1);
            }
            several => described.runs = several.into(),
        }
        described.result = Some(Arc::new(result));
        Ok(described)
    }

    /// Whether calls have tables.
    pub fn has_tables(&self) -> bool {
        !self.tabled.is_empty() || matches!(self.whole.base, Base::Tabled(_))
    }

    /// The tables of a call, in the order of their numbers: each once, however many axes follow it.
    pub fn tables(&self) -> SmallVec<[&Arc<Table>; 1]> {
        if let Base::Tabled(loaded) = &self.whole.base {
            return loaded.tables.iter().collect();
        }
        let mut tables: SmallVec<[&Arc<Table>; 1]> = SmallVec::new();
        for tabled in &self.tabled {
            if !tables.contains(&&tabled.table) {
                tables.push(&tabled.table);
            }
        }
        tables
    }

    /// The type of the elements of the array.
    pub fn element(&self) -> &Element {
        &self.whole.element
    }

    /// The type of the packed elements.
    pub fn packed_element(&self) -> &Element {
        self.result.as_deref().unwrap_or(&self.whole.element)
    }

    /// Packed bytes of one element of the type: of all that is packed, with the longest tables, unless it is applied to records.
    pub fn bytes(&self) -> i64 {
        match &self.whole.base {
            Base::Memory(datatype) => datatype.size() as i64,
            Base::Tabled(loaded) => loaded.layout.most_bytes() as i64,
            _ => self.view.count() * self.runs.iter().map(|(_, bytes)| bytes).sum::<i64>(),
        }
    }

    /// Packed bytes with tables of these lengths, in the order of their numbers, and elements along each axis.
    pub fn packed(&self, lengths: &[i64]) -> (i64, Axes) {
        if let Base::Tabled(loaded) = &self.whole.base {
            let lengths: SmallVec<[u64; 4]> = lengths.iter().map(|&length| length as u64).collect();
            let bytes = loaded.layout.size(&lengths).unwrap_or(0) as i64;
            return (bytes, Axes::from_slice(&[bytes]));
        }
        let mut shape = self.view.shape.clone();
        let tables = self.tables();
        for tabled in &self.tabled {
            let number = tables.iter().position(|table| **table == tabled.table);
            shape[tabled.axis] = number.and_then(|number| lengths.get(number)).copied().unwrap_or(0);
        }
        let bytes: i64 = self.runs.iter().map(|(_, bytes)| bytes).sum();
        (shape.iter().product::<i64>() * bytes, shape)
    }

    /// One past the last byte of an element that is packed.
    fn reach(&self) -> i64 {
        self.runs.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0)
    }

    /// The elements that tables may list, in place of those of the longest ones.
    pub fn reached(&self) -> Strided {
        let mut reached = self.view.clone();
        for tabled in &self.tabled {
            reached.shape[tabled.axis] = tabled.places;
        }
        reached
    }

    /// The bytes from where the type is applied to where its lowest byte is and its highest ends, of `count` elements of it.
    pub fn span(&self, count: u64) -> (i64, i64) {
        match &self.whole.base {
            Base::Array(_) => Strided { offset: 0, ..self.reached() }.span(self.reach()).unwrap_or((0, 0)),
            Base::Records => (0, self.whole.element.bytes * count as i64),
            Base::Memory(datatype) => (datatype.true_lb(), datatype.true_lb() + datatype.true_extent()),
            Base::Tabled(loaded) => (loaded.layout.true_lb(), loaded.layout.true_ub()),
        }
    }

    /// Whether an unpack may write a byte twice, so that it would depend on the order which one stays. Tables are taken to list no element
    /// twice.
    pub fn writes_twice(&self) -> bool {
        let crossed = self.runs.len() > 1 && {
            let mut runs = self.runs.clone();
            runs.sort_unstable();
            runs.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0)
        };
        crossed || matches!(self.whole.base, Base::Array(_)) && self.reached().may_overlap(self.reach())
    }

    /// Applies the layout to an array, if it fits.
    ///
    /// `argument`: what errors call the array.
    pub fn apply(&self, argument: &str, array: &Array<'_>) -> PyResult<Applied> {
        let Whole { base, element } = &*self.whole;
        match base {
            Base::Array(base) => self.apply_to_array(argument, array, base),
            Base::Records => {
                check_item(element, argument, array)?;
                let bytes = array.packed_bytes(argument)?;
                Ok(Applied { address: array.address, count: (bytes / element.bytes.max(1)) as u64 })
            }
            Base::Memory(_) | Base::Tabled(_) => {
                let found = array.packed_bytes(argument)?;
                let (low, high) = self.span(1);
                if low < 0 || high > found {
                    return Err(mismatch(
                        argument,
                        format_args!("an array with bytes {low} to {high}"),
                        format_args!("{found} bytes"),
                    ));
                }
                Ok(Applied { address: array.address, count: 1 })
            }
        }
    }

    fn apply_to_array(&self, argument: &str, array: &Array<'_>, base: &Strided) -> PyResult<Applied> {
        let element = &self.whole.element;
        let applied = Applied { address: array.address.wrapping_offset(self.view.offset as isize), count: 1 };
        let found = &array.elements;
        // Bytes without a type stand for an array without gaps.
        let are_bytes = array.dtype.is_none() && array.item == 1 && found.shape.len() == 1;
        if are_bytes
            && base.is_contiguous(element.bytes)
            && found.is_contiguous(1)
            && found.count() == base.count() * element.bytes
        {
            return Ok(applied);
        }
        check_item(element, argument, array)?;
        match (&base.shape, &base.strides) == (&found.shape, &found.strides) {
            true => Ok(applied),
            false => check_strides(argument, base, found).map(|()| applied),
        }
    }
}

/// Refuses arrays of another shape, and strides that lead to other elements.
fn check_strides(argument: &str, base: &Strided, found: &Strided) -> PyResult<()> {
    let (expected, axes) = (base.shape.len(), found.shape.len());
    if expected != axes {
        return Err(mismatch(argument, format_args!("{expected} axes"), axes));
    }
    for (axis, (expected, found)) in base.shape.iter().zip(&found.shape).enumerate() {
        if expected != found {
            return Err(mismatch(format_args!("{argument} axis {axis}"), format_args!("{expected} elements"), found));
        }
    }
    let has_elements = !base.shape.contains(&0);
    for (axis, (expected, stride)) in base.strides.iter().zip(&found.strides).enumerate() {
        if has_elements && base.shape[axis] > 1 && expected != stride {
            let place = format!("{argument} axis {axis}");
            let found = format!("{stride}, with the strides {}", Tuple(&found.strides));
            return Err(mismatch(place, format_args!("a stride of {expected} bytes"), found));
        }
    }
    Ok(())
}

/// Refuses arrays of another type of elements.
fn check_item(element: &Element, argument: &str, array: &Array<'_>) -> PyResult<()> {
    if let Some(dtype) = &array.dtype {
        if !element.is_bytes() && !element.is(dtype)? {
            let name = element.name(dtype.py());
            return Err(mismatch(format_args!("{argument} dtype"), name, crate::dtype::name(dtype)));
        }
        array.check_plain(argument)?;
    }
    // Also of a type with the right name: the protocol says where the bytes are, and not the type.
    match array.item == element.bytes {
        true => Ok(()),
        false => Err(mismatch(
            format_args!("{argument} dtype"),
            format_args!("{} with {} bytes", element.name(array.object.py()), element.bytes),
            format_args!("{} bytes", array.item),
        )),
    }
}

/// A layout that the engine refuses.
pub fn refused(error: impl std::fmt::Display) -> PyErr {
    LayoutError::new_err(error.to_string())
}
