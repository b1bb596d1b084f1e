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
    /// The object that was given, or NumPy's; nothing for names that NumPy does not know.
    object: Option<Py<PyAny>>,
    /// Its name in all frameworks, as `float64`.
    name: String,
    /// Bytes of an element.
    pub bytes: i64,
}

impl Element {
    /// The type that an argument `dtype` names: a type of NumPy or PyTorch, or what `numpy.dtype` takes, or the name of a type that NumPy
    /// lacks, as `bf16`.
    pub fn new(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
        if let Ok(given) = dtype.cast::<PyString>() {
            let given = given.to_str()?;
            if let Some(&(_, name, bytes)) = WITHOUT_NUMPY.iter().find(|(known, ..)| *known == given) {
                return Ok(Element { object: None, name: name.to_owned(), bytes });
            }
        } else if !dtype.is_instance_of::<PyType>() && dtype.hasattr(intern!(dtype.py(), "itemsize"))? {
            return Element::of_object(dtype);
        }
        let numpy = dtype.py().import(intern!(dtype.py(), "numpy"))?;
        Element::of_object(&numpy.call_method1(intern!(dtype.py(), "dtype"), (dtype,))?)
    }

    /// The type of elements of that many bytes of which nothing else is known.
    pub fn unknown(bytes: i64) -> Element {
        Element { object: None, name: format!("void{}", 8 * i128::from(bytes)), bytes }
    }

    fn of_object(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
        check_plain("dtype", dtype)?;
        let bytes = dtype.getattr(intern!(dtype.py(), "itemsize"))?.extract()?;
        if bytes < 0 {
            return Err(mismatch("dtype itemsize", "at least 0 bytes", bytes));
        }
        Ok(Element { object: Some(dtype.clone().unbind()), name: name(dtype)?, bytes })
    }

    /// The same type again.
    pub fn copied(&self, py: Python<'_>) -> Element {
        let object = self.object.as_ref().map(|object| object.clone_ref(py));
        Element { object, name: self.name.clone(), bytes: self.bytes }
    }

    /// The object of a framework, if there is one.
    pub fn object<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.object.as_ref().map(|object| object.bind(py))
    }

    /// The object of a framework, or the name.
    pub fn shown<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self.object(py) {
            Some(object) => object.clone(),
            None => PyString::new(py, &self.name).into_any(),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether `dtype`, the type of an array, is this one.
    pub fn is(&self, dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = dtype.py();
        let Some(own) = self.object(py) else { return Ok(name(dtype)? == self.name) };
        if own.is(dtype) || own.get_type().is(dtype.get_type()) {
            return own.eq(dtype);
        }
        // Types of NumPy have classes of their own, which are equal to each other; those of two frameworks have their names in common.
        Ok(own.eq(dtype).unwrap_or(false) || name(dtype)? == self.name)
    }

    /// Whether a layout of these elements takes elements of as many bytes of any type: where no array can have this one, or none is
    /// known.
    pub fn is_bytes(&self) -> bool {
        self.object.is_none()
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

/// The name of a type in all frameworks: `float64`.
fn name(dtype: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = match dtype.getattr_opt(intern!(dtype.py(), "name"))? {
        Some(name) => name.str()?.to_string(),
        None => dtype.str()?.to_string(),
    };
    Ok(name.strip_prefix("torch.").map(str::to_owned).unwrap_or(name))
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
        return Err(PyTypeError::new_err(format!("dtype: expected one with fields, found {}", element.name())));
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
