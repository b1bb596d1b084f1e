//! What a layout is: the memory that it is applied to, and the bytes of it that are packed.

use crate::array::Array;
use crate::dtype::{Element, Fields, check_plain};
use crate::errors::{LayoutError, mismatch};
use crate::strided::{Strided, Tuple};
use dtc_runtime::datatype::{Datatype, DatatypeError, Predefined, TypeBuilder};
use dtc_runtime::{Committed, Engine};
use once_cell::race::OnceBox;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// What a layout is applied to.
#[derive(Clone, Debug)]
pub enum Base {
    /// An array with this shape and these strides.
    Array(Strided),
    /// The elements, one after another, of an array of any shape.
    Records,
    /// Bytes, at least so many: a type that was loaded.
    Memory(Datatype),
}

/// First bytes and lengths of what is packed of an element.
pub type Runs = SmallVec<[(i64, i64); 1]>;

/// What a layout is.
#[derive(Debug)]
pub struct Described {
    /// What it is applied to.
    pub base: Base,
    /// The type of the elements there.
    pub element: Element,
    /// The type of the packed elements, where it is another: fields of the elements.
    pub result: Option<Element>,
    /// What is packed of each element.
    pub runs: Runs,
    /// The elements that are packed, of those of an array.
    pub view: Strided,
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
        Ok(Described { base: Base::Array(base), element, result: None, runs, view })
    }

    /// The same with other elements of the array.
    pub fn with_view(&self, py: Python<'_>, view: Strided) -> Described {
        let (base, runs) = (self.base.clone(), self.runs.clone());
        let result = self.result.as_ref().map(|result| result.copied(py));
        Described { base, element: self.element.copied(py), result, runs, view }
    }

    /// The same with fields of the elements alone.
    pub fn with_fields(&self, py: Python<'_>, fields: Fields) -> PyResult<Described> {
        if self.result.is_some() {
            return Err(mismatch("fields", "a layout of whole elements", "one of fields"));
        }
        let Fields { runs, result, inner } = fields;
        let mut described = self.with_view(py, self.view.clone());
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
        described.result = Some(result);
        Ok(described)
    }

    /// Packed bytes of one element of the type: of all that is packed, unless it is applied to records.
    pub fn bytes(&self) -> i64 {
        match &self.base {
            Base::Memory(datatype) => datatype.size() as i64,
            _ => self.view.count() * self.runs.iter().map(|(_, bytes)| bytes).sum::<i64>(),
        }
    }

    /// The type of the packed elements.
    pub fn packed_element(&self) -> &Element {
        self.result.as_ref().unwrap_or(&self.element)
    }

    /// The bytes from where the type is applied to where its lowest byte is and its highest ends, of `count` elements of it.
    pub fn span(&self, count: u64) -> (i64, i64) {
        let reach = self.runs.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
        match &self.base {
            Base::Array(_) => Strided { offset: 0, ..self.view.clone() }.span(reach).unwrap_or((0, 0)),
            Base::Records => (0, self.element.bytes * count as i64),
            Base::Memory(datatype) => (datatype.true_lb(), datatype.true_lb() + datatype.true_extent()),
        }
    }

    /// Whether an unpack may write a byte twice, so that it would depend on the order which one stays.
    pub fn writes_twice(&self) -> bool {
        let mut runs = self.runs.clone();
        runs.sort_unstable();
        let crossed = runs.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0);
        let reach = runs.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
        crossed || matches!(self.base, Base::Array(_)) && self.view.may_overlap(reach)
    }

    /// The datatype, applied to the first byte of the first element that is packed.
    pub fn datatype(&self) -> Result<Datatype, DatatypeError> {
        if let Base::Memory(datatype) = &self.base {
            return Ok(datatype.clone());
        }
        let mut types = TypeBuilder::new();
        let byte = types.named(Predefined::BYTE);
        let mut made = match self.runs.as_slice() {
            &[(0, bytes)] => types.contiguous(bytes, byte)?,
            several => {
                let (offsets, lengths): (Vec<i64>, Vec<i64>) = several.iter().copied().unzip();
                types.hindexed(&lengths, &offsets, byte)?
            }
        };
        if matches!(self.base, Base::Records) {
            made = types.resized(0, self.element.bytes, made)?;
        }
        for (&count, &stride) in self.view.shape.iter().zip(&self.view.strides).rev().filter(|&(&count, _)| count != 1)
        {
            made = types.hvector(count, 1, stride, made)?;
        }
        types.finish(made)
    }

    /// Applies the layout to an array, if it fits.
    ///
    /// `argument`: what errors call the array.
    pub fn apply(&self, argument: &str, array: &Array<'_>) -> PyResult<Applied> {
        match &self.base {
            Base::Array(base) => self.apply_to_array(argument, array, base),
            Base::Records => {
                self.check_item(argument, array)?;
                let bytes = array.packed_bytes(argument)?;
                Ok(Applied { address: array.address, count: (bytes / self.element.bytes.max(1)) as u64 })
            }
            Base::Memory(datatype) => {
                let found = array.packed_bytes(argument)?;
                let (low, high) = (datatype.true_lb(), datatype.true_lb() + datatype.true_extent());
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
        let applied = Applied { address: array.address.wrapping_offset(self.view.offset as isize), count: 1 };
        let found = &array.elements;
        // Bytes without a type stand for an array without gaps.
        let are_bytes = array.dtype.is_none() && array.item == 1 && found.shape.len() == 1;
        if are_bytes
            && base.is_contiguous(self.element.bytes)
            && found.is_contiguous(1)
            && found.count() == base.count() * self.element.bytes
        {
            return Ok(applied);
        }
        self.check_item(argument, array)?;
        let (expected, axes) = (base.shape.len(), found.shape.len());
        if expected != axes {
            return Err(mismatch(argument, format_args!("{expected} axes"), axes));
        }
        for (axis, (expected, found)) in base.shape.iter().zip(&found.shape).enumerate() {
            if expected != found {
                return Err(mismatch(
                    format_args!("{argument} axis {axis}"),
                    format_args!("{expected} elements"),
                    found,
                ));
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
        Ok(applied)
    }

    /// Refuses arrays of another type of elements.
    fn check_item(&self, argument: &str, array: &Array<'_>) -> PyResult<()> {
        let Element { bytes, .. } = self.element;
        if let Some(dtype) = &array.dtype {
            if !self.element.is_bytes() && !self.element.is(dtype)? {
                return Err(mismatch(format_args!("{argument} dtype"), self.element.name(), dtype));
            }
            check_plain(argument, dtype)?;
        }
        // Also of a type with the right name: the protocol says where the bytes are, and not the type.
        match array.item == bytes {
            true => Ok(()),
            false => Err(mismatch(
                format_args!("{argument} dtype"),
                format_args!("{} with {bytes} bytes", self.element.name()),
                format_args!("{} bytes", array.item),
            )),
        }
    }
}

/// The engine of the process.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceBox<Engine> = OnceBox::new();
    ENGINE.get_or_init(|| Box::new(Engine::new()))
}

/// Commits what a layout describes.
pub fn commit(described: &Described) -> PyResult<Committed> {
    let datatype = described.datatype().map_err(|error| LayoutError::new_err(error.to_string()))?;
    Ok(engine().commit(&datatype))
}
