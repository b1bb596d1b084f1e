//! The standard ABI: handles are pointers, with small integers for predefined objects. (MPI 5.0, 20)

use super::{Abi, Constants, Handles};
use dtc::{dtc_engine, dtc_type};
use std::ffi::{c_int, c_void};

/// Any MPI by the standard ABI.
#[derive(Clone, Copy, Debug)]
pub struct Standard;

/// `MPI_Status`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Status {
    source: c_int,
    tag: c_int,
    error: c_int,
    internal: [c_int; 5],
}

impl Abi for Standard {
    const NAME: &'static str = "standard";
    type Handle = usize;
    type Status = Status;
    const CONSTANTS: Constants = Constants {
        err_count: 2,
        err_comm: 5,
        err_truncate: 15,
        err_other: 16,
        err_in_status: 19,
        err_pending: 18,
        err_no_mem: 39,
        err_unsupported_operation: 55,
        thread_single: 0,
        thread_funneled: 1024,
        thread_serialized: 2048,
        thread_multiple: 4096,
        proc_null: -3,
        any_source: -1,
        graph: 212,
        cart: 211,
        dist_graph: 213,
        order_fortran: 15,
        combiner_named: 101,
        combiner_contiguous: 103,
        combiner_vector: 104,
        combiner_hvector: 105,
        combiner_struct: 110,
        combiner_subarray: 111,
        combiner_f90_real: 113,
        combiner_f90_complex: 114,
        combiner_f90_integer: 115,
        combiner_value_index: 117,
    };
    const STATUS_IGNORE: *mut Status = std::ptr::null_mut();
    const IN_PLACE: *const c_void = std::ptr::without_provenance(1);

    fn handles() -> &'static Handles<usize> {
        &HANDLES
    }

    fn find_handles() -> Result<(), &'static str> {
        Ok(())
    }

    fn new_status() -> Status {
        Status { source: 0, tag: 0, error: 0, internal: [0; 5] }
    }

    unsafe fn error_of(status: *mut Status) -> *mut c_int {
        // SAFETY: leads to a status (contract of this function).
        unsafe { &raw mut (*status).error }
    }

    unsafe fn decode(engine: *mut dtc_engine, key: c_int, datatype: usize, made: *mut *mut dtc_type) -> c_int {
        // SAFETY: as the caller says.
        unsafe { dtc_mpi_decode_standard(engine.cast(), key, datatype, made.cast()) }
    }
}

unsafe extern "C" {
    /// In `c/decode.c`.
    fn dtc_mpi_decode_standard(engine: *mut c_void, key: c_int, datatype: usize, made: *mut *mut c_void) -> c_int;
}

/// The predefined handles.
static HANDLES: Handles<usize> = Handles {
    comm_null: 0x100,
    comm_world: 0x101,
    comm_self: 0x102,
    datatype_null: 0x200,
    byte: 0x247,
    packed: 0x207,
    short: 0x208,
    int: 0x209,
    double: 0x214,
    errors_return: 0x143,
    message_null: 0x128,
    message_no_proc: 0x129,
    request_null: 0x180,
};
