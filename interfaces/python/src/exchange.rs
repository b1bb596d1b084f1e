//! DLPack's C exchange API, version 1.3: the elements of an array, and the stream of its framework, by calls of C.

use crate::array::{Array, CurrentStream, Held};
use crate::dlpack::{self, Tensor, family};
use crate::errors::mismatch;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `DLPackExchangeAPIHeader`.
#[repr(C)]
struct Header {
    major: u32,
    minor: u32,
    previous: *const Header,
}

/// `DLPackExchangeAPI` of version 1.
#[repr(C)]
struct Functions {
    header: Header,
    allocate: *const c_void,
    managed_from_object: *const c_void,
    managed_to_object: *const c_void,
    /// `dltensor_from_py_object_no_sync`; may be null.
    view: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    /// `current_work_stream`.
    current_stream: Option<CurrentStream>,
}

/// The functions of a framework, which live as long as the process.
#[derive(Clone, Copy)]
struct Exchange(&'static Functions);

/// Types of arrays that are remembered. A process has few; those of others are asked again.
const REMEMBERED: usize = 8;

/// A type that was seen, and its functions, if it has them. The type is kept for good.
struct Seen {
    class: usize,
    exchange: Option<Exchange>,
}

static SEEN: [AtomicPtr<Seen>; REMEMBERED] = [const { AtomicPtr::new(std::ptr::null_mut()) }; REMEMBERED];

/// The elements of a tensor of PyTorch; nothing for other objects.
///
/// The view that the functions return does not say whether an array is read-only, so that arrays of other frameworks are taken by
/// `__dlpack__`, which says it.
pub fn array<'py>(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Option<Array<'py>>> {
    let py = object.py();
    let Some(exchange) = Exchange::of(object)? else { return Ok(None) };
    let Some(view) = exchange.0.view else { return Ok(None) };
    let mut tensor = MaybeUninit::<Tensor>::uninit();
    // SAFETY: the object's type has the function, which takes such objects, and fills the structure or returns an error.
    let status = unsafe { view(object.as_ptr().cast(), tensor.as_mut_ptr()) };
    if status != 0 {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: the function has filled it.
    let tensor = unsafe { tensor.assume_init() };
    check_bits(argument, object, &tensor)?;
    let dtype = Some(object.getattr(intern!(py, "dtype"))?);
    // SAFETY: the shape and strides that the tensor points to belong to the object, which is alive.
    let mut array = unsafe { dlpack::described(argument, object, &tensor, dtype)? };
    array.held = Held::Object(object.clone());
    array.is_plain = true;
    array.current_stream = exchange.0.current_stream;
    Ok(Some(array))
}

/// Refuses tensors that are more than their bytes, as `__dlpack__` does: the view says nothing of it.
fn check_bits(argument: &str, object: &Bound<'_, PyAny>, tensor: &Tensor) -> PyResult<()> {
    let py = object.py();
    let is = |property: &Bound<'_, PyString>| object.call_method0(property)?.is_truthy();
    let is_complex = tensor.is_complex();
    let (expected, found) = if object.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
        ("that requires no gradient, as that of detach()", "one that requires it")
    } else if is_complex && is(intern!(py, "is_conj"))? {
        ("without pending conjugation, as that of resolve_conj()", "one with it")
    // The imaginary parts of conjugated numbers are negated, and no others but complex numbers: they are every second number.
    } else if (is_complex || tensor.is_every_second()) && is(intern!(py, "is_neg"))? {
        ("without pending negation, as that of resolve_neg()", "one with it")
    } else {
        return Ok(());
    };
    Err(mismatch(argument, format_args!("a tensor {expected}"), found))
}

impl Exchange {
    /// The functions of the framework of a tensor of PyTorch.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Exchange>> {
        let class = object.get_type();
        let address = class.as_ptr().addr();
        for place in &SEEN {
            // SAFETY: null, or what this function has stored below, which is never freed or changed.
            match unsafe { place.load(Ordering::Acquire).as_ref() } {
                Some(seen) if seen.class == address => return Ok(seen.exchange),
                Some(_) => {}
                None => break,
            }
        }
        let exchange = match class.getattr_opt(intern!(object.py(), "__dlpack_c_exchange_api__"))? {
            Some(capsule) if family(object)? == "torch" => Exchange::of_capsule(&capsule),
            _ => None,
        };
        let seen = Box::into_raw(Box::new(Seen { class: class.into_ptr().addr(), exchange }));
        let free = SEEN.iter().find(|place| {
            place.compare_exchange(std::ptr::null_mut(), seen, Ordering::AcqRel, Ordering::Acquire).is_ok()
        });
        if free.is_none() {
            // SAFETY: no place took it, so it is still this function's own.
            drop(unsafe { Box::from_raw(seen) });
        }
        Ok(exchange)
    }

    /// The functions of a capsule, of the version that is known here, or nothing.
    fn of_capsule(capsule: &Bound<'_, PyAny>) -> Option<Exchange> {
        const NAME: &CStr = c"dlpack_exchange_api";
        // SAFETY: any object may be asked whether it is a capsule of a name.
        if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) } == 0 {
            return None;
        }
        // SAFETY: it is a capsule of that name.
        let mut header =
            unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()) }.cast::<Header>().cast_const();
        // SAFETY: a capsule of that name has functions of some version, and each names an older one or none. All of them begin with the
        // header, and live as long as the process.
        while let Some(found) = unsafe { header.as_ref() } {
            if found.major == 1 {
                // SAFETY: functions of version 1 have the members of `Functions`.
                return Some(Exchange(unsafe { &*header.cast::<Functions>() }));
            }
            header = found.previous;
        }
        None
    }
}

/// The stream that a framework enqueues work of a CUDA device on now.
pub fn current_stream(py: Python<'_>, current: CurrentStream, ordinal: u32) -> PyResult<usize> {
    let mut stream = std::ptr::null_mut();
    // SAFETY: the function takes any device and fills `stream`, or returns an error.
    match unsafe { current(dlpack::CUDA, ordinal as i32, &mut stream) } {
        0 => Ok(stream.addr()),
        _ => Err(PyErr::fetch(py)),
    }
}
