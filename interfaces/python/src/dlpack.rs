//! DLPack: arrays of the host and of GPUs by `__dlpack__`.
//!
//! The structures are those of `dlpack.h`, version 1.3, and of the versions before 1.0, which had no version in them.

use crate::array::{Array, Held, Place};
use crate::errors::mismatch;
use crate::strided::{Axes, Strided};
use dtc_runtime::cuda::MemoryKind;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};

/// `DLDevice`.
#[repr(C)]
struct Device {
    kind: i32,
    ordinal: i32,
}

/// `DLDataType`.
#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
pub struct Tensor {
    data: *mut c_void,
    device: Device,
    axes: i32,
    dtype: DataType,
    shape: *const i64,
    /// In elements; null for C order, before version 1.2.
    strides: *const i64,
    byte_offset: u64,
}

impl Tensor {
    /// Whether the elements are complex numbers: `kDLComplex`.
    pub fn is_complex(&self) -> bool {
        self.dtype.code == 5
    }

    /// Whether the strides of all axes with several elements are even, as those of the imaginary parts of complex numbers are.
    pub fn is_every_second(&self) -> bool {
        let axes = self.axes.max(0) as usize;
        if self.strides.is_null() || axes == 0 {
            return axes == 0;
        }
        // SAFETY: a tensor has as many lengths and strides as axes.
        let (shape, strides) =
            unsafe { (std::slice::from_raw_parts(self.shape, axes), std::slice::from_raw_parts(self.strides, axes)) };
        shape.iter().zip(strides).all(|(&count, stride)| count < 2 || stride % 2 == 0)
    }
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: Tensor,
}

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;
/// `kDLCPU`.
const CPU: i32 = 1;
/// `kDLCUDA`.
pub const CUDA: i32 = 2;
/// `kDLCUDAHost`: pinned memory.
const CUDA_HOST: i32 = 3;
/// `kDLCUDAManaged`.
const CUDA_MANAGED: i32 = 13;
/// The stream that asks the producer to order nothing.
pub const NO_ORDER: i64 = -1;
/// The legacy default stream.
const LEGACY: i64 = 1;

/// Frameworks whose own current stream calls without a stream of the caller go on: their arrays are ready there, in order.
const WITH_CURRENT_STREAM: [&str; 2] = ["torch", "cupy"];

/// The elements of an object with `__dlpack__`. On a GPU, the producer orders nothing if calls go on its framework's current stream
/// ([`crate::stream`]), and is asked to let the legacy default stream wait otherwise.
pub fn array<'py>(argument: &str, object: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let py = object.py();
    let (kind, ordinal): (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    place(argument, &Device { kind, ordinal })?;
    let options = PyDict::new(py);
    let is_on_device = matches!(kind, CUDA | CUDA_MANAGED);
    let is_ordered = WITH_CURRENT_STREAM.contains(&family(object)?.as_str());
    if is_on_device {
        options.set_item(intern!(py, "stream"), if is_ordered { NO_ORDER } else { LEGACY })?;
    }
    options.set_item(intern!(py, "max_version"), (1, 3))?;
    let export = intern!(py, "__dlpack__");
    let capsule = match object.call_method(export, (), Some(&options)) {
        // Producers of the time before version 1.0 do not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            options.del_item(intern!(py, "max_version"))?;
            object.call_method(export, (), Some(&options))
        }
        found => found,
    }?;
    let (tensor, is_read_only) = tensor(argument, &capsule)?;
    let dtype = object.getattr_opt(intern!(py, "dtype"))?;
    let is_read_only = is_read_only || never_changes(object)?;
    // SAFETY: the capsule is held, and owns the tensor until it is dropped: only a consumer that takes the tensor renames it, and none did.
    let mut array = unsafe { described(argument, object, &*tensor, dtype)? };
    array.is_read_only = is_read_only;
    array.is_unordered = is_on_device && !is_ordered;
    array.held = Held::Object(capsule);
    Ok(array)
}

/// The array of an object that a tensor describes. The object itself keeps its elements.
///
/// # Safety
///
/// Shape and strides of the tensor have as many numbers as it has axes.
pub unsafe fn described<'py>(
    argument: &str,
    object: &Bound<'py, PyAny>,
    tensor: &Tensor,
    dtype: Option<Bound<'py, PyAny>>,
) -> PyResult<Array<'py>> {
    let item = bytes(argument, &tensor.dtype)?;
    // SAFETY: the contract of this function.
    let elements = unsafe { elements(argument, tensor, item)? };
    Ok(Array {
        object: object.clone(),
        dtype,
        is_plain: false,
        address: tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize),
        elements,
        item,
        is_read_only: false,
        place: place(argument, &tensor.device)?,
        is_unordered: false,
        stream: None,
        current_stream: None,
        held: Held::Object(object.clone()),
    })
}

/// The first part of the name of the module that an object's type is from: `torch`, `cupy`, `jaxlib`.
pub fn family(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let module = object.get_type().module()?;
    let module = module.to_str()?;
    Ok(module.split('.').next().unwrap_or(module).trim_start_matches('_').to_owned())
}

/// Whether an object is an array of JAX: they are never written after they were made.
pub fn never_changes(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(family(object)? == "jaxlib")
}

/// The tensor of a capsule, and whether it is read-only.
fn tensor(argument: &str, capsule: &Bound<'_, PyAny>) -> PyResult<(*const Tensor, bool)> {
    const VERSIONED: &CStr = c"dltensor_versioned";
    const UNVERSIONED: &CStr = c"dltensor";
    let pointer = |name: &CStr| {
        // SAFETY: any object may be asked whether it is a capsule of a name.
        let is_one = unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) } != 0;
        // SAFETY: it is a capsule of that name, and stays one while it is held.
        is_one.then(|| unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) })
    };
    if let Some(versioned) = pointer(VERSIONED) {
        let versioned = versioned.cast::<Versioned>();
        // SAFETY: a capsule of that name has the structure, whose version is the first member in every version.
        let (major, minor) = unsafe { ((*versioned).major, (*versioned).minor) };
        if major != 1 {
            return Err(mismatch(argument, "DLPack's version 1", format_args!("{major}.{minor}")));
        }
        // SAFETY: version 1 has the members of `Versioned`.
        return Ok(unsafe { (&raw const (*versioned).tensor, (*versioned).flags & READ_ONLY != 0) });
    }
    // The structure without a version begins with the tensor.
    match pointer(UNVERSIONED) {
        Some(tensor) => Ok((tensor.cast(), false)),
        None => Err(mismatch(argument, "a capsule of DLPack", capsule)),
    }
}

fn bytes(argument: &str, dtype: &DataType) -> PyResult<i64> {
    let bits = i64::from(dtype.bits) * i64::from(dtype.lanes);
    match bits % 8 {
        0 => Ok(bits / 8),
        _ => Err(mismatch(argument, "elements of whole bytes", format_args!("{bits} bits"))),
    }
}

/// # Safety
///
/// Shape and strides of the tensor have as many numbers as it has axes.
unsafe fn elements(argument: &str, tensor: &Tensor, item: i64) -> PyResult<Strided> {
    let axes = |numbers: *const i64| -> Axes {
        match tensor.axes {
            // SAFETY: the contract of this function.
            axes @ 1.. => unsafe { std::slice::from_raw_parts(numbers, axes as usize) }.into(),
            _ => Axes::new(),
        }
    };
    let shape = axes(tensor.shape);
    if tensor.strides.is_null() {
        let contiguous = Strided::contiguous(shape, item);
        return contiguous.ok_or_else(|| mismatch(argument, "fewer than 2^63 bytes", "more"));
    }
    let strides = axes(tensor.strides).iter().map(|stride| stride * item).collect();
    Ok(Strided { offset: 0, shape, strides })
}

fn place(argument: &str, device: &Device) -> PyResult<Place> {
    Ok(match device.kind {
        CPU => Place::Host,
        CUDA => Place::Reached(MemoryKind::Device(device.ordinal as u32)),
        CUDA_HOST => Place::Reached(MemoryKind::Pinned),
        CUDA_MANAGED => Place::Reached(MemoryKind::Managed),
        kind => {
            return Err(mismatch(
                argument,
                "memory of the host or of CUDA",
                format_args!("DLPack's device type {kind}"),
            ));
        }
    })
}
