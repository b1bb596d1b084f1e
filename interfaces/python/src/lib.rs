//! The package `libdtc` of Python: layouts of arrays, packed and unpacked by dtc.
//!
//! `python/libdtc` re-exports what is defined here and has its types in a stub; `docs/reference/python.md` is the guide.

mod acquire;
mod array;
mod batch;
mod batch_item;
mod committed;
mod cuda_array;
mod cupy;
mod described;
mod dlpack;
mod doctor;
mod dtype;
mod errors;
mod exchange;
mod from_mpi;
mod functions;
mod index;
mod kept;
mod layout;
mod moves;
mod numpy;
mod operation;
mod ordered;
mod results;
mod source;
mod state;
mod stream;
mod strided;
mod tables;
mod view;

use pyo3::prelude::*;

/// The compiled part of the package `libdtc`, which re-exports all of it.
#[pymodule(gil_used = false)]
mod _libdtc {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::doctor::doctor;
    #[pymodule_export]
    use crate::errors::{CudaError, LayoutError};
    #[pymodule_export]
    use crate::from_mpi::from_mpi;
    #[pymodule_export]
    use crate::functions::{copy, fields, layout, load, restore};
    #[pymodule_export]
    use crate::layout::Layout;
    #[pymodule_export]
    use crate::tables::{IndexAxis, index};
}
