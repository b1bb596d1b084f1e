//! The exceptions of the package.

use dtc_runtime::TransferError;
use dtc_runtime::cuda::CudaError as DriverError;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use std::fmt::Display;

create_exception!(
    libdtc,
    LayoutError,
    PyValueError,
    "An array does not fit a layout, or a layout cannot be made. The message names the argument and the axis, what was expected \
     and what was found."
);

create_exception!(
    libdtc,
    CudaError,
    PyRuntimeError,
    "CUDA is missing or refuses a call. The message says what is missing, and how to get it."
);

/// A [`LayoutError`] that names a place, what was expected there and what was found.
pub fn mismatch(place: impl Display, expected: impl Display, found: impl Display) -> PyErr {
    LayoutError::new_err(format!("{place}: expected {expected}, found {found}"))
}

/// The exception for a refusal of CUDA.
pub fn refused(error: DriverError) -> PyErr {
    CudaError::new_err(error.to_string())
}

/// The exception for a transfer that moved nothing.
pub fn not_moved(error: TransferError) -> PyErr {
    match error {
        TransferError::Cuda(error) => refused(error),
        other => LayoutError::new_err(other.to_string()),
    }
}
