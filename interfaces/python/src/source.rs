//! Layouts as text that programs take along.

use crate::committed::{LayoutType, Moved};
use crate::errors::{LayoutError, mismatch};
use dtc_runtime::codegen::{mpi_c, source};
use pyo3::prelude::*;

/// The text of a layout in a form, with functions named after `name`.
pub fn source(made: &LayoutType, form: &str, name: &str) -> PyResult<String> {
    let Moved::Fixed(committed) = &made.ready()?.moved else {
        return Err(mismatch("layout", "one without index axes", "one with some"));
    };
    let pipeline = committed.pipeline();
    let text = match form {
        "c" => source::c(name, &pipeline),
        "c-header" => source::c_header(name, &pipeline),
        "cuda-header" => source::cuda_header(name, &pipeline),
        "mpi-c" => Ok(mpi_c::emit(pipeline.datatype())),
        other => return Err(mismatch("form", "c, c-header, cuda-header or mpi-c", format_args!("{other:?}"))),
    };
    text.map_err(|error| LayoutError::new_err(format!("form {form}: {error}")))
}
