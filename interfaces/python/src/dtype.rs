//! Types of elements: a name, a size, and the object of a framework that stands for them.

use crate::errors::mismatch;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// Types that NumPy has no name for, with their bytes. dtc moves bytes, so it needs no more of them.
const WITHOUT_NUMPY: [(&str, &str, i64); 8] = [
    ("bf16", "bfloat16", 2),
    ("bfloat16", "bfloat16", 2),
    ("float8_e4m3", "float8_e4m3", 1),
    ("float8_e4m3fn", "float8_e4m3fn", 1),
    ("float8_e4m3fnuz", "float8_e4m3fnuz", 1),
    ("float8_e5m2", "float8_e5m2", 1),
    ("float8_e5m2fnuz", "float8_e5m2fnuz", 1),
    ("float8_e8m0fnu", "float8_e8m0fnu", 1),
];

/// The type of the elements of an array.
#[derive(Debug)]
pub struct Element {
    known: Known,
    /// Bytes of an element.
    pub bytes: i64,
}

/// What is known of a type.
#[derive(Debug)]
enum Known {
    /// The object that was given, or NumPy's.
    Object(Py<PyAny>),
    /// A name that NumPy does not know.
    Name(&'static str),
    /// The size alone.
    Size,
}

impl Element {
    /// The type that an argument `dtype` names: a type of NumPy or PyTorch, or what `numpy.dtype` takes, or the name of a type that NumPy
    /// lacks, as `bf16`.
    pub fn new(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
        if let Ok(given) = dtype.cast::<PyString>() {
            let given = given.to_str()?;
            if let Some(&(_, name, bytes)) = WITHOUT_NUMPY.iter().find(|(known, ..)| *known == given) {
                return Ok(Element { known: Known::Name(name), bytes });
            }
            let bits = given.strip_prefix("void").and_then(|bits| bits.parse::<i64>().ok());
            if let Some(bits) = bits.filter(|bits| *bits >= 0 && bits % 8 == 0) {
                return Ok(Element::unknown(bits / 8));
            }
        } else if !dtype.is_instance_of::<PyType>() && dtype.hasattr(intern!(dtype.py(), "itemsize"))? {
            return Element::of_object(dtype);
        }
        let numpy = dtype.py().import(intern!(dtype.py(), "numpy"))?;
        Element::of_object(&numpy.call_method1(intern!(dtype.py(), "dtype"), (dtype,))?)
    }

    /// The type that an object of a framework stands for, whose elements are no references to Python objects.
    pub fn plain(dtype: &Bound<'_, PyAny>, bytes: i64) -> Element {
        Element { known: Known::Object(dtype.clone().unbind()), bytes }
    }

    /// The type of elements of that many bytes of which nothing else is known.
    pub fn unknown(bytes: i64) -> Element {
        Element { known: Known::Size, bytes }
    }

    fn of_object(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
        check_plain("dtype", dtype)?;
        let bytes = dtype.getattr(intern!(dtype.py(), "itemsize"))?.extract()?;
        if bytes < 0 {
            return Err(mismatch("dtype itemsize", "at least 0 bytes", bytes));
        }
        Ok(Element::plain(dtype, bytes))
    }

    /// The object of a framework, if there is one.
    pub fn object<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        match &self.known {
            Known::Object(object) => Some(object.bind(py)),
            _ => None,
        }
    }

    /// The object of a framework, or the name.
    pub fn shown<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self.object(py) {
            Some(object) => object.clone(),
            None => PyString::new(py, &self.name(py)).into_any(),
        }
    }

    /// The name, as `float64`.
    pub fn name(&self, py: Python<'_>) -> String {
        match &self.known {
            Known::Object(object) => name(object.bind(py)),
            Known::Name(name) => (*name).to_owned(),
            Known::Size => format!("void{}", 8 * i128::from(self.bytes)),
        }
    }

    /// Whether `dtype`, the type of an array, is this one.
    pub fn is(&self, dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = dtype.py();
        let Some(own) = self.object(py) else { return Ok(name(dtype) == self.name(py)) };
        if own.is(dtype) {
            return Ok(true);
        }
        if own.get_type().is(dtype.get_type()) {
            return own.eq(dtype);
        }
        // Those of two frameworks have their names in common; others, of NumPy, may be equal to each other. Some warn when they are compared.
        Ok(name(dtype) == name(own) || own.eq(dtype).unwrap_or(false))
    }

    /// Whether both are the same type.
    pub fn is_same(&self, py: Python<'_>, other: &Element) -> PyResult<bool> {
        match other.object(py) {
            Some(object) => Ok(self.object(py).is_some() && self.is(object)?),
            None => Ok(self.object(py).is_none() && self.name(py) == other.name(py)),
        }
    }

    /// Whether a layout of these elements takes elements of as many bytes of any type: where no array can have this one, or none is
    /// known.
    pub fn is_bytes(&self) -> bool {
        !matches!(self.known, Known::Object(_))
    }
}

/// Refuses types whose bytes are references to Python objects, which only Python may copy.
///
/// `place`: the argument that has the type.
pub fn check_plain(place: &str, dtype: &Bound<'_, PyAny>) -> PyResult<()> {
    match dtype.getattr_opt(intern!(dtype.py(), "hasobject"))? {
        Some(has) if has.is_truthy()? => Err(mismatch(place, "elements without Python objects", dtype)),
        _ => Ok(()),
    }
}

/// The name of a type in all frameworks: `float64`, and `>f8` in the other byte order.
pub fn name(dtype: &Bound<'_, PyAny>) -> String {
    let text = dtype.to_string();
    match text.rsplit_once('.') {
        // `torch.float64`: the name of the module is no part of it. Structured types have other characters.
        Some((module, name)) if module.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            name.to_owned()
        }
        _ => text,
    }
}

/// Fields of a structured type: where their bytes are in an element, and the type of the results.
pub struct Fields {
    /// First byte and number of bytes of each field, in the order in which they are packed.
    pub runs: Vec<(i64, i64)>,
    /// The type of packed elements.
    pub result: Element,
    /// Axes that a single field adds, as one with the type `("f4", (3,))` does.
    pub inner: Vec<i64>,
}

impl Fields {
    /// One field, whose packed elements are of its own type.
    pub fn one(element: &Element, name: &Bound<'_, PyString>) -> PyResult<Fields> {
        let py = name.py();
        let (dtype, offset) = field(element, name)?;
        let (base, inner) = match dtype.getattr(intern!(py, "subdtype"))? {
            whole if whole.is_none() => (dtype, Vec::new()),
            divided => divided.extract::<(Bound<'_, PyAny>, Vec<i64>)>()?,
        };
        let result = Element::of_object(&base)?;
        Ok(Fields { runs: vec![(offset, result.bytes)], result, inner })
    }

    /// Several fields, packed one after another without padding between them.
    pub fn several(element: &Element, names: &[Bound<'_, PyString>]) -> PyResult<Fields> {
        let [first, ..] = names else { return Err(mismatch("fields", "at least one name", "none")) };
        let py = first.py();
        let found = names.iter().map(|name| field(element, name)).collect::<PyResult<Vec<_>>>()?;
        let described: Vec<_> = names.iter().zip(&found).map(|(name, (dtype, _))| (name, dtype)).collect();
        let numpy = py.import(intern!(py, "numpy"))?;
        let result = Element::of_object(&numpy.call_method1(intern!(py, "dtype"), (described,))?)?;
        let bytes = |dtype: &Bound<'_, PyAny>| dtype.getattr(intern!(py, "itemsize"))?.extract();
        let runs = found.iter().map(|(dtype, offset)| Ok((*offset, bytes(dtype)?))).collect::<PyResult<_>>()?;
        Ok(Fields { runs, result, inner: Vec::new() })
    }
}

/// The type of a field and its first byte.
fn field<'py>(element: &Element, name: &Bound<'py, PyString>) -> PyResult<(Bound<'py, PyAny>, i64)> {
    let py = name.py();
    let own = element.object(py);
    let fields = own.map(|dtype| dtype.getattr_opt(intern!(py, "fields"))).transpose()?.flatten();
    let Some(fields) = fields.filter(|fields| !fields.is_none()) else {
        return Err(PyTypeError::new_err(format!("dtype: expected one with fields, found {}", element.name(py))));
    };
    if !fields.contains(name)? {
        let names: Vec<String> = fields
            .call_method0(intern!(py, "keys"))?
            .try_iter()?
            .map(|key| Ok(key?.to_string()))
            .collect::<PyResult<_>>()?;
        return Err(mismatch("field", format!("one of {}", names.join(", ")), name));
    }
    // A title may follow the offset.
    let entry = fields.get_item(name)?;
    Ok((entry.get_item(0)?, entry.get_item(1)?.extract()?))
}
