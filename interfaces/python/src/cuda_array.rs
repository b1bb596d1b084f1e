//! `__cuda_array_interface__`, version 3 and those before it.

use crate::array::{Array, Held, Place};
use crate::errors::{mismatch, refused};
use crate::strided::Strided;
use dtc_runtime::cuda::{Driver, MemoryKind, device_of};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

/// The elements that the dictionary of the protocol describes. `argument`: what errors call the object.
pub fn array<'py>(argument: &str, object: &Bound<'py, PyAny>, interface: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let py = object.py();
    let entry = |name: &str| {
        let found = interface.call_method1(intern!(py, "get"), (name,))?;
        Ok::<_, PyErr>((!found.is_none()).then_some(found))
    };
    let needed = |name: &str| {
        let missing =
            || PyTypeError::new_err(format!("{argument}: expected {name} in __cuda_array_interface__, found none"));
        entry(name)?.ok_or_else(missing)
    };
    if entry("mask")?.is_some() {
        return Err(mismatch(argument, "an array without a mask", "one with a mask"));
    }
    let (address, is_read_only): (usize, bool) = needed("data")?.extract()?;
    let item = bytes(argument, &needed("typestr")?.extract::<String>()?)?;
    let shape: Vec<i64> = needed("shape")?.extract()?;
    let elements = match entry("strides")? {
        Some(strides) => {
            let strides: Vec<i64> = strides.extract()?;
            if strides.len() != shape.len() {
                return Err(mismatch(argument, format_args!("{} strides", shape.len()), strides.len()));
            }
            Strided { offset: 0, shape: shape.into(), strides: strides.into() }
        }
        None => Strided::contiguous(shape.into(), item)
            .ok_or_else(|| mismatch(argument, "fewer than 2^63 bytes", "more"))?,
    };
    let address = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // Arrays without elements may have no address. Managed memory is of no device, and in a forked child, where no call of CUDA works, all
    // memory is.
    let device = if address.is_null() { Some(0) } else { device_of(address).map_err(refused)? };
    if device.is_none() {
        Driver::get().map_err(refused)?;
    }
    Ok(Array {
        object: object.clone(),
        dtype: object.getattr_opt(intern!(py, "dtype"))?,
        is_plain: false,
        address,
        elements,
        item,
        is_read_only,
        place: Place::Reached(device.map_or(MemoryKind::Managed, MemoryKind::Device)),
        is_unordered: false,
        stream: entry("stream")?.map(|stream| stream.extract()).transpose()?,
        current_stream: None,
        held: Held::Object(object.clone()),
    })
}

/// Bytes of an element, from the type string of the protocol: `<f8`, `|V16`, `<U4`.
fn bytes(argument: &str, described: &str) -> PyResult<i64> {
    let digits = described.trim_start_matches(|character: char| !character.is_ascii_digit());
    let size: String = digits.chars().take_while(char::is_ascii_digit).collect();
    let size: i64 = size.parse().map_err(|_| mismatch(argument, "a type string such as '<f8'", described))?;
    match described.as_bytes().get(1) {
        Some(b'O') => Err(mismatch(argument, "elements without Python objects", described)),
        Some(b'U') => Ok(4 * size),
        _ => Ok(size),
    }
}
