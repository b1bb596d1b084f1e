//! Arrays of others: where their elements are, and of what type.

use crate::dtype::check_plain;
use crate::errors::mismatch;
use crate::strided::{Strided, Tuple};
use dtc_runtime::Endpoint;
use dtc_runtime::cuda::MemoryKind;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// Elements of an array of a framework, which live as long as this value.
pub struct Array<'py> {
    /// The object.
    pub object: Bound<'py, PyAny>,
    /// Its attribute `dtype`; nothing for buffers, which are bytes.
    pub dtype: Option<Bound<'py, PyAny>>,
    /// Whether its elements are known to be no references to Python objects.
    pub is_plain: bool,
    /// The address of the first element. Null where there are no elements.
    pub address: *mut u8,
    /// Where the elements are from there, in bytes.
    pub elements: Strided,
    /// Bytes of an element.
    pub item: i64,
    /// Whether its bytes must not be written.
    pub is_read_only: bool,
    /// What kind of memory it is in.
    pub place: Place,
    /// Whether its framework knows nothing of the stream that a call goes on, so that the memory is held until the stream has run.
    pub is_unordered: bool,
    /// The stream that its bytes are ready on, where the protocol says so.
    pub stream: Option<usize>,
    /// The function of its framework for the stream that it enqueues work on, where it is known.
    pub current_stream: Option<CurrentStream>,
    /// What keeps the elements where they are.
    pub held: Held<'py>,
}

/// `DLPackCurrentWorkStream`: a type of device, its ordinal, and where the stream is put.
pub type CurrentStream = unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int;

/// The memory that an array is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory of the host: pageable, or pinned by others.
    Host,
    /// Memory of the kind that the protocol names, which devices reach.
    Reached(MemoryKind),
}

impl Place {
    /// The ordinal of the device, if it is memory of one.
    pub fn device(self) -> Option<u32> {
        match self {
            Place::Reached(MemoryKind::Device(ordinal)) => Some(ordinal),
            _ => None,
        }
    }
}

/// What keeps the elements of an array where they are.
pub enum Held<'py> {
    /// A view of the buffer protocol.
    Buffer(Buffer<'py>),
    /// What a protocol returned, or the array itself.
    Object(Bound<'py, PyAny>),
}

/// A view of the buffer protocol.
pub struct Buffer<'py> {
    // Exporters may compare its address when it is released, so it does not move.
    view: Box<ffi::Py_buffer>,
    _py: Python<'py>,
}

impl<'py> Buffer<'py> {
    /// The view that an object exports. `flags`: what the caller can use, as `PyBUF_STRIDES`.
    pub fn of(object: &Bound<'py, PyAny>, flags: i32) -> PyResult<Buffer<'py>> {
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::zeroed());
        // SAFETY: `view` is a live structure to fill, and the thread is attached to the interpreter.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the call succeeded and has filled the view; zeros are one, too.
        Ok(Buffer { view: unsafe { view.assume_init() }, _py: object.py() })
    }

    /// The structure.
    pub fn view(&self) -> &ffi::Py_buffer {
        &self.view
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: `PyObject_GetBuffer` filled the view, which is released once, by a thread that is attached to the interpreter (`_py`).
        unsafe { ffi::PyBuffer_Release(&mut *self.view) };
    }
}

impl<'py> Array<'py> {
    /// The address of the first element, as the runtime takes it. `other`: the other array of the call.
    pub fn endpoint(&self, other: Place) -> Endpoint {
        match (self.place, other) {
            (Place::Reached(kind), _) => Endpoint::of_kind(kind, self.address),
            // Whether others have pinned it is of no matter to the processor.
            (Place::Host, other) if other.device().is_none() => Endpoint::host(self.address),
            (Place::Host, _) => Endpoint::from(self.address),
        }
    }

    /// An object that keeps the elements as long as it lives.
    pub fn kept(&self) -> Py<PyAny> {
        match &self.held {
            Held::Buffer(_) => self.object.clone().unbind(),
            Held::Object(object) => object.clone().unbind(),
        }
    }

    /// Refuses elements that are references to Python objects. `argument`: what errors call the array.
    pub fn check_plain(&self, argument: &str) -> PyResult<()> {
        match &self.dtype {
            Some(dtype) if !self.is_plain => check_plain(argument, dtype),
            _ => Ok(()),
        }
    }

    /// The bytes of the array, which has none between its elements: packed bytes.
    ///
    /// `argument`: what errors call it.
    pub fn packed_bytes(&self, argument: &str) -> PyResult<i64> {
        self.check_plain(argument)?;
        if !self.elements.is_contiguous(self.item) {
            let strides = Tuple(&self.elements.strides);
            return Err(mismatch(argument, "a C-contiguous array", format_args!("strides {strides}")));
        }
        Ok(self.elements.count() * self.item)
    }
}
