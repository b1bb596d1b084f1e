//! The ABI of Open MPI: handles are addresses, those of predefined objects the addresses of symbols.

use super::{Abi, Constants, Handles};
use crate::find;
use dtc::{dtc_engine, dtc_type};
use once_cell::race::OnceBox;
use std::ffi::CStr;
use std::ffi::{c_int, c_void};

/// Open MPI.
#[derive(Clone, Copy, Debug)]
pub struct OpenMpi;

/// `MPI_Status`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Status {
    source: c_int,
    tag: c_int,
    error: c_int,
    cancelled: c_int,
    bytes: usize,
}

impl Abi for OpenMpi {
    const NAME: &'static str = "open_mpi";
    type Handle = usize;
    type Status = Status;
    const CONSTANTS: Constants = Constants {
        err_count: 2,
        err_comm: 5,
        err_truncate: 15,
        err_other: 16,
        err_in_status: 18,
        err_pending: 19,
        err_no_mem: 39,
        err_unsupported_operation: 52,
        thread_single: 0,
        thread_funneled: 1,
        thread_serialized: 2,
        thread_multiple: 3,
        proc_null: -2,
        any_source: -1,
        graph: 2,
        cart: 1,
        dist_graph: 3,
        order_fortran: 1,
        combiner_named: 0,
        combiner_contiguous: 2,
        combiner_vector: 3,
        combiner_hvector: 5,
        combiner_struct: 11,
        combiner_subarray: 12,
        combiner_f90_real: 14,
        combiner_f90_complex: 15,
        combiner_f90_integer: 16,
        combiner_value_index: c_int::MIN,
    };
    const IS_OPEN_MPI: bool = true;
    const STATUS_IGNORE: *mut Status = std::ptr::null_mut();
    const IN_PLACE: *const c_void = std::ptr::without_provenance(1);

    fn handles() -> &'static Handles<usize> {
        // SAFETY: an ABI is bound once these are found, and nothing asks before.
        unsafe { HANDLES.get().unwrap_unchecked() }
    }

    fn find_handles() -> Result<(), &'static str> {
        let _ = HANDLES.set(Box::new(found()?));
        Ok(())
    }

    fn new_status() -> Status {
        Status { source: 0, tag: 0, error: 0, cancelled: 0, bytes: 0 }
    }

    unsafe fn error_of(status: *mut Status) -> *mut c_int {
        // SAFETY: leads to a status (contract of this function).
        unsafe { &raw mut (*status).error }
    }

    unsafe fn decode(engine: *mut dtc_engine, key: c_int, datatype: usize, made: *mut *mut dtc_type) -> c_int {
        // SAFETY: as the caller says.
        unsafe { dtc_mpi_decode_open_mpi(engine.cast(), key, datatype, made.cast()) }
    }
}

unsafe extern "C" {
    /// In `c/decode.c`.
    fn dtc_mpi_decode_open_mpi(engine: *mut c_void, key: c_int, datatype: usize, made: *mut *mut c_void) -> c_int;
}

static HANDLES: OnceBox<Handles<usize>> = OnceBox::new();

/// The address of a symbol, or its name if there is none.
fn address(name: &'static CStr) -> Result<usize, &'static str> {
    let found = find::object(name);
    if found.is_null() { Err(name.to_str().unwrap_or("")) } else { Ok(found as usize) }
}

/// The predefined handles.
fn found() -> Result<Handles<usize>, &'static str> {
    Ok(Handles {
        comm_null: address(c"ompi_mpi_comm_null")?,
        comm_world: address(c"ompi_mpi_comm_world")?,
        comm_self: address(c"ompi_mpi_comm_self")?,
        datatype_null: address(c"ompi_mpi_datatype_null")?,
        byte: address(c"ompi_mpi_byte")?,
        packed: address(c"ompi_mpi_packed")?,
        short: address(c"ompi_mpi_short")?,
        int: address(c"ompi_mpi_int")?,
        double: address(c"ompi_mpi_double")?,
        errors_return: address(c"ompi_mpi_errors_return")?,
        message_null: address(c"ompi_message_null")?,
        message_no_proc: address(c"ompi_message_no_proc")?,
        request_null: address(c"ompi_request_null")?,
    })
}
